//! The processors of this machine as nodes and cores: those that this process may use.
//!
//! From `/sys/devices/system` (the kernel's `Documentation/admin-guide/cputopology.rst`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use study::{Cpus, ranges};

/// Nodes, their cores, the processors (hardware threads) of each core.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Topology {
    nodes: BTreeMap<u32, Vec<Vec<u32>>>,
    /// Nodes that have memory.
    memory: BTreeSet<u32>,
}

impl Topology {
    /// Of this machine.
    pub fn read() -> Topology {
        Topology::below(Path::new("/"))
    }

    /// Of the machine whose files lie below `root`.
    fn below(root: &Path) -> Topology {
        let read = |path: String| fs::read_to_string(root.join(path)).ok();
        let list = |path: String| read(path).as_deref().and_then(processors);
        let status = read("proc/self/status".to_owned()).unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let online = list("sys/devices/system/cpu/online".to_owned()).unwrap_or_default();
        let allowed = allowed.and_then(processors).unwrap_or_else(|| online.clone());
        let usable: BTreeSet<u32> = match online.is_empty() {
            true => allowed,
            false => allowed.intersection(&online).copied().collect(),
        };
        let names = fs::read_dir(root.join("sys/devices/system/node")).into_iter().flatten();
        let mut of_node: BTreeMap<u32, BTreeSet<u32>> = names
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("node")?.parse().ok())
            .map(|node: u32| {
                let all = list(format!("sys/devices/system/node/node{node}/cpulist"));
                let all = all.unwrap_or_default();
                (node, all.intersection(&usable).copied().collect())
            })
            .collect();
        if of_node.is_empty() {
            // A kernel that knows no nodes has one.
            of_node.insert(0, usable);
        }
        let cores = |processors: BTreeSet<u32>| {
            let mut cores: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            for processor in processors {
                let path =
                    format!("sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list");
                let first = list(path).and_then(|siblings| siblings.first().copied());
                cores.entry(first.unwrap_or(processor)).or_default().push(processor);
            }
            cores.into_values().collect()
        };
        let memory = list("sys/devices/system/node/has_memory".to_owned());
        Topology {
            memory: memory.unwrap_or_else(|| of_node.keys().copied().collect()),
            nodes: of_node.into_iter().map(|(node, all)| (node, cores(all))).collect(),
        }
    }

    #[cfg(test)]
    pub fn of(nodes: &[(u32, &[&[u32]])]) -> Topology {
        let cores = |cores: &[&[u32]]| cores.iter().map(|core| core.to_vec()).collect();
        Topology {
            nodes: nodes.iter().map(|(node, all)| (*node, cores(all))).collect(),
            memory: nodes.iter().map(|(node, _)| *node).collect(),
        }
    }

    /// Every usable processor.
    pub fn processors(&self) -> BTreeSet<u32> {
        self.nodes.values().flatten().flatten().copied().collect()
    }

    /// Every node with memory, those without processors too.
    pub fn memory(&self) -> &BTreeSet<u32> {
        &self.memory
    }

    /// Nodes that have usable processors, each with them in the order of its cores.
    pub fn seats(&self) -> Vec<(u32, Vec<u32>)> {
        let flat = self.nodes.iter().map(|(node, cores)| (*node, cores.concat()));
        flat.filter(|(_, processors)| !processors.is_empty()).collect()
    }

    /// The memory nodes of these processors.
    pub fn memory_of(&self, processors: &BTreeSet<u32>) -> BTreeSet<u32> {
        let holds = |cores: &Vec<Vec<u32>>| cores.iter().flatten().any(|p| processors.contains(p));
        let near = self.nodes.iter().filter(|(_, cores)| holds(cores)).map(|(node, _)| *node);
        near.filter(|node| self.memory.contains(node)).collect()
    }
}

/// A list as the kernel writes it; an empty one is one, too.
pub(crate) fn processors(text: &str) -> Option<BTreeSet<u32>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(BTreeSet::new());
    }
    match text.parse() {
        Ok(Cpus::List(list)) => Some(list),
        _ => None,
    }
}

/// For people: `0-1`, or `none`.
pub(crate) fn shown(list: &BTreeSet<u32>) -> String {
    if list.is_empty() { "none".to_owned() } else { ranges(list) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_machine_with_two_nodes_and_two_threads_a_core_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // Processor 7 is off, and this process may not use 3.
        write("sys/devices/system/cpu/online", "0-6\n");
        write(
            "proc/self/status",
            "Name:\tx\nCpus_allowed_list:\t0-2,4-7\nMems_allowed_list:\t0-1\n",
        );
        write("sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
        write("sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
        write("sys/devices/system/node/node2/cpulist", "\n");
        write("sys/devices/system/node/possible", "0-2\n");
        for cpu in 0..7 {
            let siblings = format!("{},{}\n", cpu % 4, cpu % 4 + 4);
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            write(&path, &siblings);
        }
        let read = Topology::below(dir.path());
        let expected: &[(u32, &[&[u32]])] = &[(0, &[&[0, 4], &[1, 5]]), (1, &[&[2, 6]]), (2, &[])];
        assert_eq!(read, Topology::of(expected));
        assert_eq!(read.seats(), [(0, vec![0, 4, 1, 5]), (1, vec![2, 6])]);
        assert_eq!(read.memory_of(&[5, 2].into()), [0, 1].into());
        assert_eq!(read.memory(), &[0, 1, 2].into());
        // The second node's memory is at the third.
        write("sys/devices/system/node/has_memory", "0,2\n");
        let read = Topology::below(dir.path());
        assert_eq!(read.memory(), &[0, 2].into());
        assert_eq!(read.memory_of(&[2].into()), [].into());
    }

    #[test]
    fn this_machine_is_read() {
        let here = Topology::read();
        assert!(!here.processors().is_empty() && !here.memory().is_empty());
        assert!(here.memory_of(&here.processors()).is_subset(here.memory()));
    }
}
