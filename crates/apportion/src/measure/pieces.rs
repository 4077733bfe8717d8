//! Runs units as pieces, each of which is one run of a user's program: one after the other on each processor, in the
//! order of a [`Queue`].
//!
//! A single process has a thread for each processor. In a world of several ranks, each runs the pieces of its own
//! processor, and rank 0 keeps the queue for all ([`ranks`]).

mod ledger;
mod ranks;

use crate::error::{Error, Result};
use crate::measure::command::{CommandRun, Failure, UserCommand};
use crate::measure::joblog::{EndedPiece, JobLog};
use crate::measure::process::{ENDED, LineObserver, Listener, Listeners};
use crate::measure::remote;
use crate::plan::shares::Order;
use crate::platform::Platform;
use crate::run::mailboxes::{StartBarrier, StopOnPanic, StopSignal};
use crate::run::sync::{Condvar, Mutex, locked};
use crate::run::{World, clock};
use crate::threads;
use ledger::Ledger;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Follows a run of pieces, from several threads. A closure follows the lines only.
pub trait PieceObserver: Send + Sync {
    /// Gets a processor's name and a line that its program has printed.
    fn line(&self, processor: &str, line: &str);

    /// Gets what pieces have printed to stdout, each piece's text whole.
    ///
    /// # Errors
    /// It cannot be passed on, which ends the run.
    fn text(&self, _text: &[u8]) -> Result<()> {
        Ok(())
    }

    /// Gets a note about a piece that runs again, or a processor that is lost.
    fn note(&self, _note: &str) {}
}

impl<F: Fn(&str, &str) + Send + Sync> PieceObserver for F {
    fn line(&self, processor: &str, line: &str) {
        self(processor, line);
    }
}

/// What to do when a piece has failed for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Halt {
    /// End all programs.
    Now,
    /// Let running pieces end, and begin no others.
    #[default]
    Soon,
    /// Go on with the others.
    Never,
}

/// How what pieces print to stdout comes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextOrder {
    /// Line by line, as what they print to stderr.
    Lines,
    Units,
    Ends,
}

/// What units run next, and where.
pub(super) trait Queue: Send {
    /// What a processor does at this time, in seconds since the run began.
    fn next(&mut self, rank: usize, now: f64) -> Order;
    /// The piece of a processor has ended well.
    fn ended(&mut self, _rank: usize, _now: f64) {}
    /// The piece of a processor has failed. Its units run again, or are given up.
    fn failed(&mut self, _rank: usize, _now: f64, _again: bool) {}
    /// A processor takes no further piece.
    fn lost(&mut self, _rank: usize) {}
    /// The time at which all will have ended, if that can be told.
    fn expected_end(&self, _now: f64) -> Option<f64> {
        None
    }
}

/// How pieces run.
pub(super) struct Pieces<'a> {
    pub platform: &'a Platform,
    pub command: &'a UserCommand,
    pub world: &'a World,
    pub observer: Arc<dyn PieceObserver>,
    pub order: TextOrder,
    pub retries: u32,
    pub halt: Halt,
    /// Whether all first pieces start at the same moment.
    pub together: bool,
    /// The number of the first piece.
    pub first: u64,
}

/// A piece to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Piece {
    number: u64,
    units: Range<u64>,
}

/// A piece that has run.
#[derive(Debug)]
pub(super) struct RanPiece {
    pub rank: usize,
    pub number: u64,
    pub units: Range<u64>,
    /// Its seconds, or why its units are not done.
    pub outcome: Result<f64>,
    /// Whether its units were for others then.
    pub again: bool,
}

/// A run that has ended.
pub(super) struct PiecesRun {
    /// All pieces, by their ends.
    pub pieces: Vec<RanPiece>,
    /// Processors that could not be used, and why.
    pub lost: Vec<LostProcessor>,
    /// Seconds from the begin to the end of the last piece.
    pub seconds: f64,
    /// The number of the next piece.
    pub next_piece: u64,
}

/// A processor that could not be used.
#[derive(Debug)]
pub(super) struct LostProcessor {
    pub rank: usize,
    pub error: Error,
}

/// How a piece ended.
struct PieceEnd {
    exit: i32,
    signal: i32,
    /// Seconds by this process's clock.
    wall: f64,
    text: Vec<u8>,
    outcome: std::result::Result<f64, Failure>,
    /// Whether its program did not run, or not to its end: a matter of the processor.
    is_lost: bool,
}

