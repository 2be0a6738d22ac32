//! Which connection of a thread may start a transaction, and when.
//!
//! A task that has nothing in hand asks; it either starts at once or waits here until the thread's
//! loop finds its start due. Closed loop: at once, or after its think time. Open loop: as soon as an
//! arrival is due that nobody has taken; arrivals wait for connections, not the other way round, so
//! a late start keeps the instant at which it was intended. Connections beyond the number at work
//! wait until a stage calls them. A connection that is lost owes the start that it would have made
//! had the server been there: of the transaction that broke off with it, which the next one stands
//! in for, or the one that its think time led to. That instant is kept until the connection has
//! been made again, so that an outage is part of a response time and not a gap between two. All
//! queues are as long as they can become from the start.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::arrivals::Arrivals;
use crate::flight::Begun;
use crate::timeline::Timeline;

/// Where a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Its task has a transaction in hand, or has ended, or will ask.
    Busy,
    /// In `idle` or in `thinking`.
    Queued,
    /// Not at work in the present stage.
    Parked,
    /// Its connection is being made again.
    Away,
}

/// Of a connection that owes no start.
const NOTHING: u64 = u64::MAX;

/// A start that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// Whose.
    pub token: usize,
    /// When it should have begun and when it does.
    pub begun: Begun,
    /// The connection was free when it was due: what it is late by is our own fault.
    pub was_free: bool,
}

/// Arrivals of an open loop that connections have taken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TakenUp {
    /// How many.
    pub count: u64,
    /// The longest that one had waited since it was due.
    pub late_ns_max: u64,
}

impl TakenUp {
    #[inline]
    fn note(&mut self, due_ns: u64, now_ns: u64) {
        self.count += 1;
        self.late_ns_max = self.late_ns_max.max(now_ns.saturating_sub(due_ns));
    }

    /// What another thread took up, too.
    pub(crate) fn add(&mut self, other: TakenUp) {
        self.count += other.count;
        self.late_ns_max = self.late_ns_max.max(other.late_ns_max);
    }
}

/// See the module.
pub(crate) struct Starts {
    timeline: Arc<Timeline>,
    thread: u32,
    threads: u32,
    /// CLOCK_MONOTONIC begin and end of the drive.
    start_ns: u64,
    end_ns: u64,
    arrivals: Option<Arrivals>,
    /// Of them, since [`Starts::take_taken_up`].
    taken_up: TakenUp,
    /// By token.
    places: Box<[Place]>,
    /// By token: when the start was intended that its loss has delayed, CLOCK_MONOTONIC; else
    /// [`NOTHING`].
    owed: Box<[u64]>,
    /// Tokens below this are at work.
    at_work: usize,
    /// When that may change, CLOCK_MONOTONIC.
    change_ns: u64,
    /// Tokens below this that are parked have yet to learn that they are at work no more.
    called: usize,
    /// Open loop: free connections, longest free first.
    idle: VecDeque<usize>,
    /// Closed loop: when a connection's think time ends, CLOCK_MONOTONIC; in this order, because
    /// all think equally long.
    thinking: VecDeque<(u64, usize)>,
}

impl Starts {
    /// For `connections` of a thread, beginning at `start_ns`.
    pub(crate) fn new(
        timeline: &Arc<Timeline>,
        thread: u32,
        threads: u32,
        connections: usize,
        start_ns: u64,
    ) -> Starts {
        let arrivals = Arrivals::new(timeline, thread, threads);
        let queued = |used: bool| if used { connections } else { 0 };
        let mut starts = Starts {
            idle: VecDeque::with_capacity(queued(arrivals.is_some())),
            thinking: VecDeque::with_capacity(queued(timeline.think_ns > 0)),
            timeline: Arc::clone(timeline),
            thread,
            threads,
            start_ns,
            end_ns: start_ns.saturating_add(timeline.end_ns),
            arrivals,
            taken_up: TakenUp::default(),
            places: vec![Place::Busy; connections].into_boxed_slice(),
            owed: vec![NOTHING; connections].into_boxed_slice(),
            at_work: 0,
            change_ns: 0,
            called: 0,
        };
        starts.follow_stage(start_ns);
        starts.called = starts.at_work;
        starts
    }

    /// `token` has nothing in hand: it starts at once, or gets a place to wait. Who has just come
    /// to work (`fresh`) need not think first, but may owe a start.
    #[inline]
    pub(crate) fn ask(&mut self, token: usize, now_ns: u64, fresh: bool) -> Option<Begun> {
        if now_ns >= self.change_ns {
            self.follow_stage(now_ns);
        }
        if token >= self.at_work {
            self.places[token] = Place::Parked;
            return None;
        }
        if fresh && self.owed[token] != NOTHING {
            return self.make_up(token, now_ns);
        }
        let now = Begun { intended_ns: now_ns, started_ns: now_ns };
        let Some(arrivals) = &mut self.arrivals else {
            if self.timeline.think_ns == 0 || fresh {
                return Some(now);
            }
            self.thinking.push_back((now_ns.saturating_add(self.timeline.think_ns), token));
            self.places[token] = Place::Queued;
            return None;
        };
        let due_ns = self.start_ns.saturating_add(arrivals.due_ns());
        if due_ns <= now_ns {
            arrivals.advance();
            self.taken_up.note(due_ns, now_ns);
            return Some(Begun { intended_ns: due_ns, ..now });
        }
        self.idle.push_back(token);
        self.places[token] = Place::Queued;
        None
    }

