//! Pieces in a world of several ranks: rank 0 sends each rank the pieces of its processor, one after the other, and
//! gets what has become of them.
//!
//! Rank 0 waits for a message of a rank only while that has a piece, and a rank always waits for the next order of rank
//! 0. Nobody waits for a message that does not come, and at the end none is under way.

use super::{Desk, Piece, PieceEnd, Pieces, Step};
use crate::error::{Error, Result};
use crate::measure::programs::RankOutcome;
use crate::run::Awaited;
use crate::run::clock;
use crate::run::mailboxes::StopSignal;
use crate::threads;
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Time between two looks for messages.
const GLANCE: Duration = Duration::from_millis(1);

/// What rank 0 tells another.
#[derive(Debug, Serialize, Deserialize)]
enum Order {
    Run(Piece),
    /// Ends the piece that runs.
    Stop,
    /// There are no further pieces.
    Leave,
}

/// What has become of a rank's piece; its text goes beside it.
#[derive(Serialize, Deserialize)]
struct Report {
    exit: i32,
    signal: i32,
    wall: f64,
    outcome: RankOutcome,
    is_lost: bool,
}

/// What rank 0 knows of another.
enum Rank {
    /// It runs nothing, and is asked again after news or at this time, in seconds since the run began.
    Idle {
        known: Option<u64>,
        until: f64,
    },
    Working(Awaited),
    Gone,
}

/// A rank that has not been asked.
const IDLE: Rank = Rank::Idle { known: None, until: 0.0 };

/// Hands the pieces of all other ranks out, on rank 0.
pub(super) fn lead(desk: &Desk<'_>) -> Result<()> {
    let world = desk.pieces.world;
    let mut ranks: Vec<Rank> = (0..world.size()).map(|_| IDLE).collect();
    ranks[0] = Rank::Gone;
    let mut is_told = false;
    while ranks.iter().any(|rank| !matches!(rank, Rank::Gone)) {
        let is_over = desk.halt.check().is_err();
        if world.monitor().is_stopped() {
            // All ranks are told of Ctrl-C, and nobody has the time to ask.
            desk.interrupt();
            return Ok(());
        }
        for (number, rank) in ranks.iter_mut().enumerate() {
            match rank {
                Rank::Idle { known, until } => match desk.step_after(number, known, *until) {
                    Some(Step::Run(piece)) => {
                        world.send_letter(&Order::Run(piece), &[], number)?;
                        *rank = Rank::Working(Awaited::from(world, number));
                    }
                    Some(Step::Leave) => {
                        world.send_letter(&Order::Leave, &[], number)?;
                        *rank = Rank::Gone;
                    }
                    Some(Step::Wait { until: next }) => *until = next,
                    None => {}
                },
                Rank::Working(awaited) => {
                    if is_over && !is_told {
                        world.send_letter(&Order::Stop, &[], number)?;
                    }
                    if let Some((Report { exit, signal, wall, outcome, is_lost }, text)) =
                        awaited.take(world)?
                    {
                        let outcome =
                            outcome.into_outcome().unwrap_or_else(|| Err(Error::Interrupted.into()));
                        desk.take(number, PieceEnd { exit, signal, wall, text, outcome, is_lost });
                        *rank = IDLE;
                    }
                }
                Rank::Gone => {}
            }
        }
        is_told |= is_over;
        desk.pause(GLANCE);
    }
    Ok(())
}

/// Runs the pieces of this rank's processor.
pub(super) fn serve(pieces: &Pieces<'_>, halt: &StopSignal<'_>) -> Result<()> {
    let world = pieces.world;
    let mut orders = Awaited::from(world, 0);
    loop {
        let piece = match orders.take(world)? {
            None => {
                std::thread::sleep(GLANCE);
                continue;
            }
            Some((Order::Leave, _)) => return Ok(()),
            // The piece has ended meanwhile.
            Some((Order::Stop, _)) => {
                orders = Awaited::from(world, 0);
                continue;
            }
            Some((Order::Run(piece), _)) => piece,
        };
        orders = Awaited::from(world, 0);
        let PieceEnd { exit, signal, wall, text, outcome, is_lost } = threads::scope(|scope| {
            let (give, ended) = channel();
            let piece = &piece;
            let run = move || {
                clock::pin(pieces.platform.processors[world.rank()].cores_here());
                // Where the world is interrupted, nobody receives it.
                let _ = give.send(pieces.run_piece(world.rank(), piece, halt));
            };
            threads::start(scope, run)?;
            loop {
                match ended.recv_timeout(GLANCE) {
                    Ok(end) => return Ok(end),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::Interrupted),
                }
                if orders.take::<Order>(world).inspect_err(|_| halt.fail())?.is_some() {
                    halt.fail();
                    orders = Awaited::from(world, 0);
                }
            }
        })?;
        let report = Report { exit, signal, wall, outcome: RankOutcome::of(Some(outcome)), is_lost };
        world.send_letter(&report, &text, 0)?;
    }
}
