//! Powers and closures of a matrix: several products by one plan. A square matrix has the same layout as its
//! product, so a process's part of one product is its part of the factors of the next: no data move between
//! products. The broadcast flow on strips of rows is the exception: between processes, its right factor is
//! moved to column blocks before each product.

mod cycles;
mod elimination;
mod trees;

use super::{MatmulJob, Operands, OwnRects, RunReport, multiply};
use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::kernels::{Kernel, PathElement, Semiring, Tropical};
use crate::matrix::{Element, LocalBlocks};
use crate::model::{Model, only_ratios};
use crate::platform::Platform;
use crate::run::{Session, World, redistribute};
use crate::schedule::MatmulSchedule;
use crate::verify::Walks;
use bytemuck::bytes_of;
use std::time::Instant;

/// The `exponent`-th power of a square matrix by repeated squaring. It takes at most 2 log2(exponent)
/// products, each run by the same plan and verified as in [`multiply`]; over a semiring without subtraction, rows of the
/// power are verified against the matrix. The report contains their totals. The
/// power 0 is the identity of the semiring. It and the power 1 take no product, and all of their elements are
/// compared with their definition. The result has the blocks of [`OwnRects`]' C.
///
/// # Errors
/// As [`multiply`].
///
/// # Panics
/// If the plan is not for the product of the matrix with itself.
pub(crate) fn matrix_power<T: Element>(
    a: &LocalBlocks<T>,
    exponent: u64,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let mut squares = Squares::new(job, session)?;
    squares.note_zeros(a)?;
    let (mut square, mut result, mut left) = (a.clone(), None, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(so_far) => squares.times(&so_far, &square)?,
            });
        }
        left >>= 1;
        if left > 0 {
            square = squares.times(&square, &square)?;
        }
    }
    let result = result.map_or_else(|| squares.identity(), Ok)?;
    if exponent < 2 {
        squares.check_definition(&result, (exponent == 1).then_some(a))?;
    } else if job.kernel.semiring() != Semiring::PlusTimes {
        squares.check_rows([a, &result], Some(exponent))?;
    }
    Ok((result, squares.report))
}

/// Number of products of a power: bits of the exponent after the first, plus the ones among them.
pub(crate) fn products_of_power(exponent: u64) -> u64 {
    u64::from(exponent.checked_ilog2().unwrap_or(0)) + u64::from(exponent.count_ones().saturating_sub(1))
}

/// Maximum number of products of a closure of n vertices. After s products all walks of at most 2^s edges are
/// included, and every simple path or cycle has at most n edges.
pub(crate) fn products_of_closure(vertices: u64) -> u64 {
    u64::from(vertices.next_power_of_two().ilog2())
}

/// Multiply-adds per second that count for the fastest processor where only ratios of speeds are known: about
/// what a core does over min-plus. The choice between methods depends on them little.
const NOMINAL: f64 = 2e9;

/// How a closure is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClosureMethod {
    /// I + A is squared until nothing changes: at most ceil(log2 n) products of n^3 multiply-adds.
    Squaring,
    /// Block elimination, Floyd and Warshall's algorithm on blocks (Solomonik et al. 2013): many products of
    /// n^3 multiply-adds in all.
    Elimination,
}

impl std::fmt::Display for ClosureMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Squaring => "squaring",
            Self::Elimination => "elimination",
        })
    }
}

impl ClosureMethod {
    /// The method of less predicted time, the same on all ranks: elimination, if it takes less time than half
    /// of the squarings that may be needed, by the job's plan. Where speeds are only ratios, the fastest
    /// processor counts as one core. Below 256 vertices, and where the plan is of no method that could divide
    /// products of other shapes, it is squaring.
    ///
    /// # Errors
    /// As [`simulate`](crate::simulate::simulate), on all ranks.
    pub(crate) fn of<T: Element>(job: &MatmulJob<'_, T>, platform: &Platform, world: &World) -> Result<Self> {
        let faster = || -> Result<bool> {
            if job.plan.layout()?.shape().m < elimination::FEWEST {
                return Ok(false);
            }
            let timed;
            let job = match only_ratios(job.models) {
                false => job,
                true => {
                    timed = nominal_models(job.models)?;
                    &MatmulJob { models: &timed, models_block: 1, forecast: None, ..job.clone() }
                }
            };
            let Some(seconds) = elimination::predicted(job, platform)? else { return Ok(false) };
            let expected = 0.5 * products_of_closure(job.plan.layout()?.shape().m) as f64;
            let job = job.clone().forecast_alone(platform)?;
            Ok(job.forecast.is_some_and(|one| seconds < expected * one.seconds))
        };
        let faster = world.decide_on_root(faster)?;
        Ok(if faster { Self::Elimination } else { Self::Squaring })
    }

