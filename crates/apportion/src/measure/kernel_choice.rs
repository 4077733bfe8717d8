//! The choice of the fastest kernel on the processors of a run, by running each of them there.

use crate::error::Result;
use crate::kernels::Kernel;
use crate::matrix::Element;
use crate::measure::quick::measure_on_world;
use crate::measure::repetition::{MeasureOptions, Sampler, StoppingRule};
use crate::measure::workload::KernelUpdate;
use crate::model::{Model, Models};
use crate::platform::Platform;
use crate::run::{Monitor, World};

/// Rounds of a comparison, so that a disturbance does not meet one kernel only.
const ROUNDS: usize = 2;
/// Seconds for each kernel in each round.
const SECONDS: f64 = 0.12;
/// By this factor another kernel must be faster than the first to be preferred: more than noise, and the
/// first is the one whose results are the same everywhere.
const CLEARLY: f64 = 1.02;

/// By this factor another kernel must be faster on a processor, in each round, for the processor to depart
/// from the kernel of its process: more than cores of the same kind differ by from moment to moment.
const CLEARLY_HERE: f64 = 1.1;

/// The fastest kernels of those that were compared.
#[derive(Debug, Clone)]
pub struct KernelChoice<T> {
    /// Of the kernels that all ranks have, the fastest in total; the first unless another is clearly faster
    /// (2 %).
    pub fastest: Kernel<T>,
    /// The fastest kernel on this process's processors, by the same rule: ranks on unlike hosts may differ.
    pub(crate) own: Kernel<T>,
    /// The kernel of each of this process's processors: `own`, unless another is faster there by a tenth in
    /// each round, as on cores of another kind.
    pub(crate) by_processor: Vec<Kernel<T>>,
    /// The rate of each kernel that all ranks have.
    pub rates: Vec<KernelRate>,
}

/// How fast a kernel is.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelRate {
    /// Its name.
    pub name: String,
    /// Its flop/s on all processors at once, in its better round; 0 if there was nothing to compare.
    pub flops_per_second: f64,
}

