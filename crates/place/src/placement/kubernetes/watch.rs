//! The server's Pod, watched: one `kubectl get --watch` for as long as the instance lives.
//!
//! Asking again and again would start a process each time, several times a second, beside the server
//! that is being measured. A watch costs nothing until something happens, and misses nothing.

use std::io::{BufReader, Read};
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cluster::Cluster;
use super::manifests::POD_LABEL;
use super::pod::text;
use crate::error::PlaceError;

/// A watch that ended is begun again, but not more often than this: the server that cannot be
/// reached now may answer again, and the Pod may well be fine.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The first Pod of a namespace that has the server's label. A controller makes another when that one
/// goes, but another Pod has another data directory and is not this instance.
pub(super) struct PodWatch {
    cluster: Cluster,
    namespace: String,
    child: Child,
    begun: Instant,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Default)]
struct State {
    pod: Option<Value>,
    deleted: bool,
    ended: bool,
}

impl PodWatch {
    pub fn start(cluster: &Cluster, namespace: &str) -> Result<PodWatch, PlaceError> {
        let seen = Arc::new(Seen::default());
        let child = begin(cluster, namespace, &seen)?;
        Ok(PodWatch {
            cluster: cluster.clone(),
            namespace: namespace.to_owned(),
            child,
            begun: Instant::now(),
            seen,
        })
    }

    /// The Pod as it was last reported; an error when it was deleted.
    pub fn now(&mut self) -> Result<Option<Value>, String> {
        self.keep_up();
        let state = self.seen.lock();
        if state.deleted {
            return Err("the Pod was deleted".to_owned());
        }
        Ok(state.pod.clone())
    }

    /// Waits until something is reported, but not longer than `limit`.
    pub fn wait(&mut self, limit: Duration) {
        self.keep_up();
        let state = self.seen.lock();
        // Whether it was woken or grew tired, the caller looks.
        let _ = self.seen.changed.wait_timeout(state, limit);
    }

    /// Begins again when the API server has ended the watch, which it does now and then. What was
    /// deleted in between is asked for, because a new watch does not tell it.
    fn keep_up(&mut self) {
        let (ended, pod) = {
            let state = self.seen.lock();
            (state.ended && !state.deleted, state.pod.clone())
        };
        if !ended || self.begun.elapsed() < AGAIN_AFTER {
            return;
        }
        self.begun = Instant::now();
        if let Some(pod) = pod {
            let name = text(&pod, "/metadata/name");
            let get = self.cluster.kubectl().args(["--namespace", &self.namespace, "get", "pod"]);
            let get = get.args([name, "--ignore-not-found", "--output=name"]);
            let gone = |said: crate::command::Said| said.fine() && said.stdout.trim().is_empty();
            if self.cluster.say(get).is_ok_and(gone) {
                self.seen.lock().deleted = true;
                return;
            }
        }
        if let Ok(child) = begin(&self.cluster, &self.namespace, &self.seen) {
            self.end();
            self.child = child;
        }
    }

    fn end(&mut self) {
        // Both can only fail for a child that is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        self.end();
    }
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => poisoned.into_inner(),
        }
    }
}

impl State {
    fn take(&mut self, event: &Value) {
        let object = &event["object"];
        let known = self.pod.as_ref().map(|pod| text(pod, "/metadata/uid").to_owned());
        if object["kind"] != "Pod" || known.is_some_and(|uid| uid != text(object, "/metadata/uid"))
        {
            return;
        }
        self.deleted = event["type"] == "DELETED";
        self.pod = Some(object.clone());
    }
}

/// Starts `kubectl` and the thread that hears it.
fn begin(cluster: &Cluster, namespace: &str, seen: &Arc<Seen>) -> Result<Child, PlaceError> {
    let label = format!("{}={}", POD_LABEL.0, POD_LABEL.1);
    let watch = cluster
        .kubectl()
        .args(["--namespace", namespace, "get", "pods", "--selector", &label])
        .args(["--watch", "--output-watch-events", "--output=json"]);
    let mut child = cluster.start(watch)?;
    seen.lock().ended = false;
    if let Some(output) = child.stdout.take() {
        let seen = Arc::clone(seen);
        std::thread::spawn(move || hear(output, &seen));
    }
    if let Some(mut errors) = child.stderr.take() {
        // Read so that it never blocks; that it ended is all that matters.
        std::thread::spawn(move || std::io::copy(&mut errors, &mut std::io::sink()));
    }
    Ok(child)
}

fn hear(output: impl Read, seen: &Seen) {
    let events = serde_json::Deserializer::from_reader(BufReader::new(output)).into_iter();
    for event in events.map_while(Result::<Value, _>::ok) {
        seen.lock().take(&event);
        seen.changed.notify_all();
    }
    seen.lock().ended = true;
    seen.changed.notify_all();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn another_pod_of_the_controller_is_not_this_one() {
        let event = |kind: &str, uid: &str, phase: &str| {
            json!({ "type": kind, "object": {
                "kind": "Pod", "metadata": { "uid": uid }, "status": { "phase": phase },
            } })
        };
        let mut state = State::default();
        state.take(&event("ADDED", "a", "Pending"));
        state.take(&event("ADDED", "b", "Pending"));
        state.take(&event("MODIFIED", "a", "Running"));
        let phase = state.pod.as_ref().map(|pod| text(pod, "/status/phase").to_owned());
        assert_eq!(phase.as_deref(), Some("Running"));
        state.take(&event("DELETED", "b", "Failed"));
        assert!(!state.deleted);
        state.take(&event("DELETED", "a", "Failed"));
        assert!(state.deleted);
    }
}
