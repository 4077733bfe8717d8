//! Measures the speed of a kernel on this machine's processors, as a function of size.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::kernels::{Kernel, Real, View, ViewMut};
use crate::matrix::Element;
use crate::measure::repeated::{Repeat, Repeated, timed};
use crate::measure::sweep;
use crate::measure::sweep::{Keep, MeasureOptions, Sizes, Subject, Sweep, Timing};
use crate::model::Models;
use crate::platform::{Platform, Processor};
use crate::run::Monitor;
use crate::run::mailboxes::StopSignal;
use crate::run::parallel;
use crate::run::throttle::Throttle;
use std::collections::BTreeMap;

/// Speed functions of plus-times products for element type T.
///
/// # Errors
/// As [`measure_kernel`].
pub fn measure_gemm<T: Real>(
    platform: &Platform,
    sizes: &[f64],
    block: u64,
    options: MeasureOptions,
    monitor: &Monitor,
) -> Result<Models> {
    measure_kernel(Kernel::<T>::plus_times(), platform, (sizes, block), options, monitor)
}

/// Speed functions of a kernel: the time of one update of `size` elements of C (as square as whole numbers
/// allow) by a pivot block of `block`. As in a run, the pivot blocks are read in place in larger factors, a
/// different block each time. Operands therefore come from memory, not from a cache that the last update
/// filled. Boolean matrices are measured with 30 % true elements: a product with much fewer is faster.
///
/// The monitor advances by one per size and processor.
///
/// # Errors
/// No size; a size that is not a whole number of at least 1, or too large for memory; interrupted.
pub fn measure_kernel<T: Element>(
    kernel: Kernel<T>,
    platform: &Platform,
    (sizes, block): (&[f64], u64),
    options: MeasureOptions,
    monitor: &Monitor,
) -> Result<Models> {
    let sweep = Sweep::new(Sizes::Listed(sizes.to_vec()), options);
    sweep_kernel(kernel, (platform, block), &sweep, &mut |_| Ok(()), monitor)
}

/// [`measure_kernel`] with adaptive sizes, points of an earlier sweep, and a callback that saves each point
/// as it is measured.
///
/// # Errors
/// As [`measure_kernel`]; known points of another subject; errors of `keep`.
pub fn sweep_kernel<T: Element>(
    kernel: Kernel<T>,
    (platform, block): (&Platform, u64),
    sweep: &Sweep<'_>,
    keep: &mut Keep<'_>,
    monitor: &Monitor,
) -> Result<Models> {
    // An adaptive sweep searches for the largest size that fits; all listed sizes must fit.
    check_sizes::<T>(&sweep.sizes.certain(), block, platform.len())?;
    let subject = Subject {
        platform,
        kernel: kernel.name(),
        unit: "C elements updated by one pivot block".into(),
        parameters: BTreeMap::from([("block".into(), block as f64)]),
        rounded: |size| size.sqrt().round().powi(2),
        largest: &|processor| largest::<T>(processor, block, platform.len()),
    };
    let trial = |processor: &Processor, at, size: f64| {
        Repeated::new(Bench::new(kernel.on(Rank(at)), processor, size.sqrt() as usize, block as usize))
    };
    sweep::run(&subject, sweep, trial, keep, monitor)
}

/// Refuses sizes that cannot be measured.
fn check_sizes<T>(sizes: &[f64], block: u64, processors: usize) -> Result<()> {
    let refuse = |what: String| Err(Error::input("`sizes`", what, "give sizes such as 4096,65536,1000000"));
    for &size in sizes {
        if !(size.is_finite() && size >= 1.0) {
            return refuse(format!("size {size} is not at least 1"));
        }
        if bytes::<T>(size, block) > memory(processors) {
            return refuse(format!(
                "{size} elements of C on {processors} processors need more memory than is free"
            ));
        }
    }
    if sizes.is_empty() {
        return refuse("no size is given".into());
    }
    Ok(())
}

/// Bytes that a processor needs for a size: C and the factors.
fn bytes<T>(size: f64, block: u64) -> f64 {
    let side = size.sqrt().round();
    let one = side * block as f64;
    let blocks = blocks::<T>(side as usize, block as usize) as f64;
    (side * side + 2.0 * blocks * one) * size_of::<T>() as f64
}

/// Bytes of both factors, so large that no cache is expected to keep a pivot block from one use to the next.
const COLD: usize = 64 << 20;

/// Number of pivot blocks in the factors of an update of side x side: that of a square product, but no more
/// than needed to keep the caches cold.
fn blocks<T>(side: usize, block: usize) -> usize {
    let one = 2 * side.saturating_mul(block).saturating_mul(size_of::<T>());
    COLD.div_ceil(one.max(1)).min(side.div_ceil(block)).max(1)
}

