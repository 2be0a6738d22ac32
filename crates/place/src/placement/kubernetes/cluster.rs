//! The cluster, as `kubectl` answers for it: questions with JSON answers, orders, and what is known
//! of its nodes.

use std::path::Path;

use serde_json::Value;
use study::KubernetesPlacement;

use super::pod::text;
use super::quantity;
use crate::command::{CommandLog, Invocation, Said, find_program, last_lines};
use crate::error::PlaceError;
use crate::journal::kubectl;

/// How long the API server may take for one answer.
const ANSWER_LIMIT: &str = "--request-timeout=15s";

/// A cluster that `kubectl` reaches.
#[derive(Clone)]
pub(super) struct Cluster {
    pub context: Option<String>,
    log: CommandLog,
}

impl Cluster {
    pub fn new(placement: &KubernetesPlacement, log: &CommandLog) -> Cluster {
        Cluster { context: placement.context.clone(), log: log.clone() }
    }

    /// The same, held to the context that is current now: a person who moves on to another cluster
    /// meanwhile does not take the study along.
    pub fn pinned(placement: &KubernetesPlacement, log: &CommandLog) -> Cluster {
        let mut cluster = Cluster::new(placement, log);
        if cluster.context.is_none() {
            let said = cluster.say(cluster.kubectl().args(["config", "current-context"]));
            // Without one (in a Pod, say) kubectl has other ways to its cluster.
            let current = said.ok().filter(Said::fine).map(|said| said.stdout.trim().to_owned());
            cluster.context = current.filter(|context| !context.is_empty());
        }
        cluster
    }

    /// `kubectl` in this cluster.
    pub fn kubectl(&self) -> Invocation {
        kubectl(self.context.as_deref())
    }

    /// The same for a limited question.
    fn limited(&self) -> Invocation {
        self.kubectl().arg(ANSWER_LIMIT)
    }

    /// Starts a command that goes on running.
    pub fn start(&self, invocation: Invocation) -> Result<std::process::Child, PlaceError> {
        self.log.start(invocation)
    }

    /// Runs a command to its end, whatever that is.
    pub fn say(&self, invocation: Invocation) -> Result<Said, PlaceError> {
        self.log.run_watched(invocation, || ())
    }

    /// Runs a command that must succeed; `what` could not be done if it does not.
    pub fn run(&self, invocation: Invocation, what: &str) -> Result<Said, PlaceError> {
        let said = self.say(invocation)?;
        if said.fine() { Ok(said) } else { Err(refused(what, &said)) }
    }

    /// Asks a question whose answer is JSON.
    pub fn ask(&self, words: &[&str], what: &str) -> Result<Value, PlaceError> {
        let said = self.run(self.limited().args(words), what)?;
        serde_json::from_str(&said.stdout).map_err(|error| PlaceError::Engine {
            what: what.to_owned(),
            lines: vec![format!("kubectl did not answer in JSON: {error}")],
            next: None,
        })
    }

    /// Whether anything answers at all, and lets us make namespaces.
    pub fn check(&self) -> Result<(), PlaceError> {
        if find_program("kubectl").is_none() {
            return Err(PlaceError::NoProgram {
                program: "kubectl".to_owned(),
                purpose: "place servers in a Kubernetes cluster".to_owned(),
                debian: "kubernetes-client".to_owned(),
            });
        }
        self.ask(&["version", "--output=json"], "the cluster does not answer")?;
        let said = self.say(self.limited().args(["auth", "can-i", "create", "namespaces"]))?;
        if said.stdout.trim() == "no" {
            return Err(PlaceError::Engine {
                what: "the cluster lets this user make no namespace".to_owned(),
                lines: last_lines(&said.stderr, 3),
                next: Some("each run has a namespace of its own; ask for that right".to_owned()),
            });
        }
        Ok(())
    }

