//! Authorities and certificates, made with `openssl` for one test.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An authority and what it signed, in a directory that a server of another user can read.
pub struct Authority {
    dir: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Authority {
        let dir = tempfile::Builder::new().prefix("ca").tempdir_in("/tmp").unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(dir.path(), mode).unwrap();
        let authority = Authority { dir };
        authority.openssl(
            "req -x509 -new -newkey rsa:2048 -nodes -days 2 -subj /CN=Tests \
             -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem",
        );
        authority
    }

    /// A key and a certificate for `host`; the names of the files.
    pub fn sign(&self, host: &str) -> (PathBuf, PathBuf) {
        let extension = format!("subjectAltName=DNS:{host}\nbasicConstraints=CA:FALSE\n");
        std::fs::write(self.path("extension"), extension).unwrap();
        self.openssl(&format!(
            "req -new -newkey rsa:2048 -nodes -subj /CN={host} -keyout server.key -out server.csr"
        ));
        self.openssl(
            "x509 -req -in server.csr -days 2 -CA ca.pem -CAkey ca.key -CAcreateserial \
             -extfile extension -out server.pem",
        );
        // yaSSL reads no other form.
        self.openssl("rsa -traditional -in server.key -out server-rsa.key");
        for key in ["server.key", "server-rsa.key"] {
            // Of no worth beyond this test, and the server runs as somebody else.
            let mode = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(self.path(key), mode).unwrap();
        }
        (self.path("server-rsa.key"), self.path("server.pem"))
    }

    pub fn certificate(&self) -> PathBuf {
        self.path("ca.pem")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(self.dir.path())
            .output()
            .expect("openssl is installed (scripts/install test)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
