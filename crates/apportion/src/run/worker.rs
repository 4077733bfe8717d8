//! One processor of a run: carries out its steps, whatever engine carries its messages.

use super::blocks::{Blocks, Source};
use super::clock;
use super::mailboxes::StopSignal;
use super::throttle::Throttle;
use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect};
use crate::kernels::GemmUpdate;
use crate::kernels::Kernel;
use crate::matrix::{Element, LocalBlocks};
use crate::platform::{Emulated, Processor, SlowdownAfter};
use crate::schedule::{Broadcast, Message, Schedule, Step, Update};
use crate::trace::{Activity, Lane};
use std::any::Any;
use std::collections::BTreeMap;
use std::time::Instant;

/// How an engine carries the messages of one processor. Times are seconds since the run's epoch.
pub(super) trait Courier<T> {
    /// Where the processor's own parts of the operands are copied from.
    type Own: Source<T>;

    /// Starts sending a message.
    fn send(&mut self, message: &Message, blocks: &mut Blocks<'_, T, Self::Own>) -> Result<()>;

    /// Starts sending to several at once.
    fn broadcast(&mut self, broadcast: &Broadcast, blocks: &mut Blocks<'_, T, Self::Own>) -> Result<()> {
        broadcast.messages.iter().try_for_each(|message| self.send(message, blocks))
    }

    /// Makes room for a message that will come.
    fn expect(&mut self, message: &Message) -> Result<()>;

    /// Waits for a message and hands its pieces to the blocks; since when it was under way.
    fn receive(&mut self, message: &Message, blocks: &mut Blocks<'_, T, Self::Own>) -> Result<f64>;

    /// Waits until all that was sent has left.
    fn flush(&mut self) -> Result<()>;
}

/// What a processor has computed, and what it did when.
pub(crate) struct WorkerOutput<T> {
    /// Its rectangles of C, each row by row.
    pub tiles: LocalBlocks<T>,
    pub lane: Lane,
}

/// The state of one processor.
pub(super) struct Worker<'a, T, C: Courier<T>> {
    kernel: Kernel<T>,
    schedule: &'a Schedule,
    rank: Rank,
    halt: &'a StopSignal<'a>,
    blocks: Blocks<'a, T, C::Own>,
    governor: Throttle,
    turn: Option<SlowdownAfter>,
    /// Where the processor's speed is given: multiply-adds per second for a share of its size.
    emulated: Option<f64>,
    threads: usize,
    tiles: LocalBlocks<T>,
    expected: BTreeMap<(Rank, u64), Message>,
    lane: Lane,
}

impl<'a, T: Element, C: Courier<T>> Worker<'a, T, C> {
    /// Pins the calling thread and takes memory, so that all that is left to do is the work.
    pub fn new(
        kernel: Kernel<T>,
        (schedule, rank): (&'a Schedule, Rank),
        processor: &Processor,
        own: C::Own,
        halt: &'a StopSignal<'a>,
    ) -> Self {
        let tiles = empty_tiles(schedule.rects(rank), kernel.zero());
        Self::going_on(kernel, (schedule, rank), processor, own, halt, tiles)
    }

    /// The same, adding to what the processor's rectangles of C hold so far.
    pub fn going_on(
        kernel: Kernel<T>,
        (schedule, rank): (&'a Schedule, Rank),
        processor: &Processor,
        own: C::Own,
        halt: &'a StopSignal<'a>,
        tiles: LocalBlocks<T>,
    ) -> Self {
        clock::pin(&processor.cores);
        clock::wake_promptly();
        Self {
            kernel,
            schedule,
            rank,
            halt,
            blocks: Blocks::new(schedule, rank, own),
            governor: Throttle::new(processor.slowdown),
            turn: processor.slowdown_after,
            emulated: processor.emulated.as_ref().map(|function| speed(function, schedule.rects(rank))),
            threads: processor.cores.len().max(1),
            tiles,
            expected: BTreeMap::new(),
            lane: Lane::default(),
        }
    }

    /// Carries out all steps; times count from `epoch`.
    pub fn work(mut self, epoch: Instant, courier: &mut C) -> Result<WorkerOutput<T>> {
        let now = || epoch.elapsed().as_secs_f64();
        let schedule = self.schedule;
        for step in schedule.steps(self.rank) {
            self.halt.check()?;
            match step {
                Step::Send(message) => {
                    self.lane.sent[message.to.0] += message.elements();
                    self.lane.messages[message.to.0] += 1;
                    self.lane.carried += message.elements();
                    courier.send(&message, &mut self.blocks)?;
                }
                Step::Broadcast(broadcast) => {
                    for message in &broadcast.messages {
                        self.lane.sent[message.to.0] += message.elements();
                        self.lane.messages[message.to.0] += 1;
                    }
                    self.lane.carried += broadcast.elements();
                    courier.broadcast(&broadcast, &mut self.blocks)?;
                }
                Step::PostReceive(message) => {
                    courier.expect(&message)?;
                    self.expected.insert((message.from, message.tag), message);
                }
                Step::WaitReceive { from, tag } => {
                    let message =
                        self.expected.remove(&(from, tag)).expect("a schedule posts before it awaits");
                    let since = now();
                    let under_way = courier.receive(&message, &mut self.blocks)?.max(since);
                    self.lane.received[from.0] += message.elements();
                    self.lane.push(Activity::Idle, since, under_way, Some(from));
                    self.lane.push(Activity::Communicate, under_way, now(), Some(from));
                }
                Step::WaitSends => {
                    let since = now();
                    courier.flush()?;
                    self.lane.push(Activity::Communicate, since, now(), None);
                }
                Step::Compute(update) => {
                    let since = now();
                    self.compute(&update)?;
                    self.lane.push(Activity::Compute, since, now(), None);
                }
                Step::Free(rect) => self.blocks.release(rect),
            }
        }
        self.lane.peak_bytes = self.blocks.peak_bytes();
        Ok(WorkerOutput { tiles: self.tiles, lane: self.lane })
    }

    fn compute(&mut self, update: &Update) -> Result<()> {
        let (blocks, threads, kernel) = (&mut self.blocks, self.threads, self.kernel);
        let (rect, tile) = self
            .tiles
            .iter_mut()
            .find(|(rect, _)| rect.intersect(update.rect) == update.rect)
            .expect("an update lies in one of the processor's rectangles");
        let stride = rect.cols.len() as usize;
        let first = (update.rect.rows.start - rect.rows.start) as usize * stride
            + (update.rect.cols.start - rect.cols.start) as usize;
        let (done, total) = self.halt.monitor().progress();
        if let Some(turn) = self.turn.take_if(|turn| done as f64 >= turn.work * total as f64) {
            self.governor.turn(turn.slowdown);
        }
        let work = || {
            blocks.gather(update);
            let operands = blocks.operands(update);
            parallel(
                kernel,
                threads,
                GemmUpdate {
                    m: update.rect.rows.len() as usize,
                    k: update.inner.len() as usize,
                    n: update.rect.cols.len() as usize,
                    a: (operands.a, operands.a_stride),
                    b: (operands.b, operands.b_stride),
                    c: (&mut tile[first..], stride),
                },
            )
        };
        let cpu = match self.emulated {
            Some(speed) => self.governor.emulate(self.halt, update.work() / speed, work)?,
            None => self.governor.compute(self.halt, work)?,
        };
        self.lane.cpu_seconds += cpu;
        self.halt.monitor().advance(update.work() as u64);
        Ok(())
    }
}

/// The speed that a function gives to a share of these rectangles of C.
fn speed(function: &Emulated, share: &[Rect]) -> f64 {
    function.speed(share.iter().map(|rect| rect.area()).sum::<u64>() as f64)
}

/// The error of a processor whose worker panicked, with its last words.
pub(crate) fn lost(processor: &Processor, panic: Box<dyn Any + Send>) -> Error {
    let why = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
        .unwrap_or_else(|| "it panicked".into());
    Error::WorkerLost { processor: processor.name.clone(), why }
}

/// Rectangles that hold `zero` only. Every element is written: the pages are there before a clock starts.
pub(crate) fn empty_tiles<T: Element>(rects: &[Rect], zero: T) -> LocalBlocks<T> {
    let filled = |length: usize| {
        let mut tile = Vec::new();
        tile.resize(length, zero);
        tile
    };
    rects.iter().map(|rect| (*rect, filled(rect.area() as usize))).collect()
}

/// The update on several threads, C's rows divided among them; the longest CPU time of the threads started.
pub(crate) fn parallel<T: Element>(kernel: Kernel<T>, threads: usize, tile: GemmUpdate<'_, T>) -> f64 {
    let GemmUpdate { m, k, n, a: (a, lda), b, c: (c, ldc) } = tile;
    let threads = threads.min(m).max(1);
    if threads == 1 {
        kernel.update(GemmUpdate { m, k, n, a: (a, lda), b, c: (c, ldc) });
        return 0.0;
    }
    std::thread::scope(|scope| {
        let mut rest = c;
        let mut helpers = Vec::new();
        for t in 0..threads {
            let (first, end) = (t * m / threads, (t + 1) * m / threads);
            let rows = end - first;
            let length = if t + 1 == threads { rest.len() } else { rows * ldc };
            let (mine, others) = rest.split_at_mut(length);
            rest = others;
            let part = GemmUpdate { m: rows, k, n, a: (&a[first * lda..], lda), b, c: (mine, ldc) };
            helpers.push(scope.spawn(move || {
                kernel.update(part);
                clock::thread_cpu_seconds()
            }));
        }
        helpers.into_iter().map(|h| h.join().expect("a kernel does not panic")).fold(0.0, f64::max)
    })
}
