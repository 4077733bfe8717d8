//! Sweeps over a grid that is cut into rectangles: the cells at their edges travel before each sweep.

use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect, Span};
use crate::model::Machine;
use crate::plan::Shape;
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::shares::fpm;
use crate::run::parallel;
use crate::schedule::{Application, Executable, Message, Piece, Step, StepOf, Work};
use bytemuck::Pod;

/// Layouts that are compared: one rectangle for each processor.
const METHODS: [Method; 4] = [Method::Rows, Method::Columns, Method::Grid, Method::Cartesian];

/// A field on a grid of cells. A sweep computes every cell from those around it.
pub trait Stencil: Sync {
    /// The values of cells.
    type Element: Pod + Send + Sync + PartialEq;

    /// Rows and columns of the grid.
    fn sizes(&self) -> [u64; 2];

    /// Number of sweeps.
    fn sweeps(&self) -> u64;

    /// Rows and columns that a cell sees in each direction. Default: 1.
    fn reach(&self) -> u64 {
        1
    }

    /// The value of a cell at the beginning, or for ever of a cell beyond an edge of the grid.
    fn value(&self, row: i64, col: i64) -> Self::Element;

    /// Computes consecutive cells of a row. `around` has the rows within reach, the row itself in the middle, each from
    /// `reach` cells before the first one of `out` on to as many after the last.
    fn update(&self, around: &[&[Self::Element]], out: &mut [Self::Element]);
}

/// The cells of one processor, and those around them.
#[derive(Debug, Clone)]
pub struct Patch<T> {
    cells: Rect,
    reach: usize,
    /// Rows of the cells and of those within reach, before and after a sweep.
    now: Vec<T>,
    next: Vec<T>,
}

impl<T: Pod + Send + Sync + PartialEq> Patch<T> {
    /// The cells of a rectangle as they are at the beginning.
    pub fn new<S: Stencil<Element = T>>(stencil: &S, cells: Rect) -> Self {
        let reach = stencil.reach() as i64;
        let around = |span: Span| span.start as i64 - reach..span.end as i64 + reach;
        let row = |i: i64| around(cells.cols).map(move |j| stencil.value(i, j));
        let now: Vec<T> = around(cells.rows).flat_map(row).collect();
        Self { cells, reach: reach as usize, next: now.clone(), now }
    }

    /// The cells.
    pub fn cells(&self) -> Rect {
        self.cells
    }

    /// The processor's cells of one of its rows.
    pub fn row(&self, row: u64) -> &[T] {
        &self.now[self.place(row, self.cells.cols.start)..][..self.cells.cols.len() as usize]
    }

    fn width(&self) -> usize {
        self.cells.cols.len() as usize + 2 * self.reach
    }

    /// The place of a cell, which may be as far outside as the reach.
    fn place(&self, row: u64, col: u64) -> usize {
        let Rect { rows, cols } = self.cells;
        let reach = self.reach as u64;
        (row + reach - rows.start) as usize * self.width() + (col + reach - cols.start) as usize
    }

    /// Computes all cells from those around them, the rows on some threads.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn sweep<S: Stencil<Element = T>>(&mut self, stencil: &S, threads: usize) -> Result<()> {
        let (width, reach) = (self.width(), self.reach);
        let (height, now) = (self.cells.rows.len() as usize, &self.now);
        let each = height.div_ceil(threads.max(1)).max(1);
        let out = &mut self.next[reach * width..(reach + height) * width];
        let parts = out.chunks_mut(each * width).enumerate().map(|(part, rows)| (part * each, rows));
        parallel::all(parts.collect(), |(first, rows)| {
            for (row, out) in rows.chunks_exact_mut(width).enumerate().map(|(i, out)| (first + i, out)) {
                let around: Vec<&[T]> = now[row * width..].chunks_exact(width).take(2 * reach + 1).collect();
                stencil.update(&around, &mut out[reach..width - reach]);
            }
        })?;
        std::mem::swap(&mut self.now, &mut self.next);
        Ok(())
    }
}

fn whole<S: Stencil>(stencil: &S) -> Rect {
    let [rows, cols] = stencil.sizes();
    Rect::new(Span::new(0, rows), Span::new(0, cols))
}

/// A processor whose cells another one sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The other one.
    pub rank: Rank,
    /// Cells of this processor that the other one sees.
    pub sent: Rect,
    /// Cells of the other one that this processor sees.
    pub received: Rect,
}

/// The neighbours of a rectangle among others, for cells that see `reach` rows and columns in each direction. O(p).
pub fn neighbours(parts: &[Rect], rank: Rank, reach: u64) -> Vec<Neighbour> {
    let grown = |part: Rect| {
        let grown = |span: Span| Span::new(span.start.saturating_sub(reach), span.end + reach);
        if part.is_empty() { part } else { Rect::new(grown(part.rows), grown(part.cols)) }
    };
    let own = parts[rank.0];
    let with = |(other, part): (usize, &Rect)| {
        let [sent, received] = [grown(*part).intersect(own), grown(own).intersect(*part)];
        let is_one = other != rank.0 && !sent.is_empty() && !received.is_empty();
        is_one.then_some(Neighbour { rank: Rank(other), sent, received })
    };
    parts.iter().enumerate().filter_map(with).collect()
}