    /// Multiply-adds of the closure of this many vertices; at most, by squaring.
    pub fn work(self, vertices: u64) -> f64 {
        match self {
            Self::Squaring => (vertices as f64).powi(3) * products_of_closure(vertices) as f64,
            Self::Elimination => elimination::work(vertices),
        }
    }
}

/// Constant speeds in the same ratios, of which the largest is [`NOMINAL`].
fn nominal_models(models: &[Model]) -> Result<Vec<Model>> {
    let largest = models.iter().map(|model| model.speed(1.0)).fold(0.0, f64::max);
    // No processor is so slow that its times are out of range.
    let speed = |model: &Model| (model.speed(1.0) / largest * NOMINAL).max(1.0);
    models.iter().map(|model| Model::constant(model.processor(), speed(model))).collect()
}

/// The closure I + A + A^2 + … of a square matrix over max-plus, min-plus or or-and, in which each vertex
/// reaches itself by the empty path, by the job's [`ClosureMethod`] or else the one of less predicted time.
/// Its products are verified as in [`multiply`], and rows of the result against the matrix. The result has the blocks of
/// [`OwnRects`]' C.
///
/// # Errors
/// As [`multiply`]; plus-times (exit code 2); a cycle that improves forever, negative over min-plus or
/// positive over max-plus, with its weight and vertices (exit code 1). A cycle whose weight is 0 up to the
/// rounding of its edges (4 [`Element::EPSILON`] of the sum of their sizes) counts as 0: a note in the report
/// says so, and lengths are then right up to rounding. An elimination that finds one is given up for
/// squaring, whose errors do not grow by such cycles.
///
/// # Panics
/// If the plan is not for the product of the matrix with itself.
pub fn matrix_closure<T: Element>(
    a: &LocalBlocks<T>,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let (platform, world) = (session.platform(), session.world());
    let method = job.closure.map_or_else(|| ClosureMethod::of(job, platform, world), Ok)?;
    closure_of(a, method, job, session).map_err(|error| match error {
        // All ranks derive these errors from the same arguments.
        Error::Input { .. } if session.world().size() > 1 => {
            Error::Agreed { code: error.exit_code(), text: error.to_string() }
        }
        mine => mine,
    })
}

fn closure_of<T: Element>(
    a: &LocalBlocks<T>,
    method: ClosureMethod,
    job: &MatmulJob<'_, T>,
    session: &Session<'_>,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let (kernel, world) = (job.kernel, session.world());
    if kernel.semiring() == Semiring::PlusTimes {
        let what = "plus-times has no closure by paths";
        return Err(Error::input("semiring", what, "choose max-plus, min-plus or or-and"));
    }
    let mut squares = Squares::new(job, session)?;
    let vertices = squares.job.plan.layout()?.shape().m;
    squares.note_zeros(a)?;
    let mut reached = with_empty_paths(a, kernel);
    let mut zero_cycles = false;
    if let Some(vertex) = improving_vertex(kernel, &reached, world)? {
        squares.judge_cycle(a, vertex)?;
        zero_cycles = true;
    }
    if method == ClosureMethod::Elimination && !zero_cycles {
        let (outcome, mut report) = elimination::closure(reached, job, session)?;
        match outcome {
            elimination::Outcome::Closed(closure) => {
                report.notes = std::mem::take(&mut squares.report.notes);
                squares.report = RunReport { closure: Some(method), ..report };
                squares.check_rows([a, &closure], None)?;
                return Ok((closure, squares.report));
            }
            elimination::Outcome::Improves(vertex) => {
                squares.judge_cycle(a, vertex)?;
                zero_cycles = true;
                // Its seconds count; its products are given up.
                let notes = std::mem::take(&mut squares.report.notes);
                let given_up = RunReport { error_probability: None, sampled: None, products: 0, ..report };
                squares.report = RunReport { notes, ..given_up };
                reached = with_empty_paths(a, kernel);
            }
        }
    }
    for _ in 0..products_of_closure(vertices) {
        let mut further = squares.times(&reached, &reached)?;
        if let Some(vertex) = improving_vertex(kernel, &further, world)? {
            if !zero_cycles {
                squares.judge_cycle(a, vertex)?;
                zero_cycles = true;
            }
            map(&mut further, |on_diagonal, x| {
                let is_cycle = on_diagonal && cycles::improves(kernel, x);
                if is_cycle { kernel.one() } else { x }
            });
        }
        if squares.same(&further, &reached)? {
            break;
        }
        reached = further;
    }
    squares.check_rows([a, &reached], None)?;
    Ok((reached, RunReport { closure: Some(ClosureMethod::Squaring), ..squares.report }))
}

