#!/bin/sh
# What a guest does once `boot.sh` has mounted this disk on /srv.
#
# /srv is the root in which the server and its libraries lie at the same paths as on the machine that
# runs the guest. Mounts the data disk below it, starts what the seed disk says (`serve`), sends its
# log to a port of the host, runs the observer on another, and powers off when it has ended. Instead
# of a server any command can be run, in a writable root of the base system and that disk together.
# Speaks to the host by lines on the console that begin with "ceteris: ".
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

# Not /dev/console, which a cloud image may have elsewhere.
say() { echo "ceteris: $*" >/dev/ttyS0; }

off() {
    sync
    umount "$root$DIR" /run/disk 2>/dev/null
    echo o >/proc/sysrq-trigger
    sleep 60
}

fail() {
    say "cannot start: $*"
    off
}

# What carries this name: a disk by its serial number, a port to the host by its own.
disk() {
    for serial in /sys/block/vd*/serial; do
        [ "$(cat "$serial")" = "$1" ] && serial=${serial%/serial} && echo "/dev/${serial##*/}" && return
    done
}

port() {
    for name in /sys/class/virtio-ports/*/name; do
        [ "$(cat "$name")" = "$1" ] && name=${name%/name} && echo "/dev/${name##*/}" && return
    done
}

# The data disk, which may be found a moment late.
mount_data() {
    for attempt in 1 2 3 4 5 6 7 8 9 10; do
        mount -t ext4 LABEL=ceteris-data "$1" 2>/run/why && return
        sleep 0.3
    done
    fail "no data disk: $(cat /run/why)"
}

root=/srv
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup 2>/dev/null
mkdir -p /run/seed
tar -xf "$(disk ceteris-seed)" -C /run/seed || fail "no seed disk"
# KIND, DIR, OWNER, ADDRESS, OPEN_FILES and the function `serve`.
. /run/seed/start

ip link set lo up
if [ -n "$ADDRESS" ]; then
    for device in /sys/class/net/*/device; do
        device=${device%/device} && device=${device##*/}
    done
    ip address replace "$ADDRESS" dev "$device" || fail "no network device"
    ip link set "$device" up
fi

# In memory, so that the server can tell of a full disk.
touch /run/error.log
if [ "$KIND" = command ]; then
    mkdir /run/disk /run/root
    mount_data /run/disk
    mkdir /run/disk/upper /run/disk/work
    modprobe overlay
    mount -t overlay -o lowerdir=/srv:/,upperdir=/run/disk/upper,workdir=/run/disk/work \
        overlay /run/root || fail "no writable root"
    root=/run/root
fi
for tree in proc sys dev; do
    mkdir -p "$root/$tree"
    mount --rbind "/$tree" "$root/$tree" || fail "cannot mount $tree"
done
if [ "$KIND" = server ]; then
    mount -t tmpfs -o mode=755 tmpfs "$root${DIR%/*}"
    mkdir "$root$DIR"
    mount_data "$root$DIR"
    cp /run/seed/my.cnf /run/seed/init.sql "$root$DIR/" || fail "cannot write to the data disk"
    touch "$root$DIR/error.log"
    mount --bind /run/error.log "$root$DIR/error.log"
    chown "$OWNER" "$root$DIR/my.cnf" "$root$DIR/init.sql" /run/error.log
    chmod 600 "$root$DIR/my.cnf" "$root$DIR/init.sql"
fi

ulimit -c 0
ulimit -n "$OPEN_FILES"
say "starting the $KIND"
serve "$root" >>/run/error.log 2>&1 &
server=$!

tail --bytes=+1 --follow --sleep-interval=0.1 --pid="$server" /run/error.log >"$(port ceteris.log)" &
sent=$!

observer=$(port ceteris.observer)
[ -n "$observer" ] && while :; do
    chroot "$root" /ceteris/ceteris observe "$observer" >/dev/null 2>&1
    sleep 1
done &

exec 3<>"$(port ceteris.control)"
while :; do
    # Without anybody at the other end a read ends at once.
    if read -r word <&3; then
        [ "$word" = stop ] && kill -TERM "$server"
    else
        sleep 1
    fi
done &

wait "$server"
status=$?
wait "$sent"
say "the $KIND ended with status $status"
off
