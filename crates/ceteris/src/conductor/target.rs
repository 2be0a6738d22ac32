//! A target: the running server or servers of one run, brought up together and torn down together.
//!
//! The conductor may hold several at once, each with its own directory, port and socket; nothing
//! here assumes that it is the only one.

use std::collections::BTreeSet;

use mysql::Conn;
use observe::{Fingerprint, Remote, SamplerTarget};
use place::{Endpoint, Instance};
use store::LogText;
use study::{Connect, Setup};

use super::prepare::Prepared;
use crate::failure::{Failure, chain};

/// The longest log that is kept whole, bytes.
const LOG_LIMIT: usize = 256 * 1024;

/// The database of ceteris's own on a server that stands already: `sbtest` may be its owner's.
const STANDING_DATABASE: &str = "ceteris";

/// The running servers of one run.
pub struct Target {
    instances: Vec<Box<dyn Instance>>,
    /// Of each instance, where it is a machine of its own.
    observers: Vec<Option<Remote>>,
    database: &'static str,
}

impl Target {
    /// Brings up every instance of `setup`; none is left when one refuses.
    pub fn place(
        setup: &Setup,
        prepared: &Prepared,
        placing: place::Tools,
    ) -> Result<Target, Failure> {
        let database = match place::loads_in_place(&setup.placement) {
            true => STANDING_DATABASE,
            false => workload::DATABASE,
        };
        let instances = place::start_all(&prepared.instance(setup), placing)?;
        let mut target = Target { instances, observers: Vec::new(), database };
        for instance in &mut target.instances {
            let observer = match instance.observer()? {
                Some(channel) => Some(Remote::new(channel, instance.dir()).map_err(|error| {
                    Failure::new(format!("cannot speak with the observer inside: {error}"))
                })?),
                None => None,
            };
            target.observers.push(observer);
        }
        Ok(target)
    }

    /// How the worker reaches each instance.
    pub fn addresses(&self, connect: Connect) -> Result<Vec<load::Target>, Failure> {
        let each = self.instances.iter();
        each.map(|instance| address(instance.worker_endpoint(), connect, self.database)).collect()
    }

    /// Everything observable of the target's conditions, now. What a further instance has by itself
    /// carries its ordinal behind a `#`.
    pub fn fingerprint(&self) -> Result<Fingerprint, Failure> {
        let mut all = Fingerprint::new();
        let mut buffer_pool_bytes: Option<u64> = Some(0);
        for (ordinal, instance) in self.instances.iter().enumerate() {
            let mut one = instance.fingerprint();
            let mut connection = Conn::new(instance.endpoint().opts())
                .map_err(|error| Failure::new(format!("cannot ask the server: {error}")))?;
            let server = observe::server_fingerprint(&mut connection, instance.dir())
                .map_err(|error| Failure::new(format!("cannot read the variables: {error}")))?;
            one.extend(server);
            let data = instance.data_dir().or(instance.storage()).unwrap_or(instance.dir());
            one.extend(observe::host_fingerprint(data, instance.pid()));
            if let Some(observer) = &self.observers[ordinal] {
                let inside = observer.fingerprint();
                one.extend(
                    inside.map_err(|why| Failure::new(format!("the observer inside: {why}")))?,
                );
            }
            let own =
                one.get("server.variable.innodb_buffer_pool_size").and_then(|n| n.parse().ok());
            buffer_pool_bytes = buffer_pool_bytes.zip(own).map(|(sum, own): (u64, u64)| sum + own);
            match ordinal {
                0 => all.extend(one),
                n => all.extend(one.into_iter().map(|(name, v)| (format!("{name}#{n}"), v))),
            }
        }
        all.extend(self.allowance());
        if let Some(bytes) = buffer_pool_bytes {
            all.insert("allowance.buffer_pool_bytes".to_owned(), bytes.to_string());
        }
        Ok(all)
    }

    /// What all instances together may use, and the disks that hold their data in the end.
    fn allowance(&self) -> Fingerprint {
        let own: Vec<_> = self.instances.iter().map(|instance| instance.allowance()).collect();
        let mut all = place::total_allowance(&own, &observe::online_processors());
        let disks: BTreeSet<String> = self
            .instances
            .iter()
            .filter_map(|instance| observe::disk_below(instance.storage()?))
            .collect();
        if !disks.is_empty() {
            let disks: Vec<String> = disks.into_iter().collect();
            all.insert("allowance.disk".to_owned(), disks.join(", "));
        }
        all
    }