/// Runs each kernel on all processors at once, on tiles of C of `size` elements by pivot blocks of `block`,
/// as a product does, and finds the fastest. Ranks may have different kernels: each runs its own. A quarter
/// of a second for each kernel.
///
/// # Errors
/// Those of [`measure_speeds`](super::measure_speeds), on all ranks; interrupted.
///
/// # Panics
/// If no kernel is given, or the first is not given on all ranks.
pub fn choose_kernel<T: Element>(
    kernels: &[Kernel<T>],
    platform: &Platform,
    size: f64,
    block: u64,
    world: &World,
    monitor: &Monitor,
) -> Result<KernelChoice<T>> {
    let Candidates { kernels, common, most } = Candidates::of(kernels, world)?;
    let here = world.processors_here(platform.len());
    let options = MeasureOptions { seconds_per_size: SECONDS, ..MeasureOptions::quick() };
    let measure = |i: usize| {
        // A rank with fewer kernels keeps its processors busy meanwhile.
        let kernel = kernels.get(i).copied().unwrap_or(kernels[0]);
        measure_on_world(&KernelUpdate { kernel, block }, platform, &[size], options, world, monitor)
    };
    let rounds = match most {
        1 => Vec::new(),
        _ => Sampler::new(StoppingRule::times(ROUNDS))
            .run(|_| false, || (0..most).map(measure).collect::<Result<Vec<Models>>>())?,
    };
    let speed = |model: &Model| model.points()[0].size / model.points()[0].seconds;
    // In total and of this process, in the better round.
    let mut rates = vec![[0.0f64; 2]; most];
    // Of each processor of this process, in the worse and in the better round.
    let mut ranges = vec![vec![[f64::INFINITY, 0.0]; here.len()]; most];
    for (i, Models { models, .. }) in rounds.iter().flat_map(|round| round.iter().enumerate()) {
        let total = |models: &[Model]| 2.0 * block as f64 * models.iter().map(speed).sum::<f64>();
        let found = [total(models), total(&models[here.clone()])];
        rates[i] = std::array::from_fn(|t| rates[i][t].max(found[t]));
        for ([worse, better], model) in ranges[i].iter_mut().zip(&models[here.clone()]) {
            (*worse, *better) = (worse.min(speed(model)), better.max(speed(model)));
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
        let (mut least, mut best) = (CLEARLY_HERE * ranges[own][processor][1], kernels[own]);
        for (kernel, range) in kernels.iter().zip(&ranges) {
            let worse = range[processor][0];
            if worse.is_finite() && worse > least {
                (least, best) = (worse, *kernel);
            }
        }
        best
    };
    let rate = |(kernel, rates): (&Kernel<T>, &[f64; 2])| KernelRate {
        name: kernel.name(),
        flops_per_second: rates[0],
    };
    Ok(KernelChoice {
        fastest: kernels[best(common, 0)],
        own: kernels[own],
        by_processor: (0..here.len()).map(on).collect(),
        rates: kernels[..common].iter().zip(&rates).map(rate).collect(),
    })
}

/// The kernels that this rank runs.
struct Candidates<T> {
    /// Those that all ranks have, in the order of rank 0, and then this rank's others.
    kernels: Vec<Kernel<T>>,
    /// Number of those that all ranks have.
    common: usize,
    /// The largest number of kernels of a rank.
    most: usize,
}

impl<T: Element> Candidates<T> {
    fn of(kernels: &[Kernel<T>], world: &World) -> Result<Self> {
        if world.is_solo() {
            return Ok(Self { kernels: kernels.to_vec(), common: kernels.len(), most: kernels.len() });
        }
        let names: Vec<String> = kernels.iter().map(Kernel::name).collect();
        let everyone = world.all_gather_texts(&names.join("\n"))?;
        let known = |name: &str| everyone.iter().all(|names| names.lines().any(|other| other == name));
        let (mut candidates, mut rest) = (Vec::new(), kernels.to_vec());
        for name in everyone[0].lines().filter(|name| known(name)) {
            if let Some(at) = rest.iter().position(|kernel| kernel.name() == name) {
                candidates.push(rest.remove(at));
            }
        }
        let common = candidates.len();
        assert!(common > 0, "all ranks have the first kernel");
        candidates.extend(rest);
        let most = everyone.iter().map(|names| names.lines().count()).max().unwrap_or(common);
        Ok(Self { kernels: candidates, common, most })
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
        let run = |kernels: &[Kernel<f64>]| {
            choose_kernel(kernels, &platform, 65_536.0, 64, &world, &monitor).unwrap()
        };
        for kernels in [[quick, slow], [slow, quick]] {
            let choice = run(&kernels);
            let best =
                if choice.rates[0].flops_per_second > choice.rates[1].flops_per_second { 0 } else { 1 };
            assert_eq!(format!("{:?}", choice.fastest), format!("{:?}", kernels[best]));
            assert_eq!(format!("{:?}", choice.fastest), format!("{quick:?}"), "twenty times the work");
        }
        for kernels in [[quick, slow], [slow, quick]] {
            let choice = run(&kernels);
            assert_eq!(format!("{:?}", choice.own), format!("{quick:?}"), "one process has all processors");
        }
        let alone = run(&[slow]);
        assert_eq!((alone.rates.len(), alone.rates[0].flops_per_second), (1, 0.0), "nothing to compare with");
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
        let choice =
            choose_kernel(&kernels, &platform, 65_536.0, 64, &World::solo(&monitor), &monitor).unwrap();
        let chosen: Vec<String> = choice.by_processor.iter().map(|kernel| format!("{kernel:?}")).collect();
        assert_eq!(chosen, [1, 0].map(|at| format!("{:?}", kernels[at])));
    }

    /// Rank 1 has a slow kernel that all have, and a quick one of its own; on rank 0 the common one is quick.
    #[test]
    fn ranks_keep_their_own_winners() {
        let (monitor, platform) = (Monitor::new(), Platform::from_speeds(&[1.0, 1.0]).unwrap());
        let quick = Kernel::<f64>::plus_times();
        let slow = quick.with_update(slow::<f64>);
        let choices = World::threads(2, &monitor, |world| {
            let kernels = if world.rank() == 0 { vec![quick] } else { vec![slow, quick] };
            let choice = choose_kernel(&kernels, &platform, 65_536.0, 64, world, &monitor)?;
            Ok((format!("{:?}", choice.own), choice.rates.len(), format!("{:?}", choice.fastest)))
        })
        .unwrap();
        let [of_quick, of_slow] = [quick, slow].map(|kernel| format!("{kernel:?}"));
        assert_eq!(choices[0], (of_quick.clone(), 1, of_quick.clone()));
        assert_eq!(choices[1], (of_quick, 1, of_slow), "the only common kernel is rank 1's slow one");
    }
}