    /// The nodes that a Pod of this placement may come to.
    pub fn nodes(&self, placement: &KubernetesPlacement) -> Result<Vec<Node>, PlaceError> {
        if let Some(name) = &placement.node {
            let what = format!("there is no node `{name}`");
            let mut error = match self.ask(&["get", "node", name, "--output=json"], &what) {
                Ok(found) => return Ok(vec![Node(found)]),
                Err(error) => error,
            };
            if let PlaceError::Engine { next, .. } = &mut error {
                *next = Some("`kubectl get nodes` lists them".to_owned());
            }
            return Err(error);
        }
        let listed = self.ask(&["get", "nodes", "--output=json"], "the nodes cannot be listed")?;
        let nodes = listed["items"].as_array().cloned().unwrap_or_default();
        Ok(nodes.into_iter().map(Node).filter(Node::open).collect())
    }

    /// What the kubelet of a node was configured with; `None` where we may not ask.
    pub fn kubelet(&self, node: &str) -> Option<Value> {
        let path = format!("/api/v1/nodes/{node}/proxy/configz");
        let answer = self.ask(&["get", "--raw", &path], "the kubelet does not answer").ok()?;
        answer.get("kubeletconfig").cloned()
    }

    /// The warnings of a namespace, each once, in order.
    pub fn warnings(&self, namespace: &str) -> Vec<String> {
        let words = ["--namespace", namespace, "get", "events", "--output=json"];
        let Ok(events) = self.ask(&words, "the events cannot be read") else { return Vec::new() };
        let mut lines: Vec<String> = Vec::new();
        for event in events["items"].as_array().into_iter().flatten() {
            if event["type"] == "Warning" {
                let line = format!("{}: {}", text(event, "/reason"), text(event, "/message"));
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines
    }
}

/// `kubectl`'s own words, and what to do about the commonest.
fn refused(what: &str, said: &Said) -> PlaceError {
    let lines = last_lines(&said.stderr, 8);
    let all = lines.join("\n");
    let next = if ["refused", "no such host", "i/o timeout", "Unable to connect"]
        .iter()
        .any(|complaint| all.contains(complaint))
    {
        Some("is the cluster up? `kubectl get nodes` must answer; KUBECONFIG names it")
    } else if all.contains("Forbidden") || all.contains("forbidden") {
        Some("ask for the right, or set placement.kubernetes.context to one that has it")
    } else if all.contains("context") && all.contains("does not exist") {
        Some("`kubectl config get-contexts` lists them; see placement.kubernetes.context")
    } else {
        None
    };
    PlaceError::Engine { what: what.to_owned(), lines, next: next.map(str::to_owned) }
}

/// A node, as the API reports it.
pub(super) struct Node(pub Value);

impl Node {
    pub fn name(&self) -> &str {
        text(&self.0, "/metadata/name")
    }

    /// A fact of `status.nodeInfo`.
    pub fn info(&self, name: &str) -> &str {
        text(&self.0, &format!("/status/nodeInfo/{name}"))
    }

    /// Ready, and not closed to Pods.
    fn open(&self) -> bool {
        let ready = super::pod::condition(&self.0, "Ready").is_some_and(|(is, ..)| is == "True");
        ready && self.0["spec"]["unschedulable"] != true
    }

    /// Whether it runs on this machine's kernel.
    pub fn is_here(&self) -> bool {
        let boot = Path::new("/proc/sys/kernel/random/boot_id");
        std::fs::read_to_string(boot).is_ok_and(|id| id.trim() == self.info("bootID"))
    }

    /// What Pods may use of a resource, in processors or bytes.
    pub fn allocatable(&self, resource: &str) -> Option<f64> {
        quantity::parse(text(&self.0, &format!("/status/allocatable/{resource}")))
    }

    /// The address that a NodePort is reached by.
    pub fn address(&self) -> Option<String> {
        let addresses = self.0["status"]["addresses"].as_array()?;
        let of = |kind: &str| addresses.iter().find(|one| one["type"] == kind);
        let found = of("ExternalIP").or_else(|| of("InternalIP"))?;
        Some(text(found, "/address").to_owned())
    }
}
