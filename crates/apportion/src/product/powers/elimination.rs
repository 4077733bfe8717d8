//! Closure by block elimination: Floyd and Warshall's algorithm on blocks, whose products run by plans like
//! any other.
//!
//! The vertices are divided into two halves. With the matrix in four blocks, P and S on the diagonal, Q above
//! and R below it: P := P*; Q := P Q; R := R P; S := S + R Q; S := S*; Q' := Q S; P := P + Q' R; R := S R.
//! The closures of the halves are found in the same way, down to blocks that one processor closes. In all
//! that is n^3 multiply-adds, as much as one product; squaring takes one for each doubling of the number of
//! edges.
//!
//! Source: Solomonik, Buluc and Demmel 2013, section 3 (divide and conquer of all-pairs shortest paths),
//! after Tiskin 2001.

use super::cycles::improves;
use super::{MatmulJob, OwnRects, RunReport, improving_vertex};
use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::kernels::{Kernel, View, ViewMut};
use crate::matrix::{Element, LocalBlocks};
use crate::plan::shapes::{Method, MethodOptions};
use crate::plan::{Forecast, Plan, Shape};
use crate::platform::Platform;
use crate::product::{Operands, multiply};
use crate::run::{Session, redistribute, trace_of_all};
use crate::schedule::MatmulSchedule;
use crate::select::{forecast, rates};
use crate::simulate::CostModel;
use crate::trace::{Activity, Lane, Trace};
use crate::verify::{DRAWS, WRONG_FRACTION};
use std::collections::BTreeMap;
use std::time::Instant;

/// Vertices of a block that one processor closes. The sums of a path depend on it, so it is the same
/// everywhere.
pub(super) const LEAF: u64 = 128;
/// Vertices from which on elimination is considered: fewer are closed within milliseconds either way.
pub(super) const FEWEST: u64 = 2 * LEAF;

/// Seconds between two products that no forecast knows: blocks move, a sample is verified, and a thread
/// starts for each processor.
const BETWEEN: (f64, f64) = (0.000_1, 0.000_05);
/// Seconds in which a processor closes a leaf.
const CLOSING: f64 = 0.001;

/// The two halves of some vertices: the first is a multiple of the leaf.
fn halves(span: Span) -> (Span, Span) {
    let leaves = span.len().div_ceil(LEAF);
    let middle = span.start + leaves.div_ceil(2) * LEAF;
    (Span::new(span.start, middle), Span::new(middle, span.end))
}

/// What an elimination has come to.
pub(super) enum Outcome<T> {
    /// This process's part of the closure.
    Closed(LocalBlocks<T>),
    /// A path from this vertex to itself is better than the empty one. On integers it improves forever. On
    /// floats rounding may be the cause; if the elimination went on, the error could double at each vertex.
    Improves(u64),
}

/// Why an elimination stops.
enum Stop {
    Failed(Error),
    Improves(u64),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Calls `product` with the rows, inner indices and columns of each product, and whether its result is added
/// to what is there; calls `leaf` with each block to close.
fn eliminate<E, F>(
    span: Span,
    state: &mut E,
    product: &mut impl FnMut(&mut E, [Span; 3], bool) -> std::result::Result<(), F>,
    leaf: &mut impl FnMut(&mut E, Span) -> std::result::Result<(), F>,
) -> std::result::Result<(), F> {
    if span.len() <= LEAF {
        return leaf(state, span);
    }
    let (p, s) = halves(span);
    eliminate(p, state, product, leaf)?;
    product(state, [p, p, s], false)?;
    product(state, [s, p, p], false)?;
    product(state, [s, p, s], true)?;
    eliminate(s, state, product, leaf)?;
    product(state, [p, s, s], false)?;
    product(state, [p, s, p], true)?;
    product(state, [s, s, p], false)
}

/// Multiply-adds of the products of an elimination.
pub(super) fn work(vertices: u64) -> f64 {
    let mut work = 0.0;
    let mut add = |work: &mut f64, [m, k, n]: [Span; 3], _| {
        *work += m.len() as f64 * k.len() as f64 * n.len() as f64;
        Ok(())
    };
    let counted: Result<()> = eliminate(Span::new(0, vertices), &mut work, &mut add, &mut |_, _| Ok(()));
    counted.expect("counting does not fail");
    work
}

/// The plans of the products, by shape: the job's method and shares.
struct Plans {
    method: Method,
    weights: Vec<f64>,
    processors: Vec<String>,
    known: BTreeMap<[u64; 3], Plan>,
}

impl Plans {
    /// # Errors
    /// The job's plan is of no method, so that it says nothing of other shapes.
    fn of<T: Element>(job: &MatmulJob<'_, T>) -> Result<Self> {
        let method = job.plan.method.parse().map_err(|_| {
            let what =
                format!("the plan is of no method that divides other shapes, but \"{}\"", job.plan.method);
            Error::input("closure by elimination", what, "use squaring, or a plan of one method")
        })?;
        let weights = job.plan.shares.iter().map(|share| *share as f64).collect();
        Ok(Self { method, weights, processors: job.plan.processors.clone(), known: BTreeMap::new() })
    }

