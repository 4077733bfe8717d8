//! Plans of a symmetric product C = A A^T: strips of its lower triangle, among all processors or the fastest of them.

use crate::error::Result;
use crate::geometry::Rank;
use crate::model::{Machine, Model};
use crate::plan::shapes::{LayoutMethod, Triangle};
use crate::plan::{Baselines, Layout, Shape, shares};
use crate::select::appraisal::Appraiser;
use crate::select::improve::{LeftOut, prefer_fewer};
use crate::select::{
    Choice, FittedOrder, PlanOptions, affordable, fit_order, forecast, in_order_of_preference,
};
use crate::simulate::CostModel;

/// The name of the method.
const METHOD: &str = "triangle";

/// Maps C = A A^T, where A is m x k and C is m x m, to the machine's processors by their models (`size` in elements
/// of C), and returns all candidates, the best first: every order of steps that `options` allow. Where speeds have
/// units, the fastest processors without the others are candidates too, unless all are to be kept.
///
/// # Errors
/// The models' caps cannot hold the triangle, or no order of steps fits into the processors' memory: exit code 1.
///
/// # Panics
/// If m and n differ.
pub fn plan_symmetric(shape: Shape, machine: &Machine, options: &PlanOptions) -> Result<Vec<Choice>> {
    assert_eq!(shape.m, shape.n, "a symmetric C is square");
    let machine = machine.with_device_tiles(options.element)?;
    let machine = machine.as_ref();
    let (ranks, orders) = (fastest_first(machine, shape), options.orders());
    let simulated = |forecasts| affordable(machine.processors(), shape, options.block, forecasts);
    let fewer = !options.keep_all && !machine.only_ratios() && simulated(orders.len() * ranks.len());
    let least = if fewer { 1 } else { ranks.len() };
    let (mut choices, mut refusal) = (Vec::new(), Ok(()));
    for count in (least..=ranks.len()).rev() {
        let layout = match lay_out(shape, &machine.models, &ranks[..count]) {
            // Those that remain cannot hold it.
            Err(_) if count < ranks.len() => break,
            layout => layout?,
        };
        // Squares on the diagonal make the sum of the areas that of a layout.
        let appraiser = Appraiser::new(machine, options);
        let rates = layout.rates(&machine.models, machine.block);
        let costs = CostModel { rates: &rates, network: &machine.platform.network, element: options.element };
        let mut out: Vec<Rank> = ranks[count..].iter().copied().map(Rank).collect();
        out.sort_unstable();
        for &order in &orders {
            let fitted = fit_order(&layout, order, &machine.platform, options.element, options.memory);
            let FittedOrder { order, overrun } = match fitted {
                Ok(fitted) => fitted,
                Err(error) => {
                    refusal = refusal.and(Err(error));
                    continue;
                }
            };
            let known = simulated(orders.len());
            let predicted = known.then(|| forecast(&layout, order, costs)).transpose()?;
            let choice = appraiser.choice(METHOD, &layout, order, predicted)?;
            let left_out = (!out.is_empty()).then(|| LeftOut { ranks: out.clone(), seconds: 0.0 });
            choices.push(Choice { memory_overrun: overrun, left_out, ..choice });
        }
    }
    if choices.is_empty() {
        refusal?;
    }
    let with_all = choices.iter().filter(|choice| choice.left_out.is_none());
    let all = with_all.filter_map(|choice| choice.rank).fold(f64::INFINITY, f64::min);
    let mut choices = in_order_of_preference(choices);
    for choice in &mut choices {
        choice.left_out = match (choice.left_out.take(), choice.rank) {
            (Some(out), Some(seconds)) if all.is_finite() => Some(LeftOut { seconds: all - seconds, ..out }),
            // The others alone have the memory.
            _ => None,
        };
    }
    if fewer {
        choices = prefer_fewer(&Appraiser::new(machine, options), choices);
    }
    choices[0].plan.fill_in();
    choices[0].plan.baselines = Baselines::of_symmetric(shape, machine, options)?;
    Ok(choices)
}