/// The graph's paths of at most one edge: the elements of the diagonal are at least those of empty paths.
fn with_empty_paths<T: Element>(a: &LocalBlocks<T>, kernel: Kernel<T>) -> LocalBlocks<T> {
    let (one, semiring) = (kernel.one(), kernel.semiring());
    let mut reached = a.clone();
    map(&mut reached, |on_diagonal, x| match semiring {
        Semiring::OrAnd if on_diagonal || x != T::ZERO => one,
        Semiring::OrAnd => x,
        _ if on_diagonal && !cycles::improves(kernel, x) => one,
        _ => x,
    });
    reached
}

/// The first vertex with a path to itself that is better than the empty one, the same on all ranks.
fn improving_vertex<T: Element>(
    kernel: Kernel<T>,
    blocks: &LocalBlocks<T>,
    world: &World,
) -> Result<Option<u64>> {
    let mut first = u64::MAX;
    for (rect, block) in blocks {
        let on_diagonal = rect.rows.start.max(rect.cols.start)..rect.rows.end.min(rect.cols.end);
        let at = |i: u64| (i - rect.rows.start) * rect.cols.len() + i - rect.cols.start;
        let here = on_diagonal.into_iter().find(|i| cycles::improves(kernel, block[at(*i) as usize]));
        first = first.min(here.unwrap_or(u64::MAX));
    }
    let first = world.all_reduce(&[first], u64::min)?[0];
    Ok((first < u64::MAX).then_some(first))
}

/// The fraction of zeros from which on a graph without absent edges seems to mean them by 0.
const MANY_ZEROS: f64 = 0.2;

/// Blocks of a closure with the predecessor of each pair.
#[derive(Debug)]
pub(crate) struct Paths<T> {
    /// The lengths: those of [`matrix_closure`].
    pub(crate) lengths: LocalBlocks<T>,
    /// The vertex before j on the best path from i to j, -1 where there is no path or i = j.
    pub(crate) predecessors: LocalBlocks<i32>,
    /// Report of the run.
    pub(crate) report: RunReport,
}

/// Like [`matrix_closure`] over max-plus or min-plus, with the predecessor of each pair. Among equally good
/// paths, the one with the fewest edges is taken, then the one with the smaller predecessor. The chain of
/// predecessors from j ends in i, also where cycles have length 0 or are so up to rounding.
///
/// The products have elements of type [`PathElement`] and use a kernel for paths; they are run and verified
/// like any other.
///
/// # Errors
/// As [`matrix_closure`].
///
/// # Panics
/// If the plan is not for the product of the matrix with itself, or the matrix has 2^31 rows or more.
pub(crate) fn matrix_paths<T: Element + Tropical>(
    a: &LocalBlocks<T>,
    job: &MatmulJob<'_, PathElement<T>>,
    session: &Session<'_>,
) -> Result<Paths<T>>
where
    PathElement<T>: Element,
{
    let mut edges = empty_like(a, job.kernel.zero());
    for ((_, lengths), (rect, edges)) in a.iter().zip(&mut edges) {
        let places = places(*rect);
        edges.iter_mut().zip(lengths).zip(places).for_each(|((to, &length), place)| {
            *to = edge(job.kernel, place, length);
        });
    }
    let (mut paths, report) = matrix_closure(&edges, job, session)?;
    let vertices = job.plan.layout()?.shape().m;
    trees::grow_trees(job.kernel, &edges, &mut paths, vertices, session.world())?;
    let each = |rect: &Rect, block: &[PathElement<T>]| {
        let lengths = block.iter().map(|path| path.length).collect();
        let predecessors = block.iter().map(before).collect();
        ((*rect, lengths), (*rect, predecessors))
    };
    let (lengths, predecessors) = paths.iter().map(|(rect, block)| each(rect, block)).unzip();
    Ok(Paths { lengths, predecessors, report: RunReport { element: T::NAME, ..report } })
}

