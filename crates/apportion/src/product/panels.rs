//! A product computed panel by panel: finished panels of C's rows leave memory for the result or a
//! checkpoint. This is the outermost loop for matrices that do not fit into memory, and for runs that must
//! survive being killed.
//!
//! Within a panel the inner dimension is cut into segments, each added to the panel: C = alpha A B + C. The
//! number of blocks follows from the memory, as in Tinetti, section 3.4.4.

use crate::error::{Error, Result};
use crate::files::changed;
use crate::geometry::{Rect, Span};
use crate::matrix::{Element, LocalBlocks, Matrix, NpyFile, digest};
use crate::plan::shapes::{Columns, LayoutMethod, Method, MethodOptions};
use crate::plan::{Forecast, Layout, Plan, Shape, repeat_block};
use crate::platform::Platform;
use crate::product::{MatmulJob, Operands, OwnRects, RunReport, multiply, whole_matrix};
use crate::run::{Session, World, redistribute};
use crate::schedule::{DataPath, Flow, MatmulSchedule, ScheduleOptions};
use crate::select::check_caps;
use std::collections::BTreeMap;

/// Bytes that a process needs for any computation, most of it the program itself (17 MB in a debug build).
const BASE: u64 = 18 << 20;

/// Bytes of a thread: its stack, and what it keeps of what it has freed.
const THREAD: u64 = 1 << 20;

/// Additional bytes of an MPI library: Open MPI 4.1 on one host takes 35 MB.
const MPI_BASE: u64 = 40 << 20;

/// Sizes of the panels and segments of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panels {
    /// Rows of C in a panel; the last panel has the remaining rows.
    pub rows: u64,
    /// Inner indices in a segment; whole pivot blocks except for the last.
    pub segment: u64,
}

/// Who holds operands, and how: the processors, and those of a single process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Carriers {
    /// Number of processors.
    pub processors: u64,
    /// Number of threads of all of them.
    pub threads: u64,
    /// How they obtain the operands of others.
    pub path: DataPath,
}

impl Panels {
    /// The panels of C's rows.
    pub(crate) fn of(self, shape: Shape) -> Vec<Span> {
        Span::new(0, shape.m).blocks(self.rows).collect()
    }

    /// Predicted peak memory of a process in bytes: the panel of C three times (computed, as it was before
    /// the segment, and assembled), the segments of A and B, the pivot blocks that each of the `processors`
    /// of a single process copies if it copies, what their kernels pack, and the vectors of the check. For a
    /// rank of several, which holds one processor's part and MPI's own memory, this is an upper bound.
    pub(crate) fn predicted_bytes(
        self,
        shape: Shape,
        Carriers { processors, threads, path }: Carriers,
        order: ScheduleOptions,
        element: u64,
    ) -> u64 {
        let base = BASE + threads * THREAD;
        let (copiers, kernels, base) = match path {
            DataPath::InPlace => (0, processors, base),
            DataPath::Copied => (processors, processors, base),
            DataPath::Packed => (2, 1, base + MPI_BASE),
        };
        let (r, s, n) = (self.rows.min(shape.m), self.segment.min(shape.k), shape.n);
        let in_flight = match order.flow {
            Flow::Bulk => s,
            _ => (order.block * (2 + order.look_ahead)).min(s),
        };
        let packed = kernels * (r + n) * order.block.min(s);
        let elements = 3 * r * n + 2 * (r * s + s * n) + copiers * (r + n) * in_flight + packed;
        base + elements * element + 96 * s + 80 * n + 48 * r
    }

    /// The panels and segments that read least from the disk within `memory` bytes for the whole process.
    ///
    /// # Errors
    /// Not even one row and one pivot block fit: exit code 1, with the bytes that they need.
    pub(crate) fn within(
        memory: u64,
        shape: Shape,
        of: Carriers,
        order: ScheduleOptions,
        element: u64,
    ) -> Result<Self> {
        let fits = |panels: Self| panels.predicted_bytes(shape, of, order, element) <= memory;
        let block = order.block.clamp(1, shape.k);
        let mut best: Option<(u64, Self)> = None;
        let mut segment = shape.k;
        loop {
            let with = |rows| Self { rows, segment };
            if fits(with(1)) {
                // The largest number of rows that fits: the need grows with the number.
                let (mut low, mut high) = (1, shape.m);
                while low < high {
                    let middle = low + (high - low).div_ceil(2);
                    if fits(with(middle)) { low = middle } else { high = middle - 1 }
                }
                let panels = with(low);
                let count = shape.m.div_ceil(low);
                let reads_of_b = if segment == shape.k { 1 } else { count };
                let cost = reads_of_b * shape.k * shape.n + shape.k.div_ceil(segment) * shape.m * shape.n;
                if best.is_none_or(|(least, _)| cost < least) {
                    best = Some((cost, panels));
                }
            }
            if segment == block {
                break;
            }
            segment = (segment / 2).next_multiple_of(block).min(segment - 1).max(block);
            segment -= segment % block;
        }
        best.map(|(_, panels)| panels).ok_or_else(|| {
            let least = Self { rows: 1, segment: block }.predicted_bytes(shape, of, order, element);
            Error::infeasible(
                format!("{memory} bytes of memory are too few: one row and one pivot block need {least}"),
                "give more memory, a smaller `block`, or fewer processors",
            )
        })
    }
}

