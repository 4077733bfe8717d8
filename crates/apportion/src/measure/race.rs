//! Which kernel is the fastest on the processors of a run, found by running each of them there.

use crate::error::Result;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::measure::{MeasureOptions, together};
use crate::platform::Platform;
use crate::run::{Monitor, World};

/// Rounds of a race, so that a disturbance does not meet one kernel only.
const ROUNDS: usize = 2;
/// Seconds for each kernel in each round.
const SECONDS: f64 = 0.12;
/// By this factor another kernel must be faster than the first to be preferred: more than noise, and the first
/// is the one whose results are the same everywhere.
const CLEARLY: f64 = 1.02;

/// The outcome of a race.
#[derive(Debug, Clone)]
pub struct Race<T> {
    /// The fastest kernel; the first unless another is clearly faster (2 %).
    pub fastest: Kernel<T>,
    /// The name of each kernel that took part, and its flop/s on all processors at once, in its better round.
    pub rates: Vec<(String, f64)>,
}

/// Runs each kernel on all processors at once, on tiles of C of `size` elements by pivot blocks of `block`, as a
/// product does, and finds the fastest in total. On several ranks only kernels that all have take part, and all
/// ranks learn the same outcome. A quarter of a second for each kernel.
///
/// # Errors
/// Those of [`measure_kernel`](crate::measure::measure_kernel), on all ranks; interrupted.
///
/// # Panics
/// If no kernel is given, or the first is not given on all ranks.
pub fn fastest<T: Element>(
    kernels: &[Kernel<T>],
    platform: &Platform,
    (size, block): (f64, u64),
    world: &World,
    monitor: &Monitor,
) -> Result<Race<T>> {
    let kernels = on_all_ranks(kernels, world)?;
    let mut rates: Vec<(String, f64)> = kernels.iter().map(|kernel| (kernel.name(), 0.0)).collect();
    let options = MeasureOptions { seconds_per_size: SECONDS, ..MeasureOptions::quick() };
    for _ in 0..if kernels.len() > 1 { ROUNDS } else { 0 } {
        for (kernel, (_, rate)) in kernels.iter().zip(&mut rates) {
            let models =
                together::with_options(*kernel, platform, (&[size], block), options, (world, monitor))?;
            let speeds = models.models.iter().map(|model| {
                let point = model.points()[0];
                point.size / point.seconds
            });
            *rate = rate.max(2.0 * block as f64 * speeds.sum::<f64>());
        }
    }
    let mut best = 0;
    for (i, (_, rate)) in rates.iter().enumerate().skip(1) {
        if *rate > CLEARLY * rates[0].1 && *rate > rates[best].1 {
            best = i;
        }
    }
    Ok(Race { fastest: kernels[best], rates })
}

/// The kernels whose names all ranks have.
fn on_all_ranks<T: Element>(kernels: &[Kernel<T>], world: &World) -> Result<Vec<Kernel<T>>> {
    if world.is_solo() {
        return Ok(kernels.to_vec());
    }
    let names: Vec<String> = kernels.iter().map(Kernel::name).collect();
    let everyone = world.all_gather(names.join("\n").as_bytes())?;
    let everyone: Vec<String> =
        everyone.iter().map(|names| String::from_utf8_lossy(names).into_owned()).collect();
    let known = |name: &str| everyone.iter().all(|names| names.lines().any(|other| other == name));
    // In the order of rank 0, which is the same on all ranks.
    let order = everyone[0].lines().filter(|name| known(name));
    let kernels: Vec<Kernel<T>> =
        order.filter_map(|name| kernels.iter().find(|kernel| kernel.name() == name)).copied().collect();
    assert!(!kernels.is_empty(), "all ranks have the first kernel");
    Ok(kernels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Real, View, ViewMut, gemm};

    /// The product, twenty times.
    fn slow<T: Real>(a: View<T>, b: View<T>, mut c: ViewMut<T>) {
        for _ in 0..20 {
            gemm(a, b, c.reborrow());
        }
    }

    #[test]
    fn the_faster_kernel_wins_in_either_order_and_the_first_wins_a_tie() {
        let monitor = Monitor::new();
        let (world, platform) = (World::solo(&monitor), Platform::from_speeds(&[1.0]).unwrap());
        let quick = Kernel::<f64>::plus_times();
        let slow = quick.with_update(slow::<f64>);
        let run =
            |kernels: &[Kernel<f64>]| fastest(kernels, &platform, (65_536.0, 64), &world, &monitor).unwrap();
        for kernels in [[quick, slow], [slow, quick]] {
            let race = run(&kernels);
            let best = if race.rates[0].1 > race.rates[1].1 { 0 } else { 1 };
            assert_eq!(format!("{:?}", race.fastest), format!("{:?}", kernels[best]));
            assert_eq!(format!("{:?}", race.fastest), format!("{quick:?}"), "twenty times the work");
        }
        let alone = run(&[slow]);
        assert_eq!((alone.rates.len(), alone.rates[0].1), (1, 0.0), "nothing to race against");
    }
}
