//! Messages on emulated links, booked in the order of the emulated machine and not in that in which this machine
//! wakes its threads.
//!
//! Each processor has a time of its own: 0 at the start; after a wait, the time at which the message arrived or
//! left; after a computation, the time of the clock. A message that was posted is booked once no processor can
//! post an earlier one (the conservative rule of Chandy and Misra, <https://doi.org/10.1109/TSE.1979.230182>);
//! of simultaneous ones, that of the lowest rank is the first. This is the order of
//! [`simulate`](crate::simulate::simulate): up to the first computation, the times of a run are those of its
//! forecast, bit for bit.

use super::mailboxes::StopSignal;
use super::sync::{Condvar, Mutex, MutexGuard, locked, wait};
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::{Network, Transit};
use crate::schedule::{Medium, Posting};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// The senders of a turn on a bus ([`Application::senders`](crate::schedule::Application::senders)).
pub(crate) type Senders<'a> = dyn Fn(u64) -> Option<Vec<Rank>> + Sync + 'a;

/// The emulated links between all workers.
pub(super) struct EmulatedLinks<'a> {
    links: Mutex<Links<'a>>,
    /// By rank: a message from or to this worker was booked.
    news: Vec<Condvar>,
}

/// Links, messages and processors.
struct Links<'a> {
    medium: Medium<'a>,
    senders: &'a Senders<'a>,
    /// Messages that are not booked yet, by time and sender.
    postings: VecDeque<Posting>,
    /// Messages that are booked and that no receiver has taken, by receiver, sender and tag.
    arrivals: BTreeMap<(Rank, Rank, u64), Transit>,
    processors: Vec<Processor>,
}

#[derive(Debug, Clone)]
struct Processor {
    state: State,
    /// Number of its messages that are not booked yet.
    unbooked: usize,
    /// Time at which the last byte of the others leaves.
    sent: f64,
}

/// What a processor does, and so when it may post.
#[derive(Debug, Clone, Copy)]
enum State {
    /// It posts at this time, or waits until then.
    Ready(f64),
    /// It waits for a message that is not booked: it posts after all that are posted now.
    Receives { from: Rank, tag: u64, since: f64 },
    /// It waits until its messages have left, and some are not booked.
    Flushes { since: f64 },
    /// It computes or has ended.
    Suspended,
}

impl<'a> EmulatedLinks<'a> {
    /// Idle links, and processors at time 0.
    pub(super) fn new(processors: usize, network: &'a Network, senders: &'a Senders<'a>) -> Self {
        let ready = Processor { state: State::Ready(0.0), unbooked: 0, sent: 0.0 };
        let links = Links {
            medium: Medium::new(network),
            senders,
            postings: VecDeque::new(),
            arrivals: BTreeMap::new(),
            processors: vec![ready; processors],
        };
        Self { links: Mutex::new(links), news: (0..processors).map(|_| Condvar::new()).collect() }
    }

    /// The time of a processor; `None` while it is suspended.
    pub(super) fn time(&self, rank: Rank) -> Option<f64> {
        match locked(&self.links).processors[rank.0].state {
            State::Ready(time) | State::Receives { since: time, .. } | State::Flushes { since: time } => {
                Some(time)
            }
            State::Suspended => None,
        }
    }

    /// Posts a message at the time that it says, which is not before that of the sender.
    pub(super) fn post(&self, posting: Posting) {
        drop(self.update(|links| links.post(posting)));
    }

    /// The processor posts nothing until it [resumes](Self::resume).
    pub(super) fn suspend(&self, rank: Rank) {
        drop(self.update(|links| links.processors[rank.0].state = State::Suspended));
    }

    /// The processor may post from `now` on.
    pub(super) fn resume(&self, rank: Rank, now: f64) {
        locked(&self.links).processors[rank.0].state = State::Ready(now);
    }

