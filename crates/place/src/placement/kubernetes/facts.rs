//! What is known of a Pod that is up: its fingerprint, its allowance, its process on this machine.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use study::{Controller, KubernetesPlacement, QosClass, Reach, VolumeKind, WorkerSeat};

use super::cluster::Node;
use super::manifests::SERVER;
use super::pod::{container, text};
use super::quantity;
use crate::allowance::Allowance;

/// The part of a fingerprint that only Kubernetes knows, as the API reports it and not as it was
/// asked for.
pub(super) fn fingerprint(
    placement: &KubernetesPlacement,
    pod: &Value,
    node: Option<&Node>,
    kubelet: Option<&Value>,
) -> BTreeMap<String, String> {
    let server = spec(pod).cloned().unwrap_or_default();
    let quantity = |place: &str| match text(&server, place) {
        "" => "none".to_owned(),
        given => given.to_owned(),
    };
    let info = |name: &str| node.map(|node| node.info(name).to_owned()).unwrap_or_default();
    let unknown = || "unknown".to_owned();
    let policy = kubelet.map_or_else(unknown, |config| {
        let policy = text(config, "/cpuManagerPolicy");
        // The kubelet leaves out what is its own default.
        if policy.is_empty() { "none".to_owned() } else { policy.to_owned() }
    });
    let image = container(pod, SERVER).map(|status| text(status, "/imageID").to_owned());
    let storage = &placement.storage;
    let class = match (storage.kind, &storage.class) {
        (VolumeKind::Pvc, Some(class)) => class.clone(),
        (VolumeKind::Pvc, None) => "default".to_owned(),
        _ => "none".to_owned(),
    };
    let facts = [
        ("kind", "kubernetes".to_owned()),
        ("controller", controller(placement.controller).to_owned()),
        ("qos_class", text(pod, "/status/qosClass").to_owned()),
        ("requests.cpu", quantity("/resources/requests/cpu")),
        ("requests.memory", quantity("/resources/requests/memory")),
        ("limits.cpu", quantity("/resources/limits/cpu")),
        ("limits.memory", quantity("/resources/limits/memory")),
        ("image", text(&server, "/image").to_owned()),
        ("image_id", image.filter(|id| !id.is_empty()).unwrap_or_else(unknown)),
        ("node", text(pod, "/spec/nodeName").to_owned()),
        ("node_version", info("kubeletVersion")),
        ("container_runtime", info("containerRuntimeVersion")),
        ("node_kernel", info("kernelVersion")),
        ("cpu_manager_policy", policy),
        ("storage", volume(storage.kind).to_owned()),
        ("storage_class", class),
        (
            "worker",
            if placement.worker == WorkerSeat::Inside { "inside" } else { "outside" }.into(),
        ),
        ("reach", if placement.reach == Reach::NodePort { "node_port" } else { "pod_ip" }.into()),
    ];
    facts.map(|(name, value)| (format!("place.placement.{name}"), value)).into_iter().collect()
}

fn controller(controller: Controller) -> &'static str {
    match controller {
        Controller::Pod => "pod",
        Controller::Deployment => "deployment",
        Controller::StatefulSet => "stateful_set",
    }
}

fn volume(kind: VolumeKind) -> &'static str {
    match kind {
        VolumeKind::EmptyDir => "empty_dir",
        VolumeKind::HostPath => "host_path",
        VolumeKind::Pvc => "pvc",
    }
}

/// The server's container as the API has it, with what the cluster's own rules made of it.
fn spec(pod: &Value) -> Option<&Value> {
    pod["spec"]["containers"].as_array()?.iter().find(|one| one["name"] == SERVER)
}

/// The memory limit as Kubernetes writes it; empty without one.
pub(super) fn memory_limit(pod: &Value) -> &str {
    spec(pod).map(|server| text(server, "/resources/limits/memory")).unwrap_or_default()
}

/// What the kernel lets the server use: the limits. Requests only say who gives way to whom.
pub(super) fn allowance(pod: &Value) -> Allowance {
    let limit = |name: &str| {
        let limit = text(spec(pod)?, &format!("/resources/limits/{name}"));
        quantity::parse(limit)
    };
    Allowance {
        processors: None,
        cpus: limit("cpu"),
        memory_bytes: limit("memory").map(|bytes| bytes as u64),
    }
}

/// What Kubernetes calls a class.
pub(super) fn class_name(class: QosClass) -> &'static str {
    match class {
        QosClass::BestEffort => "BestEffort",
        QosClass::Burstable => "Burstable",
        QosClass::Guaranteed => "Guaranteed",
    }
}

/// The server's process on this machine, if the node is this machine: the first process of the
/// container, whose id is part of its control group's name with every driver.
pub(super) fn process(pod: &Value) -> Option<u32> {
    let id = text(container(pod, SERVER)?, "/containerID");
    let id = id.rsplit_once("://").map(|(_, id)| id).filter(|id| id.len() >= 12)?;
    fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let file = format!("/proc/{pid}/cgroup");
            fs::read_to_string(file).is_ok_and(|groups| groups.contains(id))
        })
        .find(|pid| {
            let file = format!("/proc/{pid}/status");
            fs::read_to_string(file).is_ok_and(|status| first_inside(&status))
        })
}

/// Whether a process is number 1 of its own namespace, from its `status`.
fn first_inside(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .and_then(|ids| ids.split_whitespace().next_back())
        == Some("1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_api_reports_counts_and_not_what_was_asked_for() {
        let pod = json!({
            "spec": { "nodeName": "n1", "containers": [
                { "name": "worker", "resources": {} },
                { "name": "server", "image": "localhost/a:1", "resources": {
                    "limits": { "cpu": "100m", "memory": "512Mi" },
                    "requests": { "cpu": "100m", "memory": "512Mi" },
                } },
            ] },
            "status": { "qosClass": "Guaranteed" },
        });
        let asked = KubernetesPlacement::default();
        let facts = fingerprint(&asked, &pod, None, Some(&json!({ "cpuManagerPolicy": "static" })));
        let fact = |name: &str| facts[&format!("place.placement.{name}")].as_str();
        assert_eq!(fact("qos_class"), "Guaranteed");
        assert_eq!(fact("limits.cpu"), "100m");
        assert_eq!(fact("cpu_manager_policy"), "static");
        assert_eq!(fact("image_id"), "unknown");
        let allowance = allowance(&pod);
        assert_eq!(allowance.cpus, Some(0.1));
        assert_eq!(allowance.memory_bytes, Some(512 << 20));
        assert_eq!(super::allowance(&json!({})), Allowance::default());
    }

    #[test]
    fn the_first_process_of_a_container_is_told_from_its_threads_and_children() {
        assert!(first_inside("Name:\tmysqld\nNSpid:\t4711\t1\n"));
        assert!(!first_inside("Name:\tsh\nNSpid:\t4712\t17\n"));
        assert!(!first_inside("Name:\tsh\n"));
    }
}
