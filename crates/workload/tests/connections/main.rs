//! Every way into a real server, and what is said where there is none.
//!
//! Packages are fetched into the user's cache; one that cannot be had is SKIPPED on standard error.
#![allow(clippy::unwrap_used)]

mod certificates;
mod server;
mod wiretap;

use load::{Address, Target, Tls, TlsMode};
use mysql::prelude::Queryable;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use certificates::{Authority, text};
use server::{QUESTION, Server, everybody, fail, prepare, prepare_private, succeed, target};
use wiretap::Wiretap;

const PASSWORD: &str = "s3cret-Pass-w0rd";
const WRONG: &str = "an-0ther-secret";
const TLS_MODES: [TlsMode; 2] = [TlsMode::Disabled, TlsMode::Required];

fn encrypting(authority: &Authority, host: &str) -> [(&'static str, String); 3] {
    let (key, certificate) = authority.sign(host);
    [
        ("ssl_ca", text(&authority.certificate())),
        ("ssl_cert", text(&certificate)),
        ("ssl_key", text(&key)),
    ]
}

fn with_ca(mut target: Target, mode: TlsMode, authority: &Authority) -> Target {
    target.tls = Tls { mode, ca: Some(authority.certificate()) };
    target
}

/// Nothing that a server remembers holds a password that a driver sent.
fn assert_not_overheard(server: &mut Server) {
    server.run(&["SET GLOBAL general_log = 0"]);
    let count = |server: &mut Server, text: &str| -> u64 {
        let query = "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE ?";
        server.admin.exec_first(query, (format!("%{text}%"),)).unwrap().unwrap()
    };
    assert!(count(server, "answered") > 0, "the log was on");
    // The question itself may be in the log, where the server prepares.
    for secret in [PASSWORD, WRONG] {
        let shown: Vec<String> = server
            .admin
            .exec("SELECT CONVERT(argument USING utf8) FROM mysql.general_log", ())
            .unwrap();
        assert!(shown.iter().all(|line| !line.contains(secret) || line.contains("general_log")));
        let processes: Vec<Option<String>> =
            server.admin.query("SELECT info FROM information_schema.processlist").unwrap();
        assert!(processes.iter().flatten().all(|info| !info.contains(secret)));
    }
}

fn remember(server: &mut Server) {
    server.run(&["SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1"]);
}

#[test]
fn mariadb_by_every_plugin_and_every_way() {
    let authority = Authority::new();
    let Some(mut server) = Server::start("installed", &encrypting(&authority, "localhost")) else {
        return;
    };
    let native = format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'");
    server.run(&[&native, "CREATE USER blank@'%'"]);
    let secure = format!("CREATE USER secure@'%' IDENTIFIED BY '{PASSWORD}' REQUIRE SSL");
    server.run(&[&secure, "GRANT ALL ON *.* TO native@'%'"]);
    server.run(&["GRANT ALL ON *.* TO secure@'%'"]);
    let mut users = vec!["native"];
    if server.admin.query_drop("INSTALL SONAME 'auth_ed25519'").is_ok() {
        server.run(&[&format!(
            "CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('{PASSWORD}')"
        )]);
        server.run(&["GRANT ALL ON *.* TO ed@'%'"]);
        users.push("ed");
    } else {
        eprintln!("SKIPPED ed25519: this server has no auth_ed25519 (scripts/install test)");
    }
    remember(&mut server);
    for mode in TLS_MODES {
        for address in [server.socket(), server.tcp()] {
            for user in &users {
                succeed(&target(address.clone(), user, PASSWORD, mode));
                let error = fail(&target(address.clone(), user, WRONG, mode));
                assert!(
                    error.contains("1045") && error.contains("check user, password"),
                    "{error}"
                );
            }
            succeed(&target(address.clone(), "blank", "", mode));
            let error = fail(&target(address.clone(), "native", "", mode));
            assert!(error.contains("1045") && error.contains("using password: NO"), "{error}");
        }
    }
    // The server's own word that it was encrypted, by both ways of ours.
    for address in [server.socket(), server.tcp()] {
        succeed(&target(address.clone(), "secure", PASSWORD, TlsMode::Required));
        let error = fail(&target(address, "secure", PASSWORD, TlsMode::Disabled));
        assert!(error.contains("1045"), "{error}");
    }
    for user in users.iter().chain(&["secure"]) {
        prepare(&target(server.tcp(), user, PASSWORD, TlsMode::Required)).unwrap();
    }
    let plain = target(server.tcp(), "secure", PASSWORD, TlsMode::Disabled);
    prepare(&plain).unwrap_err();
    assert_not_overheard(&mut server);
}

#[test]
fn a_certificate_is_looked_at_as_closely_as_was_asked() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let Some(mut server) = Server::start("installed", &encrypting(&ours, "localhost")) else {
        return;
    };
    let user = format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'");
    server.run(&[&user, "GRANT ALL ON *.* TO native@'%'"]);
    let named = target(server.tcp(), "native", PASSWORD, TlsMode::Disabled);
    let numbered =
        Target { address: Address::Tcp("127.0.0.1".into(), server.port()), ..named.clone() };
    let checked = |target: Target, mode, authority: &Authority, right: bool| {
        let target = with_ca(target, mode, authority);
        let control = prepare(&target);
        if right {
            control.unwrap();
            succeed(&target);
            return String::new();
        }
        control.unwrap_err();
        fail(&target)
    };
    checked(named.clone(), TlsMode::VerifyCa, &ours, true);
    checked(named.clone(), TlsMode::VerifyIdentity, &ours, true);
    checked(numbered.clone(), TlsMode::VerifyCa, &ours, true);
    // Nobody asks for the authority, so a wrong one does no harm.
    checked(named.clone(), TlsMode::Required, &theirs, true);
    let error = checked(numbered, TlsMode::VerifyIdentity, &ours, false);
    assert!(error.contains("subject alternative name"), "{error}");
    for mode in [TlsMode::VerifyCa, TlsMode::VerifyIdentity] {
        let error = checked(named.clone(), mode, &theirs, false);
        assert!(error.contains("is that the authority"), "{error}");
        let machine = Target { tls: Tls { mode, ca: None }, ..named.clone() };
        let error = fail(&machine);
        assert!(error.contains("is that the authority") || error.contains("PEM"), "{error}");
    }
    let mut missing = with_ca(named, TlsMode::VerifyCa, &ours);
    missing.tls.ca = Some("/nonexistent/ca.pem".into());
    let error = fail(&missing);
    assert!(error.contains("/nonexistent/ca.pem") && error.contains("PEM"), "{error}");
}