/// Refuses panels that would not fit the processors' `memory`: those of full height, the last one, and their
/// last segments.
///
/// # Errors
/// As [`check_caps`](crate::select::check_caps).
pub(crate) fn check_panels(
    plan: &Plan,
    order: ScheduleOptions,
    platform: &Platform,
    shape: Shape,
    panels: Panels,
    element: u64,
    path: DataPath,
) -> Result<()> {
    let last =
        |whole: u64, part: u64| if whole.is_multiple_of(part) { part.min(whole) } else { whole % part };
    for m in [panels.rows.min(shape.m), last(shape.m, panels.rows)] {
        for k in [panels.segment.min(shape.k), last(shape.k, panels.segment)] {
            let plan = of_panel(plan, Shape { m, k, n: shape.n })?;
            let layout = plan.layout()?;
            check_caps(layout, order, platform, element, path)?;
        }
    }
    Ok(())
}

/// A matrix of which parts are read from a file, some of them again and again: always the same elements, by digests of
/// its rows.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) file: NpyFile,
    /// Digests of the rows that have been read once by all ranks together.
    known: Vec<Option<u64>>,
    /// Those of what this rank has read of each row since.
    read: Vec<u64>,
}

impl Watched {
    pub(crate) fn new(file: NpyFile) -> Self {
        let rows = file.header().rows;
        Self { file, known: vec![None; rows], read: vec![0; rows] }
    }

    /// Reads all of the matrix on this rank, so that all later readings are compared with this one; returns its digest.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read_once<T: Element>(&mut self) -> Result<u64> {
        let Self { file, known, .. } = self;
        let cols = file.header().cols as u64;
        file.each_piece::<T>(&mut |[row, col], piece| {
            let known = known[row as usize].get_or_insert(0);
            *known = known.wrapping_add(digest(row * cols + col, piece));
        })?;
        Ok(known.iter().flatten().fold(0, |sum, row| sum.wrapping_add(*row)))
    }

    fn read<T: Element>(&mut self, rect: Rect) -> Result<Matrix<T>> {
        let (block, cols) = (self.file.read(rect)?, self.file.header().cols as u64);
        for (row, i) in block.as_slice().chunks_exact(rect.cols.len().max(1) as usize).zip(rect.rows.start..)
        {
            let read = &mut self.read[i as usize];
            *read = read.wrapping_add(digest(i * cols + rect.cols.start, row));
        }
        Ok(block)
    }

    /// Compares rows that the ranks have now read whole, each a part of them, with their first reading. Every rank must
    /// call it.
    ///
    /// # Errors
    /// They have changed: exit code 1, on all ranks.
    fn compare(&mut self, rows: Span, world: &World) -> Result<()> {
        let here = rows.start as usize..rows.end as usize;
        let sums = world.all_reduce(&self.read[here.clone()], u64::wrapping_add)?;
        self.read[here.clone()].fill(0);
        let mut rows = self.known[here].iter_mut().zip(sums);
        let same = rows.all(|(known, sum)| *known.get_or_insert(sum) == sum);
        world.all_ok(if same { Ok(()) } else { Err(changed(self.file.path())) })
    }
}

/// The files of a product's matrices.
#[derive(Debug)]
pub(crate) struct Files {
    /// The left factor.
    pub(crate) a: Watched,
    /// The right factor.
    pub(crate) b: Watched,
    /// The initial C.
    pub(crate) initial: Option<Watched>,
}

impl Files {
    /// Checks by their times that nothing has written to the files since they were opened.
    ///
    /// # Errors
    /// Something has written to one of them: exit code 1.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let mut all = [&self.a, &self.b].into_iter().chain(&self.initial);
        all.try_for_each(|watched| watched.file.check_unchanged())
    }
}

/// Computes the panels of C one after the other, on all ranks together. B stays in memory if it is one
/// segment.
pub(crate) struct PanelRun<'a, T> {
    files: Files,
    /// The job of a panel of full height.
    job: MatmulJob<'a, T>,
    session: &'a Session<'a>,
    shape: Shape,
    panels: Panels,
    /// This process's part of B, if it is one segment.
    whole_b: Option<LocalBlocks<T>>,
    /// Plans of panels and segments of other sizes, with their forecasts: each is made once.
    plans: BTreeMap<[u64; 2], (Plan, Option<Forecast>)>,
    report: Option<RunReport>,
    /// Seconds spent reading.
    pub(crate) io_seconds: f64,
}

