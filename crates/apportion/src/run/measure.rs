//! Measures how fast this machine's processors run a kernel, as a function of size.
//!
//! All processors work together, so that what they share (memory bandwidth, caches, power) is in the figures; each
//! size is repeated until the mean is known well enough (Malik 2016, section 4.5).

use super::clock;
use super::governor::Governor;
use super::kernel::Kernel;
use super::kernels::{Tile, Tropical};
use super::monitor::Monitor;
use super::post::Halt;
use super::threads::parallel;
use crate::error::{Error, Result};
use crate::matrix::Element;
use crate::model::{Model, Models, Point, Summary, summarise};
use crate::platform::{Platform, Processor};
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// When a size has been measured often enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasureOptions {
    /// The 95 % interval must be within this fraction of the mean.
    pub tolerance: f64,
    /// At most so many repetitions of one size.
    pub most_repetitions: u64,
    /// At most about so many seconds on one size.
    pub seconds_per_size: f64,
    /// True to measure one processor after the other instead of all together.
    pub alone: bool,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self { tolerance: 0.025, most_repetitions: 200, seconds_per_size: 2.0, alone: false }
    }
}

impl MeasureOptions {
    /// A quick look: what `matmul` does when it is told nothing.
    pub fn quick() -> Self {
        Self { most_repetitions: 40, seconds_per_size: 0.5, ..Self::default() }
    }
}

/// Shortest repetition, in CPU seconds: long against the clock's resolution and a sleep's error.
const SHORTEST: f64 = 0.004;
/// Fewest repetitions, however long they take.
const FEWEST: usize = 3;

/// Speed functions of `gemm` for element type T: [`measure_kernel`] with [`Kernel::plus_times`].
///
/// # Errors
/// As [`measure_kernel`].
pub fn measure_gemm<T: Element + Tropical>(
    platform: &Platform,
    sizes: &[f64],
    block: u64,
    options: MeasureOptions,
    monitor: &Monitor,
) -> Result<Models> {
    measure_kernel(Kernel::<T>::plus_times(), platform, (sizes, block), options, monitor)
}

/// Speed functions of a kernel: the time of one update of `size` elements of C (as square as
/// whole numbers allow) by a pivot block of `block`, operands copied together first as a run does. Truth values
/// are measured with three in ten true: a product of much fewer is faster.
///
/// The monitor advances by one per size and processor.
///
/// # Errors
/// No size, a size that is not a whole number of at least 1 or too large for memory; interrupted.
pub fn measure_kernel<T: Element>(
    kernel: Kernel<T>,
    platform: &Platform,
    (sizes, block): (&[f64], u64),
    options: MeasureOptions,
    monitor: &Monitor,
) -> Result<Models> {
    let sides = checked_sides::<T>(sizes, block, platform.len())?;
    monitor.begin((sides.len() * platform.len()) as u64);
    let points = if options.alone {
        let mut all = Vec::new();
        for processor in &platform.processors {
            all.extend(together(kernel, &[processor], (&sides, block), options, monitor)?);
        }
        all
    } else {
        let processors: Vec<&Processor> = platform.processors.iter().collect();
        together(kernel, &processors, (&sides, block), options, monitor)?
    };
    let models = platform
        .processors
        .iter()
        .zip(points)
        .map(|(processor, points)| Model::piecewise(&processor.name, points, None))
        .collect::<Result<_>>()?;
    Ok(Models {
        kernel: kernel.name(),
        unit: "C elements updated by one pivot block".into(),
        parameters: BTreeMap::from([("block".into(), block as f64)]),
        models,
    })
}

/// Sides of the squares to measure, distinct and ascending.
fn checked_sides<T>(sizes: &[f64], block: u64, processors: usize) -> Result<Vec<usize>> {
    let refuse = |what: String| Err(Error::input("--sizes", what, "give sizes such as 4096,65536,1000000"));
    let mut sides = Vec::new();
    for &size in sizes {
        if !(size.is_finite() && size >= 1.0) {
            return refuse(format!("{size} is not a size of at least 1"));
        }
        let side = size.sqrt().round();
        let bytes = (side * side + 4.0 * side * block as f64) * size_of::<T>() as f64 * processors as f64;
        if crate::platform::available_memory().is_some_and(|memory| bytes > 0.8 * memory as f64) {
            return refuse(format!(
                "{size} elements of C on {processors} processors need more memory than is free"
            ));
        }
        sides.push(side as usize);
    }
    if sides.is_empty() {
        return refuse("there is no size".into());
    }
    sides.sort_unstable();
    sides.dedup();
    Ok(sides)
}