    /// The plan of a product. Shapes on which the method is not possible are cut into columns.
    fn plan(&mut self, spans: [Span; 3]) -> Result<&mut Plan> {
        let sizes = spans.map(|span| span.len());
        if !self.known.contains_key(&sizes) {
            let [m, k, n] = sizes;
            let (shape, terms) = (Shape::new(m, k, n, "closure")?, MethodOptions::default());
            let layout = self.method.layout(shape, &self.weights, &terms);
            let layout = layout.or_else(|_| Method::Columns.layout(shape, &self.weights, &terms))?;
            let plan = Plan::candidate(self.method.to_string(), self.processors.clone(), layout, 1.0);
            self.known.insert(sizes, plan);
        }
        Ok(self.known.get_mut(&sizes).expect("it was put there"))
    }
}

/// Predicted seconds of an elimination; `None` if the job's plan is of no method. For leaves, and for what is
/// between products, constants count; messages between products do not.
///
/// # Errors
/// As [`forecast`].
pub(super) fn predicted<T: Element>(job: &MatmulJob<'_, T>, platform: &Platform) -> Result<Option<f64>> {
    let Ok(plans) = Plans::of(job) else { return Ok(None) };
    let vertices = job.plan.layout()?.shape().m;
    let mut state = (0.0, plans);
    let between = BETWEEN.0 + BETWEEN.1 * platform.len() as f64;
    let mut add = |(seconds, plans): &mut (f64, Plans), spans: [Span; 3], _| -> Result<()> {
        *seconds += forecast_of(job, plans.plan(spans)?, platform)?.seconds + between;
        Ok(())
    };
    let mut leaf = |(seconds, _): &mut (f64, Plans), _| {
        *seconds += CLOSING;
        Ok(())
    };
    eliminate(Span::new(0, vertices), &mut state, &mut add, &mut leaf)?;
    Ok(Some(state.0))
}

/// The forecast of a product, kept in its plan.
fn forecast_of<T: Element>(job: &MatmulJob<'_, T>, plan: &mut Plan, platform: &Platform) -> Result<Forecast> {
    if let Some(known) = &plan.forecast {
        return Ok(known.clone());
    }
    let rates = rates(job.models, &plan.sizes(), job.models_block);
    let network = &platform.network;
    let costs = CostModel { rates: &rates, network, element: size_of::<T>() as u64 };
    let found = forecast(plan.layout()?, job.order, costs)?;
    plan.forecast = Some(found.clone());
    Ok(found)
}

/// A closure under way.
struct Elimination<'a, T> {
    job: &'a MatmulJob<'a, T>,
    session: &'a Session<'a>,
    plans: Plans,
    /// This process's part of the matrix.
    matrix: LocalBlocks<T>,
    /// Elements of all products.
    elements: f64,
    /// Elements drawn to verify the products so far.
    drawn: u64,
    report: RunReport,
}

