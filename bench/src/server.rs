//! The server that is driven: a package of the catalogue, placed as a study would place it, with
//! tables loaded by ceteris and a user without a password, on a private socket and on loopback.

use std::sync::Arc;

use load::{Address, Target};
use mysql::prelude::Queryable;
use place::{Cache, CommandLog, Instance, InstanceSpec, Journal, Quiet, resolve_package};

use crate::Failed;

/// Without a password, because some peers take one only as an argument.
pub const USER: &str = "yardstick";

/// Rows of each of the [`TABLES`].
pub const ROWS: u64 = 100_000;
/// Tables.
pub const TABLES: u32 = 4;

/// A running server.
pub struct Server {
    instance: Box<dyn Instance>,
}

impl Server {
    /// Starts `package` as it is driven, with `config` lines added, without tables.
    pub fn start(package: &str, config: &str) -> Result<Server, Failed> {
        let config = format!(
            "max_connections = 3000\nmax_prepared_stmt_count = 200000\n\
             innodb_buffer_pool_size = \"1G\"\ninnodb_flush_log_at_trx_commit = 2\n{config}"
        );
        Server::start_with(package, &config)
    }

    /// Starts `package` with `config` lines alone.
    pub fn start_with(package: &str, config: &str) -> Result<Server, Failed> {
        let text = format!(
            "title = \"yardstick\"\n[server]\npackage = {package:?}\n[server.config]\n{config}\n\
             [workload.oltp_point_select]\n[[question]]\nname = \"q\"\nvary = \"load.connections\"\n\
             levels = [1, 2]\n"
        );
        let study = study::Study::parse("yardstick.toml", &text, &[])
            .map_err(|errors| format!("{errors:?}"))?;
        let (cache, log) = (Cache::open()?, CommandLog::default());
        let journal = Journal::open(&cache)?;
        let package = Arc::new(resolve_package(package, &cache, &log, &Quiet)?);
        let spec =
            InstanceSpec { setup: study.baseline.clone(), package, dataset: None, ordinal: 0 };
        let server = Server {
            instance: place::start(
                &spec,
                place::Tools { cache: &cache, journal: &journal, log: &log },
            )?,
        };
        // The journal's lock must outlive the server, which ends with this process.
        std::mem::forget(journal);
        let mut admin = server.admin()?;
        let plugin: Option<String> = admin.query_first("SELECT VERSION()")?;
        let with = match plugin {
            Some(version) if version.starts_with('8') => {
                "IDENTIFIED WITH mysql_native_password BY ''"
            }
            _ => "IDENTIFIED BY ''",
        };
        for statement in [
            "CREATE DATABASE sbtest".to_owned(),
            format!("CREATE USER {USER}@'%' {with}"),
            format!("CREATE USER {USER}@'localhost' {with}"),
            format!("GRANT ALL ON sbtest.* TO {USER}@'%'"),
            format!("GRANT ALL ON sbtest.* TO {USER}@'localhost'"),
        ] {
            admin.query_drop(statement)?;
        }
        Ok(server)
    }

    /// Loads [`TABLES`] tables of [`ROWS`] rows.
    pub fn fill(&self) -> Result<(), Failed> {
        let workload: study::Workload = serde_json::from_value(serde_json::json!({
            "oltp_point_select": { "tables": TABLES, "rows": ROWS }
        }))?;
        workload::load_data(&workload, &self.admin_target(), 1, 2, &mut |_| {})?;
        Ok(())
    }

    /// An administrative connection.
    pub fn admin(&self) -> Result<mysql::Conn, Failed> {
        Ok(mysql::Conn::new(self.instance.endpoint().opts())?)
    }

    /// The user without a password, by socket or TCP.
    pub fn target(&self, tcp: bool) -> Result<Target, Failed> {
        let endpoint = self.instance.endpoint();
        let address = match (tcp, endpoint.socket, endpoint.tcp) {
            (false, Some(socket), _) => Address::Socket(socket),
            (true, _, Some((host, port))) => Address::Tcp(host, port),
            _ => return Err("the server does not listen there".into()),
        };
        let (user, password, database) = (USER.into(), String::new(), "sbtest".into());
        Ok(Target { address, user, password, database, tls: load::Tls::default() })
    }

    /// The administrator, by socket.
    pub fn admin_target(&self) -> Target {
        let endpoint = self.instance.endpoint();
        Target {
            address: Address::Socket(endpoint.socket.unwrap_or_default()),
            user: endpoint.user,
            password: endpoint.password,
            database: "sbtest".into(),
            tls: load::Tls::default(),
        }
    }

    /// Shuts it down and removes its files.
    pub fn stop(self) -> Result<(), Failed> {
        Ok(self.instance.stop()?)
    }
}
