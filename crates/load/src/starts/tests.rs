//! Starts by the millisecond: who may begin when, in closed and open loops, with stages and losses.
#![allow(clippy::unwrap_used)]
use std::time::Duration;

use super::*;
use crate::spec::{self, DriveSpec, Pacing, Stage};

const MS: u64 = 1_000_000;
const START: u64 = 1_000 * MS;

fn starts(connections: u32, pacing: Pacing) -> Starts {
    let measure = Duration::from_secs(1);
    let spec = DriveSpec { connections, measure, pacing, ..DriveSpec::default() };
    let timeline = Arc::new(Timeline::new(&spec).unwrap());
    Starts::new(&timeline, 0, 1, spec.connections_max() as usize, START)
}

/// [`Starts::due`], for a connection that was free.
fn due(starts: &mut Starts, ms: u64) -> Option<(usize, Begun)> {
    starts.due(START + ms * MS).map(|due| {
        assert!(due.was_free);
        (due.token, due.begun)
    })
}

/// [`Starts::due`], for a connection that a stage calls.
fn called(starts: &mut Starts, ms: u64) -> Option<(usize, Begun)> {
    starts.due(START + ms * MS).map(|due| {
        assert!(!due.was_free);
        (due.token, due.begun)
    })
}

fn begun(intended_ms: u64, started_ms: u64) -> Begun {
    Begun { intended_ns: START + intended_ms * MS, started_ns: START + started_ms * MS }
}

#[test]
fn a_closed_loop_starts_at_once_or_when_it_has_thought() {
    let mut bare = starts(2, Pacing::default());
    assert_eq!(bare.ask(1, START, false), Some(begun(0, 0)));
    assert_eq!(bare.next_ns(), u64::MAX);

    let think = Duration::from_millis(10);
    let mut thinks = starts(3, Pacing { think, ..Pacing::default() });
    assert_eq!(thinks.ask(0, START, true), Some(begun(0, 0)));
    assert_eq!(thinks.ask(1, START + 2 * MS, false), None);
    assert_eq!(thinks.ask(0, START + 5 * MS, false), None);
    assert_eq!(thinks.next_ns(), START + 12 * MS);
    assert_eq!(due(&mut thinks, 11), None);
    assert_eq!(due(&mut thinks, 16), Some((1, begun(12, 16))));
    thinks.leave(0, None);
    assert_eq!((due(&mut thinks, 16), thinks.next_ns()), (None, u64::MAX));
    assert_eq!([0, 1, 2].map(|token| thinks.dismiss(token)), [true, false, false]);
}

#[test]
fn a_lost_connection_owes_the_start_that_it_would_have_made() {
    // It was in the middle of a transaction, which the next one stands in for.
    let mut bare = starts(3, Pacing::default());
    assert_eq!(bare.ask(0, START + 3 * MS, false), Some(begun(3, 3)));
    bare.leave(0, Some(START + 3 * MS));
    assert_eq!((bare.away(START + 90 * MS), bare.overdue(START + 90 * MS)), (1, vec![87 * MS]));
    bare.go_on(0);
    assert_eq!((bare.away(START + 90 * MS), bare.overdue(START + 90 * MS)), (0, vec![]));
    assert_eq!(bare.ask(0, START + 95 * MS, true), Some(begun(3, 95)));
    assert_eq!(bare.ask(0, START + 96 * MS, false), Some(begun(96, 96)), "paid");

    // It thought: until after the outage, or not.
    let think = Duration::from_millis(10);
    let mut thinks = starts(2, Pacing { think, ..Pacing::default() });
    assert_eq!(thinks.ask(0, START + 2 * MS, false), None);
    assert_eq!(thinks.ask(1, START + 3 * MS, false), None);
    for (token, back_ms, start) in [(0, 5, None), (1, 50, Some(begun(13, 50)))] {
        thinks.leave(token, None);
        thinks.go_on(token);
        assert_eq!(thinks.ask(token, START + back_ms * MS, true), start);
    }
    // What was due while nobody was connected is no fault of ours, what was due then is.
    assert_eq!(due(&mut thinks, 60), Some((0, begun(12, 60))));

    // In an open loop too; arrivals that nobody could take are late and no fault of ours.
    let rate_per_second = Some(100.0);
    let arrivals = spec::Arrivals::Uniform;
    let mut open = starts(1, Pacing { rate_per_second, arrivals, ..Pacing::default() });
    assert_eq!(open.ask(0, START, true), None);
    open.leave(0, None);
    assert_eq!((due(&mut open, 40), open.next_ns()), (None, u64::MAX));
    open.go_on(0);
    assert_eq!(open.ask(0, START + 41 * MS, true), Some(begun(5, 41)));
    open.leave(0, Some(START + 5 * MS));
    open.go_on(0);
    assert_eq!(open.ask(0, START + 43 * MS, true), Some(begun(5, 43)));
    assert_eq!(open.ask(0, START + 44 * MS, false), Some(begun(15, 44)));
}