/// Cells that travel.
#[derive(Debug, Clone)]
pub struct Border(Rect);

impl Piece for Border {
    fn elements(&self) -> u64 {
        self.0.area()
    }
}

/// A sweep over all cells of a processor: their number.
#[derive(Debug, Clone)]
pub struct Sweep(u64);

impl Work for Sweep {
    fn amount(&self) -> f64 {
        self.0 as f64
    }
}

/// The sweeps of a stencil over rectangles, one for each processor: in each, processors exchange the cells that others
/// see, and compute all of their own.
#[derive(Debug)]
pub struct Halo<'a, S> {
    stencil: &'a S,
    parts: &'a [Rect],
}

impl<'a, S: Stencil> Halo<'a, S> {
    /// The sweeps over rectangles that cover the grid, by rank.
    pub fn new(stencil: &'a S, parts: &'a [Rect]) -> Self {
        Self { stencil, parts }
    }

    /// Rectangles for a machine whose speeds are of cells: strips of rows, and others.
    ///
    /// # Errors
    /// Cells that do not fit the processors' memory, or too few for them.
    pub fn candidates(stencil: &S, machine: &Machine) -> Result<Vec<Vec<Rect>>> {
        let [rows, cols] = stencil.sizes();
        let shape = Shape::new(rows, 1, cols, "the grid")?;
        let areas = fpm(&machine.models, shape.elements())?;
        let weights: Vec<f64> = areas.iter().map(|area| *area as f64).collect();
        let of = |method: Method| {
            let parts = method.layout(shape, &weights, &MethodOptions::default()).ok()?.rects_by_owner();
            let one = |rects: Vec<Rect>| match rects[..] {
                [] => Some(Rect::default()),
                [rect] => Some(rect),
                _ => None,
            };
            parts.into_iter().map(one).collect()
        };
        Ok(METHODS.into_iter().filter_map(of).collect())
    }

    /// Compares the data of processors with those of a serial run, on this thread, bit for bit.
    ///
    /// # Errors
    /// [`Error::WrongResult`]: a cell differs.
    pub fn compare_with_serial(&self, held: &[Patch<S::Element>]) -> Result<()> {
        let mut serial = Patch::new(self.stencil, whole(self.stencil));
        (0..self.stencil.sweeps()).try_for_each(|_| serial.sweep(self.stencil, 1))?;
        for patch in held {
            let Rect { rows, cols } = patch.cells;
            let expected = |row: u64| &serial.row(row)[cols.start as usize..cols.end as usize];
            if let Some(row) = (rows.start..rows.end).find(|row| patch.row(*row) != expected(*row)) {
                return Err(Error::WrongResult { what: format!("row {row} is not that of a serial run") });
            }
        }
        Ok(())
    }

    /// Strips of rows for a single processor, of an eighth of the grid, a half and all of it.
    pub fn samples(stencil: &S) -> Vec<Vec<Rect>> {
        let Rect { rows, cols } = whole(stencil);
        let mut heights = [8, 2, 1].map(|part| rows.len().div_ceil(part)).to_vec();
        heights.dedup();
        heights.into_iter().map(|height| vec![Rect::new(Span::new(0, height), cols)]).collect()
    }
}

impl<S: Stencil> Application for Halo<'_, S> {
    type Piece = Border;
    type Work = Sweep;

    fn processors(&self) -> usize {
        self.parts.len()
    }

    fn steps(&self, rank: Rank) -> Box<dyn Iterator<Item = StepOf<Self>> + '_> {
        let cells = self.parts[rank.0].area();
        let around = neighbours(self.parts, rank, self.stencil.reach());
        let message = |from, to, tag, cells| Message { from, to, tag, pieces: vec![Border(cells)] };
        let sweeps = if cells == 0 { 0 } else { self.stencil.sweeps() };
        Box::new((0..sweeps).flat_map(move |tag| {
            let receives = around.iter().map(|n| Step::PostReceive(message(n.rank, rank, tag, n.received)));
            let sends = around.iter().map(|n| Step::Send(message(rank, n.rank, tag, n.sent)));
            let waits = around.iter().map(|n| Step::WaitReceive { from: n.rank, tag });
            let steps = receives.chain(sends).chain(waits).chain([Step::Compute(Sweep(cells))]);
            steps.collect::<Vec<_>>()
        }))
    }

    fn work(&self, rank: Rank) -> f64 {
        self.share(rank) * self.stencil.sweeps() as f64
    }

    fn share(&self, rank: Rank) -> f64 {
        self.parts[rank.0].area() as f64
    }
}

