//! Which processors and memory nodes each instance is bound to: a pure function of the study's words
//! and the machine's topology.
//!
//! - A count of `cpus` gives each instance that many processors of its own, the lowest first; where the
//!   machine has no more, the following instances begin again with the first.
//! - `assign = "spread"` puts instances on the nodes in turn, `"pack"` fills one node after the other.
//!   With a count of `cpus` an instance gets that many processors of its node, whole cores first; without
//!   one, all of its node, which it shares with the others there, and `pack` puts as many on a node
//!   as it takes for all to find room.
//! - Assigned instances are bound to the memory of their processors' nodes too.

use std::collections::BTreeSet;

use study::{Assign, Cpus, HostPlacement};

use super::topology::{Topology, shown};
use crate::error::PlaceError;

/// What one instance is bound to; `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seat {
    pub processors: Option<BTreeSet<u32>>,
    /// Memory nodes.
    pub nodes: Option<BTreeSet<u32>>,
    /// Whether any processors would do, if there are as many.
    pub counted: bool,
}

/// The seats of all instances, by ordinal.
///
/// # Errors
/// Processors or nodes that this machine has not.
pub(super) fn seats(host: &HostPlacement, machine: &Topology) -> Result<Vec<Seat>, PlaceError> {
    let count = host.instances as usize;
    match (host.assign, &host.cpus) {
        (Assign::None, None) => Ok(vec![Seat::default(); count]),
        (Assign::None, Some(Cpus::Count(each))) => {
            let all: Vec<u32> = machine.processors().into_iter().collect();
            check_count(*each, all.len(), "this machine has", machine)?;
            let each = *each as usize;
            let seat = |ordinal| Seat { counted: true, ..part(&all, ordinal, each) };
            Ok((0..count).map(seat).collect())
        }
        (Assign::None, Some(cpus)) => {
            let processors = Some(named(cpus, machine)?);
            Ok(vec![Seat { processors, ..Seat::default() }; count])
        }
        (Assign::List, _) => {
            let bound = |text: &String| {
                let cpus = text.parse().map_err(|why| refused(why, None))?;
                Ok(with_memory(named(&cpus, machine)?, machine))
            };
            host.assign_list.iter().map(bound).collect()
        }
        (Assign::Spread | Assign::Pack, Some(Cpus::Count(each))) => {
            counted(host, *each, count, machine)
        }
        // `cpus` as a list or a node contradicts `assign`, which the study's check has refused.
        (Assign::Spread | Assign::Pack, _) => {
            let nodes = machine.seats();
            check_count(1, nodes.len(), "this machine has", machine)?;
            let each = count.div_ceil(nodes.len());
            let node = |ordinal: usize| match host.assign {
                Assign::Spread => ordinal % nodes.len(),
                _ => ordinal / each,
            };
            let seat =
                |ordinal| with_memory(nodes[node(ordinal)].1.iter().copied().collect(), machine);
            Ok((0..count).map(seat).collect())
        }
    }
}

/// `each` processors of one node for every instance.
fn counted(
    host: &HostPlacement,
    each: u32,
    count: usize,
    machine: &Topology,
) -> Result<Vec<Seat>, PlaceError> {
    let nodes = machine.seats();
    let largest = nodes.iter().map(|(_, processors)| processors.len()).max().unwrap_or(0);
    check_count(each, largest, "the largest node has", machine)?;
    let each = each as usize;
    // A node that is too small for an instance gets none.
    let fitting: Vec<&Vec<u32>> =
        nodes.iter().map(|(_, processors)| processors).filter(|all| all.len() >= each).collect();
    // Where the instances sit in rounds: (node, place on the node).
    let places: Vec<(usize, usize)> = match host.assign {
        Assign::Spread => {
            (0..count).map(|ordinal| (ordinal % fitting.len(), ordinal / fitting.len())).collect()
        }
        _ => {
            let rooms = fitting.iter().enumerate();
            let round: Vec<(usize, usize)> = rooms
                .flat_map(|(node, all)| (0..all.len() / each).map(move |place| (node, place)))
                .collect();
            (0..count).map(|ordinal| round[ordinal % round.len()]).collect()
        }
    };
    let seat = |(node, place): (usize, usize)| {
        let seat = part(fitting[node], place, each);
        with_memory(seat.processors.unwrap_or_default(), machine)
    };
    Ok(places.into_iter().map(seat).collect())
}

