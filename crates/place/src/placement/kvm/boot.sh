#!/bin/sh
# The first process of every guest that ceteris built: mounts the disk with what this guest is for
# and leaves everything else to the script on it. Without such a disk it was only a trial of the
# accelerator. This one is part of the base system, which takes a minute to make and seldom changes.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
for module in virtio_blk virtio_scsi virtio_net virtio_console virtio_rng ext4; do
    modprobe -q "$module"
done
if mount -t ext4 -o ro LABEL=ceteris-server /srv 2>/dev/null; then
    exec /bin/sh /srv/ceteris/init
fi
echo "ceteris: booted" >/dev/console
echo o >/proc/sysrq-trigger
sleep 60