impl<S: Stencil> Executable for Halo<'_, S> {
    type Element = S::Element;
    type Local<'b>
        = Patch<S::Element>
    where
        Self: 'b;

    fn hold(&self, rank: Rank) -> Patch<S::Element> {
        Patch::new(self.stencil, self.parts[rank.0])
    }

    fn pack(&self, patch: &mut Patch<S::Element>, Border(cells): &Border, out: &mut [S::Element]) {
        let width = cells.cols.len() as usize;
        for (row, out) in (cells.rows.start..).zip(out.chunks_exact_mut(width)) {
            out.copy_from_slice(&patch.now[patch.place(row, cells.cols.start)..][..width]);
        }
    }

    fn unpack(&self, patch: &mut Patch<S::Element>, Border(cells): &Border, elements: &[S::Element]) {
        let width = cells.cols.len() as usize;
        for (row, elements) in (cells.rows.start..).zip(elements.chunks_exact(width)) {
            let place = patch.place(row, cells.cols.start);
            patch.now[place..place + width].copy_from_slice(elements);
        }
    }

    fn compute(&self, patch: &mut Patch<S::Element>, _: &Sweep, threads: usize) -> Result<f64> {
        patch.sweep(self.stencil, threads)?;
        Ok(0.0)
    }

    fn peak_bytes(&self, patch: &Patch<S::Element>) -> u64 {
        (2 * patch.now.len() * size_of::<S::Element>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Context, Job, Problem, Sources, with_speeds};
    use super::*;
    use crate::platform::Speed;
    use crate::run::{Monitor, World};

    /// Cells that see two rows and columns in each direction, not all alike, on some rectangles.
    struct Skewed {
        layout: Option<usize>,
    }

    impl Stencil for Skewed {
        type Element = i64;

        fn sizes(&self) -> [u64; 2] {
            [23, 17]
        }

        fn sweeps(&self) -> u64 {
            5
        }

        fn reach(&self) -> u64 {
            2
        }

        fn value(&self, row: i64, col: i64) -> i64 {
            (7 * row + 3 * col).rem_euclid(11)
        }

        fn update(&self, around: &[&[i64]], out: &mut [i64]) {
            for (j, out) in out.iter_mut().enumerate() {
                *out = (around[0][j] + 2 * around[4][j + 3] + 3 * around[2][j + 4] + around[1][j + 2]) % 1009;
            }
        }
    }

    impl Problem for Skewed {
        type Decision = Vec<Rect>;
        type Data = ();
        type Executable<'a> = Halo<'a, Self>;
        type Output = u64;

        fn name(&self) -> String {
            "skewed".into()
        }

        fn candidates(&self, machine: &Machine) -> Result<Vec<Vec<Rect>>> {
            let mut all = Halo::candidates(self, machine)?;
            Ok(match self.layout {
                Some(layout) => vec![all.swap_remove(layout)],
                None => all,
            })
        }

        fn executable<'a>(&'a self, parts: &'a Vec<Rect>, (): &'a ()) -> Result<Halo<'a, Self>> {
            Ok(Halo::new(self, parts))
        }

        fn verify(&self, halo: &Halo<'_, Self>, held: Vec<Patch<i64>>, _: &World) -> Result<u64> {
            halo.compare_with_serial(&held)?;
            Ok(held.iter().map(|patch| patch.cells().area()).sum())
        }
    }

    /// Every layout, one processor of which gets nothing, on threads and on ranks with memory of their own.
    #[test]
    fn every_division_gives_the_serial_result() {
        let monitor = Monitor::new();
        let speeds = [3.0, 0.0, 1.0, 2.0].map(Speed::Relative);
        let platform = Some(with_speeds(None, &speeds).unwrap());
        let sources = Sources { platform, ..Sources::default() };
        for layout in (0..METHODS.len()).map(Some).chain([None]) {
            let problem = Skewed { layout };
            let run = |world: &World| {
                let context = Context::silent(world, &monitor);
                Job::new(&problem).with_sources(&sources).run(context)
            };
            let alone = run(&World::solo(&monitor)).unwrap();
            assert_eq!(alone.output, 23 * 17);
            assert!(alone.report.forecast.is_none(), "ratios of speeds have no times");
            assert_eq!(alone.report.shares[1], 0.0);
            let ranks = World::threads(4, &monitor, run).unwrap();
            assert_eq!(ranks.iter().map(|rank| rank.output).sum::<u64>(), 23 * 17, "{layout:?}");
        }
    }

    /// What one processor sends is what the other receives, and all that a rectangle sees beside itself.
    #[test]
    fn neighbours_agree() {
        let machine = Machine::from_speeds(&[3.0, 1.0, 2.0, 2.0, 1.0]).unwrap();
        for parts in Halo::candidates(&Skewed { layout: None }, &machine).unwrap() {
            for rank in (0..parts.len()).map(Rank) {
                let Rect { rows, cols } = parts[rank.0];
                let own = neighbours(&parts, rank, 2);
                for neighbour in &own {
                    let theirs = neighbours(&parts, neighbour.rank, 2);
                    let back = theirs.iter().find(|other| other.rank == rank).unwrap();
                    assert_eq!((back.sent, back.received), (neighbour.received, neighbour.sent));
                }
                let inside = |span: Span, end: u64| span.start.saturating_sub(2)..(span.end + 2).min(end);
                let seen = inside(rows, 23).count() * inside(cols, 17).count();
                let received: u64 = own.iter().map(|neighbour| neighbour.received.area()).sum();
                assert_eq!(received + parts[rank.0].area(), seen as u64);
            }
        }
    }
}
