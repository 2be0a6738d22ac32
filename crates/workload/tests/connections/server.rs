//! A real server of the catalogue with TLS, and a small drive of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use ceteris_workload::{DataFacts, LoadError, load_data, load_private};
use load::{
    Address, DriveError, DriveEvent, DriveReport, DriveSpec, Rng, Session, Statement, Target, Tls,
    TlsMode, TransactionError, Workload, drive,
};
use mysql::prelude::Queryable;
use place::{
    Cache, CommandLog, Instance, InstanceSpec, Journal, Quiet, Tools, resolve_package, start,
};
use study::ConfigValue;

pub struct Server {
    instance: Box<dyn Instance>,
    pub admin: mysql::Conn,
}

impl Server {
    /// `None`, loudly, where this machine cannot have it.
    pub fn start(package: &str, config: &[(&str, String)]) -> Option<Server> {
        let (cache, log) = (Cache::open().unwrap(), CommandLog::default());
        let package = match resolve_package(package, &cache, &log, &Quiet) {
            Ok(package) => Arc::new(package),
            Err(error) => {
                eprintln!("SKIPPED {package}: {error}");
                return None;
            }
        };
        let workload = serde_json::json!({ "workload": { "oltp_read_only": {} } });
        let mut setup: study::Setup = serde_json::from_value(workload).unwrap();
        for (name, value) in config {
            let value = ConfigValue::Text(value.clone());
            setup.server.config.insert((*name).to_owned(), value);
        }
        let journal = Journal::open(&cache).unwrap();
        let spec = InstanceSpec { setup, package, dataset: None, ordinal: 0 };
        let tools = Tools { cache: &cache, journal: &journal, log: &log };
        let instance = start(&spec, tools).unwrap();
        let admin = mysql::Conn::new(instance.endpoint().opts()).unwrap();
        Some(Server { instance, admin })
    }

