//! A matrix product of an MPI program: each process has consecutive rows.

use crate::boundary::{array, count, guard, refuse, to_c, units, value, write};
use crate::world::Adopted;
use apportion::geometry::Extent;
use apportion::job::{
    Context, DistributedArray, InputFiles, MatrixJob, MatrixOperand, Operation, ProductTask, Sources,
    compare_inputs,
};
use apportion::kernels::Semiring;
use apportion::matrix::{AnyBlocks, BlockViews};
use apportion::plan::{Layout, Part, Shape};
use apportion::product::OwnRects;
use apportion::{Rank, Rect, Result, Span};
use std::ffi::c_int;

/// The cut of an axis of `length` indices: ends of consecutive parts.
fn cut(offsets: &[i64], length: u64) -> Result<Vec<Span>> {
    let ends = offsets.iter().map(|&x| units(x, "offsets")).collect::<Result<Vec<u64>>>()?;
    if ends[0] != 0 || ends[ends.len() - 1] != length || ends.windows(2).any(|w| w[0] > w[1]) {
        let what = format!("they do not rise from 0 to {length}");
        return Err(refuse("offsets", what, "give the first row of each process, then the number of rows"));
    }
    Ok(ends.windows(2).map(|w| Span::new(w[0], w[1])).collect())
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_matmul_cut(
    m: i64,
    k: i64,
    processors: i64,
    offsets: *const i64,
    offsets_of_b: *mut i64,
) -> c_int {
    guard(|| {
        let p = count(processors, "processors", 1)?;
        let shape = Shape::new(units(m, "m")?, units(k, "k")?, 1, "matmul")?;
        // SAFETY: the caller's promise.
        let rows = cut(unsafe { array(offsets, p + 1, "offsets") }?, shape.m)?;
        let ends = rows.iter().map(|span| span.rescale(shape.m, shape.k).end);
        let all: Vec<u64> = std::iter::once(0).chain(ends).collect();
        // SAFETY: the caller's promise.
        unsafe { write(offsets_of_b, &to_c(&all), "offsets_of_b") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_matmul(
    world: *mut Adopted,
    m: i64,
    k: i64,
    n: i64,
    offsets: *const i64,
    a: *const f64,
    b: *const f64,
    c: *mut f64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let Adopted { world, monitor } = unsafe { value(world, "world") }?;
        let context = Context::silent(world, monitor);
        let prepared = (|| {
            let shape = Shape::new(units(m, "m")?, units(k, "k")?, units(n, "n")?, "matmul")?;
            // SAFETY: the caller's promise.
            let rows = cut(unsafe { array(offsets, world.size() + 1, "offsets") }?, shape.m)?;
            let all = Span::new(0, shape.n);
            let part = |(i, rows): (usize, &Span)| Part::new(Rank(i), Rect::new(*rows, all));
            let layout = Layout::new(shape, rows.len(), rows.iter().enumerate().map(part))?;
            let own = OwnRects::of_layout(&layout, world);
            // SAFETY: the caller's promises.
            let (a, b) = unsafe { (blocks(&own.a, a, "a")?, blocks(&own.b, b, "b")?) };
            if c.is_null() && !own.c.is_empty() {
                return Err(refuse("c", "is a null pointer", "give the address of this process's rows"));
            }
            Ok((layout, a, b))
        })();
        // One process's wrong argument stops all.
        let (layout, a, b) = world.all_ok(prepared)?;
        compare_inputs(words(&layout), Vec::new(), &InputFiles::default(), context)?;
        let Shape { m, k, n } = layout.shape();
        let operand = |name, rows, cols, blocks| MatrixOperand::Distributed {
            name,
            array: DistributedArray::new(Extent { rows, cols }, blocks),
        };
        let task = ProductTask {
            b: Some(operand("b", k, n, b)),
            sources: Sources::of_layout(layout, "offsets", world)?,
            ..ProductTask::new(Operation::Product, Semiring::PlusTimes, operand("a", m, k, a))
        };
        let outcome = MatrixJob::open(&task, context)?.run()?;
        let product = outcome.result.and_then(AnyBlocks::into_blocks::<f64>).unwrap_or_default();
        match product.first() {
            None => Ok(()),
            // SAFETY: the caller promises room for this process's rows.
            Some((_, elements)) => unsafe { write(c, elements, "c") },
        }
    })
}

/// This process's block of a matrix: none, or one of whole rows.
///
/// # Safety
/// As [`array`], for the elements of the rectangle.
unsafe fn blocks<'a>(rects: &[Rect], elements: *const f64, name: &str) -> Result<BlockViews<'a, f64>> {
    let of_one = |rect: &Rect| {
        // SAFETY: the caller's promise.
        Ok((*rect, unsafe { array(elements, rect.area() as usize, name) }?))
    };
    rects.iter().map(of_one).collect()
}

/// The sizes and the cut that a process gave, to be compared with those of the others.
fn words(layout: &Layout) -> Vec<String> {
    let Shape { m, k, n } = layout.shape();
    let ends: Vec<u64> = layout.parts().iter().map(|part| part.rows.end).collect();
    vec![format!("m={m}"), format!("k={k}"), format!("n={n}"), format!("ends={ends:?}")]
}
