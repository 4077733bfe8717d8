//! Powers and closures of a matrix: many products by one plan.

use crate::error::{Error, Result};
use crate::matrix::{Element, Matrix};
use crate::multiply::{Multiplication, multiply};
use crate::report::RunReport;
use crate::run::Monitor;
use crate::run::kernels::Semiring;
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
    what: &Multiplication<'_, T>,
    monitor: &Monitor,
) -> Result<(Matrix<T>, RunReport)> {
    let mut products = Products::new(what, monitor);
    let (mut square, mut result, mut left) = (a.clone(), None, exponent);
    while left > 0 {
        if left & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(so_far) => products.times(&so_far, &square)?,
            });
        }
        left >>= 1;
        if left > 0 {
            square = products.times(&square, &square)?;
        }
    }
    let result = result.unwrap_or_else(|| {
        let n = a.rows();
        let mut data = vec![what.kernel.zero(); n * n];
        data.iter_mut().step_by(n + 1).for_each(|x| *x = what.kernel.one());
        Matrix::new(n, n, data)
    });
    Ok((result, products.report))
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
    what: &Multiplication<'_, T>,
    monitor: &Monitor,
) -> Result<(Matrix<T>, RunReport)> {
    let (n, one, semiring) = (a.rows(), what.kernel.one(), what.kernel.semiring());
    if semiring == Semiring::PlusTimes {
        return Err(Error::input(
            "--semiring",
            "plus-times has no closure by paths",
            "choose max-plus, min-plus or or-and",
        ));
    }
    let mut reached = a.clone();
    if semiring == Semiring::OrAnd {
        reached.as_mut_slice().iter_mut().filter(|x| **x != T::ZERO).for_each(|x| *x = one);
    }
    for x in reached.as_mut_slice().iter_mut().step_by(n + 1) {
        *x = match semiring {
            Semiring::MaxPlus if *x > one => *x,
            Semiring::MinPlus if *x < one => *x,
            _ => one,
        };
    }
    check_cycles(&reached, what)?;
    let mut products = Products::new(what, monitor);
    // After s products all walks of at most 2^s edges are in: n edges hold every simple path and cycle.
    for _ in 0..n.next_power_of_two().ilog2() {
        let further = products.times(&reached, &reached)?;
        check_cycles(&further, what)?;
        if further == reached {
            break;
        }
        reached = further;
    }
    Ok((reached, products.report))
}

/// A path from a vertex to itself that beats the empty one can be gone round for ever.
fn check_cycles<T: Element>(d: &Matrix<T>, what: &Multiplication<'_, T>) -> Result<()> {
    let one = what.kernel.one();
    let (sign, kind, improves): (_, _, fn(&T, &T) -> bool) = match what.kernel.semiring() {
        Semiring::MaxPlus => ("positive", "longest", |x, one| x > one),
        Semiring::MinPlus => ("negative", "shortest", |x, one| x < one),
        _ => return Ok(()),
    };
    match d.as_slice().iter().step_by(d.cols() + 1).position(|x| improves(x, &one)) {
        None => Ok(()),
        Some(i) => Err(Error::infeasible(
            format!("a cycle of {sign} weight passes through vertex {i}: no path is {kind}"),
            format!("remove the {sign} cycles"),
        )),
    }
}

/// Products one after the other, and the report of all.
struct Products<'a, T> {
    what: &'a Multiplication<'a, T>,
    monitor: &'a Monitor,
    report: RunReport,
}

impl<'a, T: Element> Products<'a, T> {
    fn new(what: &'a Multiplication<'a, T>, monitor: &'a Monitor) -> Self {
        let layout = what.plan.layout.as_ref().expect("a plan of a product has a layout");
        let report = RunReport {
            engine: "threads",
            semiring: what.kernel.semiring().name(),
            element: T::NAME,
            plan: what.plan.clone(),
            order: Schedule::matmul(layout, what.order).order(),
            trace: Trace::empty(what.platform.len()),
            forecast_seconds: 0.0,
            ideal_seconds: 0.0,
            adaptation: None,
            odds_of_a_miss: Some(0.0),
            sampled: None,
            products: 0,
            io_seconds: 0.0,
            verify_seconds: 0.0,
        };
        Self { what, monitor, report }
    }

    fn times(&mut self, a: &Matrix<T>, b: &Matrix<T>) -> Result<Matrix<T>> {
        let (c, one) = multiply(a, b, self.what, self.monitor)?;
        let all = &mut self.report;
        all.plan = one.plan;
        all.trace.append(one.trace);
        all.forecast_seconds += one.forecast_seconds;
        all.ideal_seconds += one.ideal_seconds;
        // One missed product makes the whole wrong: the odds add up at most.
        all.odds_of_a_miss = all.odds_of_a_miss.zip(one.odds_of_a_miss).map(|(x, y)| (x + y).min(1.0));
        all.sampled = one.sampled.map(|new| all.sampled.unwrap_or(0) + new);
        all.products += 1;
        all.verify_seconds += one.verify_seconds;
        Ok(c)
    }
}

#[cfg(test)]
mod tests;