/// The closure of a matrix whose diagonal has been made at least one, and the report of the run.
///
/// # Errors
/// As [`multiply`]; a plan of no method.
pub(super) fn closure<T: Element>(
    matrix: LocalBlocks<T>,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(Outcome<T>, RunReport)> {
    let plans = Plans::of(job)?;
    let report = RunReport::nothing(job, session)?;
    let vertices = job.plan.layout()?.shape().m;
    let (mut elements, all) = (0.0, Span::new(0, vertices));
    let mut count = |elements: &mut f64, [rows, _, cols]: [Span; 3], _| -> Result<()> {
        *elements += rows.len() as f64 * cols.len() as f64;
        Ok(())
    };
    eliminate(all, &mut elements, &mut count, &mut |_, _| Ok(()))?;
    let mut state = Elimination { job, session, plans, matrix, elements, drawn: 0, report };
    match eliminate(all, &mut state, &mut Elimination::product, &mut Elimination::leaf) {
        Ok(()) => {}
        Err(Stop::Failed(error)) => return Err(error),
        Err(Stop::Improves(vertex)) => return Ok((Outcome::Improves(vertex), state.report)),
    }
    // Draws in proportion to the elements of each product find a thousandth of wrong ones in all products
    // at least as surely as as many draws from a single matrix: the logarithm is concave.
    let missed = (1.0 - WRONG_FRACTION).powf(state.drawn as f64);
    // A single leaf, which counts as a product, is checked in full.
    let error_probability = Some(if state.report.products == 0 { 0.0 } else { missed });
    let products = state.report.products.max(1);
    Ok((Outcome::Closed(state.matrix), RunReport { error_probability, products, ..state.report }))
}

impl<T: Element> Elimination<'_, T> {
    /// Block (rows, cols) := block (rows, inner) x block (inner, cols), added to what is there or not.
    fn product(&mut self, spans: [Span; 3], added: bool) -> std::result::Result<(), Stop> {
        let begin = Instant::now();
        let (session, job) = (self.session, self.job);
        let [rows, inner, cols] = spans;
        let plan = self.plans.plan(spans)?;
        if session.world().rank() == 0 {
            forecast_of(job, plan, session.platform())?;
        }
        let plan = plan.clone();
        let schedule = MatmulSchedule::new(plan.layout()?, job.order);
        let own = OwnRects::of(&schedule, session.world());
        let a = self.own_part(rows, inner, &own.a)?;
        let b = self.own_part(inner, cols, &own.b)?;
        let initial = if added { Some(self.own_part(rows, cols, &own.c)?) } else { None };
        let part = rows.len() as f64 * cols.len() as f64 / self.elements;
        let draws = (part * DRAWS as f64).ceil() as u64;
        self.drawn += draws;
        let product = MatmulJob { plan: &plan, forecast: plan.forecast.clone(), draws, ..job.clone() };
        let moving = begin.elapsed().as_secs_f64();
        let operands = Operands::new(&a, &b).with_initial(initial.as_ref());
        let (c, report) = multiply(operands, &product, session)?;
        let begin = Instant::now();
        drop((a, b, initial));
        self.put(rows, cols, &c)?;
        // The report keeps the plan of the whole.
        let report = RunReport { plan: self.report.plan.clone(), ..report };
        self.passed(Activity::Communicate, moving + begin.elapsed().as_secs_f64())?;
        self.report.add(report);
        // Only what is added reaches the diagonal.
        match if added { improving_vertex(job.kernel, &self.matrix, session.world())? } else { None } {
            Some(vertex) => Err(Stop::Improves(vertex)),
            None => Ok(()),
        }
    }

    /// Closes a block on the diagonal. All processes that have a part of the matrix do the same.
    fn leaf(&mut self, span: Span) -> std::result::Result<(), Stop> {
        let begin = Instant::now();
        let whole = Rect::new(Span::new(0, span.len()), Span::new(0, span.len()));
        let (kernel, n) = (self.job.kernel, span.len() as usize);
        let mut block = self.own_part(span, span, &[whole])?;
        let edges = block[0].1.clone();
        let through =
            close(kernel, n, &mut block[0].1).map_err(|vertex| Stop::Improves(span.start + vertex as u64))?;
        let computed = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        check(kernel, span, [&edges, &block[0].1], &through)?;
        self.report.verify_seconds += begin.elapsed().as_secs_f64();
        self.report.sampled = Some(self.report.sampled.unwrap_or(0) + span.len() * span.len());
        let shifted =
            |(rect, elements): &(Rect, Vec<T>)| (shift_rect(*rect, [span.start; 2]), elements.clone());
        let block = block.iter().map(shifted).collect::<LocalBlocks<T>>();
        copy(&block, &mut self.matrix);
        Ok(self.passed(Activity::Compute, computed)?)
    }

    /// This process's part of a block of the matrix; `rects` are relative to the block.
    fn own_part(&self, rows: Span, cols: Span, rects: &[Rect]) -> Result<LocalBlocks<T>> {
        let there: Vec<Rect> = rects.iter().map(|rect| shift_rect(*rect, [rows.start, cols.start])).collect();
        let blocks = redistribute(self.session.world(), &self.matrix, &there)?;
        Ok(blocks.into_iter().zip(rects).map(|((_, elements), rect)| (*rect, elements)).collect())
    }

    /// Puts a block, of which each process has a part, in its place.
    fn put(&mut self, rows: Span, cols: Span, block: &LocalBlocks<T>) -> Result<()> {
        let world = self.session.world();
        let here = Rect::new(rows, cols);
        let own: Vec<Rect> = self.matrix.iter().map(|(rect, _)| rect.intersect(here)).collect();
        let own: Vec<Rect> = own.into_iter().filter(|rect| !rect.is_empty()).collect();
        let there: LocalBlocks<T> = block
            .iter()
            .map(|(rect, elements)| (shift_rect(*rect, [rows.start, cols.start]), elements.clone()))
            .collect();
        if world.is_solo() {
            copy(&there, &mut self.matrix);
            return Ok(());
        }
        let there = redistribute(world, &there, &own)?;
        copy(&there, &mut self.matrix);
        Ok(())
    }

    /// Adds time between products to the trace.
    fn passed(&mut self, activity: Activity, seconds: f64) -> Result<()> {
        let world = self.session.world();
        let mut lane = Lane::default();
        lane.push(activity, 0.0, seconds, None);
        let mut trace = trace_of_all(vec![lane], world)?;
        trace.lanes.resize(self.session.platform().len(), Lane::default());
        self.report.trace.append(Trace { lanes: trace.lanes });
        Ok(())
    }
}