/// The `ordinal`-th `each` of `all`, beginning again at the end.
fn part(all: &[u32], ordinal: usize, each: usize) -> Seat {
    let processors = (0..each).map(|k| all[(ordinal * each + k) % all.len()]).collect();
    Seat { processors: Some(processors), ..Seat::default() }
}

fn with_memory(processors: BTreeSet<u32>, machine: &Topology) -> Seat {
    // A node without memory of its own has nothing to be bound to.
    let nodes = Some(machine.memory_of(&processors)).filter(|nodes| !nodes.is_empty());
    Seat { processors: Some(processors), nodes, counted: false }
}

/// A list, or the processors of a node.
fn named(cpus: &Cpus, machine: &Topology) -> Result<BTreeSet<u32>, PlaceError> {
    let usable = machine.processors();
    match cpus {
        Cpus::Count(count) => {
            check_count(*count, usable.len(), "this machine has", machine)?;
            Ok(usable.into_iter().take(*count as usize).collect())
        }
        Cpus::List(list) => match list.difference(&usable).next() {
            None => Ok(list.clone()),
            Some(missing) => {
                let why = format!("processor {missing} cannot be used here");
                Err(refused(why, Some(format!("usable are {}", shown(&usable)))))
            }
        },
        Cpus::Node(node) => {
            let found = machine.seats().into_iter().find(|(number, _)| number == node);
            found.map(|(_, processors)| processors.into_iter().collect()).ok_or_else(|| {
                let with: BTreeSet<u32> = machine.seats().iter().map(|(node, _)| *node).collect();
                let why = format!("there is no node {node} with processors");
                refused(why, Some(format!("nodes of this machine are {}", shown(&with))))
            })
        }
    }
}

fn check_count(each: u32, there: usize, whose: &str, machine: &Topology) -> Result<(), PlaceError> {
    if (1..=there).contains(&(each as usize)) {
        return Ok(());
    }
    let why = format!("an instance wants {each}, {whose} {there}");
    Err(refused(why, Some(format!("usable are {}", shown(&machine.processors())))))
}