/// `caching_sha2_password` and `sha256_password` by every way that they have; `modes` are those that
/// the server can.
fn sha2(package: &str, modes: &[TlsMode]) {
    let authority = Authority::new();
    let Some(mut server) = Server::start(package, &encrypting(&authority, "localhost")) else {
        return;
    };
    for (user, plugin) in [("caching", "caching_sha2_password"), ("sha", "sha256_password")] {
        server.run(&[&format!("CREATE USER {user}@'%' IDENTIFIED WITH {plugin} BY '{PASSWORD}'")]);
    }
    server.run(&["GRANT ALL ON *.* TO caching@'%'"]);
    server.run(&["CREATE USER blank@'%' IDENTIFIED WITH caching_sha2_password BY ''"]);
    remember(&mut server);
    let tap = Wiretap::before(server.port());
    let tapped = Address::Tcp("localhost".into(), tap.port);
    const KEY: &str = "BEGIN PUBLIC KEY";
    // Forgets who has logged in, so that the next must do it in full.
    const FORGET: &[&str] = &["FLUSH PRIVILEGES"];

    server.run(FORGET);
    succeed(&target(tapped.clone(), "caching", PASSWORD, TlsMode::Disabled));
    let full = tap.take();
    assert!(full.has(KEY) && full.has(QUESTION) && !full.has(PASSWORD));
    succeed(&target(tapped.clone(), "caching", PASSWORD, TlsMode::Disabled));
    let fast = tap.take();
    assert!(!fast.has(KEY) && fast.has(QUESTION) && !fast.has(PASSWORD));
    server.run(FORGET);
    let verified = with_ca(
        target(tapped.clone(), "caching", PASSWORD, TlsMode::Disabled),
        TlsMode::VerifyIdentity,
        &authority,
    );
    if modes.contains(&TlsMode::Required) {
        succeed(&verified);
    } else {
        let error = fail(&verified);
        assert!(error.contains("neither TLS 1.2 nor 1.3") && error.contains("ECDHE"), "{error}");
    }
    let encrypted = tap.take();
    assert!(!encrypted.has(KEY) && !encrypted.has(QUESTION) && !encrypted.has("caching\0"));
    assert!(!encrypted.has(PASSWORD));
    for &mode in modes {
        server.run(FORGET);
        succeed(&target(server.socket(), "caching", PASSWORD, mode));
        succeed(&target(tapped.clone(), "sha", PASSWORD, mode));
        let heard = tap.take();
        assert!(!heard.has(PASSWORD) && heard.has(QUESTION) == (mode == TlsMode::Disabled));
        succeed(&target(tapped.clone(), "blank", "", mode));
        for user in ["caching", "sha"] {
            let error = fail(&target(tapped.clone(), user, WRONG, mode));
            assert!(error.contains("1045") && error.contains("check user"), "{error}");
        }
        let error = fail(&target(tapped.clone(), "caching", "", mode));
        assert!(error.contains("1045"), "{error}");
        assert!(!tap.take().has(WRONG));
        server.run(FORGET);
        prepare(&target(server.tcp(), "caching", PASSWORD, mode)).unwrap();
    }
    let endless = "x".repeat(300);
    let error = fail(&target(server.tcp(), "caching", &endless, TlsMode::Disabled));
    assert!(error.contains("too long"), "{error}");
    assert_not_overheard(&mut server);
}