    /// `token` is back and owes a start: at once, or when it has thought.
    #[cold]
    fn make_up(&mut self, token: usize, now_ns: u64) -> Option<Begun> {
        let intended_ns = std::mem::replace(&mut self.owed[token], NOTHING);
        if intended_ns <= now_ns {
            return Some(Begun { intended_ns, started_ns: now_ns });
        }
        let place = self.thinking.partition_point(|&(due_ns, _)| due_ns <= intended_ns);
        self.thinking.insert(place, (intended_ns, token));
        self.places[token] = Place::Queued;
        None
    }

    /// A waiting connection whose start is due; it waits no more.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Due> {
        if now_ns >= self.end_ns {
            return None;
        }
        if now_ns >= self.change_ns {
            self.follow_stage(now_ns);
        }
        while self.called < self.at_work {
            let token = self.called;
            self.called += 1;
            match self.places[token] {
                Place::Parked => {
                    self.places[token] = Place::Busy;
                    if let Some(begun) = self.ask(token, now_ns, true) {
                        return Some(Due { token, begun, was_free: false });
                    }
                }
                // It is called and cannot come; arrivals of an open loop wait for anybody.
                Place::Away if self.arrivals.is_none() && self.owed[token] == NOTHING => {
                    self.owed[token] = now_ns;
                }
                Place::Busy | Place::Queued | Place::Away => {}
            }
        }
        while let Some(&(due_ns, token)) = self.thinking.front()
            && due_ns <= now_ns
        {
            self.thinking.pop_front();
            if self.takes_up(token) {
                let begun = Begun { intended_ns: due_ns, started_ns: now_ns };
                return Some(Due { token, begun, was_free: true });
            }
        }
        while let Some(arrivals) = &mut self.arrivals
            && let due_ns = self.start_ns.saturating_add(arrivals.due_ns())
            && due_ns <= now_ns
            && let Some(token) = self.idle.pop_front()
        {
            if token < self.at_work {
                arrivals.advance();
                self.taken_up.note(due_ns, now_ns);
            }
            if self.takes_up(token) {
                let begun = Begun { intended_ns: due_ns, started_ns: now_ns };
                return Some(Due { token, begun, was_free: true });
            }
        }
        None
    }

    /// When [`Starts::due`] is worth asking next; `u64::MAX` if only an answer can change that.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        // Whoever asks may be the first to notice a stage, which then has others to call.
        if self.called < self.at_work {
            return 0;
        }
        let thought_ns = self.thinking.front().map_or(u64::MAX, |&(due_ns, _)| due_ns);
        let arrival_ns = match &self.arrivals {
            Some(arrivals) if !self.idle.is_empty() => {
                self.start_ns.saturating_add(arrivals.due_ns())
            }
            _ => u64::MAX,
        };
        self.change_ns.min(thought_ns).min(arrival_ns)
    }

    /// The connection of `token` is lost: it waits for another one. `broken_ns` is the intended
    /// start of the transaction that it was in the middle of.
    pub(crate) fn leave(&mut self, token: usize, broken_ns: Option<u64>) {
        let mut owed_ns = broken_ns;
        if self.places[token] == Place::Queued {
            self.idle.retain(|&idle| idle != token);
            self.thinking.retain(|&(due_ns, thinking)| {
                if thinking == token {
                    owed_ns = Some(due_ns);
                }
                thinking != token
            });
        }
        self.owed[token] = owed_ns.unwrap_or(NOTHING);
        self.places[token] = Place::Away;
    }

    /// Connections at work that are being made again.
    pub(crate) fn away(&mut self, now_ns: u64) -> u32 {
        if now_ns >= self.change_ns {
            self.follow_stage(now_ns);
        }
        self.places[..self.at_work].iter().filter(|&&place| place == Place::Away).count() as u32
    }

    /// For how long each start has been due that a connection owes which is being made again,
    /// nanoseconds.
    pub(crate) fn overdue(&self, now_ns: u64) -> Vec<u64> {
        let of = self.places.iter().zip(&self.owed).take(self.at_work);
        of.filter(|&(&place, &owed_ns)| place == Place::Away && owed_ns <= now_ns)
            .map(|(_, &owed_ns)| now_ns - owed_ns)
            .collect()
    }

    /// The task of `token` goes on, whatever it waited for.
    pub(crate) fn go_on(&mut self, token: usize) {
        self.places[token] = Place::Busy;
    }

    /// Nobody starts any more; true for those whose tasks wait here.
    pub(crate) fn dismiss(&mut self, token: usize) -> bool {
        std::mem::replace(&mut self.places[token], Place::Busy) != Place::Busy
    }

    /// Arrivals taken up since this was last asked.
    pub(crate) fn take_taken_up(&mut self) -> TakenUp {
        std::mem::take(&mut self.taken_up)
    }

    /// What is due and has not started lies between this and the end.
    pub(crate) fn backlog(&self) -> Option<Arrivals> {
        self.arrivals.clone()
    }

    /// `token` has waited; false if it is not at work any more, and then it is parked.
    fn takes_up(&mut self, token: usize) -> bool {
        let is_at_work = token < self.at_work;
        self.places[token] = if is_at_work { Place::Busy } else { Place::Parked };
        is_at_work
    }

    fn follow_stage(&mut self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.start_ns);
        let connections = self.timeline.connections(since_ns);
        let own = connections.saturating_sub(self.thread).div_ceil(self.threads);
        self.at_work = (own as usize).min(self.places.len());
        self.called = self.called.min(self.at_work);
        let change_ns = self.timeline.connections_change(since_ns);
        self.change_ns = change_ns.map_or(u64::MAX, |ns| self.start_ns.saturating_add(ns));
    }
}

#[cfg(test)]
mod tests;
