//! Powers and closures of a matrix: many products by one plan.

use crate::error::{Error, Result};
use crate::kernels::Kernel;
use crate::kernels::{PathElement, Semiring, Tropical};
use crate::matrix::{Element, Matrix};
use crate::product::{MatmulJob, multiply};
use crate::report::RunReport;
use crate::run::Monitor;
use crate::schedule::Schedule;
use crate::trace::Trace;

/// The `exponent`-th power of a square matrix by repeated squaring, at most 2 log2(exponent) products, each run by the same
/// plan and verified like one of [`multiply`]; the report sums them up. The power 0 is the identity of the semiring.
///
/// # Errors
/// As [`multiply`].
///
/// # Panics
/// If the plan is not one of the product of the matrix by itself.
pub fn matrix_power<T: Element>(
    a: &Matrix<T>,
    exponent: u64,
    what: &MatmulJob<'_, T>,
    monitor: &Monitor,
) -> Result<(Matrix<T>, RunReport)> {
    let mut squares = Whole { products: Products::new("threads", what), monitor };
    let power = power_of(a, exponent, &mut squares)?;
    Ok((power, squares.products.report))
}

/// The closure I + A + A^2 + … of a square matrix over max-plus, min-plus or or-and, where each vertex reaches itself by the
/// empty path: I + A is squared, by the same plan each time, until nothing changes; at most ceil(log2 n) products of
/// 2 n^3 operations, each verified like one of [`multiply`]. The blocked Floyd and Warshall of
/// [`closure`](crate::kernels::closure()) does with a single such number, on one thread.
///
/// # Errors
/// As [`multiply`]; plus-times (exit code 2); a cycle that improves for ever, negative over min-plus or positive over
/// max-plus (exit code 1; floats round, so a cycle whose decimals add up to 0 may show as one).
///
/// # Panics
/// If the plan is not one of the product of the matrix by itself.
pub fn matrix_closure<T: Element>(
    a: &Matrix<T>,
    what: &MatmulJob<'_, T>,
    monitor: &Monitor,
) -> Result<(Matrix<T>, RunReport)> {
    let mut squares = Whole { products: Products::new("threads", what), monitor };
    let closure = closure_of(a, what.kernel, &mut squares)?;
    Ok((closure, squares.products.report))
}

/// Square matrices, wherever their elements lie.
pub(crate) trait Squares<T> {
    type Matrix: Clone;

    /// Rows, and columns, of the whole.
    fn side(&self, matrix: &Self::Matrix) -> usize;

    /// The verified product.
    fn times(&mut self, a: &Self::Matrix, b: &Self::Matrix) -> Result<Self::Matrix>;

    /// The identity of the semiring.
    fn identity(&self) -> Self::Matrix;

    /// Replaces each element by `f` of whether it is on the diagonal and of itself.
    fn map(&self, matrix: &mut Self::Matrix, f: impl Fn(bool, T) -> T);

    /// The first place on the diagonal whose element `is` so.
    fn first_on_diagonal(&self, matrix: &Self::Matrix, is: impl Fn(T) -> bool) -> Result<Option<usize>>;

    /// True if all elements are equal.
    fn same(&self, x: &Self::Matrix, y: &Self::Matrix) -> Result<bool>;
}

/// Repeated squaring.
pub(crate) fn power_of<T, S: Squares<T>>(a: &S::Matrix, exponent: u64, squares: &mut S) -> Result<S::Matrix> {
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
    Ok(result.unwrap_or_else(|| squares.identity()))
}

/// Squares I + A until nothing changes.
pub(crate) fn closure_of<T: Element, S: Squares<T>>(
    a: &S::Matrix,
    kernel: Kernel<T>,
    squares: &mut S,
) -> Result<S::Matrix> {
    let (one, semiring) = (kernel.one(), kernel.semiring());
    if semiring == Semiring::PlusTimes {
        return Err(Error::input(
            "--semiring",
            "plus-times has no closure by paths",
            "choose max-plus, min-plus or or-and",
        ));
    }
    let mut reached = a.clone();
    squares.map(&mut reached, |on_diagonal, x| match semiring {
        Semiring::OrAnd if on_diagonal || x != T::ZERO => one,
        Semiring::OrAnd => x,
        _ if !on_diagonal => x,
        Semiring::MaxPlus if x > one => x,
        Semiring::MinPlus if x < one => x,
        _ => one,
    });
    check_cycles(&reached, kernel, squares)?;
    // After s products all walks of at most 2^s edges are in: n edges hold every simple path and cycle.
    for _ in 0..squares.side(&reached).next_power_of_two().ilog2() {
        let further = squares.times(&reached, &reached)?;
        check_cycles(&further, kernel, squares)?;
        if squares.same(&further, &reached)? {
            break;
        }
        reached = further;
    }
    Ok(reached)
}