/// Measures some processors at once: points by processor.
fn together<T: Element>(
    kernel: Kernel<T>,
    processors: &[&Processor],
    (sides, block): (&[usize], u64),
    options: MeasureOptions,
    monitor: &Monitor,
) -> Result<Vec<Vec<Point>>> {
    let halt = Halt::new(monitor);
    let barrier = Barrier::new(processors.len());
    let finished: Vec<AtomicUsize> = sides.iter().map(|_| AtomicUsize::new(0)).collect();
    let everybody = processors.len();
    std::thread::scope(|scope| {
        let threads: Vec<_> = processors
            .iter()
            .map(|processor| {
                let (halt, barrier, finished) = (&halt, &barrier, &finished);
                scope.spawn(move || {
                    clock::pin(&processor.cores);
                    let mut points = Vec::new();
                    for (side, finished) in sides.iter().zip(finished) {
                        let mut bench = Bench::new(kernel, processor, *side, block as usize);
                        barrier.wait();
                        let summary = bench.measure(halt, options);
                        finished.fetch_add(1, Ordering::Relaxed);
                        // Keep the others' conditions until the last has finished. An interrupted worker still
                        // meets the barrier, so that nobody waits for it.
                        while finished.load(Ordering::Relaxed) < everybody && bench.repeat(halt, 1).is_ok() {}
                        barrier.wait();
                        let summary = summary?;
                        halt.monitor().advance(1);
                        points.push(Point {
                            ci: if summary.ci.is_finite() { summary.ci } else { 0.0 },
                            repetitions: summary.count,
                            ..Point::new((side * side) as f64, summary.mean)
                        });
                    }
                    Ok(points)
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("measuring does not panic")).collect()
    })
}

/// One size of one processor.
struct Bench<T> {
    kernel: Kernel<T>,
    side: usize,
    block: usize,
    threads: usize,
    governor: Governor,
    sources: (Vec<T>, Vec<T>),
    operands: (Vec<T>, Vec<T>),
    c: Vec<T>,
}

impl<T: Element> Bench<T> {
    fn new(kernel: Kernel<T>, processor: &Processor, side: usize, block: usize) -> Self {
        // Small numbers of both signs: no overflow, no denormals, however often it is repeated.
        let filled = |length: usize| -> Vec<T> {
            (0..length).map(|i| T::from_f64((i % 13) as f64 / 6.0 - 1.0)).collect()
        };
        let mut c = Vec::new();
        c.resize(side * side, kernel.zero());
        Self {
            kernel,
            side,
            block,
            threads: processor.cores.len().max(1),
            governor: Governor::new(processor.slowdown),
            sources: (filled(side * block), filled(block * side)),
            operands: (filled(side * block), filled(block * side)),
            c,
        }
    }

    /// Seconds per update over `count` updates.
    fn repeat(&mut self, halt: &Halt<'_>, count: u64) -> Result<f64> {
        let (kernel, side, block, threads) = (self.kernel, self.side, self.block, self.threads);
        let start = Instant::now();
        for _ in 0..count {
            halt.check()?;
            let (sources, operands, c) = (&self.sources, &mut self.operands, &mut self.c);
            self.governor.compute(halt, || {
                operands.0.copy_from_slice(&sources.0);
                operands.1.copy_from_slice(&sources.1);
                parallel(
                    kernel,
                    threads,
                    Tile {
                        m: side,
                        k: block,
                        n: side,
                        a: (&operands.0, block),
                        b: (&operands.1, side),
                        c: (c, side),
                    },
                )
            })?;
        }
        Ok(start.elapsed().as_secs_f64() / count as f64)
    }

    fn measure(&mut self, halt: &Halt<'_>, options: MeasureOptions) -> Result<Summary> {
        let begin = Instant::now();
        // Warm-up, and how many updates make a repetition long enough.
        let cpu = clock::thread_cpu_seconds();
        self.repeat(halt, 1)?;
        let once = (clock::thread_cpu_seconds() - cpu).max(1e-7);
        let count = (SHORTEST / once).ceil().clamp(1.0, 1e6) as u64;
        let mut times = Vec::new();
        loop {
            times.push(self.repeat(halt, count)?);
            let summary = summarise(&times);
            let enough = summary.is_within(options.tolerance) && times.len() >= FEWEST;
            let spent = begin.elapsed().as_secs_f64() >= options.seconds_per_size && times.len() >= FEWEST;
            if enough || spent || times.len() as u64 >= options.most_repetitions.max(FEWEST as u64) {
                return Ok(summary);
            }
        }
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

    /// Times themselves are the benches' business: here only that every processor gets a whole, ordered model.
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
                assert!(model.points().iter().all(|p| p.repetitions >= 2 && p.seconds > 0.0 && p.ci >= 0.0));
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