    /// See [`Mailboxes::flush`](super::mailboxes::Mailboxes::flush).
    pub(super) fn flush(&self, rank: Rank, epoch: Instant, halt: &StopSignal<'_>) -> Result<()> {
        let mut links = self.update(|links| links.flush(rank));
        while links.processors[rank.0].unbooked > 0 {
            halt.check()?;
            links = wait(&self.news[rank.0], links);
        }
        let sent = links.processors[rank.0].sent;
        drop(links);
        halt.sleep_until(epoch, sent)
    }

    /// See [`Mailboxes::receive`](super::mailboxes::Mailboxes::receive).
    pub(super) fn receive(
        &self,
        at: Rank,
        from: Rank,
        tag: u64,
        epoch: Instant,
        halt: &StopSignal<'_>,
    ) -> Result<Transit> {
        let mut links = self.update(|links| links.receive(at, from, tag));
        let transit = loop {
            if let Some(transit) = links.arrivals.remove(&(at, from, tag)) {
                break transit;
            }
            halt.check()?;
            links = wait(&self.news[at.0], links);
        };
        drop(links);
        halt.sleep_until(epoch, transit.arrival)?;
        Ok(transit)
    }

    /// Changes the state of a processor, and books the messages that this allows.
    fn update(&self, change: impl FnOnce(&mut Links<'a>)) -> MutexGuard<'_, Links<'a>> {
        let mut links = locked(&self.links);
        change(&mut links);
        for rank in links.book() {
            self.news[rank.0].notify_all();
        }
        links
    }
}

impl Links<'_> {
    fn post(&mut self, posting: Posting) {
        self.processors[posting.from.0].unbooked += 1;
        let key = (posting.at, posting.from);
        let place = self.postings.partition_point(|other| (other.at, other.from) <= key);
        self.postings.insert(place, posting);
    }

    fn flush(&mut self, rank: Rank) {
        let processor = &mut self.processors[rank.0];
        if let State::Ready(since) = processor.state {
            processor.state = match processor.unbooked {
                0 => State::Ready(since.max(processor.sent)),
                _ => State::Flushes { since },
            };
        }
    }

    fn receive(&mut self, at: Rank, from: Rank, tag: u64) {
        let processor = &mut self.processors[at.0];
        if let State::Ready(since) = processor.state {
            processor.state = match self.arrivals.get(&(at, from, tag)) {
                Some(transit) => State::Ready(since.max(transit.arrival)),
                None => State::Receives { from, tag, since },
            };
        }
    }

    /// Books the messages before which no processor can post any. Returns their senders and receivers.
    ///
    /// No message waits forever: the processor that may still post an earlier one is awake, or is by now.
    fn book(&mut self) -> Vec<Rank> {
        let mut news = Vec::new();
        while let Some(first) = self.postings.front() {
            let first = (first.at, first.from);
            let is_earlier = |(rank, processor): (usize, &Processor)| match processor.state {
                State::Ready(time) => (time, Rank(rank)) < first,
                _ => false,
            };
            if self.processors.iter().enumerate().any(is_earlier) {
                break;
            }
            let posting = self.postings.pop_front().expect("there is a first one");
            for (posting, transits) in self.medium.post(posting, self.senders) {
                news.push(posting.from);
                news.extend(posting.to.iter().map(|(to, _)| *to));
                self.deliver(&posting, &transits);
            }
        }
        news
    }

    /// Announces a booked message to its receivers and its sender.
    fn deliver(&mut self, posting: &Posting, transits: &[Transit]) {
        for (&(to, _), transit) in posting.to.iter().zip(transits) {
            self.arrivals.insert((to, posting.from, posting.tag), *transit);
            let receiver = &mut self.processors[to.0];
            match receiver.state {
                State::Receives { from, tag, since } if (from, tag) == (posting.from, posting.tag) => {
                    receiver.state = State::Ready(since.max(transit.arrival));
                }
                _ => {}
            }
        }
        let sender = &mut self.processors[posting.from.0];
        sender.unbooked -= 1;
        sender.sent = transits.iter().map(|transit| transit.sent).fold(sender.sent, f64::max);
        if let State::Flushes { since } = sender.state
            && sender.unbooked == 0
        {
            sender.state = State::Ready(since.max(sender.sent));
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