impl Pieces<'_> {
    /// Runs the pieces that a queue hands out, until it has no more. Every rank must call it; the queue and the joblog
    /// are those of rank 0, which alone gets the result.
    ///
    /// The world's monitor advances by the units of each piece that has ended.
    ///
    /// # Errors
    /// The text or the joblog cannot be written; a lost rank. Failures of programs and an interruption are in the
    /// result.
    pub(crate) fn run(&self, queue: &mut dyn Queue, log: Option<JobLog>) -> Result<Option<PiecesRun>> {
        let halt = &StopSignal::new(self.world.monitor());
        if self.together {
            self.world.barrier()?;
        }
        if self.world.rank() > 0 {
            return ranks::serve(self, halt).map(|()| None);
        }
        let ledger = Ledger::new(log, self.order == TextOrder::Units);
        let desk = Desk::new(self, halt, queue, ledger);
        let here = if self.world.is_solo() { self.platform.len() } else { 1 };
        let barrier = self.together.then(|| StartBarrier::new(here));
        threads::scope(|scope| {
            for rank in 0..here {
                let (desk, barrier) = (&desk, barrier.as_ref());
                if let Err(refused) = threads::start(scope, move || desk.work(rank, barrier)) {
                    desk.abort(refused);
                }
            }
            if here < self.platform.len()
                && let Err(error) = ranks::lead(&desk)
            {
                desk.abort(error);
            }
        });
        desk.finish().map(Some)
    }

    /// Runs a piece on a processor of this process.
    fn run_piece(&self, rank: usize, piece: &Piece, halt: &StopSignal<'_>) -> PieceEnd {
        let processor = &self.platform.processors[rank];
        let (observer, name) = (Arc::clone(&self.observer), processor.name.clone());
        let lines: LineObserver = Arc::new(move |line| observer.line(&name, line));
        let text = Arc::new(Mutex::new(Vec::new()));
        let listeners = match self.order {
            TextOrder::Lines => Listeners::of_lines(lines),
            TextOrder::Units | TextOrder::Ends => Listeners {
                stdout: Some(Listener::Whole(Arc::clone(&text))),
                stderr: Some(Listener::Lines(lines)),
            },
        };
        let units = piece.units.start as f64..piece.units.end as f64;
        let run = CommandRun { processor, rank, piece: piece.number, units };
        let begin = Instant::now();
        let executed = self.command.execute(&run, &listeners, halt);
        let ([exit, signal], outcome, is_lost) = match executed {
            Ok(exit) => (exit.end.code_and_signal(), self.command.seconds_of(&run, &exit), false),
            Err(error) => {
                let is_lost = !matches!(error, Error::Interrupted);
                (if is_lost { [255, 0] } else { ENDED }, Err(Failure::from(error)), is_lost)
            }
        };
        // Units without a time are not done, whatever the program says.
        let exit = if outcome.is_err() { exit.max(1) } else { exit };
        let took = begin.elapsed();
        if self.order != TextOrder::Lines && self.command.is_timed_by_wall() {
            // An emulated processor does nothing else before it would have ended.
            pause(took.mul_f64((processor.slowdown - 1.0).max(0.0)), halt);
        }
        let text = std::mem::take(&mut *text.lock().unwrap_or_else(PoisonError::into_inner));
        PieceEnd { exit, signal, wall: took.as_secs_f64(), text, outcome, is_lost }
    }
}

/// Waits, but not beyond a stop.
fn pause(time: Duration, halt: &StopSignal<'_>) {
    let begin = Instant::now();
    while halt.check().is_ok()
        && let Some(left) = time.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())
    {
        std::thread::sleep(left.min(Duration::from_millis(20)));
    }
}

/// Hands out pieces to all processors, and takes what has become of them.
struct Desk<'a> {
    pieces: &'a Pieces<'a>,
    halt: &'a StopSignal<'a>,
    begin: Instant,
    state: Mutex<State<'a>>,
    news: Condvar,
}

struct State<'a> {
    queue: &'a mut dyn Queue,
    ledger: Ledger,
    next_piece: u64,
    /// By rank, what runs.
    running: Vec<Option<Running>>,
    /// By rank, the time of the last news: by the clock, or the sum of the times that programs printed.
    clocks: Vec<f64>,
    /// The latest of these.
    latest: f64,
    ran: Vec<RanPiece>,
    lost: Vec<LostProcessor>,
    /// Whether no further piece is to begin.
    is_ending: bool,
    /// Why the run cannot go on.
    fault: Option<Error>,
    /// Counts what has happened.
    happened: u64,
}

struct Running {
    piece: Piece,
    begin: Instant,
    /// In seconds since 1970.
    date: f64,
    /// In seconds since the run began.
    at: f64,
}

/// What a processor does next.
enum Step {
    Run(Piece),
    /// Asks again when something has happened, or at this time in seconds since the run began.
    Wait {
        until: f64,
    },
    Leave,
}

