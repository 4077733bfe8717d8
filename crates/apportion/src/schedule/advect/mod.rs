//! The steps of MPDATA on a grid whose horizontal plane is divided: halos travel, boxes are computed.

mod cost;
mod halo;
mod plane;

pub use halo::HaloPiece;
pub use plane::Plane;

use super::{Application, Message, Step, StepOf, Work};
use crate::error::Result;
use crate::geometry::Rank;
use crate::kernels::mpdata::{Boundary, Cells, Domain, Exchange, Place, Scheme, Subdomain};
use crate::plan::Layout;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// How the steps of an advection are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvectOrder {
    /// When halos are exchanged.
    pub exchange: Exchange,
    /// Whether the inside of a box is computed while halos travel.
    pub overlap: bool,
}

impl AdvectOrder {
    /// Every order, the simplest first.
    pub const ALL: [Self; 4] = [
        Self { exchange: Exchange::Wide, overlap: false },
        Self { exchange: Exchange::Wide, overlap: true },
        Self { exchange: Exchange::Narrow, overlap: false },
        Self { exchange: Exchange::Narrow, overlap: true },
    ];
}

impl std::fmt::Display for AdvectOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let halo = if self.exchange == Exchange::Wide { "wide halo" } else { "narrow halo" };
        write!(f, "{halo}{}", if self.overlap { ", overlap" } else { "" })
    }
}

/// A grid, its ends, and the variant of the scheme.
#[derive(Debug, Clone, PartialEq)]
pub struct AdvectProblem {
    /// Number of cells along each axis, one to three; the last is contiguous in memory.
    pub sizes: Vec<usize>,
    /// What is beyond the ends of each axis.
    pub boundary: Vec<Boundary>,
    /// The variant.
    pub scheme: Scheme,
}

impl AdvectProblem {
    /// The grid.
    pub fn domain(&self) -> Domain {
        Domain::new(&self.sizes, &self.boundary)
    }

    /// Number of cells.
    pub fn cells(&self) -> u64 {
        self.sizes.iter().map(|n| *n as u64).product()
    }
}

/// Which cells of its boxes a processor computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// All of them.
    All,
    /// Those that need nothing from other processors; first.
    Inside,
    /// The others; last.
    Border,
}

/// A unit of work: some cells, by a whole step or by one pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advance {
    /// The pass (from 1), or 0 for the whole step.
    pub pass: usize,
    /// The cells.
    pub region: Region,
    /// Cost, in cells advanced by a whole step.
    pub amount: f64,
}

impl Work for Advance {
    fn amount(&self) -> f64 {
        self.amount
    }
}

/// The advection of a field for some steps, on a layout of the horizontal plane.
#[derive(Debug, Clone)]
pub struct AdvectSchedule {
    problem: AdvectProblem,
    domain: Domain,
    order: AdvectOrder,
    steps: u64,
    undivided: [bool; 3],
    /// By rank.
    boxes: Arc<Vec<Vec<Cells>>>,
    /// By rank: what each of them does in a step.
    plans: Arc<Vec<OnceLock<StepPlan>>>,
}

/// What a processor does in a step: by phase.
#[derive(Debug, Clone, Default)]
struct StepPlan {
    phases: Vec<Phase>,
}

/// An exchange and what follows it.
#[derive(Debug, Clone, Default)]
struct Phase {
    incoming: BTreeMap<Rank, Vec<HaloPiece>>,
    outgoing: BTreeMap<Rank, Vec<HaloPiece>>,
    /// Pieces that this processor copies from itself.
    own: Vec<HaloPiece>,
    /// By box: the cells that need nothing from others, and the rest.
    inside: Vec<Cells>,
    border: Vec<Vec<Cells>>,
    amounts: [f64; 3],
}

impl AdvectSchedule {
    /// A schedule of `steps` steps. The layout is of the horizontal plane: rows and columns of cells.
    ///
    /// # Errors
    /// The layout is of another plane: exit code 2.
    pub fn new(problem: &AdvectProblem, layout: &Layout, order: AdvectOrder, steps: u64) -> Result<Self> {
        let plane = Plane::of(&problem.sizes);
        plane.check(layout)?;
        let domain = problem.domain();
        let boxes: Vec<Vec<Cells>> = layout
            .rects_by_owner()
            .iter()
            .map(|rects| rects.iter().map(|rect| plane.cells(*rect)).collect())
            .collect();
        let undivided = [0, 1, 2].map(|axis| {
            let whole = domain.cells[axis] as isize;
            boxes.iter().flatten().all(|cells| cells.lo[axis] == 0 && cells.hi[axis] == whole)
        });
        let plans = Arc::new(boxes.iter().map(|_| OnceLock::new()).collect());
        let (problem, boxes) = (problem.clone(), Arc::new(boxes));
        Ok(Self { problem, domain, order, steps, undivided, boxes, plans })
    }