impl<'a, T: Element> PanelRun<'a, T> {
    /// Creates the run. `job.plan` is the plan of one full panel: panels.rows x k x n. The session's work is
    /// that of the whole product.
    pub(crate) fn new(
        files: Files,
        job: MatmulJob<'a, T>,
        session: &'a Session<'a>,
        shape: Shape,
        panels: Panels,
    ) -> Self {
        let (whole_b, plans, report) = (None, BTreeMap::new(), None);
        Self { files, job, session, shape, panels, whole_b, plans, report, io_seconds: 0.0 }
    }

    /// The sizes of the product.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// Computes and verifies one panel of C. Rank 0 gets the whole panel, the others nothing. All ranks must
    /// call it.
    ///
    /// # Errors
    /// As [`multiply`]; a file that cannot be read, or an element that the semiring does not accept, on all
    /// ranks.
    pub(crate) fn panel(&mut self, rows: Span) -> Result<Option<Matrix<T>>> {
        let (world, n) = (self.session.world(), self.shape.n);
        let mut scaling = self.job.scaling;
        let mut so_far: Option<LocalBlocks<T>> = None;
        for inner in Span::new(0, self.shape.k).blocks(self.panels.segment) {
            let shape = Shape { m: rows.len(), k: inner.len(), n };
            let (plan, forecast) = self.plan_of(shape)?;
            let own = OwnRects::of(&MatmulSchedule::new(plan.layout()?, self.job.order), world);
            // The last panel may have another plan: if one rank needs other parts of B, all read theirs again.
            let held: Vec<Rect> = self.whole_b.iter().flatten().map(|(rect, _)| *rect).collect();
            let reads_b = world.all_reduce(&[u8::from(held != own.b)], u8::max)?[0] == 1;
            if reads_b {
                self.whole_b = None;
            }
            let parts = world.all_ok(self.read(&own, rows, inner, so_far.is_none()))?;
            let (a, b, initial) = parts;
            if reads_b {
                self.files.b.compare(inner, world)?;
            }
            let initial = so_far.or(initial);
            let job = MatmulJob { plan: &plan, scaling, forecast, ..self.job.clone() };
            let operands = Operands::new(&a, &b).with_initial(initial.as_ref());
            let (c, report) = multiply(operands, &job, self.session)?;
            self.plans.insert([shape.m, shape.k], (plan.clone(), report.plan.forecast.clone()));
            self.add(report);
            if self.panels.segment >= self.shape.k {
                self.whole_b = Some(b);
            }
            so_far = Some(c);
            // Beta has been applied: the remaining segments add up.
            scaling.beta = self.job.kernel.one();
        }
        self.files.a.compare(rows, world)?;
        if let Some(initial) = &mut self.files.initial {
            initial.compare(rows, world)?;
        }
        let c = so_far.expect("an inner dimension has at least one index");
        if world.is_solo() {
            return Ok(Some(whole_matrix(c)));
        }
        let panel = Rect::new(Span::new(0, rows.len()), Span::new(0, n));
        let wanted = if world.rank() == 0 { vec![panel] } else { Vec::new() };
        let panel = redistribute(world, &c, &wanted)?;
        Ok((world.rank() == 0).then(|| whole_matrix(panel)))
    }

    /// The plan of a panel and segment of this size, with its forecast if it was made before.
    fn plan_of(&self, shape: Shape) -> Result<(Plan, Option<Forecast>)> {
        match self.plans.get(&[shape.m, shape.k]) {
            Some(known) => Ok(known.clone()),
            None => Ok((of_panel(self.job.plan, shape)?, None)),
        }
    }

    /// Reads this process's parts of A, of B and, for the first segment, of the initial C.
    fn read(&mut self, own: &OwnRects, rows: Span, inner: Span, first: bool) -> Result<Parts<T>> {
        let kernel = self.job.kernel;
        let mut part = |file: &mut Watched, rects: &[Rect], down: u64, right: u64| {
            let moved = |span: Span, by: u64| Span::new(span.start + by, span.end + by);
            let place = format!("{}, read in parts", file.file.path().display());
            let mut blocks = LocalBlocks::new();
            for rect in rects {
                let there = Rect::new(moved(rect.rows, down), moved(rect.cols, right));
                let block: Matrix<T> = timed(&mut self.io_seconds, || file.read(there))?;
                kernel.check_tile(there, block.as_slice(), &place)?;
                blocks.push((*rect, block.into_elements()));
            }
            Ok(blocks)
        };
        let a = part(&mut self.files.a, &own.a, rows.start, inner.start)?;
        let b = match self.whole_b.take() {
            Some(b) => b,
            None => part(&mut self.files.b, &own.b, inner.start, 0)?,
        };
        let initial = match &mut self.files.initial {
            Some(file) if first => Some(part(file, &own.c, rows.start, 0)?),
            _ => None,
        };
        self.files.check_unchanged()?;
        Ok((a, b, initial))
    }

