//! What a problem takes without a plan: the processor that is fastest alone, with what crosses its link, and an even
//! split. Whether a plan pays is its time compared with the better of the two.

use crate::error::Result;
use crate::model::{Machine, Model, only_ratios};
use crate::plan::shapes::{Columns, Grid, LayoutMethod, Mesh, Triangle};
use crate::plan::shares::{Chain, Limits};
use crate::plan::{Baselines, FastestAlone, Forecast, Layout, Plan, Shape, shares};
use crate::schedule::MatmulSchedule;
use crate::select::{FittedOrder, PlanOptions, affordable, fit_order, forecast_within, imbalance_of};
use crate::simulate::{CostModel, Effort};

/// The plans behind [`Baselines`], with their forecasts.
#[derive(Debug, Clone)]
pub struct BaselinePlans {
    /// All of the product on the processor that is fastest alone; `None` if no memory holds it.
    pub fastest_alone: Option<Plan>,
    /// Equal parts, in the fastest of columns, rows and a grid; `None` if they do not fit, or if there are too many
    /// processors to simulate.
    pub even_split: Option<Plan>,
}

/// Plans a product of `shape` without regard to speeds. Each plan has the forecast of its fastest flow among
/// those that `options` allow.
///
/// # Errors
/// Those of a forecast.
pub fn baseline_plans(shape: Shape, machine: &Machine, options: &PlanOptions) -> Result<BaselinePlans> {
    let problem = Alternatives {
        shape,
        alone: &|weights| Columns::default().layout(shape, weights),
        even: even_layouts(shape, machine.processors())?,
    };
    problem.plans(machine, options)
}

/// The layouts of a product that take no speeds into account.
struct Alternatives<'a> {
    shape: Shape,
    /// That of a single processor, whose weight is 1.
    alone: &'a dyn Fn(&[f64]) -> Result<Layout>,
    /// Those of equal parts.
    even: Vec<Layout>,
}

impl Alternatives<'_> {
    fn plans(self, machine: &Machine, options: &PlanOptions) -> Result<BaselinePlans> {
        let machine = &*machine.with_device_tiles(options.element)?;
        let p = machine.processors();
        let plan = |name: String, layout: Layout, forecast: Forecast| -> Result<Plan> {
            let imbalance = imbalance_of(&machine.models, &layout)?;
            let plan = Plan::of_layout(name, machine.platform.names(), layout, imbalance);
            Ok(Plan { forecast: Some(forecast), ..plan })
        };
        let alone = self.fastest_alone(machine, options)?.map(|(rank, layout, forecast)| {
            plan(format!("{} alone", machine.platform.processors[rank].name), layout, forecast)
        });
        let orders = options.orders().len();
        let affordable = |count: &usize| affordable(p, self.shape, options.block, count * orders);
        let most = (1..=self.even.len()).rev().find(affordable).unwrap_or(0);
        let mut even: Option<(Layout, Forecast)> = None;
        for layout in self.even.into_iter().take(most) {
            let limit = even.as_ref().map_or(f64::INFINITY, |(_, forecast)| forecast.seconds);
            if let Some(forecast) = fastest_forecast(&layout, machine, options, limit)? {
                even = Some((layout, forecast));
            }
        }
        let even = even.map(|(layout, forecast)| plan("even split".into(), layout, forecast));
        Ok(BaselinePlans { fastest_alone: alone.transpose()?, even_split: even.transpose()? })
    }

    /// The processor that ends first with all of the product, which need not be the one that computes it in the least
    /// time: a device waits for its link. Processors are forecast in the order of their computing time, until that
    /// exceeds the least forecast.
    fn fastest_alone(
        &self,
        machine: &Machine,
        options: &PlanOptions,
    ) -> Result<Option<(usize, Layout, Forecast)>> {
        let layout = (self.alone)(&[1.0])?;
        let computing = |rank: usize| {
            let rate = layout.rates(&machine.models[rank..=rank], machine.block)[0];
            (layout.multiply_adds() / rate, rank)
        };
        let mut order: Vec<(f64, usize)> = (0..machine.processors()).map(computing).collect();
        order.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut best: Option<(usize, Forecast)> = None;
        for (least, rank) in order {
            let limit = best.as_ref().map_or(f64::INFINITY, |(_, forecast)| forecast.seconds);
            if least >= limit || !least.is_finite() {
                break;
            }
            if let Some(forecast) = fastest_forecast(&layout, &machine.select(&[rank]), options, limit)? {
                best = Some((rank, forecast));
            }
        }
        let Some((rank, forecast)) = best else { return Ok(None) };
        let of_all = |times: Vec<f64>| {
            (0..machine.processors()).map(|i| if i == rank { times[0] } else { 0.0 }).collect()
        };
        let Forecast { seconds, compute, communicate } = forecast;
        let forecast = Forecast { seconds, compute: of_all(compute), communicate: of_all(communicate) };
        Ok(Some((rank, layout.among(&[rank], machine.processors())?, forecast)))
    }
}