/// Blocks of the same rectangles, filled with one value.
fn empty_like<T, U: Element>(blocks: &LocalBlocks<T>, value: U) -> LocalBlocks<U> {
    blocks.iter().map(|(rect, block)| (*rect, vec![value; block.len()])).collect()
}

/// Row and column of each element of a block.
fn places(rect: Rect) -> impl Iterator<Item = (u64, u64)> {
    (rect.rows.start..rect.rows.end).flat_map(move |i| (rect.cols.start..rect.cols.end).map(move |j| (i, j)))
}

/// The path of one edge of this length, the empty path, or no path if the length means that there is no edge.
fn edge<T: Tropical>(kernel: Kernel<PathElement<T>>, (i, j): (u64, u64), length: T) -> PathElement<T>
where
    PathElement<T>: Element,
{
    assert!(i32::try_from(i).is_ok(), "vertices are numbered by i32");
    let (absent, empty) = (kernel.zero(), kernel.one());
    let loses = match kernel.semiring() {
        Semiring::MaxPlus => length <= empty.length,
        _ => length >= empty.length,
    };
    if length == absent.length {
        absent
    } else if i == j && loses {
        empty
    } else {
        PathElement { length, edges: 1, last: i as u32 }
    }
}

/// The vertex before a path's end; -1 if the path has no edge.
fn before<T>(path: &PathElement<T>) -> i32 {
    if path.edges == 0 { -1 } else { path.last as i32 }
}

/// Replaces each element x by `f(on the diagonal, x)`.
fn map<T: Element>(blocks: &mut LocalBlocks<T>, f: impl Fn(bool, T) -> T) {
    for (rect, block) in blocks {
        block.iter_mut().zip(places(*rect)).for_each(|(x, (i, j))| *x = f(i == j, *x));
    }
}

/// A sequence of products by one plan, whose forecast is made once.
struct Squares<'a, T> {
    job: MatmulJob<'a, T>,
    session: &'a Session<'a>,
    report: RunReport,
    /// This process's rectangles of the right factor, if they are not those of the left one on all processes.
    right: Option<Vec<Rect>>,
}

impl<'a, T: Element> Squares<'a, T> {
    fn new(job: &MatmulJob<'a, T>, session: &'a Session<'a>) -> Result<Self> {
        // A layout that cuts the inner dimension divides the factors in another way than the product.
        session.world().all_ok(job.plan.layout()?.refuse_boxes("a power or closure"))?;
        let job = job.clone().forecast_once(session)?;
        let report = RunReport::nothing(&job, session)?;
        let schedule = MatmulSchedule::new(job.plan.layout()?, job.order);
        let own = OwnRects::of(&schedule, session.world());
        let right = (schedule.a_stays() && !session.world().is_solo()).then_some(own.b);
        Ok(Self { job, session, report, right })
    }

    /// Computes and verifies a product.
    fn times(&mut self, a: &LocalBlocks<T>, b: &LocalBlocks<T>) -> Result<LocalBlocks<T>> {
        let world = self.session.world();
        let moved = match &self.right {
            Some(rects) => Some(redistribute(world, b, rects)?),
            None => None,
        };
        let right = moved.as_ref().unwrap_or(b);
        let (c, report) = multiply(Operands::new(a, right), &self.job, self.session)?;
        self.report.add(report);
        Ok(c)
    }

    /// Checks rows of a power, or without an exponent of a closure, against the matrix. The odds of the report are then
    /// those of the whole result.
    fn check_rows(&mut self, [edges, result]: [&LocalBlocks<T>; 2], exponent: Option<u64>) -> Result<()> {
        let (begin, world) = (Instant::now(), self.session.world());
        let n = self.job.plan.layout()?.shape().m;
        let walks = Walks { kernel: self.job.kernel, edges, result, n, seed: self.job.seed, world };
        let rows = match exponent {
            None => walks.verify_closure()?,
            Some(exponent) => walks.verify_power(exponent, products_of_power(exponent))?,
        };
        self.report.rows = Some(rows);
        self.report.error_probability = Some(if rows.wrong_fraction == 0.0 { 0.0 } else { 0.5f64.powi(16) });
        self.report.verify_seconds += begin.elapsed().as_secs_f64();
        Ok(())
    }