impl<'a> Desk<'a> {
    fn new(
        pieces: &'a Pieces<'a>,
        halt: &'a StopSignal<'a>,
        queue: &'a mut dyn Queue,
        ledger: Ledger,
    ) -> Self {
        let processors = pieces.platform.len();
        let state = State {
            queue,
            next_piece: pieces.first,
            ledger,
            running: (0..processors).map(|_| None).collect(),
            clocks: vec![0.0; processors],
            latest: 0.0,
            ran: Vec::new(),
            lost: Vec::new(),
            is_ending: false,
            fault: None,
            happened: 0,
        };
        Self { pieces, halt, begin: Instant::now(), state: Mutex::new(state), news: Condvar::new() }
    }

    /// The pieces of a processor of this process, one after the other.
    fn work(&self, rank: usize, barrier: Option<&StartBarrier>) {
        let _ends_all = StopOnPanic(self.halt);
        let processor = &self.pieces.platform.processors[rank];
        clock::pin(processor.cores_here());
        let prepared = remote::prepare(processor, self.pieces.command.patience(), self.halt);
        if barrier.is_some_and(|barrier| barrier.pass(self.halt).is_err()) {
            return;
        }
        match prepared {
            Ok(()) | Err(Error::Interrupted) => {}
            Err(error) => return self.lose(&mut locked(&self.state), rank, error),
        }
        while let Some(piece) = self.next(rank) {
            let end = self.pieces.run_piece(rank, &piece, self.halt);
            self.take(rank, end);
        }
    }

    /// The next piece of a processor, once there is one; `None` if there will be none.
    fn next(&self, rank: usize) -> Option<Piece> {
        let mut state = locked(&self.state);
        loop {
            let until = match self.step(&mut state, rank) {
                Step::Run(piece) => return Some(piece),
                Step::Leave => return None,
                Step::Wait { until } => until,
            };
            let known = state.happened;
            while state.happened == known {
                // A stop from outside sends no news.
                let left = until - self.begin.elapsed().as_secs_f64();
                let time = Duration::from_secs_f64(left.clamp(0.001, 0.02));
                state = self.news.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0;
                self.halt.check().ok()?;
                if self.begin.elapsed().as_secs_f64() >= until {
                    break;
                }
            }
        }
    }

    /// What a processor that runs nothing does next.
    fn step(&self, state: &mut State<'_>, rank: usize) -> Step {
        let is_lost = state.lost.iter().any(|lost| lost.rank == rank);
        if is_lost || state.is_ending || self.halt.check().is_err() {
            return Step::Leave;
        }
        let is_timed = self.pieces.command.is_timed_by_wall();
        let now = if is_timed { self.begin.elapsed().as_secs_f64() } else { state.clocks[rank] };
        match state.queue.next(rank, now) {
            Order::Run(units) => {
                let piece = Piece { number: state.next_piece, units };
                state.next_piece += 1;
                let date =
                    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
                let begin = Instant::now();
                state.running[rank] = Some(Running { piece: piece.clone(), begin, date, at: now });
                Step::Run(piece)
            }
            Order::Wait { until } => {
                state.clocks[rank] = state.clocks[rank].max(state.latest);
                let is_busy = state.running.iter().any(Option::is_some);
                let until = match (is_timed, is_busy) {
                    (true, _) => until,
                    // By told times, what is late cannot be seen.
                    (false, true) => f64::INFINITY,
                    (false, false) => 0.0,
                };
                Step::Wait { until }
            }
            Order::Leave => Step::Leave,
        }
    }

    /// [`step`](Self::step), unless nothing has happened since the `known` count and it is not yet this time.
    fn step_after(&self, rank: usize, known: &mut Option<u64>, until: f64) -> Option<Step> {
        let mut state = locked(&self.state);
        let is_due = self.halt.check().is_err() || self.begin.elapsed().as_secs_f64() >= until;
        (is_due || *known != Some(state.happened)).then(|| {
            *known = Some(state.happened);
            self.step(&mut state, rank)
        })
    }

    /// Ends all pieces that other ranks run: they are interrupted as this one is.
    fn interrupt(&self) {
        let running: Vec<(usize, f64)> = {
            let state = locked(&self.state);
            let running = state.running.iter().enumerate().skip(1);
            running
                .filter_map(|(rank, running)| Some((rank, running.as_ref()?.begin.elapsed().as_secs_f64())))
                .collect()
        };
        for (rank, wall) in running {
            let [exit, signal] = ENDED;
            let outcome = Err(Error::Interrupted.into());
            self.take(rank, PieceEnd { exit, signal, wall, text: Vec::new(), outcome, is_lost: false });
        }
    }

