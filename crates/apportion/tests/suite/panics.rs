//! Each worker panics once at each place where an application's code runs: the run ends, and names it.

use apportion::platform::{Direction, Platform};
use apportion::run::{Monitor, Session, World, run};
use apportion::schedule::{Application, Executable, Message, Piece, Step, StepOf, Work};
use apportion::{Error, Rank, Result};
use std::sync::atomic::{AtomicU64, Ordering};

const RANKS: usize = 3;
const TURNS: u64 = 3;

/// Each processor passes a number to the next one, several times. The call number `fatal` of `rank` panics.
struct Ring {
    rank: usize,
    fatal: u64,
    calls: AtomicU64,
}

#[derive(Debug, Clone)]
struct Number;

impl Piece for Number {
    fn elements(&self) -> u64 {
        1
    }

    fn direction(&self) -> Direction {
        Direction::Horizontal
    }
}

#[derive(Debug, Clone)]
struct Add;

impl Work for Add {
    fn amount(&self) -> f64 {
        1.0
    }
}

impl Application for Ring {
    type Piece = Number;
    type Work = Add;

    fn processors(&self) -> usize {
        RANKS
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let (before, next) = (Rank((rank.0 + RANKS - 1) % RANKS), Rank((rank.0 + 1) % RANKS));
        let message = |from, to, tag| Message { from, to, tag, pieces: vec![Number] };
        Box::new((0..TURNS).flat_map(move |tag| {
            [
                Step::PostReceive(message(before, rank, tag)),
                Step::Send(message(rank, next, tag)),
                Step::WaitReceive { from: before, tag },
                Step::Compute(Add),
            ]
        }))
    }

    fn overlaps(&self) -> bool {
        true
    }
}

impl Ring {
    fn call(&self, rank: usize) {
        if rank == self.rank && self.calls.fetch_add(1, Ordering::SeqCst) == self.fatal {
            panic!("on purpose");
        }
    }
}

impl Executable for Ring {
    type Element = f64;
    type Local<'a> = (usize, f64);

    fn hold(&self, rank: Rank) -> (usize, f64) {
        self.call(rank.0);
        (rank.0, rank.0 as f64)
    }

    fn pack(&self, local: &mut (usize, f64), _: &Number, out: &mut [f64]) {
        self.call(local.0);
        out[0] = local.1;
    }

    fn unpack(&self, local: &mut (usize, f64), _: &Number, elements: &[f64]) {
        self.call(local.0);
        local.1 += elements[0];
    }

    fn compute(&self, local: &mut (usize, f64), _: &Add, _: usize) -> Result<f64> {
        self.call(local.0);
        local.1 += 1.0;
        Ok(0.0)
    }

    fn peak_bytes(&self, _: &(usize, f64)) -> u64 {
        8
    }
}

fn solve(ring: &Ring, world: &World, monitor: &Monitor) -> Result<Vec<f64>> {
    let platform = Platform::from_speeds(&[1.0; RANKS])?;
    let session = Session::new(world, &platform, monitor, (RANKS as u64 * TURNS) as f64);
    Ok(run(ring, &session)?.locals.into_iter().map(|(_, number)| number).collect())
}

#[test]
fn every_panic_of_a_worker_ends_the_run_and_is_named() {
    let ring = |rank, fatal| Ring { rank, fatal, calls: AtomicU64::new(0) };
    let monitor = Monitor::new();
    let right = solve(&ring(0, u64::MAX), &World::solo(&monitor), &monitor).unwrap();
    for rank in 0..RANKS {
        // One call to begin with, and three in each turn.
        for fatal in 0..=3 * TURNS + 1 {
            let ring = ring(rank, fatal);
            let alone = solve(&ring, &World::solo(&monitor), &monitor);
            ring.calls.store(0, Ordering::SeqCst);
            let ranks = World::threads(RANKS, &monitor, |world| solve(&ring, world, &monitor))
                .map(|all| all.concat());
            for (engine, outcome) in [("workers", alone), ("ranks", ranks)] {
                match outcome {
                    Ok(found) => assert!(fatal > 3 * TURNS && found == right, "{engine} {rank} {fatal}"),
                    Err(error) => {
                        assert!(fatal <= 3 * TURNS, "{engine} {rank} {fatal}: {error}");
                        assert!(
                            matches!(error, Error::WorkerLost { .. }),
                            "{engine} {rank} {fatal}: {error}"
                        );
                        assert!(error.to_string().contains("on purpose"), "{error}");
                        assert_eq!(error.exit_code(), 1);
                    }
                }
            }
        }
    }
}
