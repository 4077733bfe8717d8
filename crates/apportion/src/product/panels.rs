//! A product panel by panel: finished panels of C's rows leave memory, for the result or for a checkpoint. The outermost
//! loop of matrices that do not fit into memory, and of runs that must survive their end.
//!
//! Within a panel the inner dimension is cut into segments, each added to what the panel holds so far:
//! C = alpha A B + C. The number of blocks follows from the memory, as in Tinetti, section 3.4.4.

use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::matrix::{Element, Matrix, NpyFile, Scaling};
use crate::plan::shapes::{Method, MethodOptions, columns};
use crate::plan::{Layout, Plan, Shape, repeated};
use crate::platform::Platform;
use crate::product::{MatmulJob, multiply};
use crate::report::RunReport;
use crate::run::Monitor;
use crate::schedule::{Carrier, Flow, ScheduleOptions};
use crate::select::check_caps;
use crate::trace::Trace;

/// Bytes that a process needs whatever it computes, most of it the program itself (11 MB of code in a debug build).
const BASE: u64 = 14 << 20;

/// How a product is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Panels {
    /// Rows of C in a panel; the last has what is left.
    pub rows: u64,
    /// Inner indices in a segment; whole pivot blocks but for the last.
    pub segment: u64,
}

impl Panels {
    /// The panels of C's rows.
    pub fn of(self, shape: Shape) -> Vec<Span> {
        Span::new(0, shape.m).blocks(self.rows).collect()
    }

    /// Bytes that the whole process should hold at most: the panel of C three times (by processor, together, and as it
    /// was before the segment), the segments of A and B, pivot blocks copied by each processor, and the check's vectors.
    pub fn predicted_bytes(self, shape: Shape, processors: u64, order: ScheduleOptions, element: u64) -> u64 {
        let (r, s, n) = (self.rows.min(shape.m), self.segment.min(shape.k), shape.n);
        let in_flight = match order.flow {
            Flow::Bulk => s,
            _ => (order.block * (2 + order.look_ahead)).min(s),
        };
        let elements = 3 * r * n + 2 * (r * s + s * n) + processors * (r + n) * in_flight;
        BASE + elements * element + 96 * s + 80 * n + 48 * r
    }

    /// The cut that reads least from the disk within `memory` bytes for the whole process.
    ///
    /// # Errors
    /// Not even one row and one pivot block fit: exit code 1, with the bytes that they need.
    pub fn within(
        memory: u64,
        shape: Shape,
        processors: u64,
        order: ScheduleOptions,
        element: u64,
    ) -> Result<Self> {
        let fits = |panels: Self| panels.predicted_bytes(shape, processors, order, element) <= memory;
        let block = order.block.clamp(1, shape.k);
        let mut best: Option<(u64, Self)> = None;
        let mut segment = shape.k;
        loop {
            let with = |rows| Self { rows, segment };
            if fits(with(1)) {
                // The most rows that fit: the need grows with them.
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
            let least = Self { rows: 1, segment: block }.predicted_bytes(shape, processors, order, element);
            Error::infeasible(
                format!("{memory} bytes of memory are too few: one row and one pivot block need {least}"),
                "give more memory, a smaller --block, or fewer processors",
            )
        })
    }
}

/// Refuses panels of which some would not fit the processors' `memory`: those of full height, the last one, and their last segments.
///
/// # Errors
/// As [`check_caps`](crate::select::check_caps).
pub fn check_panels(
    plan: &Plan,
    order: ScheduleOptions,
    platform: &Platform,
    (shape, panels): (Shape, Panels),
    element: u64,
) -> Result<()> {
    let last =
        |whole: u64, part: u64| if whole.is_multiple_of(part) { part.min(whole) } else { whole % part };
    for m in [panels.rows.min(shape.m), last(shape.m, panels.rows)] {
        for k in [panels.segment.min(shape.k), last(shape.k, panels.segment)] {
            let plan = of_panel(plan, Shape { m, k, n: shape.n })?;
            let layout = plan.layout.as_ref().expect("a plan of a product has a layout");
            check_caps(layout, order, platform, (element, Carrier::Memory))?;
        }
    }
    Ok(())
}

/// The matrices of a product, on disk.
#[derive(Debug)]
pub struct Files {
    /// The left factor.
    pub a: NpyFile,
    /// The right factor.
    pub b: NpyFile,
    /// The initial C.
    pub initial: Option<NpyFile>,
}

/// Computes panels of C one after the other; B stays in memory where it is one segment.
pub struct PanelRun<'a, T> {
    files: Files,
    /// For panels of full height; scaling and adaptive count for every panel.
    what: MatmulJob<'a, T>,
    shape: Shape,
    panels: Panels,
    whole_b: Option<Matrix<T>>,
    report: Option<RunReport>,
    /// Seconds spent reading.
    pub io_seconds: f64,
}

impl<'a, T: Element> PanelRun<'a, T> {
    /// `what.plan` is that of one full panel: panels.rows x k x n.
    pub fn new(files: Files, what: MatmulJob<'a, T>, shape: Shape, panels: Panels) -> Self {
        Self { files, what, shape, panels, whole_b: None, report: None, io_seconds: 0.0 }
    }