#[test]
fn arrivals_wait_for_connections_and_keep_their_instant() {
    let arrivals = spec::Arrivals::Uniform;
    // Due at 50, 150, 250 ms ...
    let rate_per_second = Some(10.0);
    let mut open = starts(2, Pacing { rate_per_second, arrivals, ..Pacing::default() });
    assert_eq!((open.ask(0, START, true), open.ask(1, START, true)), (None, None));
    assert_eq!(open.next_ns(), START + 50 * MS);
    assert_eq!(due(&mut open, 49), None);
    assert_eq!(due(&mut open, 170), Some((0, begun(50, 170))));
    assert_eq!(due(&mut open, 170), Some((1, begun(150, 170))));
    assert_eq!((due(&mut open, 170), open.next_ns()), (None, u64::MAX));
    // Nobody was free at 250 and 350 ms.
    assert_eq!(open.ask(1, START + 400 * MS, false), Some(begun(250, 400)));
    assert_eq!(open.take_taken_up(), TakenUp { count: 3, late_ns_max: 150 * MS });
    assert_eq!(open.take_taken_up(), TakenUp::default());
    let mut left = open.backlog().unwrap();
    let mut never = Vec::new();
    while left.due_ns() < u64::MAX {
        never.push(left.due_ns() / MS);
        left.advance();
    }
    assert_eq!(never, [350, 450, 550, 650, 750, 850, 950]);
    assert_eq!(due(&mut open, 1000), None, "the drive is over");
}

#[test]
fn a_stage_parks_connections_and_calls_them() {
    let at = |ms, connections| Stage {
        at: Duration::from_millis(ms),
        connections: Some(connections),
        ..Stage::default()
    };
    let stages = vec![at(100, 3), at(200, 1), at(300, 2)];
    let mut closed = starts(1, Pacing { stages, ..Pacing::default() });
    assert_eq!(closed.ask(0, START, true), Some(begun(0, 0)));
    assert_eq!((closed.ask(1, START, true), closed.ask(2, START, true)), (None, None));
    assert_eq!(closed.next_ns(), START + 100 * MS);
    assert_eq!(closed.ask(0, START + 100 * MS, false), Some(begun(100, 100)));
    assert_eq!(closed.next_ns(), 0, "others are to be called");
    assert_eq!(called(&mut closed, 100), Some((1, begun(100, 100))));
    assert_eq!(called(&mut closed, 100), Some((2, begun(100, 100))));
    assert_eq!(called(&mut closed, 100), None);
    assert_eq!(called(&mut closed, 200), None);
    assert_eq!(
        (closed.ask(1, START + 210 * MS, false), closed.next_ns()),
        (None, START + 300 * MS)
    );
    // It is called though the third has not noticed yet that it should have stopped.
    assert_eq!(called(&mut closed, 300), Some((1, begun(300, 300))));
    assert_eq!((called(&mut closed, 300), closed.next_ns()), (None, u64::MAX));
    assert_eq!(closed.ask(2, START + 310 * MS, false), None);
    assert_eq!([0, 1, 2].map(|token| closed.dismiss(token)), [false, false, true]);
}

#[test]
fn who_is_called_while_it_is_away_is_late() {
    let at = Duration::from_millis(100);
    let stages = vec![Stage { at, connections: Some(2), ..Stage::default() }];
    let mut closed = starts(1, Pacing { stages, ..Pacing::default() });
    assert_eq!(closed.ask(1, START, true), None);
    closed.leave(1, None);
    assert_eq!((closed.away(START + 50 * MS), closed.overdue(START + 50 * MS)), (0, vec![]));
    assert_eq!(called(&mut closed, 101), None);
    assert_eq!(closed.away(START + 120 * MS), 1);
    closed.go_on(1);
    assert_eq!(closed.ask(1, START + 130 * MS, true), Some(begun(101, 130)));
}