    pub fn run(&mut self, statements: &[&str]) {
        for statement in statements {
            self.admin.query_drop(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
    }

    pub fn port(&self) -> u16 {
        self.instance.endpoint().tcp.unwrap().1
    }

    pub fn socket(&self) -> Address {
        Address::Socket(self.instance.endpoint().socket.unwrap())
    }

    pub fn tcp(&self) -> Address {
        Address::Tcp("localhost".into(), self.port())
    }
}

pub fn target(address: Address, user: &str, password: &str, mode: TlsMode) -> Target {
    Target {
        address,
        user: user.into(),
        password: password.into(),
        database: String::new(),
        tls: Tls { mode, ca: None },
    }
}

/// What the wiretap must not hear of an encrypted connection.
pub const QUESTION: &str = "SELECT REPEAT('answered', 4000), ?";

/// Asks until it was answered often enough.
#[derive(Default)]
struct Ask {
    answered: AtomicU32,
    enough: AtomicBool,
}

/// Answers after which a drive has shown what it can.
const ENOUGH: u32 = 30;

impl Workload for Ask {
    fn statements(&self) -> Vec<Statement> {
        vec![Statement { text: QUESTION.into(), name: "ask".into() }]
    }

    async fn transaction(
        &self,
        session: &mut Session,
        _kind: usize,
        _rng: Rng,
    ) -> Result<(), TransactionError> {
        // 32 kB: more than one TLS record, and more than one read.
        let outcome = session.execute(0, &[wire::Param::Int(7)]).await?;
        match outcome.rows {
            1 => {
                let answered = 1 + self.answered.fetch_add(1, Ordering::Relaxed);
                self.enough.fetch_or(answered >= ENOUGH, Ordering::Relaxed);
                Ok(())
            }
            rows => Err(TransactionError::Workload(format!("{rows} rows"))),
        }
    }
}

/// Loads a small dataset into a database of its own, over the control plane's connections.
pub fn prepare(target: &Target) -> Result<(), LoadError> {
    static DATABASES: AtomicU32 = AtomicU32::new(0);
    let ordinal = DATABASES.fetch_add(1, Ordering::Relaxed);
    let target = Target { database: format!("prepared_{ordinal}"), ..target.clone() };
    let text = serde_json::json!({ "oltp_read_only": { "tables": 1, "rows": 10 } });
    let workload: study::Workload = serde_json::from_value(text).unwrap();
    load_data(&workload, &target, 1, 1, &mut |_| {}).map(|facts| assert!(!facts.is_empty()))
}

/// The same as for a dataset, on a server that is ours alone.
pub fn prepare_private(target: &Target) -> DataFacts {
    let target = Target { database: "private".to_owned(), ..target.clone() };
    let text = serde_json::json!({ "oltp_read_only": { "tables": 1, "rows": 10 } });
    let workload: study::Workload = serde_json::from_value(text).unwrap();
    load_private(&workload, &target, 1, 1, &mut |_| {}).unwrap()
}

/// A transaction that costs a server next to nothing.
struct Touch(Vec<AtomicU32>);

impl Workload for Touch {
    fn statements(&self) -> Vec<Statement> {
        vec![Statement { text: "SELECT ?".into(), name: "touch".into() }]
    }

    async fn transaction(
        &self,
        session: &mut Session,
        _kind: usize,
        _rng: Rng,
    ) -> Result<(), TransactionError> {
        session.execute(0, &[wire::Param::Int(7)]).await?;
        let connection = session.operation().connection as usize;
        self.0[connection].fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Drives so many connections until each has had a transaction, however long that takes; what was
/// measured until then, and how many stood.
pub fn everybody(target: &Target, connections: u32) -> (DriveReport, u32) {
    let spec = DriveSpec {
        targets: vec![target.clone()],
        connections,
        pin: Some(vec![]),
        measure: Duration::from_secs(600),
        ..DriveSpec::default()
    };
    let touch = Touch((0..connections).map(|_| AtomicU32::new(0)).collect());
    let (enough, mut stood, mut measured) = (AtomicBool::new(false), 0, None);
    let error = drive(&touch, &spec, &enough, &mut |event| match event {
        DriveEvent::Connected { connections, .. } => stood = connections,
        DriveEvent::Second(_) => {
            let served = touch.0.iter().all(|served| served.load(Ordering::Relaxed) > 0);
            enough.fetch_or(served, Ordering::Relaxed);
        }
        DriveEvent::EndedEarly(report) => measured = Some(*report),
    })
    .err();
    assert!(matches!(error, Some(DriveError::Stopped)), "{error:?}");
    (measured.unwrap(), stood)
}

/// Drives three connections until they were answered often enough, which takes a moment, or longer
/// on a busy machine.
pub fn try_drive(target: &Target) -> Result<(), DriveError> {
    let spec = DriveSpec {
        targets: vec![target.clone()],
        connections: 3,
        threads: Some(1),
        pin: Some(vec![]),
        measure: Duration::from_secs(60),
        ..DriveSpec::default()
    };
    let ask = Ask::default();
    match drive(&ask, &spec, &ask.enough, &mut |_| {}) {
        Err(DriveError::Stopped) if ask.enough.load(Ordering::Relaxed) => Ok(()),
        Err(error) => Err(error),
        Ok(report) => panic!("{} answers only: {target:?}", report.transactions),
    }
}

pub fn succeed(target: &Target) {
    if let Err(error) = try_drive(target) {
        panic!("{target:?}: {}", chain(&error));
    }
}

/// The whole of an error, as it is shown and as it is debugged, with its hint.
pub fn chain(error: &DriveError) -> String {
    let mut text = format!("{error:?}\n{error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    format!("{text}\nhint: {}", error.hint().unwrap_or_default())
}

pub fn fail(target: &Target) -> String {
    let error = try_drive(target).err().unwrap_or_else(|| panic!("{target:?} was let in"));
    let text = chain(&error);
    assert!(target.password.is_empty() || !text.contains(&target.password), "{text}");
    text
}