    /// Takes what has become of a processor's piece.
    fn take(&self, rank: usize, end: PieceEnd) {
        let mut state = locked(&self.state);
        let Some(Running { piece: Piece { number, units }, date, at, .. }) = state.running[rank].take()
        else {
            return;
        };
        let PieceEnd { exit, signal, wall, text, outcome, is_lost } = end;
        let seconds = *outcome.as_ref().unwrap_or(&wall);
        let now = match self.pieces.command.is_timed_by_wall() {
            true => self.begin.elapsed().as_secs_f64(),
            false => at + seconds,
        };
        state.clocks[rank] = now;
        state.latest = state.latest.max(now);
        let processor = self.pieces.platform.processors[rank].name.clone();
        let entry =
            EndedPiece { piece: number, units: units.clone(), processor, start: date, seconds, exit, signal };
        let print = |text: &[u8]| self.pieces.observer.text(text);
        let (outcome, again, kept) = match outcome {
            Ok(seconds) => {
                state.queue.ended(rank, now);
                self.pieces.world.monitor().advance(units.end - units.start);
                (Ok(seconds), false, state.ledger.keep(entry, text, &print))
            }
            Err(Failure { error: Error::Interrupted, .. }) => {
                (Err(Error::Interrupted), false, state.ledger.write(&entry))
            }
            Err(Failure { error, .. }) if is_lost => {
                state.queue.failed(rank, now, true);
                self.lose(&mut state, rank, error);
                (Err(Error::Interrupted), true, state.ledger.write(&entry))
            }
            Err(Failure { error, .. }) => {
                let again = self.runs_again(&mut state, &units);
                state.queue.failed(rank, now, again);
                let written = state.ledger.write(&entry);
                if again {
                    self.pieces.observer.note(&format!("piece {number} runs again: {error}"));
                } else {
                    self.give_up(&mut state, &entry, &text);
                }
                let skipped = if again { Ok(()) } else { state.ledger.skip(&units, &print) };
                (Err(error), again, written.and(skipped))
            }
        };
        state.ran.push(RanPiece { rank, number, units, outcome, again });
        if let Err(error) = kept {
            self.abort_with(&mut state, error);
        }
        if let Some(end) = state.queue.expected_end(now).filter(|_| self.pieces.command.is_timed_by_wall()) {
            let end = Duration::try_from_secs_f64(end).ok().and_then(|end| self.begin.checked_add(end));
            self.pieces.world.monitor().expect_end(end);
        }
        self.tell(&mut state);
    }

    /// Whether units that have failed run once more.
    fn runs_again(&self, state: &mut State<'_>, units: &Range<u64>) -> bool {
        let meets = |other: &Range<u64>| other.start < units.end && units.start < other.end;
        let before = state.ran.iter().filter(|ran| ran.again && ran.outcome.is_err() && meets(&ran.units));
        // Pieces of a lost processor have not failed.
        let failed = before.filter(|ran| !matches!(ran.outcome, Err(Error::Interrupted))).count();
        failed < self.pieces.retries as usize && !state.is_ending && self.halt.check().is_ok()
    }

    /// Gives the units of a piece up.
    fn give_up(&self, state: &mut State<'_>, entry: &EndedPiece, text: &[u8]) {
        for line in String::from_utf8_lossy(text).lines() {
            self.pieces.observer.line(&entry.processor, line);
        }
        match self.pieces.halt {
            Halt::Now => self.halt.fail(),
            Halt::Soon => state.is_ending = true,
            Halt::Never => {}
        }
    }

    /// Goes on without a processor.
    fn lose(&self, state: &mut State<'_>, rank: usize, error: Error) {
        state.queue.lost(rank);
        if self.pieces.platform.len() > 1 {
            self.pieces
                .observer
                .note(&format!("goes on without {}: {error}", self.pieces.platform.processors[rank].name));
        }
        state.lost.push(LostProcessor { rank, error });
        self.tell(state);
    }

    /// Ends the run for this reason.
    fn abort(&self, error: Error) {
        let mut state = locked(&self.state);
        self.abort_with(&mut state, error);
        self.tell(&mut state);
    }

    fn abort_with(&self, state: &mut State<'_>, error: Error) {
        state.fault.get_or_insert(error);
        self.halt.fail();
    }

    fn tell(&self, state: &mut State<'_>) {
        state.happened += 1;
        self.news.notify_all();
    }

    /// Waits until something has happened, but not longer than this.
    fn pause(&self, time: Duration) {
        drop(self.news.wait_timeout(locked(&self.state), time));
    }

    /// All texts and lines of the joblog, and the result.
    fn finish(self) -> Result<PiecesRun> {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let flushed = state.ledger.flush(&|text| self.pieces.observer.text(text));
        let State { ran, lost, fault, latest, next_piece, .. } = state;
        match fault {
            Some(fault) => Err(fault),
            None => flushed.map(|()| PiecesRun { pieces: ran, lost, seconds: latest, next_piece }),
        }
    }
}