    /// The words before `ceteris worker` that run it where it belongs; empty: here.
    pub fn worker_prefix(&self) -> Vec<String> {
        self.instances.first().map(|instance| instance.worker_prefix()).unwrap_or_default()
    }

    /// What the sampler is to watch.
    pub fn watched(&self) -> Vec<SamplerTarget> {
        let named = |ordinal: usize| match ordinal {
            0 => "server".to_owned(),
            n => format!("server.{n}"),
        };
        let numbered = self.instances.iter().enumerate();
        let watched = numbered.map(|(ordinal, instance)| SamplerTarget {
            name: named(ordinal),
            pid: instance.pid(),
            data_dir: instance.data_dir().map(Into::into),
            connection: Some(instance.endpoint().opts()),
            inside: self.observers[ordinal].clone(),
        });
        watched.collect()
    }

    /// Counters that only the placement can read, named as series.
    pub fn figures(&mut self) -> Vec<(String, f64)> {
        let numbered = self.instances.iter_mut().enumerate();
        let named = numbered.flat_map(|(ordinal, instance)| {
            let prefix = match ordinal {
                0 => "server.placement.".to_owned(),
                n => format!("server.{n}.placement."),
            };
            let figures = instance.figures().into_iter();
            figures.map(move |(name, count)| (format!("{prefix}{name}"), count)).collect::<Vec<_>>()
        });
        named.collect()
    }

    /// Fails with the server's own last words when an instance does not run any more.
    pub fn check_alive(&mut self) -> Result<(), String> {
        let several = self.instances.len() > 1;
        for (ordinal, instance) in self.instances.iter_mut().enumerate() {
            instance.alive().map_err(|how| match several {
                true => format!("instance {ordinal}: {how}"),
                false => how,
            })?;
        }
        Ok(())
    }

    /// Every server's error log so far.
    pub fn logs(&self) -> Vec<LogText> {
        let numbered = self.instances.iter().enumerate();
        let logs = numbered.map(|(ordinal, instance)| LogText {
            name: format!("instance-{ordinal}/error.log"),
            text: cut_middle(instance.error_log(), LOG_LIMIT),
        });
        logs.collect()
    }

    /// Stops every instance; the first error is told after all were stopped.
    pub fn stop(self) -> Result<(), Failure> {
        let mut first = Ok(());
        for instance in self.instances {
            let stopped = instance.stop();
            if first.is_ok() {
                first = stopped;
            }
        }
        first.map_err(|error| Failure::new(chain(&error)))
    }

    /// Gives the only instance away (a dataset is saved from it).
    pub fn into_single(mut self) -> Option<Box<dyn Instance>> {
        self.instances.pop()
    }
}

fn address(endpoint: Endpoint, connect: Connect, database: &str) -> Result<load::Target, Failure> {
    let address = match connect {
        Connect::Socket => endpoint.socket.map(load::Address::Socket),
        Connect::Tcp => endpoint.tcp.map(|(host, port)| load::Address::Tcp(host, port)),
    };
    let address = address
        .ok_or_else(|| Failure::new(format!("the server cannot be reached by {connect:?}")))?;
    Ok(load::Target {
        address,
        user: endpoint.user,
        password: endpoint.password,
        database: database.to_owned(),
        tls: load::Tls::default(),
    })
}

fn cut_middle(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let head_end = (0..=limit / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let tail_from = text.len() - limit / 2;
    let tail_from = (tail_from..text.len()).find(|&at| text.is_char_boundary(at));
    let tail = tail_from.map_or("", |from| &text[from..]);
    format!("{}\n[... {} bytes left out ...]\n{tail}", &text[..head_end], text.len() - limit)
}

#[cfg(test)]
mod tests {
    use super::cut_middle;

    #[test]
    fn long_logs_lose_their_middle_and_keep_both_ends() {
        let text = format!("first line\n{}\nlast line é", "é".repeat(1000));
        let cut = cut_middle(text.clone(), 101);
        assert!(cut.starts_with("first line"));
        assert!(cut.ends_with("last line é"));
        assert!(cut.contains("bytes left out"));
        assert!(cut.len() < text.len());
        assert_eq!(cut_middle("short".to_owned(), 100), "short");
    }
}