/// [`matrix_closure`] over max-plus or min-plus with the predecessor of each pair: the vertex before j on the best path from i
/// to j, -1 where there is no path or i = j. Among equally good paths the one of fewest edges is taken, then that with the
/// lesser predecessor, so that the chain of predecessors from j ends in i; lengths that rounding makes shorter than the sum
/// of their edges may break this round cycles of length 0.
///
/// The products are of [`PathElement`]s by [`Kernel::legs`](crate::kernels::Kernel::legs), run and verified like any other; the lengths are
/// those of [`matrix_closure`].
///
/// # Errors
/// As [`matrix_closure`].
///
/// # Panics
/// If the plan is not one of the product of the matrix by itself, or it has 2^31 rows.
pub fn matrix_paths<T: Element + Tropical>(
    a: &Matrix<T>,
    what: &MatmulJob<'_, PathElement<T>>,
    monitor: &Monitor,
) -> Result<(Matrix<T>, Matrix<i32>, RunReport)>
where
    PathElement<T>: Element,
{
    let n = a.cols();
    let edges = a.as_slice().iter().enumerate();
    let legs = edges.map(|(at, &length)| edge(what.kernel, (at / n, at % n), length)).collect();
    let (legs, report) = matrix_closure(&Matrix::new(a.rows(), n, legs), what, monitor)?;
    let predecessors = legs.as_slice().iter().map(before).collect();
    let lengths = legs.as_slice().iter().map(|leg| leg.length).collect();
    let report = RunReport { element: T::NAME, ..report };
    Ok((Matrix::new(n, n, lengths), Matrix::new(n, n, predecessors), report))
}

/// The path that consists of an edge of this length, of none, or of nothing where the length says that there is no edge.
pub(crate) fn edge<T: Tropical>(
    kernel: Kernel<PathElement<T>>,
    (i, j): (usize, usize),
    length: T,
) -> PathElement<T>
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

/// The vertex before a path's end; -1 where it has no edge.
pub(crate) fn before<T>(leg: &PathElement<T>) -> i32 {
    if leg.edges == 0 { -1 } else { leg.last as i32 }
}

/// A path from a vertex to itself that beats the empty one can be gone round for ever.
fn check_cycles<T: Element, S: Squares<T>>(d: &S::Matrix, kernel: Kernel<T>, squares: &S) -> Result<()> {
    let one = kernel.one();
    let (sign, kind, improves): (_, _, fn(&T, &T) -> bool) = match kernel.semiring() {
        Semiring::MaxPlus => ("positive", "longest", |x, one| x > one),
        Semiring::MinPlus => ("negative", "shortest", |x, one| x < one),
        _ => return Ok(()),
    };
    match squares.first_on_diagonal(d, |x| improves(&x, &one))? {
        None => Ok(()),
        Some(i) => Err(Error::infeasible(
            format!("a cycle of {sign} weight passes through vertex {i}: no path is {kind}"),
            format!("remove the {sign} cycles"),
        )),
    }
}

/// Matrices whole in this process's memory.
struct Whole<'a, T> {
    products: Products<'a, T>,
    monitor: &'a Monitor,
}

impl<T: Element> Squares<T> for Whole<'_, T> {
    type Matrix = Matrix<T>;

    fn side(&self, matrix: &Matrix<T>) -> usize {
        matrix.rows()
    }

    fn times(&mut self, a: &Matrix<T>, b: &Matrix<T>) -> Result<Matrix<T>> {
        let (c, report) = multiply(a, b, self.products.what, self.monitor)?;
        self.products.add(report);
        Ok(c)
    }

    fn identity(&self) -> Matrix<T> {
        let what = self.products.what;
        let n = what.plan.layout.as_ref().map_or(0, |layout| layout.shape().m as usize);
        let mut data = vec![what.kernel.zero(); n * n];
        data.iter_mut().step_by(n + 1).for_each(|x| *x = what.kernel.one());
        Matrix::new(n, n, data)
    }

    fn map(&self, matrix: &mut Matrix<T>, f: impl Fn(bool, T) -> T) {
        let n = matrix.cols();
        for (at, x) in matrix.as_mut_slice().iter_mut().enumerate() {
            *x = f(at % (n + 1) == 0, *x);
        }
    }

    fn first_on_diagonal(&self, matrix: &Matrix<T>, is: impl Fn(T) -> bool) -> Result<Option<usize>> {
        Ok(matrix.as_slice().iter().step_by(matrix.cols() + 1).position(|x| is(*x)))
    }

    fn same(&self, x: &Matrix<T>, y: &Matrix<T>) -> Result<bool> {
        Ok(x == y)
    }
}

/// The report of products done one after the other.
pub(crate) struct Products<'a, T> {
    pub what: &'a MatmulJob<'a, T>,
    pub report: RunReport,
}

impl<'a, T: Element> Products<'a, T> {
    pub fn new(engine: &'static str, what: &'a MatmulJob<'a, T>) -> Self {
        let layout = what.plan.layout.as_ref().expect("a plan of a product has a layout");
        let report = RunReport {
            engine,
            semiring: what.kernel.semiring().name(),
            kernel: what.kernel.about(),
            element: T::NAME,
            plan: what.plan.clone(),
            order: MatmulSchedule::new(layout, what.order).order(),
            trace: Trace::empty(what.platform.len()),
            predicted_memory: vec![0; what.platform.len()],
            forecast_seconds: 0.0,
            ideal_seconds: 0.0,
            adaptation: None,
            error_probability: Some(0.0),
            sampled: None,
            products: 0,
            io_seconds: 0.0,
            verify_seconds: 0.0,
        };
        Self { what, report }
    }

    /// Adds one product's report.
    pub fn add(&mut self, one: RunReport) {
        let all = &mut self.report;
        all.plan = one.plan;
        all.trace.append(one.trace);
        all.most_memory(&one.predicted_memory);
        all.forecast_seconds += one.forecast_seconds;
        all.ideal_seconds += one.ideal_seconds;
        // One missed product makes the whole wrong: the odds add up at most.
        all.error_probability =
            all.error_probability.zip(one.error_probability).map(|(x, y)| (x + y).min(1.0));
        all.sampled = one.sampled.map(|new| all.sampled.unwrap_or(0) + new);
        all.products += 1;
        all.verify_seconds += one.verify_seconds;
    }
}

#[cfg(test)]
mod tests;
