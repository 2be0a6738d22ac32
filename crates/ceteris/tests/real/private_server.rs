//! A private MariaDB for `ceteris bench`, as a user would have one; gone when dropped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mysql::prelude::{FromRow, Queryable};
use mysql::{Conn, OptsBuilder};
use tempfile::TempDir;

use crate::laboratory::Laboratory;

/// Long and strange enough to be found wherever it should not be.
pub const PASSWORD: &str = "pw-9f3c1a77e0";

/// See the module.
pub struct PrivateServer {
    process: Child,
    dir: TempDir,
}

impl PrivateServer {
    /// `None`, loudly, where there is no MariaDB. The laboratory's turn is ours meanwhile.
    pub fn start(lab: &Laboratory) -> Option<PrivateServer> {
        let (Some(program), Some(install)) = (find("mariadbd"), find("mariadb-install-db")) else {
            eprintln!("SKIPPED: no mariadbd or mariadb-install-db on this machine");
            return None;
        };
        lab.write("password", &format!("{PASSWORD}\n"));
        let dir = tempfile::Builder::new().prefix("cb").tempdir_in("/tmp").unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        let ids = place::ServerUser::find().unwrap().switch_ids();
        if let Some((uid, gid)) = ids {
            let owner = format!("{uid}:{gid}");
            let given = Command::new("chown").arg("-R").arg(&owner).arg(dir.path()).status();
            assert!(given.unwrap().success(), "chown to {owner}");
        }
        let command = |program: &Path| {
            let mut command = match ids {
                Some((uid, gid)) => {
                    let mut command = Command::new("setpriv");
                    command.arg(format!("--reuid={uid}")).arg(format!("--regid={gid}"));
                    command.arg("--clear-groups").arg(program);
                    command
                }
                None => Command::new(program),
            };
            command.arg("--no-defaults").arg(format!("--datadir={}/data", dir.path().display()));
            command.stdin(Stdio::null());
            command
        };
        let made = command(&install)
            .args(["--skip-test-db", "--auth-root-authentication-method=normal"])
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "mariadb-install-db: {complaint}");
        let process = command(&program)
            .args(["--skip-networking", "--innodb-flush-log-at-trx-commit=2"])
            .arg(format!("--socket={}/s", dir.path().display()))
            .arg(format!("--pid-file={}/pid", dir.path().display()))
            .arg(format!("--log-error={}/log", dir.path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = PrivateServer { process, dir };
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.connect().is_err() {
            assert!(server.process.try_wait().unwrap().is_none(), "mariadbd ended");
            assert!(Instant::now() < deadline, "mariadbd does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        server.run(&format!("CREATE USER tester@localhost IDENTIFIED BY '{PASSWORD}'"));
        server.run("GRANT ALL ON bench.* TO tester@localhost");
        Some(server)
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    /// The database `bench` for the user `tester`.
    pub fn dsn(&self) -> String {
        format!("mysql://tester@localhost/bench?socket={}", self.socket().display())
    }

    fn connect(&self) -> Result<Conn, mysql::Error> {
        let opts = OptsBuilder::new().user(Some("root")).prefer_socket(false);
        Conn::new(opts.socket(Some(self.socket().to_string_lossy())))
    }

    pub fn run(&self, statement: &str) {
        self.connect().unwrap().query_drop(statement).unwrap();
    }

    pub fn ask<T: FromRow>(&self, question: &str) -> Vec<T> {
        self.connect().unwrap().query(question).unwrap()
    }

    /// Tables of the database `bench`.
    pub fn tables(&self) -> Vec<String> {
        self.ask(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'bench' \
             ORDER BY table_name",
        )
    }

    /// sysbench with two tables of 500 rows on the database `bench`; `false`, loudly, where there
    /// is none.
    pub fn sysbench(&self, script: &str, action: &str) -> bool {
        let Some(sysbench) = find("sysbench") else {
            eprintln!("SKIPPED: no sysbench on this machine");
            return false;
        };
        let output = Command::new(sysbench)
            .args([script, "--tables=2", "--table-size=500", "--events=20", "--time=10"])
            .args(["--mysql-user=root", "--mysql-db=bench"])
            .arg(format!("--mysql-socket={}", self.socket().display()))
            .arg(action)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        true
    }
}

impl Drop for PrivateServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .map(|dir| dir.join(program))
        .find(|path| path.is_file())
}
