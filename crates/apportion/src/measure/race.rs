//! Which kernel is the fastest on the processors of a run, found by running each of them there.

use crate::error::Result;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::measure::{MeasureOptions, together};
use crate::model::Model;
use crate::platform::Platform;
use crate::run::{Monitor, World};

/// Rounds of a race, so that a disturbance does not meet one kernel only.
const ROUNDS: usize = 2;
/// Seconds for each kernel in each round.
const SECONDS: f64 = 0.12;
/// By this factor another kernel must be faster than the first to be preferred: more than noise, and the
/// first is the one whose results are the same everywhere.
const CLEARLY: f64 = 1.02;

/// By this factor another kernel must be faster on a processor, in each round, for the processor to depart
/// from the kernel of its process: more than cores of the same kind differ by from moment to moment.
const APART: f64 = 1.1;

/// The outcome of a race.
#[derive(Debug, Clone)]
pub struct Race<T> {
    /// Of the kernels that all ranks have, the fastest in total; the first unless another is clearly faster
    /// (2 %).
    pub fastest: Kernel<T>,
    /// The fastest kernel on this process's processors, by the same rule: ranks on unlike hosts may differ.
    pub own: Kernel<T>,
    /// The kernel of each of this process's processors: `own`, unless another is faster there by a tenth in
    /// each round, as on cores of another kind.
    pub by_processor: Vec<Kernel<T>>,
    /// The name of each kernel that all ranks have, and its flop/s on all processors at once, in its better
    /// round.
    pub rates: Vec<(String, f64)>,
}

/// Runs each kernel on all processors at once, on tiles of C of `size` elements by pivot blocks of `block`,
/// as a product does, and finds the fastest. Ranks may have different kernels: each runs its own. A quarter
/// of a second for each kernel.
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
    let Entrants { kernels, common, most } = Entrants::of(kernels, world)?;
    let here = world.processors_here(platform.len());
    // In total and of this process, in the better round.
    let mut rates = vec![[0.0f64; 2]; most];
    // Of each processor of this process, in the worse and in the better round.
    let mut ranges = vec![vec![[f64::INFINITY, 0.0]; here.len()]; most];
    let options = MeasureOptions { seconds_per_size: SECONDS, ..MeasureOptions::quick() };
    for _ in 0..if most > 1 { ROUNDS } else { 0 } {
        for (i, rates) in rates.iter_mut().enumerate() {
            // A rank with fewer kernels keeps its processors busy meanwhile.
            let kernel = kernels.get(i).copied().unwrap_or(kernels[0]);
            let models =
                together::with_options(kernel, platform, (&[size], block), options, (world, monitor))?;
            let speed = |model: &Model| model.points()[0].size / model.points()[0].seconds;
            let total = |models: &[Model]| 2.0 * block as f64 * models.iter().map(speed).sum::<f64>();
            let found = [total(&models.models), total(&models.models[here.clone()])];
            *rates = std::array::from_fn(|t| rates[t].max(found[t]));
            for ([worse, better], model) in ranges[i].iter_mut().zip(&models.models[here.clone()]) {
                (*worse, *better) = (worse.min(speed(model)), better.max(speed(model)));
            }
        }
    }
    let best = |among: usize, t: usize| {
        let mut best = 0;
        for i in 1..among {
            if rates[i][t] > CLEARLY * rates[0][t] && rates[i][t] > rates[best][t] {
                best = i;
            }
        }
        best
    };
    let own = best(kernels.len(), 1);
    let on = |processor: usize| {
        let (mut least, mut best) = (APART * ranges[own][processor][1], kernels[own]);
        for (kernel, range) in kernels.iter().zip(&ranges) {
            let worse = range[processor][0];
            if worse.is_finite() && worse > least {
                (least, best) = (worse, *kernel);
            }
        }
        best
    };
    let named = kernels[..common].iter().zip(&rates).map(|(kernel, rates)| (kernel.name(), rates[0]));
    Ok(Race {
        fastest: kernels[best(common, 0)],
        own: kernels[own],
        by_processor: (0..here.len()).map(on).collect(),
        rates: named.collect(),
    })
}

/// The kernels of a race on this rank.
struct Entrants<T> {
    /// Those that all ranks have, in the order of rank 0, and then this rank's others.
    kernels: Vec<Kernel<T>>,
    /// Number of those that all ranks have.
    common: usize,
    /// The largest number of kernels of a rank.
    most: usize,
}

