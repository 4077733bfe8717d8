//! The steps of MPDATA on a grid whose horizontal plane is divided: halos travel, boxes are computed.

use apportion::error::{Error, Result};
use apportion::geometry::{Rank, Rect, Span};
use apportion::kernels::mpdata::{
    Boundary, Cells, Domain, Exchange, Place, Scheme, Source, Stencil, Subdomain, sources,
};
use apportion::plan::{Layout, Shape};
use apportion::platform::Direction;
use apportion::schedule::{Application, Message, Piece, Step, StepOf, Work};
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
    /// A grid of these sizes. What is beyond its ends is said for each axis, for all by one entry, or not at all: then
    /// axes are periodic.
    ///
    /// # Errors
    /// Another number of boundaries, a scheme that is none: exit code 2.
    pub fn new(sizes: Vec<usize>, boundary: &[Boundary], scheme: Scheme) -> Result<Self> {
        let (axes, scheme) = (sizes.len(), scheme.checked()?);
        let boundary = match boundary {
            [] => vec![Boundary::Periodic; axes],
            [all] => vec![*all; axes],
            each if each.len() == axes => each.to_vec(),
            others => {
                let what = format!("{} boundaries for a field of {axes} dimensions", others.len());
                return Err(Error::input("`boundary`", what, "give one, or one for each axis"));
            }
        };
        Ok(Self { sizes, boundary, scheme })
    }

    /// The grid.
    pub(crate) fn domain(&self) -> Domain {
        Domain::new(&self.sizes, &self.boundary)
    }

    /// Number of cells.
    pub(crate) fn cells(&self) -> u64 {
        self.sizes.iter().map(|n| *n as u64).product()
    }
}

