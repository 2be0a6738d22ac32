//! A placement without servers, for what all placements have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Placer, Planned, check_form, start_each};
use crate::allowance::Allowance;
use crate::cache::Cache;
use crate::command::CommandLog;
use crate::error::PlaceError;
use crate::instance::{Endpoint, Instance, InstanceSpec};
use crate::journal::Journal;
use crate::package::{Flavour, Package};
use crate::tools::Tools;

/// Brings up instances that only count themselves, until `refuses`.
struct Mock {
    refuses: u32,
    running: Arc<AtomicU32>,
}

struct MockInstance {
    dir: PathBuf,
    running: Arc<AtomicU32>,
}

impl Placer for Mock {
    fn check(&self, _: &InstanceSpec, _: Tools) -> Result<(), PlaceError> {
        Ok(())
    }

    fn start(&self, spec: &InstanceSpec, _: Tools) -> Result<Box<dyn Instance>, PlaceError> {
        if spec.ordinal == self.refuses {
            return Err(PlaceError::Other("no more room".to_owned()));
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MockInstance { dir: PathBuf::from("/"), running: self.running.clone() }))
    }

    fn planned(&self, _: &Planned) -> Vec<String> {
        Vec::new()
    }
}

impl Instance for MockInstance {
    fn endpoint(&self) -> Endpoint {
        Endpoint { socket: None, tcp: None, user: String::new(), password: String::new() }
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn data_dir(&self) -> Option<&Path> {
        None
    }

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn fingerprint(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn allowance(&self) -> Allowance {
        Allowance::default()
    }

    fn alive(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn error_log(&self) -> String {
        String::new()
    }

    fn stop(self: Box<Self>) -> Result<(), PlaceError> {
        self.running.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn none_is_left_when_one_of_several_refuses() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let cache = Cache::at(dir.path())?;
    let (journal, log) = (Journal::open(&cache)?, CommandLog::default());
    let tools = Tools { cache: &cache, journal: &journal, log: &log };
    let spec = spec(serde_json::json!({ "docker": { "instances": 3 } }), false)?;
    let running = Arc::new(AtomicU32::new(0));

    let whole = start_each(&Mock { refuses: 9, running: running.clone() }, &spec, tools)?;
    assert_eq!((whole.len(), running.load(Ordering::Relaxed)), (3, 3));
    for instance in whole {
        instance.stop()?;
    }

    let refused = start_each(&Mock { refuses: 2, running: running.clone() }, &spec, tools);
    let message = refused.err().map(|error| error.to_string());
    assert_eq!(message.as_deref(), Some("instance 2 of 3: no more room"));
    assert_eq!(running.load(Ordering::Relaxed), 0);
    Ok(())
}

fn spec(
    placement: serde_json::Value,
    drop_caches: bool,
) -> Result<InstanceSpec, serde_json::Error> {
    let setup = serde_json::from_value(serde_json::json!({
        "workload": { "oltp_read_only": {} },
        "placement": placement,
        "host": { "drop_caches": drop_caches },
    }))?;
    let package = Package {
        name: "mock".to_owned(),
        flavour: Flavour::Mysql,
        version: crate::package::Version::new(8, 0, 12),
        mysqld: Vec::new(),
        env: Vec::new(),
        base_dir: PathBuf::new(),
        hash: String::new(),
    };
    Ok(InstanceSpec { setup, package: Arc::new(package), dataset: None, ordinal: 0 })
}

#[test]
fn the_page_cache_is_dropped_or_refused_and_never_forgotten() -> Result<(), serde_json::Error> {
    let forms = [
        ("host", true),
        ("docker", true),
        ("kvm", true),
        ("kubernetes", false),
        ("external", false),
    ];
    for (name, here) in forms {
        let placement = serde_json::json!({ name: {} });
        assert_eq!(check_form(&spec(placement.clone(), true)?).is_ok(), here, "{name}");
        assert!(check_form(&spec(placement, false)?).is_ok(), "{name}");
    }
    Ok(())
}