    /// The identity of the semiring.
    fn identity(&self) -> Result<LocalBlocks<T>> {
        let (kernel, world) = (self.job.kernel, self.session.world());
        let schedule = MatmulSchedule::new(self.job.plan.layout()?, self.job.order);
        let block = |rect: &Rect| (*rect, vec![kernel.zero(); rect.area() as usize]);
        let mut blocks: LocalBlocks<T> = OwnRects::of(&schedule, world).c.iter().map(block).collect();
        map(&mut blocks, |on_diagonal, x| if on_diagonal { kernel.one() } else { x });
        Ok(blocks)
    }

    /// Compares every element of a power without products with that of A, or of the identity.
    fn check_definition(&mut self, power: &LocalBlocks<T>, a: Option<&LocalBlocks<T>>) -> Result<()> {
        let [zero, one] = [self.job.kernel.zero(), self.job.kernel.one()];
        let is_wrong = |number: usize, rect: Rect, block: &[T]| {
            let expected = |at: usize, (i, j)| match a {
                Some(a) => a[number].1[at],
                None if i == j => one,
                None => zero,
            };
            let mut each = places(rect).enumerate().zip(block);
            each.any(|((at, place), x)| bytes_of(x) != bytes_of(&expected(at, place)))
        };
        let wrong = power.iter().enumerate().any(|(number, (rect, block))| is_wrong(number, *rect, block));
        if self.session.world().all_reduce(&[u8::from(wrong)], u8::max)?[0] > 0 {
            let what = "an element of a power without products is not that of its definition";
            return Err(Error::WrongResult { what: what.into() });
        }
        let shape = self.job.plan.layout()?.shape();
        self.report.error_probability = Some(0.0);
        self.report.sampled = Some(shape.elements());
        Ok(())
    }

    /// True if all elements are equal, on all ranks.
    fn same(&self, x: &LocalBlocks<T>, y: &LocalBlocks<T>) -> Result<bool> {
        Ok(self.session.world().all_reduce(&[u8::from(x != y)], u8::max)?[0] == 0)
    }

    /// Decides about a graph in which a path from `vertex` to itself is better than the empty one, and notes
    /// it in the report if it is so by rounding only. Rank 0 holds the whole graph for that.
    ///
    /// # Errors
    /// A cycle that improves forever, on all ranks.
    fn judge_cycle(&mut self, edges: &LocalBlocks<T>, vertex: u64) -> Result<()> {
        let world = self.session.world();
        let all = Span::new(0, self.job.plan.layout()?.shape().m);
        let whole = [Rect::new(all, all)];
        let graph = redistribute(world, edges, if world.rank() == 0 { &whole } else { &[] })?;
        let note = match graph.first() {
            Some((_, graph)) => cycles::judge(self.job.kernel, graph, vertex, &|| world.check()),
            None => Ok(String::new()),
        };
        let note = world.broadcast(world.all_ok(note)?.as_bytes())?;
        self.report.notes.push(String::from_utf8_lossy(&note).into_owned());
        Ok(())
    }

    /// Notes a graph in which every pair of vertices has an edge, many of them of length 0: 0 may be meant to
    /// stand for no edge.
    fn note_zeros(&mut self, graph: &LocalBlocks<T>) -> Result<()> {
        let kernel = self.job.kernel;
        if !matches!(kernel.semiring(), Semiring::MinPlus | Semiring::MaxPlus) {
            return Ok(());
        }
        let [mut zeros, mut absent] = [0u64; 2];
        for (rect, block) in graph {
            for (x, _) in block.iter().zip(places(*rect)).filter(|(_, (i, j))| i != j) {
                zeros += u64::from(x.to_f64() == 0.0);
                absent += u64::from(*x == kernel.zero());
            }
        }
        let counts = self.session.world().all_reduce(&[zeros, absent], |x, y| x + y)?;
        let (zeros, absent) = (counts[0], counts[1]);
        let shape = self.job.plan.layout()?.shape();
        let pairs = shape.elements() - shape.m;
        if absent > 0 || zeros == 0 || (zeros as f64) < MANY_ZEROS * pairs as f64 {
            return Ok(());
        }
        let no_edge = match (kernel.semiring(), T::EPSILON < 0.5) {
            (Semiring::MinPlus, true) => "inf",
            (Semiring::MinPlus, false) => "the largest integer",
            (_, true) => "-inf",
            (_, false) => "the smallest integer",
        };
        self.report.notes.push(format!(
            "{zeros} of {pairs} pairs of vertices have an edge of length 0, and all others have one, too: if 0 \
             stands for no edge, write {no_edge} there"
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
