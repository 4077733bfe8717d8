//! An application of one's own: heat in a rod, on processors of unequal speed that exchange the temperatures
//! at the ends of their parts. The library simulates and runs it from this description: what travels, what is
//! computed, and in which order.
//!
//! `cargo run --example own_application`

use apportion::plan::shares::proportional;
use apportion::platform::{Network, Platform};
use apportion::run::{Monitor, Session, World, run};
use apportion::schedule::{Application, Executable, Message, Piece, Step, StepOf, Work};
use apportion::simulate::{CostModel, simulate};
use apportion::{Rank, Result, Span};

const CELLS: u64 = 9_000;
const SWEEPS: u64 = 50;

/// The rod's cells by processor.
struct Rod {
    parts: Vec<Span>,
}

/// One cell's temperature, which a neighbour needs: one element.
#[derive(Debug, Clone)]
struct Cell(u64);

impl Piece for Cell {
    fn elements(&self) -> u64 {
        1
    }
}

/// One sweep over the cells of a processor.
#[derive(Debug, Clone)]
struct Sweep(Span);

impl Work for Sweep {
    fn amount(&self) -> f64 {
        self.0.len() as f64
    }
}

impl Application for Rod {
    type Piece = Cell;
    type Work = Sweep;

    fn processors(&self) -> usize {
        self.parts.len()
    }

    /// In each sweep: post the receives, send the own ends, wait for the neighbours', compute.
    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let part = self.parts[rank.0];
        let left = (rank.0 > 0).then(|| (Rank(rank.0 - 1), part.start, part.start - 1));
        let right = (rank.0 + 1 < self.parts.len()).then(|| (Rank(rank.0 + 1), part.end - 1, part.end));
        let neighbours: Vec<(Rank, u64, u64)> = left.into_iter().chain(right).collect();
        let message = |from, to, tag, cell| Message { from, to, tag, pieces: vec![Cell(cell)] };
        Box::new((0..SWEEPS).flat_map(move |tag| {
            let receives =
                neighbours.iter().map(|&(at, _, theirs)| Step::PostReceive(message(at, rank, tag, theirs)));
            let sends = neighbours.iter().map(|&(to, own, _)| Step::Send(message(rank, to, tag, own)));
            let waits = neighbours.iter().map(|&(from, ..)| Step::WaitReceive { from, tag });
            let mut steps: Vec<StepOf<Self>> = receives.chain(sends).chain(waits).collect();
            steps.push(Step::Compute(Sweep(part)));
            steps
        }))
    }
}

/// The temperatures of a processor's cells and of one more on either side, before and after a sweep.
struct Part {
    first: u64,
    now: Vec<f64>,
    next: Vec<f64>,
}

impl Part {
    /// 100 degrees at the left end of the rod, 0 elsewhere.
    fn new(cells: Span) -> Self {
        let now: Vec<f64> = (cells.start..cells.end + 2).map(|i| if i == 0 { 100.0 } else { 0.0 }).collect();
        Self { first: cells.start, next: now.clone(), now }
    }

    /// Where a cell is: the rod's cell 0 has a fixed end on its left.
    fn cell(&mut self, cell: u64) -> &mut f64 {
        &mut self.now[(cell + 1 - self.first) as usize]
    }

    fn sweep(&mut self) {
        for (next, around) in self.next[1..].iter_mut().zip(self.now.windows(3)) {
            *next = 0.25 * around[0] + 0.5 * around[1] + 0.25 * around[2];
        }
        std::mem::swap(&mut self.now, &mut self.next);
    }
}

impl Executable for Rod {
    type Element = f64;
    type Local<'a> = Part;

    fn hold(&self, rank: Rank) -> Part {
        Part::new(self.parts[rank.0])
    }

    fn pack(&self, part: &mut Part, piece: &Cell, out: &mut [f64]) {
        out[0] = *part.cell(piece.0);
    }

    fn unpack(&self, part: &mut Part, piece: &Cell, elements: &[f64]) {
        *part.cell(piece.0) = elements[0];
    }

    fn compute(&self, part: &mut Part, _sweep: &Sweep, _threads: usize) -> Result<f64> {
        part.sweep();
        Ok(0.0)
    }

    fn peak_bytes(&self, part: &Part) -> u64 {
        8 * (part.now.len() + part.next.len()) as u64
    }
}

fn main() -> Result<()> {
    let speeds = [4.0, 2.0, 2.0, 1.0];
    let mut end = 0;
    let parts = proportional(CELLS, &speeds).into_iter().map(|cells| {
        end += cells;
        Span::new(end - cells, end)
    });
    let rod = Rod { parts: parts.collect() };

    let rates = speeds.map(|speed| speed * 1e8);
    let costs = CostModel { rates: &rates, network: &Network::uniform(5e-6, 1e9), element: 8 };
    println!("forecast {:.3} ms", 1e3 * simulate(&rod, costs)?.seconds());

    let (platform, monitor) = (Platform::from_speeds(&speeds)?, Monitor::new());
    let world = World::solo(&monitor);
    let work = (0..speeds.len()).map(|rank| rod.work(Rank(rank))).sum();
    let output = run(&rod, &Session::new(&world, &platform, &monitor, work))?;

    let mut serial = Part::new(Span::new(0, CELLS));
    (0..SWEEPS).for_each(|_| serial.sweep());
    for (part, cells) in output.locals.iter().zip(&rod.parts) {
        let expected = &serial.now[cells.start as usize + 1..=cells.end as usize];
        assert_eq!(part.now[1..=expected.len()], *expected, "the parts are the serial rod's, bit for bit");
    }
    println!("{SWEEPS} sweeps on parts of {:?} cells are right", proportional(CELLS, &speeds));
    Ok(())
}
