//! From a study's `[load]` to what the generator is asked.

use load::{
    Arrivals, Batching, DriveSpec, Engine, OnLost, Pacing, ReactorChoice, Scheduling, Stage,
    StatementProtocol,
};
use study::Load;

/// All that `load` says; whom to drive, and by which seed, is the caller's.
pub fn spec(load: &Load) -> DriveSpec {
    let stages = load.stages.iter().map(|stage| Stage {
        at: stage.at.duration(),
        ramp: stage.ramp.duration(),
        rate_per_second: stage.rate,
        connections: stage.connections,
    });
    DriveSpec {
        connections: load.connections,
        threads: load.threads,
        warmup: load.warmup.duration(),
        measure: load.measure.duration(),
        pacing: Pacing {
            rate_per_second: load.rate,
            arrivals: match load.arrivals {
                study::Arrivals::Poisson => Arrivals::Poisson,
                study::Arrivals::Uniform => Arrivals::Uniform,
            },
            think: load.think_time.duration(),
            stages: stages.collect(),
        },
        engine: Engine {
            reactor: match load.reactor {
                study::Reactor::Auto => ReactorChoice::Auto,
                study::Reactor::Epoll => ReactorChoice::Epoll,
                study::Reactor::IoUring => ReactorChoice::IoUring,
            },
            batching: load.batching.map_or(Batching::Off, |share| Batching::Share(share.0)),
            scheduling: match load.scheduling {
                study::Scheduling::Normal => Scheduling::Normal,
                study::Scheduling::Batch => Scheduling::Batch,
            },
        },
        protocol: match load.protocol {
            study::Protocol::Prepared => StatementProtocol::Prepared,
            study::Protocol::Text => StatementProtocol::Text,
        },
        on_lost: match load.on_lost {
            study::OnLost::Fail => OnLost::Fail,
            study::OnLost::Reconnect => OnLost::Reconnect,
        },
        ..DriveSpec::default()
    }
}