    /// One panel of C, verified.
    ///
    /// # Errors
    /// As [`multiply`]; a file that cannot be read, or an element that the semiring does not take.
    pub fn panel(&mut self, rows: Span, monitor: &Monitor) -> Result<Matrix<T>> {
        let all = Span::new(0, self.shape.n);
        let mut scaling = self.what.scaling;
        let initial = match &mut self.files.initial {
            Some(file) => Some(timed(&mut self.io_seconds, || file.read(Rect::new(rows, all)))?),
            None => None,
        };
        let mut so_far: Option<Matrix<T>> = initial;
        for inner in Span::new(0, self.shape.k).blocks(self.panels.segment) {
            let a: Matrix<T> = timed(&mut self.io_seconds, || self.files.a.read(Rect::new(rows, inner)))?;
            let b = match self.whole_b.take() {
                Some(b) => b,
                None => timed(&mut self.io_seconds, || self.files.b.read(Rect::new(inner, all)))?,
            };
            self.check(&a, &b, so_far.as_ref())?;
            let plan = of_panel(self.what.plan, Shape { m: rows.len(), k: inner.len(), n: self.shape.n })?;
            let scaled = Scaling { initial: so_far.as_ref(), ..scaling };
            let what = MatmulJob { plan: &plan, scaling: scaled, ..self.what };
            let (c, report) = multiply(&a, &b, &what, monitor)?;
            self.add(report);
            if self.panels.segment >= self.shape.k {
                self.whole_b = Some(b);
            }
            so_far = Some(c);
            // Beta has been applied: from now on the segments add up.
            scaling.beta = self.what.kernel.one();
        }
        Ok(so_far.expect("an inner dimension has at least one index"))
    }

    fn check(&self, a: &Matrix<T>, b: &Matrix<T>, initial: Option<&Matrix<T>>) -> Result<()> {
        let place = |file: &NpyFile| format!("{}, read in parts", file.path().display());
        self.what.kernel.check(a, &place(&self.files.a))?;
        self.what.kernel.check(b, &place(&self.files.b))?;
        match (initial, &self.files.initial) {
            (Some(initial), Some(file)) => self.what.kernel.check(initial, &place(file)),
            _ => Ok(()),
        }
    }

    fn add(&mut self, one: RunReport) {
        match &mut self.report {
            None => self.report = Some(one),
            Some(all) => {
                all.trace.append(one.trace);
                all.most_memory(&one.predicted_memory);
                all.forecast_seconds += one.forecast_seconds;
                all.ideal_seconds += one.ideal_seconds;
                // One wrong panel missed makes the whole wrong: the odds add up at most.
                all.error_probability =
                    all.error_probability.zip(one.error_probability).map(|(x, y)| (x + y).min(1.0));
                all.sampled = one.sampled.map(|new| all.sampled.unwrap_or(0) + new);
                all.verify_seconds += one.verify_seconds;
            }
        }
    }

    /// What all panels together did; its plan is the panel's, recurring.
    ///
    /// # Errors
    /// The plan of the whole cannot be counted: see [`Metrics::of_layout`](crate::plan::Metrics::of_layout).
    pub fn report(self) -> Result<RunReport> {
        let Self { what, shape, report, io_seconds, .. } = self;
        let mut report = report.unwrap_or_else(|| nothing_done(&what));
        let panel = what.plan.layout.as_ref().expect("a plan of a product has a layout");
        if let Ok(layout) = repeated(shape, panel) {
            report.plan = what.plan.laid_out(layout);
        }
        report.io_seconds = io_seconds;
        Ok(report)
    }
}

/// The report of a run whose panels were all there already.
fn nothing_done<T: Element>(what: &MatmulJob<'_, T>) -> RunReport {
    RunReport {
        engine: "threads",
        semiring: what.kernel.semiring().name(),
        kernel: what.kernel.about(),
        element: T::NAME,
        plan: what.plan.clone(),
        order: what.order,
        trace: Trace::empty(what.platform.len()),
        predicted_memory: vec![0; what.platform.len()],
        forecast_seconds: 0.0,
        ideal_seconds: 0.0,
        adaptation: None,
        error_probability: Some(0.0),
        sampled: None,
        products: 1,
        io_seconds: 0.0,
        verify_seconds: 0.0,
    }
}

/// The plan of a panel of another height or with fewer inner indices.
fn of_panel(plan: &Plan, shape: Shape) -> Result<Plan> {
    let layout = plan.layout.as_ref().expect("a plan of a product has a layout");
    let present = layout.shape();
    let layout = if (present.m, present.n) == (shape.m, shape.n) {
        Layout::new(shape, layout.processors(), layout.parts().iter().copied())?
    } else {
        let weights: Vec<f64> = plan.shares.iter().map(|&share| share as f64).collect();
        let by = |method: Method| method.layout(shape, &weights, &MethodOptions::default()).ok();
        match plan.method.parse().ok().and_then(by) {
            Some(layout) => layout,
            None => columns(shape, &weights)?,
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
