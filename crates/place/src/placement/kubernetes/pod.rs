//! Reading a Pod as the API reports it: how far it is, what it waits for, how it ended. Pure.

use serde_json::Value;

/// What a kubelet says while it cannot go on and will not be able to by itself.
const STUCK: [&str; 8] = [
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
];

/// A container that cannot start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    pub container: String,
    pub reason: String,
    pub message: String,
}

/// How a container ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub exit: i64,
    /// `Completed`, `Error`, `OOMKilled` ...
    pub reason: String,
    pub message: String,
}

/// Text at a JSON pointer.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The status of a container or init container.
pub(super) fn container<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    ["/status/containerStatuses", "/status/initContainerStatuses"]
        .iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten()
        .find(|status| status["name"] == name)
}

/// Whether a container runs now.
pub(super) fn runs(pod: &Value, name: &str) -> bool {
    container(pod, name).is_some_and(|status| status["state"]["running"].is_object())
}

/// How a container ended, also one that was started again since.
pub(super) fn end(pod: &Value, name: &str) -> Option<End> {
    let status = container(pod, name)?;
    ["/state/terminated", "/lastState/terminated"].iter().find_map(|place| {
        let ended = status.pointer(place)?;
        Some(End {
            exit: ended["exitCode"].as_i64()?,
            reason: text(ended, "/reason").to_owned(),
            message: text(ended, "/message").to_owned(),
        })
    })
}

impl End {
    /// One line; `limit` is the container's memory limit.
    pub fn describe(&self, limit: &str) -> String {
        match self.reason.as_str() {
            "OOMKilled" => format!(
                "the kernel killed the server for want of memory (OOMKilled, exit {}); its limit \
                 is {}",
                self.exit,
                if limit.is_empty() { "the node's memory" } else { limit }
            ),
            _ => {
                let message = self.message.trim();
                let colon = if message.is_empty() { "" } else { ": " };
                format!("the server ended ({}, exit {}){colon}{message}", self.reason, self.exit)
            }
        }
    }
}

/// The container that cannot start, if one cannot.
pub(super) fn stuck(pod: &Value) -> Option<Stuck> {
    ["/status/initContainerStatuses", "/status/containerStatuses"]
        .iter()
        .filter_map(|list| pod.pointer(list)?.as_array())
        .flatten()
        .find_map(|status| {
            let waiting = status.pointer("/state/waiting")?;
            let reason = text(waiting, "/reason");
            STUCK.contains(&reason).then(|| Stuck {
                container: text(status, "/name").to_owned(),
                reason: reason.to_owned(),
                message: text(waiting, "/message").to_owned(),
            })
        })
}

/// A condition of a Pod or node: its status, reason and message.
pub(super) fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let found =
        object["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == kind)?;
    Some((text(found, "/status"), text(found, "/reason"), text(found, "/message")))
}

/// Why the scheduler finds no node, if it does not.
pub(super) fn unschedulable(pod: &Value) -> Option<&str> {
    let (status, reason, message) = condition(pod, "PodScheduled")?;
    (status == "False" && reason == "Unschedulable").then_some(message)
}

/// Which resources the scheduler's message calls short: `0/3 nodes are available: 1 Insufficient
/// cpu, 2 Insufficient memory. preemption: ...`.
pub(super) fn short_resources(message: &str) -> Vec<String> {
    let mut short: Vec<String> = message
        .split("Insufficient ")
        .skip(1)
        .map(|rest| {
            let word = |c: char| c.is_ascii_alphanumeric() || "-./".contains(c);
            let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
            rest[..end].trim_end_matches('.').to_owned()
        })
        .collect();
    short.dedup();
    short
}

/// Why a Pod that was up is lost, whatever its server says: evicted, or its node is silent.
pub(super) fn lost(pod: &Value) -> Option<String> {
    let node = text(pod, "/spec/nodeName");
    let reason = text(pod, "/status/reason");
    if !reason.is_empty() {
        return Some(format!("the Pod is lost ({reason}): {}", text(pod, "/status/message")));
    }
    if let Some(("True", reason, message)) = condition(pod, "DisruptionTarget") {
        return Some(format!("the Pod is being removed ({reason}): {message}"));
    }
    // The kubelet still calls the container ready, and somebody else the Pod not ready: that is
    // the control plane's way to say that it has not heard of the node.
    let ready = container(pod, super::manifests::SERVER)?["ready"] == true;
    let (status, ..) = condition(pod, "Ready")?;
    (ready && status == "False" && text(pod, "/metadata/deletionTimestamp").is_empty())
        .then(|| format!("the node {node} does not answer the cluster any more"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_short_resource_is_named() {
        let message = "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory, 2 \
                       Insufficient cpu. preemption: 0/3 nodes are available.";
        assert_eq!(short_resources(message), ["cpu", "memory", "cpu"]);
        let message = "0/1 nodes are available: 1 Insufficient example.com/gpu. preemption: none";
        assert_eq!(short_resources(message), ["example.com/gpu"]);
        assert!(
            short_resources("0/1 nodes are available: 1 node(s) were unschedulable.").is_empty()
        );
    }

    #[test]
    fn a_pod_tells_what_it_waits_for_and_how_it_ended() {
        let pod = json!({ "spec": { "nodeName": "n" }, "status": {
            "conditions": [
                { "type": "PodScheduled", "status": "True" },
                { "type": "Ready", "status": "False" },
            ],
            "initContainerStatuses": [
                { "name": "data", "state": { "terminated": { "exitCode": 0, "reason": "Completed" } } },
            ],
            "containerStatuses": [
                { "name": "server", "ready": false, "restartCount": 1,
                  "state": { "running": { "startedAt": "x" } },
                  "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } },
                { "name": "worker", "state": { "waiting": {
                    "reason": "ErrImageNeverPull", "message": "not present" } } },
            ],
        } });
        assert!(runs(&pod, "server") && !runs(&pod, "data"));
        let ended = end(&pod, "server");
        assert!(ended.as_ref().is_some_and(|end| end.describe("64Mi").contains("limit is 64Mi")));
        assert_eq!(end(&pod, "data").map(|end| end.exit), Some(0));
        assert_eq!(stuck(&pod).map(|stuck| stuck.reason).as_deref(), Some("ErrImageNeverPull"));
        assert_eq!(unschedulable(&pod), None);
        assert_eq!(lost(&pod), None, "a container that is not ready is no silent node");
    }

    #[test]
    fn a_node_that_is_gone_is_told_from_a_server_that_is() {
        let mut pod = json!({ "spec": { "nodeName": "n" }, "metadata": {}, "status": {
            "conditions": [{ "type": "Ready", "status": "False" }],
            "containerStatuses": [{ "name": "server", "ready": true }],
        } });
        assert!(lost(&pod).is_some_and(|why| why.contains("node n does not answer")));
        pod["status"]["conditions"][0]["status"] = json!("True");
        assert_eq!(lost(&pod), None);
        pod["status"]["reason"] = json!("Evicted");
        assert!(lost(&pod).is_some_and(|why| why.contains("Evicted")));
    }
}
