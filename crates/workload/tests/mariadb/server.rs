//! A private MariaDB, and how to find the programs that tests need.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ceteris_workload::DATABASE;
use load::{Address, DriveSpec, Target};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};

pub const PASSWORD: &str = "p4ss-w0rd";

/// A private server; stopped and removed when dropped.
pub struct Server {
    pub process: Child,
    dir: tempfile::TempDir,
    pub port: u16,
}

impl Server {
    /// `None`, loudly, where there is no MariaDB.
    pub fn start(test: &str) -> Option<Server> {
        let Some(program) = find("mariadbd") else {
            eprintln!("SKIPPED {test}: no mariadbd on this machine (Debian: mariadb-server)");
            return None;
        };
        let Some(install) = find("mariadb-install-db") else {
            eprintln!("SKIPPED {test}: no mariadb-install-db on this machine");
            return None;
        };
        let dir = tempfile::Builder::new().prefix("cw").tempdir_in("/tmp").unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        if let Some((uid, gid)) = place::ServerUser::find().unwrap().switch_ids() {
            for path in [dir.path(), &data] {
                std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
            }
        }
        let socket_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket_port.local_addr().unwrap().port();
        let mut install = unprivileged(&install, &dir);
        install.args([
            "--no-defaults",
            "--skip-test-db",
            "--auth-root-authentication-method=normal",
        ]);
        install.arg(format!("--datadir={}", data.display()));
        let output = install.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        drop(socket_port);
        let mut start = unprivileged(&program, &dir);
        start.args(["--no-defaults", "--bind-address=127.0.0.1", "--innodb-buffer-pool-size=128M"]);
        start.args(["--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=64M"]);
        start.arg(format!("--datadir={}", data.display()));
        start.arg(format!("--socket={}", dir.path().join("s").display()));
        start.arg(format!("--pid-file={}", dir.path().join("pid").display()));
        start.arg(format!("--log-error={}", dir.path().join("log").display()));
        start.arg(format!("--port={port}"));
        let process = start.spawn().unwrap();
        let mut server = Server { process, dir, port };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.admin().is_err() {
            if let Some(status) = server.process.try_wait().unwrap() {
                let log = std::fs::read_to_string(server.dir.path().join("log"));
                panic!("mariadbd ended with {status}: {}", log.unwrap_or_default());
            }
            assert!(Instant::now() < deadline, "mariadbd does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        let mut admin = server.admin().unwrap();
        for statement in [
            format!("CREATE USER tester@localhost IDENTIFIED BY '{PASSWORD}'"),
            "GRANT ALL ON *.* TO tester@localhost".to_owned(),
            "CREATE USER empty@localhost".to_owned(),
            "GRANT ALL ON *.* TO empty@localhost".to_owned(),
        ] {
            admin.query_drop(statement).unwrap();
        }
        Some(server)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub fn admin(&self) -> Result<Conn, mysql::Error> {
        let opts = OptsBuilder::new().user(Some("root")).prefer_socket(false);
        Conn::new(opts.socket(Some(self.socket().to_string_lossy())))
    }

    pub fn target(&self) -> Target {
        Target {
            address: Address::Socket(self.socket()),
            user: "tester".into(),
            password: PASSWORD.into(),
            database: DATABASE.into(),
            tls: Default::default(),
        }
    }

    pub fn spec(&self, connections: u32) -> DriveSpec {
        DriveSpec {
            targets: vec![self.target()],
            connections,
            threads: Some(2),
            pin: Some(vec![]),
            warmup: Duration::from_millis(500),
            measure: Duration::from_secs(2),
            seed: 1,
            ..DriveSpec::default()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}

/// A command that runs as an unprivileged user if we are root, quietly.
fn unprivileged(program: &Path, dir: &tempfile::TempDir) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = place::ServerUser::find().unwrap().switch_ids() {
        command.gid(gid).uid(uid);
    }
    command.current_dir(dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
    // Servers name their temporary files by process ids, which are not unique between containers.
    command.env("TMPDIR", dir.path());
    command.stderr(Stdio::piped());
    command
}