#[test]
fn mysql_8_0_by_sha2() {
    // Built with OpenSSL 1.0, it offers no key exchange that our TLS does.
    sha2("mysql-8.0.12", &[TlsMode::Disabled]);
}

#[test]
fn mysql_9_7_by_sha2() {
    sha2("mysql-9.7", &TLS_MODES);
}

/// The redo log is off while rows are loaded where the server can do that, and on afterwards; the
/// rows are there all the same.
#[test]
fn a_server_of_our_own_is_loaded_without_redo_log() {
    for (package, has_switch) in [("mysql-9.7", true), ("mysql-8.0.12", false)] {
        let Some(mut server) = Server::start(package, &[("local_infile", "ON".to_owned())]) else {
            continue;
        };
        server.run(&["CREATE USER native@'%' IDENTIFIED BY ''", "GRANT ALL ON *.* TO native@'%'"]);
        remember(&mut server);
        let native = target(server.socket(), "native", "", TlsMode::Disabled);
        let facts = prepare_private(&native);
        assert_eq!(facts["sbtest1.rows"], "10");
        let said: Vec<String> = server
            .admin
            .query(
                "SELECT CONVERT(argument USING utf8) FROM mysql.general_log \
                 WHERE argument LIKE 'ALTER INSTANCE%' ORDER BY event_time",
            )
            .unwrap();
        let status = "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'";
        let enabled: Option<(String, String)> = server.admin.query_first(status).unwrap();
        if has_switch {
            assert_eq!(facts["redo_log"], "off while loading, on again before the shutdown");
            assert_eq!(said.len(), 2, "{said:?}");
            assert!(said[0].contains("DISABLE") && said[1].contains("ENABLE"), "{said:?}");
            assert_eq!(enabled.unwrap().1, "ON");
        } else {
            assert_eq!((facts["redo_log"].as_str(), said.len()), ("on while loading", 0));
            assert_eq!(enabled, None);
        }
        // A database that somebody else may need is filled as always, and logged.
        server.run(&["TRUNCATE TABLE mysql.general_log"]);
        prepare(&native).unwrap();
        let said: Option<u64> = server
            .admin
            .query_first(
                "SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE 'ALTER INSTANCE%'",
            )
            .unwrap();
        // The question itself may be in the log.
        assert!(said.unwrap() <= 1, "{said:?}");
        server.run(&["SET GLOBAL general_log = 0"]);
    }
}