impl<T: Element> Entrants<T> {
    fn of(kernels: &[Kernel<T>], world: &World) -> Result<Self> {
        if world.is_solo() {
            return Ok(Self { kernels: kernels.to_vec(), common: kernels.len(), most: kernels.len() });
        }
        let names: Vec<String> = kernels.iter().map(Kernel::name).collect();
        let everyone = world.all_gather(names.join("\n").as_bytes())?;
        let everyone: Vec<String> =
            everyone.iter().map(|names| String::from_utf8_lossy(names).into_owned()).collect();
        let known = |name: &str| everyone.iter().all(|names| names.lines().any(|other| other == name));
        let (mut entrants, mut rest) = (Vec::new(), kernels.to_vec());
        for name in everyone[0].lines().filter(|name| known(name)) {
            if let Some(at) = rest.iter().position(|kernel| kernel.name() == name) {
                entrants.push(rest.remove(at));
            }
        }
        let common = entrants.len();
        assert!(common > 0, "all ranks have the first kernel");
        entrants.extend(rest);
        let most = everyone.iter().map(|names| names.lines().count()).max().unwrap_or(common);
        Ok(Self { kernels: entrants, common, most })
    }
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
        for kernels in [[quick, slow], [slow, quick]] {
            let race = run(&kernels);
            assert_eq!(format!("{:?}", race.own), format!("{quick:?}"), "one process has all processors");
        }
        let alone = run(&[slow]);
        assert_eq!((alone.rates.len(), alone.rates[0].1), (1, 0.0), "nothing to race against");
    }

    #[cfg(target_os = "linux")]
    static FIRST: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

    /// Twenty times the work on the first core, or on all others.
    #[cfg(target_os = "linux")]
    fn slow_on<const ON_FIRST: bool>(a: View<f64>, b: View<f64>, c: ViewMut<f64>) {
        let first = FIRST.load(std::sync::atomic::Ordering::SeqCst);
        let on_first = rustix::thread::sched_getcpu() == first;
        if on_first == ON_FIRST { slow(a, b, c) } else { gemm(a, b, c) }
    }

    /// Cores of two kinds, each of which one of two kernels suits.
    #[cfg(target_os = "linux")]
    #[test]
    fn unlike_cores_keep_their_own_winners() {
        let cores = crate::platform::discover().cores;
        let [Some(one), Some(two)] = [cores.first(), cores.get(1)].map(|core| core.map(|core| core.cpu))
        else {
            return;
        };
        FIRST.store(one, std::sync::atomic::Ordering::SeqCst);
        let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
        platform.processors[0].cores = vec![one];
        platform.processors[1].cores = vec![two];
        let (monitor, plain) = (Monitor::new(), Kernel::<f64>::plus_times());
        let kernels = [plain.with_update(slow_on::<true>), plain.with_update(slow_on::<false>)];
        let race = fastest(&kernels, &platform, (65_536.0, 64), &World::solo(&monitor), &monitor).unwrap();
        let chosen: Vec<String> = race.by_processor.iter().map(|kernel| format!("{kernel:?}")).collect();
        assert_eq!(chosen, [1, 0].map(|at| format!("{:?}", kernels[at])));
    }

    /// Rank 1 has a slow kernel that all have, and a quick one of its own; on rank 0 the common one is quick.
    #[test]
    fn ranks_keep_their_own_winners() {
        let (monitor, platform) = (Monitor::new(), Platform::from_speeds(&[1.0, 1.0]).unwrap());
        let quick = Kernel::<f64>::plus_times();
        let slow = quick.with_update(slow::<f64>);
        let races = World::threads(2, &monitor, |world| {
            let kernels = if world.rank() == 0 { vec![quick] } else { vec![slow, quick] };
            let race = fastest(&kernels, &platform, (65_536.0, 64), world, &monitor)?;
            Ok((format!("{:?}", race.own), race.rates.len(), format!("{:?}", race.fastest)))
        })
        .unwrap();
        let [of_quick, of_slow] = [quick, slow].map(|kernel| format!("{kernel:?}"));
        assert_eq!(races[0], (of_quick.clone(), 1, of_quick.clone()));
        assert_eq!(races[1], (of_quick, 1, of_slow), "the only common kernel is rank 1's slow one");
    }
}
