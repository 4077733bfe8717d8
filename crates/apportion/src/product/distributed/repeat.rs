//! Powers and closures on many processes. A square matrix is cut like its own product, so that a rank's part of one product
//! is its part of the next one's factors: nothing is moved between products.

use crate::error::{Error, Result};
use crate::geometry::{Rank, Rect};
use crate::kernels::{PathElement, Tropical};
use crate::matrix::{Element, LocalBlocks};
use crate::product::MatmulJob;
use crate::product::distributed::freivalds::each_row;
use crate::product::multiply_mpi;
use crate::product::powers::{Products, Squares, before, closure_of, edge, power_of};
use crate::report::RunReport;
use crate::run::{Monitor, World};
use crate::schedule::Schedule;

/// As [`matrix_power`](crate::product::matrix_power), on the processes of a world; parts and report as for [`multiply_mpi`].
///
/// # Errors
/// As [`multiply_mpi`].
///
/// # Panics
/// As [`multiply_mpi`], and if the plan is not one of the product of a square matrix by itself.
pub fn power_mpi<T: Element>(
    a: &LocalBlocks<T>,
    exponent: u64,
    what: &MatmulJob<'_, T>,
    world: &World,
    monitor: &Monitor,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let mut squares = Parts { products: Products::new("mpi", what), world, monitor };
    let power = power_of(a, exponent, &mut squares)?;
    Ok((power, squares.products.report))
}

/// As [`matrix_closure`](crate::product::matrix_closure), on the processes of a world; parts and report as for [`multiply_mpi`].
///
/// # Errors
/// As [`matrix_closure`](crate::product::matrix_closure), known to all ranks, and [`multiply_mpi`].
///
/// # Panics
/// As [`power_mpi`].
pub fn closure_mpi<T: Element>(
    a: &LocalBlocks<T>,
    what: &MatmulJob<'_, T>,
    world: &World,
    monitor: &Monitor,
) -> Result<(LocalBlocks<T>, RunReport)> {
    let mut squares = Parts { products: Products::new("mpi", what), world, monitor };
    let closure = closure_of(a, what.kernel, &mut squares).map_err(|error| match error {
        // What all ranks read off the same sums.
        Error::Infeasible { .. } | Error::Input { .. } => {
            Error::Agreed { code: error.exit_code(), text: error.to_string() }
        }
        mine => mine,
    })?;
    Ok((closure, squares.products.report))
}

/// As [`matrix_paths`](crate::product::matrix_paths), on the processes of a world: this rank's parts of the lengths and of the
/// predecessors, and the report as for [`multiply_mpi`].
///
/// # Errors
/// As [`closure_mpi`].
///
/// # Panics
/// As [`power_mpi`], and if the matrix has 2^31 rows.
pub fn paths_mpi<T: Element + Tropical>(
    a: &LocalBlocks<T>,
    what: &MatmulJob<'_, PathElement<T>>,
    world: &World,
    monitor: &Monitor,
) -> Result<(LocalBlocks<T>, LocalBlocks<i32>, RunReport)>
where
    PathElement<T>: Element,
{
    let legs = a.iter().map(|(rect, tile)| {
        let width = rect.cols.len() as usize;
        let place =
            |at: usize| (rect.rows.start as usize + at / width, rect.cols.start as usize + at % width);
        let edges = tile.iter().enumerate().map(|(at, &length)| edge(what.kernel, place(at), length));
        (*rect, edges.collect())
    });
    let (legs, report) = closure_mpi(&legs.collect(), what, world, monitor)?;
    let lengths =
        legs.iter().map(|(rect, tile)| (*rect, tile.iter().map(|leg| leg.length).collect())).collect();
    let predecessors = legs.iter().map(|(rect, tile)| (*rect, tile.iter().map(before).collect())).collect();
    Ok((lengths, predecessors, RunReport { element: T::NAME, ..report }))
}

/// Square matrices of which each rank holds its own part.
struct Parts<'a, T> {
    products: Products<'a, T>,
    world: &'a World,
    monitor: &'a Monitor,
}

impl<T: Element> Squares<T> for Parts<'_, T> {
    type Matrix = LocalBlocks<T>;

    fn side(&self, _: &LocalBlocks<T>) -> usize {
        self.products.what.plan.layout.as_ref().map_or(0, |layout| layout.shape().m as usize)
    }

    fn times(&mut self, a: &LocalBlocks<T>, b: &LocalBlocks<T>) -> Result<LocalBlocks<T>> {
        let (c, report) = multiply_mpi((a, b, None), self.products.what, self.world, self.monitor)?;
        self.products.add(report);
        Ok(c)
    }

    fn identity(&self) -> LocalBlocks<T> {
        let what = self.products.what;
        let layout = what.plan.layout.as_ref().expect("a plan of a product has a layout");
        let schedule = MatmulSchedule::new(layout, what.order);
        let zero = |rect: &Rect| (*rect, vec![what.kernel.zero(); rect.area() as usize]);
        let mut parts: LocalBlocks<T> = schedule.rects(Rank(self.world.rank())).iter().map(zero).collect();
        self.map(&mut parts, |on_diagonal, x| if on_diagonal { what.kernel.one() } else { x });
        parts
    }

    fn map(&self, matrix: &mut LocalBlocks<T>, f: impl Fn(bool, T) -> T) {
        for (rect, tile) in matrix {
            let width = rect.cols.len() as usize;
            for (at, x) in tile.iter_mut().enumerate() {
                let (i, j) = (rect.rows.start as usize + at / width, rect.cols.start as usize + at % width);
                *x = f(i == j, *x);
            }
        }
    }

    fn first_on_diagonal(&self, matrix: &LocalBlocks<T>, is: impl Fn(T) -> bool) -> Result<Option<usize>> {
        let mut first = f64::INFINITY;
        each_row(matrix, |i, rect, row| {
            let on_diagonal = (i as u64).checked_sub(rect.cols.start).and_then(|j| row.get(j as usize));
            if on_diagonal.is_some_and(|x| is(*x)) {
                first = first.min(i as f64);
            }
        });
        let first = self.world.combine(&[first], f64::min)?[0];
        Ok(first.is_finite().then_some(first as usize))
    }

    fn same(&self, x: &LocalBlocks<T>, y: &LocalBlocks<T>) -> Result<bool> {
        let differ = f64::from(u8::from(x != y));
        Ok(self.world.combine(&[differ], f64::max)?[0] == 0.0)
    }
}
