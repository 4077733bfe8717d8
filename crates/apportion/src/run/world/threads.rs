//! Ranks as threads of one process, each with memory of its own: words are moved, never shared.

use super::World;
use super::engine::{Engine, Pending, Transfer};
use crate::error::{Error, Result};
use crate::run::Monitor;
use crate::run::engine::last_words;
use crate::run::sync::{Condvar, Mutex, locked, wait};
use crate::threads::{self, Started};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// State that all ranks share.
#[derive(Debug)]
struct Shared {
    boxes: Vec<Mailbox>,
    failed: AtomicBool,
}

#[derive(Debug, Default)]
struct Mailbox {
    letters: Mutex<Letters>,
    news: Condvar,
}

/// Messages of one rank, by sender and tag.
#[derive(Debug, Default)]
struct Letters {
    /// Arrived messages, by number.
    here: BTreeMap<(usize, u16, u64), Vec<u64>>,
    /// Numbers of sends and of posted receives.
    counts: BTreeMap<(usize, u16), (u64, u64)>,
}

/// One of the ranks.
#[derive(Debug, Clone)]
struct ThreadRank {
    shared: Arc<Shared>,
    rank: usize,
}

impl Shared {
    /// Stops all ranks.
    fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
        self.boxes.iter().for_each(|mailbox| mailbox.news.notify_all());
    }
}

/// Small stacks: a thousand ranks fit.
const STACK: usize = 2 << 20;

/// Runs `work` on every rank.
pub(crate) fn run<R: Send>(
    size: usize,
    monitor: &Monitor,
    work: impl Fn(&World) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    assert!(size > 0, "a world has a rank");
    let boxes = (0..size).map(|_| Mailbox::default()).collect();
    let shared = Arc::new(Shared { boxes, failed: AtomicBool::new(false) });
    let guarded = |rank: usize| {
        let mine = ThreadRank { shared: shared.clone(), rank };
        let world = World::new(mine.clone(), monitor);
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&world)));
        let outcome = outcome.unwrap_or_else(|panic| {
            Err(Error::WorkerLost { processor: format!("of rank {rank}"), why: last_words(&*panic) })
        });
        if outcome.is_err() {
            mine.shared.fail();
        }
        outcome
    };
    let outcomes: Vec<Result<R>> = threads::scope(|scope| {
        let guarded = &guarded;
        let spawn = |rank| {
            let started = threads::start_with_stack(scope, STACK, move || guarded(rank));
            // The other ranks would wait for this one.
            started.inspect_err(|_| shared.fail())
        };
        let ranks: Vec<_> = (0..size).map(spawn).collect();
        let outcome = |rank: Result<Started<'_, _>>| rank?.join().expect("a rank's panic is caught inside");
        ranks.into_iter().map(outcome).collect()
    });
    first_failure(outcomes)
}

/// All values, or the error that stopped the other ranks.
pub(crate) fn first_failure<R>(outcomes: Vec<Result<R>>) -> Result<Vec<R>> {
    let mut values = Vec::with_capacity(outcomes.len());
    let mut failure: Option<Error> = None;
    for outcome in outcomes {
        match outcome {
            Ok(value) => values.push(value),
            // The first rank that failed has the cause; the ranks that it stopped only report the
            // interruption.
            Err(error) if matches!(failure, None | Some(Error::Interrupted)) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(values), Err)
}

impl Engine for ThreadRank {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.boxes.len()
    }

    fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    fn start_send(&self, words: Vec<u64>, to: usize, tag: u16) -> Transfer {
        let mailbox = &self.shared.boxes[to];
        let mut letters = locked(&mailbox.letters);
        let (sent, _) = letters.counts.entry((self.rank, tag)).or_default();
        let number = *sent;
        *sent += 1;
        letters.here.insert((self.rank, tag, number), words);
        drop(letters);
        mailbox.news.notify_all();
        Transfer { peer: to, words: Vec::new(), pending: Pending::Nothing }
    }

    fn start_receive(&self, room: Vec<u64>, from: usize, tag: u16) -> Transfer {
        let mut letters = locked(&self.shared.boxes[self.rank].letters);
        let (_, posted) = letters.counts.entry((from, tag)).or_default();
        let number = *posted;
        *posted += 1;
        Transfer { peer: from, words: room, pending: Pending::Message { tag, number } }
    }

    fn is_done(&self, transfer: &mut Transfer) -> std::result::Result<bool, i32> {
        let Pending::Message { tag, number } = transfer.pending else { return Ok(true) };
        let key = (transfer.peer, tag, number);
        let Some(came) = locked(&self.shared.boxes[self.rank].letters).here.remove(&key) else {
            return Ok(false);
        };
        assert_eq!(came.len(), transfer.words.len(), "a message has the length that its receiver expects");
        (transfer.words, transfer.pending) = (came, Pending::Nothing);
        Ok(true)
    }

    fn wait_for_news(&self, transfer: &Transfer) -> bool {
        let mailbox = &self.shared.boxes[self.rank];
        let letters = locked(&mailbox.letters);
        if let Pending::Message { tag, number } = transfer.pending
            && !letters.here.contains_key(&(transfer.peer, tag, number))
        {
            drop(wait(&mailbox.news, letters));
        }
        true
    }
}

#[cfg(all(test, loom))]
mod interleavings;
