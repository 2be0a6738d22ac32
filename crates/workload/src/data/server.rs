//! Administrative connections, and work spread over several of them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use load::{Address, Target, Tls, TlsMode};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, SslOpts};

use super::{DATABASE, LoadError};

/// Bytes of a statement that an error shows.
const SHOWN_BYTES: usize = 120;

pub(super) fn database(target: &Target) -> &str {
    if target.database.is_empty() { DATABASE } else { &target.database }
}

/// A connection with the tables' database as its default.
pub(super) fn connect(target: &Target) -> Result<Conn, LoadError> {
    open(target, Some(database(target)))
}

/// A connection with or without a default database.
pub(super) fn open(target: &Target, database: Option<&str>) -> Result<Conn, LoadError> {
    let opts = OptsBuilder::new()
        .user(Some(&target.user))
        .pass(Some(&target.password).filter(|password| !password.is_empty()))
        .db_name(database)
        .prefer_socket(false)
        .ssl_opts(encryption(&target.tls));
    let opts = match &target.address {
        Address::Socket(path) => opts.socket(Some(path.to_string_lossy())),
        Address::Tcp(host, port) => opts.ip_or_hostname(Some(host)).tcp_port(*port),
    };
    Conn::new(opts).map_err(|source| LoadError::Connect {
        address: target.address.to_string(),
        source: source.into(),
    })
}

/// The same demands as the load's own connections make, but for two things that the `mysql` crate
/// decides: it does not encrypt over a Unix socket, and it trusts the public authorities that it
/// carries beside those of `ca`.
fn encryption(tls: &Tls) -> Option<SslOpts> {
    let verifies = match tls.mode {
        TlsMode::Disabled => return None,
        TlsMode::Required => false,
        TlsMode::VerifyCa | TlsMode::VerifyIdentity => true,
    };
    let authorities = if verifies { tls.ca.clone().or_else(machine_authorities) } else { None };
    let opts = SslOpts::default()
        .with_root_cert_path(authorities)
        .with_danger_accept_invalid_certs(!verifies)
        .with_danger_skip_domain_validation(tls.mode != TlsMode::VerifyIdentity);
    Some(opts)
}

/// Where Debian, Red Hat, SUSE and Alpine keep the authorities of a machine.
fn machine_authorities() -> Option<PathBuf> {
    let usual = [
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
        "/etc/ssl/cert.pem",
    ];
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    named.into_iter().chain(usual.map(PathBuf::from)).find(|path| path.is_file())
}

/// Whether there is such a database that this user may see.
pub(super) fn exists(connection: &mut Conn, database: &str) -> Result<bool, LoadError> {
    let text = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?";
    let found: Option<u64> = connection
        .exec_first(text, (database,))
        .map_err(|error| LoadError::statement(text, error))?;
    Ok(found.unwrap_or_default() > 0)
}

/// Creates the database; one that holds tables is refused.
pub(super) fn create_database(target: &Target) -> Result<(), LoadError> {
    let mut connection = open(target, None)?;
    let database = database(target);
    let text = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ?";
    let tables: Option<u64> = connection
        .exec_first(text, (database,))
        .map_err(|source| LoadError::Statement { statement: text.into(), source: source.into() })?;
    match tables {
        Some(tables) if tables > 0 => Err(LoadError::Occupied {
            address: target.address.to_string(),
            database: database.to_owned(),
            tables,
        }),
        _ => {
            let name = database.replace('`', "``");
            run(&mut connection, &format!("CREATE DATABASE IF NOT EXISTS `{name}`"))
        }
    }
}

/// Runs a statement whose result does not matter.
pub(super) fn run(connection: &mut Conn, statement: &str) -> Result<(), LoadError> {
    connection.query_drop(statement).map_err(|source| LoadError::Statement {
        statement: statement.chars().take(SHOWN_BYTES).collect(),
        source: source.into(),
    })
}

/// Does `work` on every job, `threads` connections at once. The first error ends all.
pub(super) fn in_parallel<J: Sync>(
    target: &Target,
    jobs: &[J],
    threads: u32,
    work: impl Fn(&mut Conn, &J) -> Result<(), LoadError> + Sync,
) -> Result<(), LoadError> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one = || {
        let mut connection = connect(target)?;
        while !failed.load(Ordering::Relaxed)
            && let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
        {
            work(&mut connection, job)?;
        }
        Ok(())
    };
    let threads = usize::try_from(threads).unwrap_or(usize::MAX).min(jobs.len());
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| one().inspect_err(|_| failed.store(true, Ordering::Relaxed))))
            .collect();
        let results = handles.into_iter().map(|handle| handle.join());
        // All are joined before the first error is returned.
        let results: Vec<_> =
            results.map(|result| result.unwrap_or(Err(LoadError::Internal))).collect();
        results.into_iter().collect()
    })
}
