//! Kernels on one core: plus-times beside OpenBLAS, called directly, and the default beside the best.

use super::Row;
use apportion::kernels::{Blas, Kernel, Real, View, ViewMut};
use apportion::matrix::Element;
use apportion::measure::choose_kernel;
use apportion::platform::Platform;
use apportion::run::{Monitor, World};
use harness::clock::seconds;
use harness::median;
use std::hint::black_box;

/// Inner indices of an update, as runs have them.
const BLOCK: usize = 256;

pub fn rows(quick: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    match Blas::open("openblas") {
        Ok(blas) => {
            let sizes: &[usize] = if quick { &[512, 1000, 2000] } else { &[512, 1000, 2000, 3000, 4000] };
            for &n in sizes {
                rows.push(built_in::<f64>(n, blas));
            }
            rows.push(built_in::<f32>(1000, blas));
        }
        Err(_) => eprintln!("kernels: no OpenBLAS (libopenblas.so.0); its rows are left out"),
    }
    rows.extend(default());
    rows
}

fn filled<T: Element>(length: usize) -> Vec<T> {
    (0..length).map(|i| T::from_f64((i * 31 % 1009) as f64 / 500.0 - 1.0)).collect()
}

/// The built-in kernel by pivot blocks relative to the library in one call.
fn built_in<T: Real>(n: usize, blas: Blas) -> Row {
    let (a, b) = (filled::<T>(n * n), filled::<T>(n * n));
    let (mut c, mut panel) = (vec![T::ZERO; n * n], vec![T::ZERO; n * BLOCK]);
    let times = (4e9 / (n as f64).powi(3)).ceil() as usize;
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let library = seconds(|| {
            for _ in 0..times {
                T::by_blas(&blas, View::dense(&a, n, n), View::dense(&b, n, n), ViewMut::dense(&mut c, n, n));
                black_box(&mut c);
            }
        });
        let own = seconds(|| (0..times).for_each(|_| by_updates((&a, &b), n, &mut panel, &mut c)));
        ratios.push(library / own);
    }
    let ratio = median(ratios);
    (format!("plus-times {}, n = {n}, one core, of OpenBLAS' speed", T::NAME), ratio, 0.94, ratio >= 0.94)
}

/// The product by updates of one pivot block each; operands are first copied together, as in a run by
/// messages.
fn by_updates<T: Real>((a, b): (&[T], &[T]), n: usize, panel: &mut [T], c: &mut [T]) {
    for start in (0..n).step_by(BLOCK) {
        let k = BLOCK.min(n - start);
        for i in 0..n {
            panel[i * k..][..k].copy_from_slice(&a[i * n + start..][..k]);
        }
        let (a, b) = (View::dense(panel, n, k), View::dense(&b[start * n..], k, n));
        Kernel::plus_times().update(a, b, ViewMut::dense(c, n, n));
    }
    black_box(c);
}

/// The kernel that is chosen on all cores, relative to the fastest in another comparison.
fn default() -> Option<Row> {
    let monitor = Monitor::new();
    let (world, platform) = (World::solo(&monitor), Platform::from_speeds(&[1.0, 1.0]).ok()?);
    let libraries = Blas::all().into_iter().map(Kernel::by_blas);
    let kernels: Vec<Kernel<f64>> = std::iter::once(Kernel::plus_times()).chain(libraries).collect();
    let choose = || choose_kernel(&kernels, &platform, 262_144.0, BLOCK as u64, &world, &monitor);
    let (chosen, again) = (choose().ok()?.fastest.name(), choose().ok()?);
    let best = again.rates.iter().map(|rate| rate.flops_per_second).fold(0.0, f64::max);
    let own = again.rates.iter().find(|rate| rate.name == chosen)?.flops_per_second;
    let ratio = if best > 0.0 { own / best } else { 1.0 };
    Some((
        format!("the default ({chosen}) on two threads, of the best of {}", kernels.len()),
        ratio,
        0.97,
        ratio >= 0.97,
    ))
}