/// Bytes of this machine's memory that each of `processors` processors may take.
pub(super) fn memory(processors: usize) -> f64 {
    crate::platform::available_memory().map_or(f64::INFINITY, |free| 0.8 * free as f64 / processors as f64)
}

/// The largest size that fits into the processor's own memory and its part of this machine's.
fn largest<T>(processor: &Processor, block: u64, processors: usize) -> f64 {
    let own = processor.memory.map_or(f64::INFINITY, |bytes| bytes as f64);
    let elements = own.min(memory(processors)) / size_of::<T>() as f64;
    let twice = 2.0 * block as f64;
    // side^2 + 4 side block <= elements. The factors beyond one block of each are not counted: they are no
    // part of the processor's work. Infinite if the memory is unknown.
    ((elements + twice * twice).sqrt() - twice).powi(2).max(1.0)
}

/// One size of one processor.
struct Bench<T> {
    kernel: Kernel<T>,
    side: usize,
    block: usize,
    threads: usize,
    slowdown: f64,
    governor: Throttle,
    /// A, side x (blocks block), and B, (blocks block) x side.
    sources: (Vec<T>, Vec<T>),
    blocks: usize,
    /// The pivot block of the next update.
    next: usize,
    c: Vec<T>,
}

impl<T: Element> Bench<T> {
    fn new(kernel: Kernel<T>, processor: &Processor, side: usize, block: usize) -> Self {
        // Small numbers of both signs: no overflow and no denormals after any number of repetitions.
        let filled = |length: usize| -> Vec<T> {
            (0..length).map(|i| T::from_f64((i % 13) as f64 / 6.0 - 1.0)).collect()
        };
        let mut c = Vec::new();
        c.resize(side * side, kernel.zero());
        let blocks = blocks::<T>(side, block);
        Self {
            kernel,
            side,
            block,
            threads: processor.cores.len().max(1),
            slowdown: processor.slowdown,
            governor: Throttle::new(processor.slowdown),
            sources: (filled(side * blocks * block), filled(blocks * block * side)),
            blocks,
            next: 0,
            c,
        }
    }
}

impl<T: Element> Repeat for Bench<T> {
    fn repeat(&mut self, halt: &StopSignal<'_>, count: u64) -> Result<Timing> {
        let Self { kernel, side, block, threads, slowdown, blocks, .. } = *self;
        timed(halt, (count, slowdown), || {
            let (sources, c) = (&self.sources, &mut self.c);
            let (width, first) = (blocks * block, self.next * block);
            self.next = (self.next + 1) % blocks;
            self.governor.try_compute(halt, None, || {
                let a = View::dense(&sources.0, side, width).tile(0, first, side, block);
                let b = View::dense(&sources.1[first * side..], block, side);
                parallel::try_update(kernel, threads, a, b, ViewMut::dense(c, side, side))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slowed(slowdowns: &[f64]) -> Platform {
        let mut platform = Platform::from_speeds(&vec![1.0; slowdowns.len()]).unwrap();
        for (processor, &slowdown) in platform.processors.iter_mut().zip(slowdowns) {
            processor.slowdown = slowdown;
        }
        platform
    }

    /// The benchmarks check the times. This test only checks that every processor gets a complete, ordered
    /// model.
    #[test]
    fn every_processor_gets_a_model() {
        for alone in [false, true] {
            let options = MeasureOptions { seconds_per_size: 0.05, alone, ..MeasureOptions::quick() };
            let monitor = Monitor::new();
            let sizes = [900.0, 100.0, 99.0];
            let models = measure_gemm::<f64>(&slowed(&[1.0, 3.0]), &sizes, 16, options, &monitor).unwrap();
            assert_eq!(models.names(), ["p0", "p1"]);
            assert_eq!((models.block(), models.kernel.as_str()), (Some(16), "gemm-f64"));
            for model in &models.models {
                let measured: Vec<f64> = model.points().iter().map(|p| p.size).collect();
                assert_eq!(measured, [100.0, 900.0], "99 and 100 are the same square");
                assert!(
                    model.points().iter().all(|p| p.repetitions >= 2 && p.seconds > 0.0 && p.ci >= Some(0.0))
                );
            }
            assert_eq!(monitor.progress(), (4, 4));
        }
    }

    #[test]
    fn bad_sizes_and_interrupts_are_errors() {
        let options = MeasureOptions::quick();
        for bad in [vec![], vec![0.0], vec![f64::NAN], vec![1e30]] {
            let error = measure_gemm::<f64>(&slowed(&[1.0]), &bad, 64, options, &Monitor::new()).unwrap_err();
            assert_eq!(error.exit_code(), 2);
        }
        let monitor = Monitor::new();
        monitor.stop();
        let error = measure_gemm::<f32>(&slowed(&[1.0, 2.0]), &[100.0], 64, options, &monitor).unwrap_err();
        assert!(matches!(error, Error::Interrupted));
    }
}