/// Equal parts as somebody would cut them by hand: in columns, with several processors in one where that moves less,
/// in strips across either side, and in the grid that moves least.
fn even_layouts(shape: Shape, processors: usize) -> Result<Vec<Layout>> {
    let weights = vec![1.0; processors];
    let columns = Columns::default().layout(shape, &weights)?;
    let mut layouts = vec![columns];
    let strips = [Mesh::new(1, processors), Mesh::new(processors, 1)].map(Some);
    for mesh in strips.into_iter().chain([None]) {
        let layout = Grid { mesh, ..Grid::default() }.layout(shape, &weights)?;
        if !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    Ok(layouts)
}

/// The forecast of the fastest flow that fits into the processors' memory; `None` if none does or takes less than
/// `limit` seconds, or if a processor cannot do its part: it has a speed of 0, or its model ends before.
fn fastest_forecast(
    layout: &Layout,
    machine: &Machine,
    options: &PlanOptions,
    limit: f64,
) -> Result<Option<Forecast>> {
    let parts = layout.sizes();
    let able = |(model, size): (&Model, &u64)| *size == 0 || model.seconds(*size as f64).is_finite();
    if !machine.models.iter().zip(&parts).all(able) {
        return Ok(None);
    }
    let rates = layout.rates(&machine.models, machine.block);
    let costs = CostModel { rates: &rates, network: &machine.platform.network, element: options.element };
    let mut fastest: Option<Forecast> = None;
    for order in options.orders() {
        let fitted = fit_order(layout, order, &machine.platform, options.element, options.memory);
        let Ok(FittedOrder { order, .. }) = fitted else { continue };
        order.check_layout(layout)?;
        let limit = fastest.as_ref().map_or(limit, |best| best.seconds);
        let found = forecast_within(&MatmulSchedule::new(layout, order), costs, limit, &Effort::unlimited())?;
        fastest = found.filter(|found| found.seconds < limit).or(fastest);
    }
    Ok(fastest)
}

/// The processor that takes the least time for all of `size` units; `None` if none can hold that many.
fn fastest(models: &[Model], size: u64) -> Option<usize> {
    let seconds = |rank: &usize| models[*rank].seconds(size as f64);
    let able = (0..models.len()).filter(|rank| seconds(rank).is_finite());
    able.min_by(|i, j| seconds(i).total_cmp(&seconds(j)))
}

impl Baselines {
    /// The times of a product of `shape` without a plan; `None` where there is nothing to compare: one
    /// processor, or speeds without a unit.
    ///
    /// # Errors
    /// Those of a forecast.
    pub fn of_product(shape: Shape, machine: &Machine, options: &PlanOptions) -> Result<Option<Self>> {
        if machine.processors() < 2 || machine.only_ratios() {
            return Ok(None);
        }
        baseline_plans(shape, machine, options).map(|plans| Some(Self::of_plans(&plans)))
    }

    /// The times of the symmetric product C = A A^T of `shape` without a plan; `None` as for
    /// [`of_product`](Self::of_product).
    ///
    /// # Errors
    /// Those of a forecast.
    pub fn of_symmetric(shape: Shape, machine: &Machine, options: &PlanOptions) -> Result<Option<Self>> {
        if machine.processors() < 2 || machine.only_ratios() {
            return Ok(None);
        }
        let problem = Alternatives {
            shape,
            alone: &|weights| Triangle.layout(shape, weights),
            even: vec![Triangle.layout(shape, &vec![1.0; machine.processors()])?],
        };
        problem.plans(machine, options).map(|plans| Some(Self::of_plans(&plans)))
    }

    fn of_plans(plans: &BaselinePlans) -> Self {
        let seconds = |plan: &Plan| plan.forecast.as_ref().map(|forecast| forecast.seconds);
        let alone = plans.fastest_alone.as_ref().and_then(|plan| {
            let rank = plan.shares.iter().position(|share| *share > 0)?;
            Some(FastestAlone { processor: plan.processors[rank].clone(), seconds: seconds(plan)? })
        });
        Self { fastest_alone: alone, even_split: plans.even_split.as_ref().and_then(seconds) }
    }

    /// The times of `total` independent units without a plan; `None` as for [`of_product`](Self::of_product).
    pub fn of_units(models: &[Model], total: u64) -> Option<Self> {
        if models.len() < 2 || only_ratios(models) || total == 0 {
            return None;
        }
        let alone = fastest(models, total).map(|rank| FastestAlone {
            processor: models[rank].processor().to_owned(),
            seconds: models[rank].seconds(total as f64),
        });
        let even = shares::makespan(models, &shares::even(total, models.len()));
        Some(Self { fastest_alone: alone, even_split: Some(even).filter(|seconds| seconds.is_finite()) })
    }

    /// The times of a chain of units without a plan, where an even split gives each processor as many units; `None` as
    /// for [`of_product`](Self::of_product).
    ///
    /// # Errors
    /// As [`Chain::seconds`].
    pub fn of_chain(
        chain: &Chain,
        models: &[Model],
        limits: &[Limits],
        memory: &[Option<u64>],
    ) -> Result<Option<Self>> {
        let p = models.len();
        if p < 2 || only_ratios(models) {
            return Ok(None);
        }
        let order: Vec<usize> = (0..p).collect();
        let longest = |shares: &[u64]| -> Result<Option<f64>> {
            let seconds = chain.seconds(models, limits, memory, &chain.parts(&order, shares))?;
            Ok(Some(seconds.into_iter().fold(0.0, f64::max)).filter(|seconds| seconds.is_finite()))
        };
        let n = chain.units() as u64;
        let even_split = longest(&shares::even(n, p))?;
        // The fastest by its speed has all if it has room, so that few are tried.
        let mut by_time: Vec<(f64, usize)> = chain.seconds_alone(models)?.into_iter().zip(0..p).collect();
        by_time.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut fastest_alone = None;
        for (_, rank) in by_time {
            let mut shares = vec![0; p];
            shares[rank] = n;
            if let Some(seconds) = longest(&shares)? {
                fastest_alone =
                    Some(FastestAlone { processor: models[rank].processor().to_owned(), seconds });
                break;
            }
        }
        Ok(Some(Self { fastest_alone, even_split }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Network, Platform, Topology, parse_platform};
    use crate::schedule::Flow;

    fn machine(speeds: &[f64], bandwidth: f64) -> Machine {
        let mut platform = Platform::from_speeds(speeds).unwrap();
        platform.network = Network::uniform(0.0, bandwidth);
        let models = speeds.iter().zip(platform.names()).map(|(s, name)| Model::constant(name, *s).unwrap());
        Machine::new(platform.clone(), models.collect(), 1)
    }

    /// 1,000 x 1,000 x 1,000: 1e9 multiply-adds. The fast processor (3e9 a second) takes 1/3 s alone; half of
    /// them take the slow one (1e9 a second) 1/2 s, after its 500,000 + 500,000 elements of 8 bytes in two
    /// directions at once: half of B or A, 4 MB at 8 GB/s.
    #[test]
    fn both_times_by_hand() {
        let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
        let machine = machine(&[3e9, 1e9], 8e9);
        let options = PlanOptions { overlap: false, ..PlanOptions::open(1000, 8) };
        let found = Baselines::of_product(shape, &machine, &options).unwrap().unwrap();
        let alone = found.fastest_alone.clone().unwrap();
        assert_eq!(alone.processor, machine.platform.names()[0]);
        assert!((alone.seconds - 1.0 / 3.0).abs() < 1e-12, "{alone:?}");
        let even = found.even_split.unwrap();
        assert!((even - 0.5 - 0.0005).abs() < 1e-12, "{even}");
        assert_eq!(found.best(), Some(alone.seconds));
    }

    /// The even split's seconds, without overlap, for all communication before all computation.
    fn even(shape: [u64; 3], machine: &Machine) -> f64 {
        let shape = Shape::new(shape[0], shape[1], shape[2], "test").unwrap();
        let options = PlanOptions { flow: Some(Flow::Bulk), overlap: false, ..PlanOptions::open(shape.k, 8) };
        Baselines::of_product(shape, machine, &options).unwrap().unwrap().even_split.unwrap()
    }

    /// Two halves of 1e9 multiply-adds at 1e9 a second: 0.5 s. Of C with 2,000 x 500 elements, columns need the other
    /// half of A (8 MB), rows that of B (2 MB), at 8 GB/s in both directions at once: rows, and columns if C lies on
    /// its side.
    #[test]
    fn an_even_split_is_cut_across_the_long_side() {
        let machine = machine(&[1e9, 1e9], 8e9);
        for shape in [[2000, 1000, 500], [500, 1000, 2000]] {
            let seconds = even(shape, &machine);
            assert!((seconds - 0.5 - 0.00025).abs() < 1e-12, "{shape:?}: {seconds}");
        }
    }

    /// Eight eighths of 2e9 multiply-adds at 1e9 a second: 0.25 s. On 4 x 2 processors a part of C has 500 x 500
    /// elements and needs 500,000 of each of A and B, of which it has 250,000 and 125,000: 625,000 elements of 8 bytes
    /// for each of eight, 40 MB on a bus of 8 GB/s. Rows and 2 x 4 processors take 56 MB, columns 104 MB.
    #[test]
    fn an_even_split_is_a_grid_where_that_moves_less() {
        let mut machine = machine(&[1e9; 8], 8e9);
        machine.platform.network.topology = Topology::Bus;
        let seconds = even([2000, 1000, 1000], &machine);
        assert!((seconds - 0.25 - 0.005).abs() < 1e-12, "{seconds}");
    }

    #[test]
    fn units_by_hand_and_caps() {
        let models = [Model::constant("a", 4.0).unwrap(), Model::constant("b", 1.0).unwrap()];
        let found = Baselines::of_units(&models, 10).unwrap();
        assert_eq!((found.fastest_alone.unwrap().seconds, found.even_split), (2.5, Some(5.0)));
        let capped = [models[0].clone().with_cap(3.0).unwrap(), models[1].clone()];
        let found = Baselines::of_units(&capped, 10).unwrap();
        assert_eq!(found.fastest_alone.map(|alone| alone.processor), Some("b".into()));
        assert_eq!(found.even_split, None, "five units are more than the first can hold");
        assert_eq!(Baselines::of_units(&models[..1], 10), None);
        assert_eq!(Baselines::of_units(&[Model::ratio("a", 2.0).unwrap(), models[1].clone()], 9), None);
    }

    /// An even split gives work to a processor that does none: it is no baseline.
    #[test]
    fn a_processor_that_stands_still_has_no_even_split() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        let machine = machine(&[3e9, 0.0], 8e9);
        let found = Baselines::of_product(shape, &machine, &PlanOptions::open(10, 8)).unwrap().unwrap();
        assert!(found.fastest_alone.is_some() && found.even_split.is_none(), "{found:?}");
    }

    /// A device computes 1,000 cubed in a third of a second, and gets 8 MB for A and for B and returns 8 MB of C at 20
    /// MB/s; the core takes 0.5 s. Of a thousand cores behind it, none is faster.
    #[test]
    fn a_device_alone_waits_for_its_link() {
        let shape = Shape::new(1000, 1000, 1000, "test").unwrap();
        let text = "[[processor]]\nname = \"core\"\n[[processor]]\nname = \"gpu\"\ndevice = \"opencl:0\"\n\
                    [[network.link]]\nbetween = [\"gpu\", \"core\"]\nbandwidth = \"20 MB/s\"\n";
        let more = (0..1000).map(|i| format!("[[processor]]\nname = \"c{i}\"\n")).collect::<String>();
        for text in [text.to_owned(), more + text] {
            let platform = parse_platform(&text, "test").unwrap();
            let speed = |name: &str| match name {
                "gpu" => 3e9,
                "core" => 2e9,
                _ => 1e9,
            };
            let models = platform.names().into_iter().map(|name| {
                let speed = speed(&name);
                Model::constant(name, speed).unwrap()
            });
            let machine = Machine::new(platform.clone(), models.collect(), 1);
            let options = PlanOptions { flow: Some(Flow::Bulk), ..PlanOptions::open(1000, 8) };
            let found = Baselines::of_product(shape, &machine, &options).unwrap().unwrap();
            let alone = found.fastest_alone.unwrap();
            assert_eq!(alone.processor, "core");
            assert!((alone.seconds - 0.5).abs() < 1e-12, "{}", alone.seconds);
        }
    }

    /// A machine of which one processor has no memory for the whole product: the other one has.
    #[test]
    fn a_processor_without_the_memory_is_not_the_fastest_alone() {
        let shape = Shape::new(100, 100, 100, "test").unwrap();
        let mut machine = machine(&[3e9, 1e9], 8e9);
        machine.platform.processors[0].memory = Some(200_000);
        let memory = crate::select::MemoryPolicy::SmallerBlocks(crate::schedule::DataPath::Copied);
        let options = PlanOptions { memory, ..PlanOptions::open(10, 8) };
        let found = Baselines::of_product(shape, &machine, &options).unwrap().unwrap();
        assert_eq!(found.fastest_alone.unwrap().processor, machine.platform.names()[1]);
        assert!(found.even_split.is_some());
    }
}