    /// The same schedule for another number of steps.
    #[must_use]
    pub fn with_steps(&self, steps: u64) -> Self {
        Self { steps, ..self.clone() }
    }

    /// The problem.
    pub fn problem(&self) -> &AdvectProblem {
        &self.problem
    }

    /// The grid.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The order of the steps.
    pub fn order(&self) -> AdvectOrder {
        self.order
    }

    /// Number of steps.
    pub fn count(&self) -> u64 {
        self.steps
    }

    /// The boxes of a processor.
    pub fn boxes(&self, rank: Rank) -> &[Cells] {
        &self.boxes[rank.0]
    }

    /// Number of processors.
    pub fn boxes_by_rank(&self) -> usize {
        self.boxes.len()
    }

    /// The axes that every box holds completely.
    pub fn undivided(&self) -> [bool; 3] {
        self.undivided
    }

    /// The variant and when halos are exchanged.
    pub fn with(&self) -> (Scheme, Exchange) {
        (self.problem.scheme, self.order.exchange)
    }

    /// Elements that a processor receives in all steps, by formula: what others own of its surroundings.
    pub fn volume(&self, to: Rank) -> u64 {
        let one: u64 = (1..=self.phases()).map(|pass| halo::received(self, to, pass)).sum();
        one * self.steps
    }

    /// The predicted bytes of a processor's arrays.
    pub fn memory(&self, rank: Rank, element: u64) -> u64 {
        let one =
            |cells: &Cells| Subdomain::<f64>::elements(&self.domain, self.with(), cells, self.undivided);
        self.boxes(rank).iter().map(one).sum::<u64>() * element
    }

    fn phases(&self) -> usize {
        self.order.exchange.phases(&self.problem.scheme)
    }

    fn plan(&self, rank: Rank) -> &StepPlan {
        self.plans[rank.0].get_or_init(|| StepPlan {
            phases: (1..=self.phases()).map(|pass| self.phase(rank, pass)).collect(),
        })
    }

    fn phase(&self, rank: Rank, pass: usize) -> Phase {
        let mut phase = Phase { own: halo::pieces(self, rank, rank, pass), ..Phase::default() };
        for other in (0..self.boxes.len()).map(Rank).filter(|other| *other != rank) {
            let incoming = halo::pieces(self, other, rank, pass);
            let outgoing = halo::pieces(self, rank, other, pass);
            for (table, pieces) in [(&mut phase.incoming, incoming), (&mut phase.outgoing, outgoing)] {
                if !pieces.is_empty() {
                    table.insert(other, pieces);
                }
            }
        }
        let width = self.order.exchange.width(&self.problem.scheme, pass) as isize;
        for (number, cells) in self.boxes(rank).iter().enumerate() {
            // Cells of any side from which something comes.
            let mut inside = *cells;
            for piece in phase.incoming.values().flatten().filter(|piece| piece.to == number) {
                for axis in 0..3 {
                    if piece.here.hi[axis] <= cells.lo[axis] {
                        inside.lo[axis] = cells.lo[axis] + width;
                    }
                    if piece.here.lo[axis] >= cells.hi[axis] {
                        inside.hi[axis] = cells.hi[axis] - width;
                    }
                }
            }
            if inside.is_empty() {
                inside = Cells { lo: cells.lo, hi: cells.lo };
            }
            phase.inside.push(inside);
            phase.border.push(around(cells, &inside));
        }
        let pass = self.work_pass(pass);
        let all: f64 = self.boxes(rank).iter().map(|cells| self.amount(cells, pass)).sum();
        let inside: f64 = phase.inside.iter().map(|cells| self.amount(cells, pass)).sum();
        let border: f64 = phase.border.iter().flatten().map(|cells| self.amount(cells, pass)).sum();
        phase.amounts = [all, inside, border];
        phase
    }

