//! A matrix product of an MPI program: each process has consecutive rows.

use crate::boundary::{array, count, guard, refuse, to_c, units, value, write};
use crate::world::Adopted;
use apportion::kernels::Kernel;
use apportion::matrix::LocalBlocks;
use apportion::model::Model;
use apportion::plan::{Layout, Part, Plan, Shape};
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, OwnRects, multiply};
use apportion::run::{Fact, Session};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::{Rank, Rect, Result, Span};
use std::ffi::c_int;

/// Columns of A and rows of B that travel at once.
const BLOCK: u64 = 64;

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
        let p = world.size();
        let prepared = (|| {
            let shape = Shape::new(units(m, "m")?, units(k, "k")?, units(n, "n")?, "matmul")?;
            // SAFETY: the caller's promise.
            let rows = cut(unsafe { array(offsets, p + 1, "offsets") }?, shape.m)?;
            let all = Span::new(0, shape.n);
            let part = |(i, rows): (usize, &Span)| Part::new(Rank(i), Rect::new(*rows, all));
            let layout = Layout::new(shape, p, rows.iter().enumerate().map(part))?;
            let schedule = MatmulSchedule::new(&layout, ScheduleOptions::new(Flow::OneToAll, BLOCK));
            let own = OwnRects::of(&schedule, world);
            // SAFETY: the caller's promises.
            let (a, b) = unsafe { (blocks(&own.a, a, "a")?, blocks(&own.b, b, "b")?) };
            if c.is_null() && !own.c.is_empty() {
                return Err(refuse("c", "is a null pointer", "give the address of this process's rows"));
            }
            Ok((layout, a, b))
        })();
        // One process's wrong argument stops all.
        let (layout, a, b) = world.all_ok(prepared)?;
        compare(world, &layout)?;
        let names: Vec<String> = (0..p).map(|i| format!("process {i}")).collect();
        let platform = Platform::from_names(&names);
        let plan = Plan::of_layout("rows", names, layout, 1.0);
        // Speeds do not matter: the cut is given.
        let models = vec![Model::constant("process", 1e9)?; p];
        let order = ScheduleOptions::new(Flow::OneToAll, BLOCK);
        let job = MatmulJob::new(Kernel::<f64>::plus_times(), &plan, order, &models, 1);
        let session = Session::new(world, &platform, monitor, job.work());
        let (product, _) = multiply(Operands::new(&a, &b), &job, &session)?;
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
unsafe fn blocks(rects: &[Rect], elements: *const f64, name: &str) -> Result<LocalBlocks<f64>> {
    let of_one = |rect: &Rect| {
        // SAFETY: the caller's promise.
        let elements = unsafe { array(elements, rect.area() as usize, name) }?;
        Ok((*rect, elements.to_vec()))
    };
    rects.iter().map(of_one).collect()
}

/// Compares the sizes and the cut that the processes gave.
fn compare(world: &apportion::run::World, layout: &Layout) -> Result<()> {
    let Shape { m, k, n } = layout.shape();
    let ends: Vec<u64> = layout.parts().iter().map(|part| part.rows.end).collect();
    let words = vec![format!("m={m}"), format!("k={k}"), format!("n={n}"), format!("ends={ends:?}")];
    world.compare(&[Fact::Words { name: "matmul".into(), words }]).map(drop)
}