/// The processors that do anything, by their speed with an equal part.
fn fastest_first(machine: &Machine, shape: Shape) -> Vec<usize> {
    let part = elements(shape) as f64 / machine.processors() as f64;
    let speed = |rank: usize| machine.models[rank].speed(part.max(1.0));
    let mut ranks: Vec<usize> =
        (0..machine.processors()).filter(|&rank| !machine.models[rank].is_stopped()).collect();
    ranks.sort_by(|&i, &j| speed(j).total_cmp(&speed(i)));
    ranks
}

/// Strips for some of the processors that finish together by their models.
fn lay_out(shape: Shape, models: &[Model], ranks: &[usize]) -> Result<Layout> {
    let some: Vec<Model> = ranks.iter().map(|&rank| models[rank].clone()).collect();
    let mut weights = vec![0.0; models.len()];
    for (&rank, area) in ranks.iter().zip(shares::fpm(&some, elements(shape))?) {
        weights[rank] = area as f64;
    }
    Triangle.layout(shape, &weights)
}

/// Elements of the lower triangle.
fn elements(shape: Shape) -> u64 {
    shape.n * (shape.n + 1) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::model::Point;
    use crate::platform::{Network, Platform};
    use crate::schedule::{Application, MatmulSchedule, Step};
    use crate::simulate::simulate;

    fn machine(speeds: &[f64], network: Network) -> Machine {
        let mut platform = Platform::from_speeds(speeds).unwrap();
        platform.network = network;
        let model = |(speed, name): (&f64, String)| match *speed {
            0.0 => Model::ratio(name, 0.0).unwrap(),
            speed => Model::constant(name, speed).unwrap(),
        };
        let models = speeds.iter().zip(platform.names()).map(model).collect();
        Machine::new(platform, models, 1)
    }

    fn shape(n: u64, k: u64) -> Shape {
        Shape::new(n, k, n, "test").unwrap()
    }

    /// Volume by formula, by the steps of every flow, and as the simulator counts it; half the multiply-adds; and
    /// forecasts in closed form are those of the simulation.
    #[test]
    fn three_counts_agree_in_every_flow() {
        for (n, k) in [(1, 1), (7, 30), (130, 17), (300, 70), (331, 256)] {
            for speeds in [&[1.0][..], &[9.0, 1.0], &[1.0, 2.0, 3.0, 4.0, 5.0]] {
                let machine = machine(speeds, Network::uniform(1e-5, 1e8));
                let options = PlanOptions { keep_all: true, ..PlanOptions::open(16, 8) };
                for choice in plan_symmetric(shape(n, k), &machine, &options).unwrap() {
                    let layout = choice.plan.layout().unwrap();
                    let schedule = MatmulSchedule::new(layout, choice.order);
                    let ranks = || (0..speeds.len()).map(Rank);
                    let sent: u64 = ranks()
                        .flat_map(|rank| schedule.steps(rank))
                        .map(|step| match step {
                            Step::Send(message) => message.elements(),
                            Step::Broadcast(cast) => cast.messages.iter().map(|m| m.elements()).sum(),
                            _ => 0,
                        })
                        .sum();
                    let rates = layout.rates(&machine.models, machine.block);
                    let network = &machine.platform.network;
                    let costs = CostModel { rates: &rates, network, element: 8 };
                    let trace = simulate(&schedule, costs).unwrap();
                    let received: u64 = trace.lanes.iter().flat_map(|lane| &lane.received).sum();
                    let by_formula: u64 = layout
                        .rows_by_owner()
                        .iter()
                        .flat_map(|rows| rows.spans().first())
                        .map(|rows| k * rows.start)
                        .sum();
                    let volume = choice.plan.metrics.volume.unwrap();
                    assert_eq!(
                        (volume, sent, received),
                        (by_formula, sent, by_formula),
                        "{n} {}",
                        choice.order
                    );
                    let work: f64 = ranks().map(|rank| schedule.work(rank)).sum();
                    assert_eq!(work, layout.multiply_adds());
                    let forecast = choice.plan.forecast.as_ref().unwrap().seconds;
                    assert!((trace.seconds() / forecast - 1.0).abs() < 1e-9, "{n} {}", choice.order);
                }
            }
        }
    }

    /// Where small rectangles are slower, a processor takes the sum of the times of its own.
    #[test]
    fn forecasts_count_every_rectangle() {
        let points = vec![Point::new(9216.0, 9216.0 / 1e6), Point::new(1e6, 1e6 / 2e6)];
        let models = vec![Model::piecewise("p0", points, None).unwrap()];
        let machine = Machine::new(Platform::from_speeds(&[1.0]).unwrap(), models, 256);
        let options = PlanOptions::open(256, 8);
        let plan = plan_symmetric(shape(1000, 512), &machine, &options).unwrap().remove(0).plan;
        let layout = plan.layout().unwrap();
        let updates = |area: u64| 2.0 * machine.models[0].seconds(area as f64);
        let one_by_one: f64 = layout.parts().iter().map(|part| updates(part.rect().area())).sum();
        let forecast = plan.forecast.as_ref().unwrap().seconds;
        assert!((forecast / one_by_one - 1.0).abs() < 1e-12, "{forecast} {one_by_one}");
        assert!(forecast > 1.2 * updates(layout.sizes()[0]), "{forecast}");
    }

    /// The fast processor alone where messages are dear, all where they cost nothing; one of speed 0 never.
    #[test]
    fn slow_processors_stay_out_where_that_is_faster() {
        let plan = |speeds: &[f64], network| {
            let machine = machine(speeds, network);
            plan_symmetric(shape(400, 400), &machine, &PlanOptions::open(64, 8)).unwrap().remove(0)
        };
        let dear = plan(&[1.0e9, 1.1e9, 1.0e7], Network::uniform(1e-2, 1e7));
        let out = dear.left_out.as_ref().unwrap();
        assert!(out.ranks.contains(&Rank(2)) && out.seconds > 0.0);
        assert!(dear.plan.gain().unwrap() >= 1.0 - 1e-9, "{:?}", dear.plan.gain());
        let free = plan(&[1.0e9, 1.1e9, 1.0e8], Network::free());
        assert!(free.left_out.is_none() && free.plan.gain().unwrap() > 1.95, "{:?}", free.plan.gain());
        assert!(free.plan.metrics.imbalance < 1.02, "{}", free.plan.metrics.imbalance);
        let idle = plan(&[1.0e9, 0.0], Network::free());
        assert_eq!(idle.plan.shares[1], 0);
    }

    #[test]
    fn a_plan_survives_its_file() {
        let machine = machine(&[3.0, 1.0], Network::uniform(1e-5, 1e8));
        let plan =
            plan_symmetric(shape(150, 20), &machine, &PlanOptions::open(16, 8)).unwrap().remove(0).plan;
        let text = plan.to_json();
        assert!(text.contains("\"syrk\""), "{text}");
        let again = crate::plan::Plan::parse(&text, "plan").unwrap();
        assert_eq!(again, plan);
        assert!(again.layout().unwrap().is_triangular());
        let product = text.replace("\"syrk\"", "\"matmul\"").replace("\"k\": 20", "\"k\": 20, \"m\": 150");
        assert_eq!(crate::plan::Plan::parse(&product, "plan").unwrap_err().exit_code(), 2);
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let mut machine = machine(&[3.0, 1.0], Network::free());
        machine.platform.processors[0].memory = Some(1000);
        let memory = crate::select::MemoryPolicy::SmallerBlocks(crate::schedule::DataPath::Packed);
        let options = PlanOptions { memory, keep_all: true, ..PlanOptions::open(16, 8) };
        let error = plan_symmetric(shape(300, 20), &machine, &options).unwrap_err();
        assert_eq!(error.exit_code(), 1, "{error}");
    }
}