    /// The pass of a unit of work: 0 for the whole step.
    fn work_pass(&self, pass: usize) -> usize {
        if self.order.exchange == Exchange::Wide { 0 } else { pass }
    }

    /// The cells of a region of a processor's boxes: (box, cells).
    pub fn region(&self, rank: Rank, work: &Advance) -> Vec<(usize, Cells)> {
        let phase = &self.plan(rank).phases[work.pass.max(1) - 1];
        match work.region {
            Region::All => self.boxes(rank).iter().copied().enumerate().collect(),
            Region::Inside => phase.inside.iter().copied().enumerate().collect(),
            Region::Border => phase
                .border
                .iter()
                .enumerate()
                .flat_map(|(number, parts)| parts.iter().map(move |cells| (number, *cells)))
                .collect(),
        }
    }

    /// The pieces that a processor copies from its own boxes before a unit of work.
    pub fn own_pieces(&self, rank: Rank, work: &Advance) -> &[HaloPiece] {
        &self.plan(rank).phases[work.pass.max(1) - 1].own
    }

    /// The steps of one phase.
    fn phase_steps(&self, rank: Rank, number: usize, tag: u64) -> Vec<StepOf<Self>> {
        let phase = &self.plan(rank).phases[number];
        let pass = self.work_pass(number + 1);
        let message = |from, to, pieces: &Vec<HaloPiece>| Message { from, to, tag, pieces: pieces.clone() };
        let mut steps: Vec<StepOf<Self>> = Vec::new();
        let [all, inside, border] = phase.amounts;
        steps.extend(phase.incoming.iter().map(|(from, p)| Step::PostReceive(message(*from, rank, p))));
        steps.extend(phase.outgoing.iter().map(|(to, p)| Step::Send(message(rank, *to, p))));
        let waits = phase.incoming.keys().map(|from| Step::WaitReceive { from: *from, tag });
        let advance = |region, amount| Step::Compute(Advance { pass, region, amount });
        if self.order.overlap && !phase.incoming.is_empty() {
            steps.push(advance(Region::Inside, inside));
            steps.extend(waits);
            steps.push(advance(Region::Border, border));
        } else {
            steps.extend(waits);
            steps.push(advance(Region::All, all));
        }
        steps
    }
}

/// The cells of a box that are not in another one within it, as boxes.
fn around(cells: &Cells, inside: &Cells) -> Vec<Cells> {
    if inside.is_empty() {
        return vec![*cells];
    }
    let (mut rest, mut parts) = (*cells, Vec::new());
    for axis in 0..3 {
        let (mut low, mut high) = (rest, rest);
        low.hi[axis] = inside.lo[axis];
        high.lo[axis] = inside.hi[axis];
        parts.extend([low, high].into_iter().filter(|part| !part.is_empty()));
        (rest.lo[axis], rest.hi[axis]) = (inside.lo[axis], inside.hi[axis]);
    }
    parts
}

impl Application for AdvectSchedule {
    type Piece = HaloPiece;
    type Work = Advance;

    fn processors(&self) -> usize {
        self.boxes.len()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        if self.boxes(rank).is_empty() {
            return Box::new(std::iter::empty());
        }
        let phases = self.phases();
        let all = (0..self.steps).flat_map(move |step| (0..phases).map(move |number| (step, number)));
        Box::new(all.flat_map(move |(step, number)| {
            self.phase_steps(rank, number, step * phases as u64 + number as u64)
        }))
    }

    fn overlaps(&self) -> bool {
        self.order.overlap
    }

    fn share(&self, rank: Rank) -> f64 {
        self.boxes(rank).iter().map(|cells| cells.count() as f64).sum()
    }

    fn work(&self, rank: Rank) -> f64 {
        let one = |phase: &Phase| {
            let [all, inside, border] = phase.amounts;
            if self.order.overlap && !phase.incoming.is_empty() { inside + border } else { all }
        };
        self.plan(rank).phases.iter().map(one).sum::<f64>() * self.steps as f64
    }
}

/// True for the places of a pass's input that boxes exchange: the field, and from the third pass on the
/// Courant numbers of the pass before.
fn places(domain: &Domain, pass: usize) -> Vec<Place> {
    let faces = domain.axes().iter().map(|axis| Place::Face(*axis));
    std::iter::once(Place::Centre).chain(faces.filter(|_| pass > 2)).collect()
}

#[cfg(test)]
mod tests;
