//! A cache, a working directory and a study of one test's own, and the binary run in them.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;
use tempfile::TempDir;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Everything of one test.
pub struct Laboratory {
    dir: TempDir,
    cache: Option<PathBuf>,
    _turn: MutexGuard<'static, ()>,
}

impl Laboratory {
    /// With a cache of its own.
    pub fn new() -> Laboratory {
        let mut lab = Laboratory::on_the_shared_cache();
        lab.cache = Some(lab.path("cache"));
        std::fs::create_dir(lab.path("cache")).unwrap();
        lab
    }

    /// With the user's cache, so that packages are fetched once on a machine.
    pub fn on_the_shared_cache() -> Laboratory {
        use std::os::unix::fs::PermissionsExt;
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // Short, for Unix sockets; open, for the unprivileged server user to pass through.
        let dir = tempfile::Builder::new().prefix("ct").tempdir_in("/tmp").unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        Laboratory { dir, cache: None, _turn: turn }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file into the working directory.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ceteris"));
        command.args(arguments).current_dir(self.dir.path()).stdin(Stdio::null());
        if let Some(cache) = &self.cache {
            command.env("CETERIS_CACHE", cache);
        }
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs to the end, which must be good; gives standard output.
    pub fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "ceteris {arguments:?}: {}\n{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts and does not wait.
    pub fn start(&self, arguments: &[&str]) -> Child {
        let log = std::fs::File::create(self.path("talk.log")).unwrap();
        self.command(arguments).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// `ceteris show --format json`, held against its schema.
    pub fn show(&self, result: &str) -> Value {
        let shown: Value =
            serde_json::from_str(&self.succeed(&["show", result, "--format", "json"])).unwrap();
        let schema_path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/show.schema.json");
        let schema: Value =
            serde_json::from_str(&std::fs::read_to_string(schema_path).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(&shown).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        shown
    }

    /// Processes that carry this laboratory's directory in their arguments or environment.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let needle = self.dir.path().to_str().unwrap().as_bytes().to_vec();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let arguments = read("cmdline");
            let mut all = arguments.clone();
            all.extend(read("environ"));
            if pid != std::process::id() && all.windows(needle.len()).any(|w| w == needle) {
                found.push((pid, String::from_utf8_lossy(&arguments).replace('\0', " ")));
            }
        }
        found
    }

    /// Nothing of this laboratory runs, and no instance is left on disk.
    pub fn assert_nothing_left(&self) {
        assert_eq!(self.processes(), vec![], "processes left");
        let cache = self.cache.as_ref().expect("a cache of its own");
        for room in ["instances", "journal"] {
            let left: Vec<_> = std::fs::read_dir(cache.join(room))
                .map(|entries| entries.flatten().map(|e| e.path()).collect())
                .unwrap_or_default();
            assert!(left.is_empty(), "left in {room}: {left:?}");
        }
    }
}

/// Whether the package `installed` can be had; says so loudly when not.
pub fn server_installed() -> bool {
    let there = ["mariadbd", "mysqld"].iter().any(|name| {
        ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/libexec"]
            .iter()
            .any(|dir| Path::new(dir).join(name).exists())
    });
    if !there {
        eprintln!("SKIPPED: no mariadbd or mysqld on this machine");
    }
    there
}

/// A study that takes seconds: two levels of durability.
pub fn small_study(package: &str) -> String {
    format!(
        r#"title = "What does full durability cost, in short?"

[server]
package = "{package}"

[server.config]
innodb_buffer_pool_size = "64M"

[workload.oltp_write_only]
tables = 2
rows   = 1_000

[load]
connections = 4
warmup      = "500ms"
measure     = "1s"

[[question]]
name   = "durability"
vary   = "server.config.innodb_flush_log_at_trx_commit"
levels = [2, 1]
blocks = 2
"#
    )
}