/// Which cells of its boxes a processor computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
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
    pub(crate) pass: usize,
    /// The cells.
    pub(crate) region: Region,
    /// Cost, in cells advanced by a whole step.
    pub(crate) amount: f64,
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
    pub(crate) fn problem(&self) -> &AdvectProblem {
        &self.problem
    }

    /// The grid.
    pub(crate) fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The boxes of a processor.
    pub(crate) fn boxes(&self, rank: Rank) -> &[Cells] {
        &self.boxes[rank.0]
    }

    /// Number of processors.
    pub(crate) fn boxes_by_rank(&self) -> usize {
        self.boxes.len()
    }

    /// The axes that every box holds completely.
    pub(crate) fn undivided(&self) -> [bool; 3] {
        self.undivided
    }

    /// The variant and when halos are exchanged.
    pub(crate) fn stencil(&self) -> Stencil {
        Stencil { scheme: self.problem.scheme, exchange: self.order.exchange }
    }

    /// Elements that a processor receives in all steps, by formula: what others own of its surroundings.
    pub(crate) fn volume(&self, to: Rank) -> u64 {
        let one: u64 = (1..=self.phases()).map(|pass| received(self, to, pass)).sum();
        one * self.steps
    }

    /// The predicted bytes of a processor's arrays.
    pub(crate) fn memory(&self, rank: Rank, element: u64) -> u64 {
        let one =
            |cells: &Cells| Subdomain::<f64>::elements(&self.domain, self.stencil(), cells, self.undivided);
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
        let mut phase = Phase { own: pieces(self, rank, rank, pass), ..Phase::default() };
        for other in (0..self.boxes.len()).map(Rank).filter(|other| *other != rank) {
            let incoming = pieces(self, other, rank, pass);
            let outgoing = pieces(self, rank, other, pass);
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
    pub(crate) fn region(&self, rank: Rank, work: &Advance) -> Vec<(usize, Cells)> {
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
    pub(crate) fn own_pieces(&self, rank: Rank, work: &Advance) -> &[HaloPiece] {
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

// The horizontal plane of a grid, which layouts divide, and the matrix as which files hold a grid.

/// The plane of a grid that is divided: of three axes the first two, of fewer all. In a file, a grid is a
/// matrix with the plane's rows; one column of the plane is as many of its columns as the third axis is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plane {
    sizes: [usize; 3],
    dimensions: usize,
}

impl Plane {
    /// The plane of a grid of one to three sizes.
    ///
    /// # Panics
    /// If there are other numbers of sizes.
    pub(crate) fn of(sizes: &[usize]) -> Self {
        let sizes3 = match *sizes {
            [n] => [1, n, 1],
            [m, n] => [m, n, 1],
            [m, n, l] => [m, n, l],
            _ => panic!("a grid has one to three dimensions, not {}", sizes.len()),
        };
        Self { sizes: sizes3, dimensions: sizes.len() }
    }

    /// The plane's rows and columns as the shape of a layout.
    ///
    /// # Errors
    /// Too many cells: exit code 2.
    pub(crate) fn shape(&self) -> Result<Shape> {
        let [rows, cols, _] = self.sizes.map(|n| n as u64);
        Shape::new(rows, 1, cols, "grid")
    }

    /// The number of cells above each cell of the plane.
    pub(crate) fn levels(&self) -> u64 {
        self.sizes[2] as u64
    }

    /// Checks that a layout is of this plane.
    ///
    /// # Errors
    /// It is not: exit code 2.
    pub(crate) fn check(&self, layout: &Layout) -> Result<()> {
        let ([rows, cols, _], shape) = (self.sizes.map(|n| n as u64), layout.shape());
        if (shape.m, shape.n) == (rows, cols) {
            return Ok(());
        }
        Err(Error::input(
            "plan",
            format!(
                "divides {} x {}, but the horizontal plane of the field is {rows} x {cols}",
                shape.m, shape.n
            ),
            format!("make a plan with `--shape {rows}x{cols}`"),
        ))
    }

    /// The axis of the scheme that the plane's columns are along.
    fn across(&self) -> usize {
        if self.dimensions == 3 { 1 } else { 2 }
    }

    /// The cells of a rectangle of the plane.
    pub(crate) fn cells(&self, rect: Rect) -> Cells {
        let mut cells = Cells { lo: [0; 3], hi: [1; 3] };
        cells.hi[2] = self.sizes[2] as isize;
        (cells.lo[0], cells.hi[0]) = (rect.rows.start as isize, rect.rows.end as isize);
        let across = self.across();
        (cells.lo[across], cells.hi[across]) = (rect.cols.start as isize, rect.cols.end as isize);
        cells
    }

    /// The number of columns of the matrix per column of the plane, for an array of cells or faces.
    fn deep(&self, place: Place) -> u64 {
        let faces = self.dimensions == 3 && place == Place::Face(2);
        self.levels() + u64::from(faces)
    }

    /// Rows and columns of the matrix that a file holds for an array of cells or faces.
    pub(crate) fn matrix(&self, place: Place) -> (u64, u64) {
        let rows = self.sizes[0] as u64 + u64::from(place == Place::Face(0));
        let cols = self.sizes[1] as u64 + u64::from(place == Place::Face(self.across()));
        (rows, cols * self.deep(place))
    }

    /// The rectangle of that matrix with some elements and, in three dimensions, all above and below them.
    pub(crate) fn rect(&self, place: Place, cells: &Cells) -> Rect {
        let (across, deep) = (self.across(), self.deep(place));
        let cols = Span::new(cells.lo[across] as u64 * deep, cells.hi[across] as u64 * deep);
        Rect::new(Span::new(cells.lo[0] as u64, cells.hi[0] as u64), cols)
    }

    /// The row and the first column of the matrix for the elements of one row of cells.
    pub(crate) fn position(&self, place: Place, [i, j, k]: [isize; 3]) -> (u64, u64) {
        let col = if self.dimensions == 3 { j as u64 * self.deep(place) + k as u64 } else { k as u64 };
        (i as u64, col)
    }
}

// What a processor needs of the surroundings of its boxes, and who owns it.

/// A part of the surroundings of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HaloPiece {
    /// The field, or the Courant numbers along an axis.
    pub(crate) place: Place,
    /// The pass that needs it, from 1.
    pub(crate) pass: usize,
    /// The box of the sender.
    pub(crate) from: usize,
    /// The box of the receiver.
    pub(crate) to: usize,
    /// Where it is around the receiver's box.
    pub(crate) here: Cells,
    /// What to add to reach it in the sender's box.
    pub(crate) shift: [isize; 3],
    direction: Direction,
}

impl HaloPiece {
    /// Where it is in the sender's box.
    pub(crate) fn there(&self) -> Cells {
        Source { here: self.here, shift: self.shift }.there()
    }
}

impl Piece for HaloPiece {
    fn elements(&self) -> u64 {
        self.here.count() as u64
    }

    /// Contiguous above and below a box, strided at its sides.
    fn direction(&self) -> Direction {
        self.direction
    }
}

/// The elements that a box owns of an array: a face between two boxes belongs to the upper one, the last face
/// of an axis with an end to the last box.
fn owned(schedule: &AdvectSchedule, cells: &Cells, place: Place) -> Cells {
    let mut owned = *cells;
    if let Place::Face(axis) = place
        && let Some((_, hi)) = schedule.domain().inside(place, axis)
        && owned.hi[axis] == hi - 1
    {
        owned.hi[axis] = hi;
    }
    owned
}

/// The pieces of a pass from one processor to another, or to itself, in the order of packing.
fn pieces(schedule: &AdvectSchedule, from: Rank, to: Rank, pass: usize) -> Vec<HaloPiece> {
    let (domain, undivided) = (schedule.domain(), schedule.undivided());
    let mut found = Vec::new();
    for (number, cells) in schedule.boxes(to).iter().enumerate() {
        for place in places(domain, pass) {
            let needs = Subdomain::<f64>::needs(domain, schedule.stencil(), cells, undivided, place, pass);
            for source in sources(domain, place, &needs, undivided[2]) {
                for (other, theirs) in schedule.boxes(from).iter().enumerate() {
                    let there = source.there().intersect(&owned(schedule, theirs, place));
                    let itself = from == to && other == number && source.shift == [0; 3];
                    if there.is_empty() || itself {
                        continue;
                    }
                    let here = Source { here: there, shift: source.shift.map(|s| -s) }.there();
                    // Rows of a plane are contiguous along the last divided axis.
                    let across = if domain.dimensions() == 3 { 1 } else { 2 };
                    let beside = here.hi[across] <= cells.lo[across] || here.lo[across] >= cells.hi[across];
                    let direction = if beside { Direction::Horizontal } else { Direction::Vertical };
                    let shift = source.shift;
                    found.push(HaloPiece { place, pass, from: other, to: number, here, shift, direction });
                }
            }
        }
    }
    found
}

/// By formula: the elements that a processor needs before a pass and does not own.
fn received(schedule: &AdvectSchedule, to: Rank, pass: usize) -> u64 {
    let (domain, undivided) = (schedule.domain(), schedule.undivided());
    let mut count = 0;
    for cells in schedule.boxes(to) {
        for place in places(domain, pass) {
            let needs = Subdomain::<f64>::needs(domain, schedule.stencil(), cells, undivided, place, pass);
            for source in sources(domain, place, &needs, undivided[2]) {
                let there = source.there();
                let own = |mine: &Cells| there.intersect(&owned(schedule, mine, place)).count() as u64;
                count += there.count() as u64 - schedule.boxes(to).iter().map(own).sum::<u64>();
            }
        }
    }
    count
}

// What steps cost: the work of boxes, and the number of messages.

/// Messages of all processors that a simulation follows.
const MOST_MESSAGES: u128 = 100_000_000;

impl AdvectSchedule {
    /// Refuses to follow more than about 10^8 messages, all processors together.
    ///
    /// # Errors
    /// Exit code 1; the message names the number of messages.
    pub fn check_size(&self) -> Result<()> {
        let one = |rank| self.plan(Rank(rank)).phases.iter().map(|phase| 2 + phase.incoming.len() as u64);
        let step: u64 = (0..self.boxes.len()).flat_map(one).sum();
        let all = u128::from(step) * u128::from(self.steps);
        if all > MOST_MESSAGES {
            let what = format!("{} time steps have about {all} messages, too many to simulate", self.steps);
            return Err(Error::infeasible(
                what,
                "use fewer `steps`: later ones take as long as those before",
            ));
        }
        Ok(())
    }

    /// The cost of some cells: what every pass computes of them and around them.
    fn amount(&self, cells: &Cells, pass: usize) -> f64 {
        if cells.is_empty() {
            return 0.0;
        }
        let (scheme, dimensions) = (self.problem.scheme, self.domain.dimensions());
        let passes = if pass == 0 { 1..=scheme.passes } else { pass..=pass };
        let last = *passes.end();
        let one = |pass: usize| {
            let beyond: usize = (pass + 1..=last).map(|later| scheme.reach(later)).sum();
            let lengths = cells.lengths();
            let computed: f64 = (0..3)
                .map(|axis| {
                    let wider = if self.domain.has[axis] && !(axis == 2 && self.undivided[2]) {
                        2 * beyond
                    } else {
                        0
                    };
                    (lengths[axis] + wider) as f64
                })
                .product();
            computed * scheme.pass_operations(pass, dimensions)
        };
        passes.map(one).sum::<f64>() / scheme.operations(dimensions)
    }
}

#[cfg(test)]
mod tests;
