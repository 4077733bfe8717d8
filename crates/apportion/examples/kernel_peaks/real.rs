//! Plus-times in double precision against OpenBLAS called directly: on one core, and on two.

#![allow(unsafe_code)]

use crate::clock::{median, seconds, verdict};
use apportion::kernels::Kernel;
use apportion::kernels::{Blas, View, ViewMut};
use apportion::matrix::Matrix;
use apportion::model::Model;
use apportion::plan::shapes::{LayoutMethod, StraightLine};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::product::{MatmulJob, Operands, multiply, whole_block};
use apportion::run::{Monitor, Session, World};
use apportion::schedule::{Flow, ScheduleOptions};
use std::hint::black_box;
use std::time::Instant;

/// Inner indices of an update, as runs have them.
const BLOCK: usize = 256;

/// One line for each size, then the two cores.
pub fn report(turns: usize) {
    let Ok(blas) = Blas::open("openblas") else {
        println!("plus-times: no OpenBLAS to compare with (libopenblas.so.0)");
        return;
    };
    println!("plus-times f64, one core, Gflop/s; by updates of {BLOCK}; OpenBLAS alone in one call");
    println!(
        "{:>6} {:>9} {:>9} {:>9} {:>15} {:>15}",
        "n", "OpenBLAS", "built in", "--blas", "built in/OB", "--blas/OB"
    );
    for n in [512, 1000, 1024, 1500, 2048, 3000] {
        one_core(n, blas, if n < 2000 { turns } else { turns.div_ceil(3) });
    }
    two_cores(2000, blas, turns.div_ceil(3));
}

fn filled(length: usize) -> Vec<f64> {
    (0..length).map(|i| ((i * 31) % 1009) as f64 / 500.0 - 1.0).collect()
}

fn one_core(n: usize, blas: Blas, turns: usize) {
    let (a, b) = (filled(n * n), filled(n * n + 7));
    let mut c = vec![0.0; n * n];
    let flops = 2e-9 * (n as f64).powi(3);
    let mut figures = [const { Vec::new() }; 5];
    for _ in 0..turns {
        let library = flops
            / seconds(|| {
                blas.dgemm(View::dense(&a, n, n), View::dense(&b, n, n), ViewMut::dense(&mut c, n, n));
                black_box(&mut c);
            });
        let mut rate = |kernel: Kernel<f64>| flops / seconds(|| by_updates(kernel, n, (&a, &b), &mut c));
        let (built_in, by_blas) = (rate(Kernel::plus_times()), rate(Kernel::by_blas(blas)));
        let new = [library, built_in, by_blas, built_in / library, by_blas / library];
        figures.iter_mut().zip(new).for_each(|(all, new)| all.push(new));
    }
    let [library, built_in, by_blas, first, second] = figures.map(median);
    println!(
        "{n:>6} {library:>9.1} {built_in:>9.1} {by_blas:>9.1} {first:>7.3} {} {second:>7.3} {}",
        verdict(first, 0.94),
        verdict(second, 0.97)
    );
}

/// The product by updates of one pivot block each; its operands are first copied together, as in a run.
fn by_updates(kernel: Kernel<f64>, n: usize, (a, b): (&[f64], &[f64]), c: &mut [f64]) {
    let mut panel = vec![0.0; n * BLOCK];
    for start in (0..n).step_by(BLOCK) {
        let k = BLOCK.min(n - start);
        for i in 0..n {
            panel[i * k..][..k].copy_from_slice(&a[i * n + start..][..k]);
        }
        let (a, b) = (View::dense(&panel, n, k), View::dense(&b[start * n..], k, n));
        kernel.update(a, b, ViewMut::dense(c, n, n));
    }
    black_box(c);
}

/// Two equal processors of apportion against the library's own two threads, in wall-clock time.
fn two_cores(n: usize, blas: Blas, turns: usize) {
    // SAFETY: the library is the one that `blas` has loaded, and the name is that of a function of one int.
    let threads = unsafe {
        libloading::Library::new("libopenblas.so.0").ok().and_then(|library| {
            library.get::<unsafe extern "C" fn(i32)>(b"openblas_set_num_threads\0").ok().map(|f| *f)
        })
    };
    let Some(set_threads) = threads else { return };
    let shape = Shape::new(n as u64, n as u64, n as u64, "example").expect("a small shape");
    let platform = Platform::from_speeds(&[1.0, 1.0]).expect("two processors");
    let layout = StraightLine.layout(shape, &[1.0, 1.0]).expect("two processors");
    let order = ScheduleOptions::new(Flow::OneToAll, BLOCK as u64);
    let plan = Plan::of_layout("straight-line", platform.names(), layout, 1.0);
    let models = vec![Model::constant("any", 1e9).expect("a positive speed"); 2];
    let [a, b] = [(); 2].map(|()| whole_block(Matrix::new(n, n, filled(n * n))));
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let mut c = vec![0.0; n * n];
    let flops = 2e-9 * (n as f64).powi(3);
    let mut figures = [const { Vec::new() }; 5];
    for _ in 0..turns.max(3) {
        // SAFETY: it only sets a number; no product is under way.
        unsafe { set_threads(2) };
        let start = Instant::now();
        let views = (View::dense(&a[0].1, n, n), View::dense(&b[0].1, n, n));
        blas.dgemm(views.0, views.1, ViewMut::dense(&mut c, n, n));
        let library = flops / start.elapsed().as_secs_f64();
        // SAFETY: as above.
        unsafe { set_threads(1) };
        let rate = |kernel| {
            let job = MatmulJob::new(kernel, &plan, order, &models, 1);
            let session = Session::new(&world, &platform, &monitor, job.work());
            let product = multiply(Operands::new(&a, &b), &job, &session);
            flops / product.expect("the run is never stopped").1.seconds()
        };
        let (built_in, by_blas) = (rate(Kernel::plus_times()), rate(Kernel::by_blas(blas)));
        let new = [library, built_in, by_blas, built_in / library, by_blas / library];
        figures.iter_mut().zip(new).for_each(|(all, new)| all.push(new));
    }
    let [library, built_in, by_blas, first, second] = figures.map(median);
    println!("two cores, n = {n}: OpenBLAS' own threads {library:.1} Gflop/s by the wall");
    println!("  two processors, built in {built_in:.1}: {first:.3} {}", verdict(first, 1.0));
    println!("  two processors, --blas   {by_blas:.1}: {second:.3} {}", verdict(second, 1.0));
}