/// The best paths to and from each vertex of a block by the vertices before it.
struct Through<T> {
    /// Element (i, via): from i to via.
    to: Vec<T>,
    /// Element (via, j): from via to j.
    from: Vec<T>,
}

/// Closes a block in place, vertex by vertex. The error is a vertex with a path to itself that is better than
/// the empty one.
fn close<T: Element>(kernel: Kernel<T>, n: usize, block: &mut [T]) -> std::result::Result<Through<T>, usize> {
    let mut through = Through { to: vec![kernel.zero(); n * n], from: Vec::with_capacity(n * n) };
    for via in 0..n {
        let (column, row): (Vec<T>, Vec<T>) =
            ((0..n).map(|i| block[i * n + via]).collect(), block[via * n..(via + 1) * n].to_vec());
        if improves(kernel, row[via]) {
            return Err(via);
        }
        kernel.update(View::dense(&column, n, 1), View::dense(&row, 1, n), ViewMut::dense(block, n, n));
        column.iter().enumerate().for_each(|(i, path)| through.to[i * n + via] = *path);
        through.from.extend(row);
    }
    // Rounding may shorten a way back to an earlier vertex.
    match (0..n).find(|i| improves(kernel, block[i * n + i])) {
        Some(vertex) => Err(vertex),
        None => Ok(through),
    }
}

/// Checks a closure and what it was made of, every element exactly: it is the best of the edge and of the
/// paths to and from each vertex, and these are the best of the edge and of those by the vertices before.
/// Each path is one sum, which rounds in one way only, so that nothing depends on the sizes of lengths.
fn check<T: Element>(
    kernel: Kernel<T>,
    span: Span,
    [edges, closure]: [&[T]; 2],
    Through { to, from }: &Through<T>,
) -> Result<()> {
    let n = span.len() as usize;
    let wrong = |[i, j]: [usize; 2], seen: T, wanted: T| {
        let (i, j) = (span.start + i as u64, span.start + j as u64);
        let what = format!("path ({i}, {j}), counted from 0, is {seen} long and should be {wanted}");
        Err(Error::WrongResult { what })
    };
    for j in 0..n {
        let column: Vec<T> = (0..n).map(|via| from[via * n + j]).collect();
        for i in 0..n {
            // The edge, or the best path by the first `count` vertices.
            let best = |count: usize| {
                let by = kernel.entry(&to[i * n..][..count], &column[..count]);
                kernel.entry(&[edges[i * n + j], by], &[kernel.one(); 2])
            };
            for (seen, count) in [(to[i * n + j], j), (column[i], i), (closure[i * n + j], n)] {
                let wanted = best(count);
                if seen != wanted {
                    return wrong([i, j], seen, wanted);
                }
            }
        }
    }
    Ok(())
}

/// The same rectangle elsewhere.
fn shift_rect(rect: Rect, [down, right]: [u64; 2]) -> Rect {
    let shifted = |span: Span, by: u64| Span::new(span.start + by, span.end + by);
    Rect::new(shifted(rect.rows, down), shifted(rect.cols, right))
}

/// Copies what two sets of blocks have in common.
fn copy<T: Element>(from: &LocalBlocks<T>, to: &mut LocalBlocks<T>) {
    for (there, target) in to {
        for (here, source) in from {
            let common = here.intersect(*there);
            if common.is_empty() {
                continue;
            }
            let place = |of: &Rect, row: u64| {
                let first = (row - of.rows.start) * of.cols.len() + common.cols.start - of.cols.start;
                first as usize..(first + common.cols.len()) as usize
            };
            for row in common.rows.start..common.rows.end {
                target[place(there, row)].copy_from_slice(&source[place(here, row)]);
            }
        }
    }
}