fn refused(why: String, next: Option<String>) -> PlaceError {
    PlaceError::Limit { what: "the processors of an instance".to_owned(), why, next }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Two nodes with four cores each, of two threads each: processor n and n + 8 are one core.
    fn machine() -> Topology {
        Topology::of(&[
            (0, &[&[0, 8], &[1, 9], &[2, 10], &[3, 11]]),
            (1, &[&[4, 12], &[5, 13], &[6, 14], &[7, 15]]),
        ])
    }

    fn host(instances: u32, assign: Assign, cpus: Option<Cpus>) -> HostPlacement {
        HostPlacement { instances, assign, cpus, ..HostPlacement::default() }
    }

    /// Processors and nodes of each instance.
    fn laid(host: &HostPlacement) -> Vec<(String, String)> {
        let shown = |list: &Option<BTreeSet<u32>>| list.as_ref().map_or("all".to_owned(), shown);
        let seats = seats(host, &machine()).unwrap();
        seats.iter().map(|seat| (shown(&seat.processors), shown(&seat.nodes))).collect()
    }

    fn expect(host: &HostPlacement, expected: &[(&str, &str)]) {
        let found = laid(host);
        let found: Vec<(&str, &str)> = found.iter().map(|(a, b)| (&**a, &**b)).collect();
        assert_eq!(found, expected, "{host:?}");
    }

    #[test]
    fn counts_are_the_lowest_processors_and_instances_have_their_own_while_they_last() {
        expect(&host(2, Assign::None, None), &[("all", "all"); 2]);
        let six = Some(Cpus::Count(6));
        expect(&host(1, Assign::None, six.clone()), &[("0-5", "all")]);
        let third = ("0-1,12-15", "all");
        expect(&host(3, Assign::None, six), &[("0-5", "all"), ("6-11", "all"), third]);
        let all = seats(&host(1, Assign::None, Some(Cpus::Count(2))), &machine()).unwrap();
        assert!(all[0].counted);
    }

    #[test]
    fn lists_and_nodes_are_taken_as_they_are() {
        let list = Cpus::List([1, 9].into());
        expect(&host(2, Assign::None, Some(list)), &[("1,9", "all"); 2]);
        expect(&host(1, Assign::None, Some(Cpus::Node(1))), &[("4-7,12-15", "all")]);
        let listed = HostPlacement {
            assign_list: vec!["node:1".to_owned(), "0,4".to_owned()],
            ..host(2, Assign::List, None)
        };
        expect(&listed, &[("4-7,12-15", "1"), ("0,4", "0-1")]);
    }

    #[test]
    fn bound_instances_share_their_node() {
        let (zero, one) = (("0-3,8-11", "0"), ("4-7,12-15", "1"));
        expect(&host(4, Assign::Spread, None), &[zero, one, zero, one]);
        expect(&host(4, Assign::Pack, None), &[zero, zero, one, one]);
        expect(&host(3, Assign::Spread, None), &[zero, one, zero]);
        expect(&host(3, Assign::Pack, None), &[zero, zero, one]);
        expect(&host(1, Assign::Spread, None), &[zero]);
        expect(&host(2, Assign::Pack, None), &[zero, one]);
    }

    #[test]
    fn with_a_count_instances_get_whole_cores_of_their_node() {
        let four = Some(Cpus::Count(4));
        let (first, second) = (("0-1,8-9", "0"), ("2-3,10-11", "0"));
        let (third, fourth) = (("4-5,12-13", "1"), ("6-7,14-15", "1"));
        expect(&host(3, Assign::Spread, four.clone()), &[first, third, second]);
        expect(&host(3, Assign::Pack, four.clone()), &[first, second, third]);
        // A fifth shares with the first, wherever that is.
        expect(&host(5, Assign::Pack, four.clone()), &[first, second, third, fourth, first]);
        expect(&host(5, Assign::Spread, four), &[first, third, second, fourth, first]);
        // Three of eight leave two over, which nobody gets.
        let three = Some(Cpus::Count(3));
        let expected = [("0-1,8", "0"), ("2,9-10", "0"), ("4-5,12", "1")];
        expect(&host(3, Assign::Pack, three), &expected);
    }

    #[test]
    fn what_this_machine_has_not_is_said_with_what_it_has() {
        let error = |host: &HostPlacement| {
            let error = seats(host, &machine()).unwrap_err();
            format!("{error}; {}", error.hint().unwrap())
        };
        let too_many = error(&host(1, Assign::None, Some(Cpus::Count(17))));
        assert!(too_many.contains("wants 17, this machine has 16; usable are 0-15"), "{too_many}");
        let large = error(&host(1, Assign::Spread, Some(Cpus::Count(9))));
        assert!(large.contains("wants 9, the largest node has 8"), "{large}");
        let list = error(&host(1, Assign::None, Some(Cpus::List([3, 99].into()))));
        assert!(list.contains("processor 99 cannot be used here; usable are 0-15"), "{list}");
        let node = error(&host(1, Assign::None, Some(Cpus::Node(2))));
        assert!(
            node.contains("no node 2 with processors; nodes of this machine are 0-1"),
            "{node}"
        );
    }
}
