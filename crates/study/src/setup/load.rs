//! How the workload is driven.

use serde::{Deserialize, Serialize};

use super::Contradiction;
use crate::quantity::{Millis, Percent};

/// No generator comes near it.
const RATE_MAX: f64 = 1e8;

/// How the workload is driven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// Concurrent connections, each running transactions one after the other, until a stage says
    /// otherwise.
    pub connections: u32,
    /// Time driven before measuring.
    pub warmup: Millis,
    /// Time measured.
    pub measure: Millis,
    /// Worker threads; `None` lets the worker choose and say what it chose.
    pub threads: Option<u32>,
    /// How connections reach the server.
    pub connect: Connect,
    /// Transactions per second over all connections (open loop); `None`: each connection begins
    /// its next when the one before has ended (closed loop).
    pub rate: Option<f64>,
    /// How the starts of an open loop are spread.
    pub arrivals: Arrivals,
    /// Closed loop: pause of each connection between two transactions.
    pub think_time: Millis,
    /// Changes while driving, in the order of their times.
    pub stages: Vec<Stage>,
    /// What a lost connection means.
    pub on_lost: OnLost,
    /// How statements travel.
    pub protocol: Protocol,
    /// How the worker waits for answers.
    pub reactor: Reactor,
    /// Share of the median response time that an answer may wait for others; `None`: none does.
    pub batching: Option<Percent>,
    /// Scheduling class of the worker's threads.
    pub scheduling: Scheduling,
}

/// From `at` on, rate or connections go to new values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Since the first transaction, so that the warm-up counts.
    pub at: Millis,
    /// How long the way takes, in a straight line.
    #[serde(default = "no_time")]
    pub ramp: Millis,
    /// New rate.
    pub rate: Option<f64>,
    /// New number of connections at work.
    pub connections: Option<u32>,
}

fn no_time() -> Millis {
    Millis(0)
}

/// How the starts of an open loop are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Independent of each other.
    #[default]
    Poisson,
    /// Evenly.
    Uniform,
}

/// What a lost connection means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLost {
    /// The run has failed.
    #[default]
    Fail,
    /// Its transaction has failed, and the connection is made again.
    Reconnect,
}

/// How statements travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Prepared once per connection.
    #[default]
    Prepared,
    /// As text with their values.
    Text,
}

/// How the worker waits for answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reactor {
    /// By io_uring where the kernel allows it, else by epoll.
    #[default]
    Auto,
    /// By epoll.
    Epoll,
    /// By io_uring.
    IoUring,
}

/// Scheduling class of the worker's threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// SCHED_OTHER.
    Normal,
    /// SCHED_BATCH.
    #[default]
    Batch,
}

/// How connections reach the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connect {
    /// The instance's Unix socket.
    #[default]
    Socket,
    /// TCP on loopback.
    Tcp,
}

impl Default for Load {
    fn default() -> Self {
        Load {
            connections: 8,
            warmup: Millis::from_secs(10),
            measure: Millis::from_secs(60),
            threads: None,
            connect: Connect::Socket,
            rate: None,
            arrivals: Arrivals::default(),
            think_time: Millis(0),
            stages: Vec::new(),
            on_lost: OnLost::default(),
            protocol: Protocol::default(),
            reactor: Reactor::default(),
            batching: None,
            scheduling: Scheduling::default(),
        }
    }
}

impl Load {
    /// Most connections that are ever at work: so many are opened.
    pub fn connections_max(&self) -> u32 {
        let stages = self.stages.iter().filter_map(|stage| stage.connections);
        stages.fold(self.connections, u32::max)
    }

    /// What only shows when the keys are together; the first of it.
    pub(crate) fn contradiction(&self) -> Option<Contradiction> {
        let found = |key, message: String, hint| Some(Contradiction { key, message, hint });
        let stage_rates = || self.stages.iter().filter_map(|stage| stage.rate);
        if self.rate.is_none() && stage_rates().next().is_some() {
            let message = "a stage changes the rate, but the load has none".to_owned();
            return found("stages", message, "give `load.rate`, the rate until that stage");
        }
        if self.rate.into_iter().chain(stage_rates()).any(|rate| rate > RATE_MAX) {
            let key = if self.rate.is_some_and(|rate| rate > RATE_MAX) { "rate" } else { "stages" };
            let message = "the rate is more than 100 million a second".to_owned();
            return found(key, message, "`rate` is in transactions per second");
        }
        if self.rate.is_some() && self.think_time > Millis(0) {
            let message = "think time and a rate exclude each other".to_owned();
            let hint = "think time is a closed loop's: leave out `load.rate`, or `load.think_time`";
            return found("think_time", message, hint);
        }
        if let Some(two) = self.stages.windows(2).find(|two| two[1].at < two[0].at) {
            let message =
                format!("the stage at {} stands behind the one at {}", two[1].at, two[0].at);
            return found("stages", message, "write them in the order of their times");
        }
        let end = Millis(self.warmup.0.saturating_add(self.measure.0));
        if let Some(late) = self.stages.iter().find(|stage| stage.at >= end) {
            let message = format!("the stage at {} begins after the end of the run", late.at);
            return found("stages", message, "the run ends after `load.warmup` and `load.measure`");
        }
        let empty = |stage: &&Stage| stage.rate.is_none() && stage.connections.is_none();
        if let Some(stage) = self.stages.iter().find(empty) {
            let message = format!("the stage at {} changes nothing", stage.at);
            return found("stages", message, "give it `rate` or `connections`");
        }
        None
    }
}