/// What this build speaks is too old, and that is what is said.
#[test]
fn a_server_that_is_too_old_for_our_tls_says_so() {
    let authority = Authority::new();
    let config = encrypting(&authority, "localhost");
    let Some(mut server) = Server::start("mysql-5.7.22", &config) else { return };
    server.run(&[&format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'")]);
    for address in [server.socket(), server.tcp()] {
        succeed(&target(address, "native", PASSWORD, TlsMode::Disabled));
    }
    let error = fail(&target(server.tcp(), "native", PASSWORD, TlsMode::Required));
    assert!(error.contains("neither TLS 1.2 nor 1.3") && error.contains("yaSSL"), "{error}");
}

/// This build has no TLS at all.
#[test]
fn the_oldest_server_is_reached_without_tls() {
    let Some(mut server) = Server::start("mysql-5.5.9", &[]) else { return };
    server.run(&[&format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'")]);
    for address in [server.socket(), server.tcp()] {
        succeed(&target(address.clone(), "native", PASSWORD, TlsMode::Disabled));
        let error = fail(&target(address, "native", PASSWORD, TlsMode::Required));
        assert!(error.contains("does not offer it"), "{error}");
    }
}

#[test]
fn a_server_without_tls_is_refused_where_it_is_demanded() {
    let off = [("skip_ssl", "1".to_owned())];
    let Some(mut server) = Server::start("installed", &off) else { return };
    server.run(&[&format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'")]);
    let demanding = target(server.tcp(), "native", PASSWORD, TlsMode::Required);
    let error = fail(&demanding);
    assert!(error.contains("does not offer it"), "{error}");
    prepare(&demanding).unwrap_err();
}

/// As many as one worker is asked for in earnest: none is left out, and the report says how evenly
/// they were served.
#[test]
fn two_thousand_connections_to_a_real_server() {
    many("mysql-8.0.12");
}

/// The same on the server of this machine, which others have too.
#[test]
fn two_thousand_connections_to_the_installed_server() {
    many("installed");
}

/// Connections of [`many`].
const MANY: u32 = 2_000;

fn many(package: &str) {
    // A file for each on this side; the server inherits the limit for the other.
    let limit = getrlimit(Resource::Nofile);
    let needed = 3 * u64::from(MANY);
    if limit.maximum.is_some_and(|most| most < needed) {
        eprintln!("SKIPPED {MANY} connections: {:?} open files are allowed", limit.maximum);
        return;
    }
    if limit.current.is_some_and(|current| current < needed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(needed), ..limit }).unwrap();
    }
    let config = [
        ("max_connections", (MANY + 50).to_string()),
        ("table_open_cache", "400".to_owned()),
        ("back_log", "512".to_owned()),
        // Threads that hold little, so that a small machine can have them all.
        ("thread_stack", "256K".to_owned()),
        ("thread_cache_size", "0".to_owned()),
    ];
    let Some(mut server) = Server::start(package, &config) else { return };
    let allowed: u32 = server.admin.query_first("SELECT @@max_connections").unwrap().unwrap();
    if allowed < MANY {
        eprintln!("SKIPPED {MANY} connections: this server allows {allowed} here");
        return;
    }
    server.run(&[&format!("CREATE USER native@'%' IDENTIFIED BY '{PASSWORD}'")]);
    let target = target(server.socket(), "native", PASSWORD, TlsMode::Disabled);
    let (report, connected) = everybody(&target, MANY);
    assert_eq!(connected, MANY);
    let used: (String, u32) = server
        .admin
        .query_first("SHOW GLOBAL STATUS LIKE 'Max_used_connections'")
        .unwrap()
        .unwrap();
    assert!(used.1 > MANY, "{used:?}: ours and the administrator's at once");
    let fairness = report.fairness.unwrap();
    assert!(fairness.min >= 1, "a connection starved: {fairness:?}");
    assert!(fairness.max >= fairness.min && fairness.mean >= 1.0, "{fairness:?}");
    assert_eq!((fairness.mean * f64::from(MANY)).round() as u64, report.transactions);
    assert_eq!((report.errors.len(), report.failed, report.reconnects), (0, 0, 0));
    eprintln!("{package}: {} transactions, {fairness:?}", report.transactions);
}
