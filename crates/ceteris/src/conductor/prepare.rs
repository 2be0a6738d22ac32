//! What a cell needs before it can be placed: the package found or fetched, the dataset loaded once
//! and kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use place::{Dataset, DatasetKey, Package, Progress};
use study::{Connect, Setup};

use super::target::Target;
use super::worker_process::{Silence, WorkerProcess};
use crate::failure::{EXIT_INTERRUPTED, Failure};
use crate::interrupt::Interrupt;
use crate::talk::{Talk, bytes};
use crate::worker::protocol::{Reply, Request};

/// Seed of every dataset's rows. Fixed, and apart from the study's seed: the same tables then are
/// the same bytes for every study, and are loaded once on a machine and not once per study.
pub const DATA_SEED: u64 = 0x0063_6574_6572_6973;

/// The package and dataset of a cell.
#[derive(Clone)]
pub struct Prepared {
    pub package: Arc<Package>,
    pub dataset: Option<Arc<Dataset>>,
}

/// See [`workload::describe_data`]; a script was read before, so that this fails only if it has
/// not been.
pub fn describe_data(workload: &study::Workload) -> Result<String, Failure> {
    let text = workload::describe_data(workload);
    text.map_err(|error| Failure::new(crate::failure::chain(&error)))
}

/// Prepares cells and remembers what it has.
#[derive(Default)]
pub struct Preparer {
    packages: BTreeMap<String, Arc<Package>>,
    datasets: BTreeMap<String, Arc<Dataset>>,
}

impl Preparer {
    /// Finds or fetches the package of `setup`, finds or loads its dataset.
    pub fn prepare(
        &mut self,
        setup: &Setup,
        placing: place::Tools,
        talk: &Talk,
        interrupt: &Interrupt,
    ) -> Result<Prepared, Failure> {
        let package = self.package(&setup.server.package, placing, talk)?;
        let data = describe_data(&setup.workload)?;
        let key = DatasetKey::new(&package, setup, &data, DATA_SEED);
        if let Some(dataset) = self.datasets.get(&key.hash) {
            return Ok(Prepared { package, dataset: Some(Arc::clone(dataset)) });
        }
        let waiting = || talk.say("another study is loading this dataset; waiting for it");
        let _claim = Dataset::claim(placing.cache, &key, waiting)?;
        let dataset = match Dataset::find(placing.cache, &key)? {
            Some(dataset) => Arc::new(dataset),
            None => Arc::new(load(setup, &package, &key, placing, talk, interrupt)?),
        };
        self.datasets.insert(key.hash, Arc::clone(&dataset));
        Ok(Prepared { package, dataset: Some(dataset) })
    }

    fn package(
        &mut self,
        name: &str,
        placing: place::Tools,
        talk: &Talk,
    ) -> Result<Arc<Package>, Failure> {
        if let Some(package) = self.packages.get(name) {
            return Ok(Arc::clone(package));
        }
        let package = Arc::new(place::resolve_package(name, placing.cache, placing.log, talk)?);
        self.packages.insert(name.to_owned(), Arc::clone(&package));
        Ok(package)
    }
}

/// Loads and verifies the tables on a server of its own, and keeps its data directory.
fn load(
    setup: &Setup,
    package: &Arc<Package>,
    key: &DatasetKey,
    placing: place::Tools,
    talk: &Talk,
    interrupt: &Interrupt,
) -> Result<Dataset, Failure> {
    let mut setup = setup.clone();
    // Only what changes the files, and what makes loading quick without changing them.
    setup.server.config = place::file_settings(&setup.server.config);
    for (name, value) in place::LOADING {
        let value = study::ConfigValue::Text(value.to_owned());
        setup.server.config.entry(name.to_owned()).or_insert(value);
    }
    // One server without limits: of several instances only one would be loaded.
    setup.placement = study::Placement::default();
    setup.load.connect = Connect::Socket;
    talk.passing("starting a server to load the dataset");
    let prepared = Prepared { package: Arc::clone(package), dataset: None };
    let mut target = Target::place(&setup, &prepared, placing)?;
    let address = target.addresses(Connect::Socket)?.remove(0);
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get()).clamp(2, 8);
    let request = Request::Load {
        workload: setup.workload.clone(),
        target: address,
        seed: DATA_SEED,
        threads: threads as u32,
    };
    let mut worker = WorkerProcess::start(&request, placing.journal.environment())
        .map_err(|error| Failure::new(format!("cannot start the worker: {error}")))?;
    let mut begun = false;
    let _step = talk.step_guard();
    let facts = loop {
        if interrupt.raised() {
            return Err(Failure::new("stopped").code(EXIT_INTERRUPTED));
        }
        match worker.listen(Duration::from_millis(100)) {
            Ok(Reply::Loading(progress)) => {
                if !begun {
                    begun = true;
                    let what = format!("loading {} on {}", setup.workload.name(), package.name);
                    talk.begin(&what, "rows", Some(progress.total));
                }
                talk.advance(progress.rows);
            }
            Ok(Reply::Loaded(facts)) => break facts,
            Ok(Reply::Failed(why)) => {
                return Err(Failure::new(format!("the dataset could not be loaded: {why}")));
            }
            Ok(other) => {
                return Err(Failure::new(format!("the worker answered a load with {other:?}")));
            }
            Err(Silence::NotYet) => target.check_alive().map_err(Failure::new)?,
            Err(Silence::Ended(how)) => {
                target.check_alive().map_err(Failure::new)?;
                return Err(Failure::new(how));
            }
        }
    };
    if begun {
        talk.end();
    }
    worker.end();
    talk.passing("keeping the dataset as a snapshot");
    let instance =
        target.into_single().ok_or_else(|| Failure::new("no instance to keep a dataset from"))?;
    let dataset = Dataset::save(instance, placing.cache, key, &facts)?;
    talk.clear();
    talk.say(&format!(
        "dataset verified and kept: {}, {}",
        setup.workload.name(),
        bytes(dataset.bytes() as f64)
    ));
    Ok(dataset)
}