    /// Checks that the files still have the contents that were read.
    ///
    /// # Errors
    /// As [`Files::check_unchanged`], on all ranks.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        self.session.world().all_ok(self.files.check_unchanged())
    }

    fn add(&mut self, one: RunReport) {
        match &mut self.report {
            None => self.report = Some(RunReport { products: 1, ..one }),
            Some(all) => {
                all.add(one);
                // Panels and segments are parts of one product.
                all.products = 1;
            }
        }
    }

    /// The report of all panels; its plan is that of the panel, repeated. It contains no product if every
    /// panel was finished before.
    ///
    /// # Errors
    /// The job's plan has no layout.
    pub(crate) fn report(self) -> Result<RunReport> {
        let Self { job, session, shape, report, io_seconds, .. } = self;
        let mut report = match report {
            Some(report) => report,
            None => RunReport::nothing(&job, session)?,
        };
        if let Ok(layout) = repeat_block(shape, job.plan.layout()?) {
            report.plan = job.plan.laid_out(layout);
        }
        report.io_seconds = io_seconds;
        Ok(report)
    }
}

/// This process's parts of A, of B, and of the initial C.
type Parts<T> = (LocalBlocks<T>, LocalBlocks<T>, Option<LocalBlocks<T>>);

/// Adapts the plan to a panel of another height or with fewer inner indices.
fn of_panel(plan: &Plan, shape: Shape) -> Result<Plan> {
    let layout = plan.layout()?;
    layout.refuse_boxes("a product in panels")?;
    let present = layout.shape();
    let layout = if (present.m, present.n) == (shape.m, shape.n) {
        Layout::new(shape, layout.processors(), layout.parts().iter().copied())?
    } else {
        let weights: Vec<f64> = plan.shares.iter().map(|&share| share as f64).collect();
        let by = |method: Method| method.layout(shape, &weights, &MethodOptions::default()).ok();
        match plan.method.parse().ok().and_then(by) {
            Some(layout) => layout,
            None => Columns::default().layout(shape, &weights)?,
        }
    };
    Ok(plan.laid_out(layout))
}

fn timed<R>(seconds: &mut f64, work: impl FnOnce() -> R) -> R {
    let begin = std::time::Instant::now();
    let result = work();
    *seconds += begin.elapsed().as_secs_f64();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::npy_header;
    use crate::run::Monitor;

    /// However it is cut, what is read again must be what was read first; times of files do not count.
    #[test]
    fn what_is_read_again_is_what_was_read_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.npy");
        let write = |changed: Option<usize>| {
            let mut elements: Vec<f32> = (0..7 * 11).map(|i| i as f32).collect();
            changed.into_iter().for_each(|at| elements[at] += 1.0);
            let bytes = [npy_header::<f32>(&[7, 11], false), bytemuck::cast_slice(&elements).to_vec()];
            std::fs::write(&path, bytes.concat()).unwrap();
        };
        let open = |transposed| NpyFile::open(&path, transposed).unwrap();
        let (monitor, rows) = (Monitor::new(), Span::new(2, 5));
        let world = World::solo(&monitor);
        for (transposed, cols) in [(false, 11), (true, 7)] {
            write(None);
            let mut once = Watched::new(open(transposed));
            let mut again = Watched::new(open(transposed));
            let whole = again.read_once::<f32>().unwrap();
            for (number, cut) in [1, 4, 6].into_iter().enumerate() {
                for watched in [&mut once, &mut again] {
                    for cols in [Span::new(cut, cols), Span::new(0, cut)] {
                        watched.read::<f32>(Rect::new(rows, cols)).unwrap();
                    }
                    let compared = watched.compare(rows, &world);
                    assert_eq!(compared.is_err(), number == 2, "{transposed} {cut}: {compared:?}");
                }
                if number == 1 {
                    // In rows 2 to 4 and columns 2 to 4, transposed or not.
                    write(Some(3 * 11 + 4));
                    (once.file, again.file) = (open(transposed), open(transposed));
                    assert_ne!(Watched::new(open(transposed)).read_once::<f32>().unwrap(), whole);
                }
            }
            let error = again.read::<f32>(Rect::new(rows, Span::new(0, cols)));
            let error = error.and_then(|_| again.compare(rows, &world)).unwrap_err();
            assert!(
                error.exit_code() == 1 && error.to_string().contains("a.npy changed during the run"),
                "{error}"
            );
        }
    }
}
