//! Processors that bring too little. A plan without them that takes hardly longer is preferred: what they would save
//! is less than forecasts can tell, and a message to another host may be late.

use super::trials::Trials;
use super::{FOR_SUBSETS, refine};
use crate::error::Result;
use crate::geometry::Rank;
use crate::model::Model;
use crate::plan::{Forecast, Shape};
use crate::select::candidates::candidates;
use crate::select::{Appraiser, Choice, LeftOut};

/// Fraction of the time that processors save at least, or they stay out.
pub(super) const LEAST_GAIN: f64 = 0.02;
/// Of many processors each brings less than that: they stay while they bring this part of what their speeds promise.
const USEFUL: f64 = 0.5;

/// Of those with slivers all are left out, or these parts, those with the least first.
const PARTS: [usize; 4] = [1, 2, 4, 8];

/// The choices without slivers: the best plan for fewer processors is tried where some compute for much less time than
/// others of their speed.
pub(super) fn without_slivers(
    appraiser: &Appraiser<'_>,
    shape: Shape,
    mut choices: Vec<Choice>,
) -> Result<Vec<Choice>> {
    let Some(seconds) = choices[0].rank else { return Ok(choices) };
    let worth = Worth::of(appraiser, &choices[0].plan.shares);
    let slivers = worth.least_used(&choices[0].plan.shares);
    for part in PARTS {
        let least = &slivers[..slivers.len() / part];
        let rest: Vec<usize> = worth.present.iter().copied().filter(|rank| !least.contains(rank)).collect();
        if least.is_empty() {
            break;
        }
        if let Some(found) = of_subset(appraiser, shape, &rest, seconds * worth.allowance(&rest))? {
            choices.push(found);
            break;
        }
    }
    Ok(prefer_fewer(appraiser, choices))
}

/// The best plan for some of the processors, ascending, if it takes less than `limit` seconds.
fn of_subset(
    appraiser: &Appraiser<'_>,
    shape: Shape,
    subset: &[usize],
    limit: f64,
) -> Result<Option<Choice>> {
    let mut trials = Trials::new(appraiser, shape, limit, limit, FOR_SUBSETS);
    let Ok(found) = candidates(shape, &appraiser.machine.select(subset), appraiser.options) else {
        return Ok(None);
    };
    let mut choices = Vec::new();
    for candidate in found {
        let layout = candidate.layout.among(subset, appraiser.machine.processors())?;
        let forecast: Option<Forecast> = trials.faster_than(limit, &layout, candidate.order)?;
        if let Some(forecast) = forecast {
            let choice = appraiser.choice(&candidate.method, &layout, candidate.order, Some(forecast))?;
            choices.push(Choice { memory_overrun: candidate.overrun, ..choice });
        }
        if !trials.may_go_on() {
            break;
        }
    }
    if choices.is_empty() {
        return Ok(None);
    }
    Ok(Some(refine(appraiser, shape, choices, limit, true)?.swap_remove(0)))
}

/// The choices in order of preference, but first the one for the fewest of the best one's processors that takes hardly
/// longer. Faster ones, in which others have slivers, are dropped.
pub(in crate::select) fn prefer_fewer(appraiser: &Appraiser<'_>, mut choices: Vec<Choice>) -> Vec<Choice> {
    let Some(seconds) = choices[0].rank else { return choices };
    let worth = Worth::of(appraiser, &choices[0].plan.shares);
    let with_all = choices.iter().filter(|choice| {
        let all = choice.plan.shares.iter().zip(&appraiser.machine.models);
        all.clone().all(|(share, model)| *share > 0 || model.is_stopped())
    });
    let all = with_all.filter_map(|choice| choice.rank).reduce(f64::min).unwrap_or(seconds);
    let fewest = (0..choices.len())
        .filter_map(|place| {
            let choice = &choices[place];
            let (present, rank) = (present(&choice.plan.shares), choice.rank?);
            let fewer = present.len() < worth.present.len();
            let serves = fewer && present.iter().all(|rank| worth.present.contains(rank));
            (serves && rank <= seconds * worth.allowance(&present)).then_some((present.len(), rank, place))
        })
        .min_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let Some((_, rank, place)) = fewest else { return choices };
    let first = choices.remove(place);
    choices.retain(|choice| choice.rank.is_none_or(|other| other >= rank));
    let out = first.plan.shares.iter().zip(&appraiser.machine.models).enumerate();
    let out = out.filter(|(_, (share, model))| **share == 0 && !model.is_stopped());
    let ranks: Vec<Rank> = out.map(|(rank, _)| Rank(rank)).collect();
    choices.insert(0, Choice { left_out: Some(LeftOut { ranks, seconds: all - rank }), ..first });
    choices
}

/// What processors promise by their speeds at an equal share.
struct Worth {
    speeds: Vec<f64>,
    /// Those with a share, ascending.
    present: Vec<usize>,
}

fn present(shares: &[u64]) -> Vec<usize> {
    (0..shares.len()).filter(|rank| shares[*rank] > 0).collect()
}

impl Worth {
    fn of(appraiser: &Appraiser<'_>, shares: &[u64]) -> Self {
        let size = (shares.iter().sum::<u64>() as f64 / shares.len() as f64).max(1.0);
        let speed = |model: &Model| model.speed(model.max_size().map_or(size, |most| size.min(most)));
        let speeds = appraiser.machine.models.iter().map(speed).collect();
        Self { speeds, present: present(shares) }
    }

    /// How many times as long as all that are present some of them may take, if they are to be preferred.
    fn allowance(&self, some: &[usize]) -> f64 {
        let speed = |ranks: &[usize]| ranks.iter().map(|rank| self.speeds[*rank]).sum::<f64>();
        1.0 + LEAST_GAIN.min(USEFUL * (1.0 - speed(some) / speed(&self.present)))
    }

    /// Those whose part of the work is less than the useful part of what their speed promises, the least first.
    fn least_used(&self, shares: &[u64]) -> Vec<usize> {
        let used = |rank: usize| shares[rank] as f64 / self.speeds[rank];
        let most = self.present.iter().map(|rank| used(*rank)).fold(0.0, f64::max);
        let mut slivers: Vec<usize> =
            self.present.iter().copied().filter(|rank| used(*rank) < USEFUL * most).collect();
        slivers.sort_by(|a, b| used(*a).total_cmp(&used(*b)));
        slivers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Machine, WorkUnit};
    use crate::platform::{Network, Platform, parse_platform};
    use crate::random::Random;
    use crate::select::{PlanOptions, plan_matmul};

    fn cube(n: u64) -> Shape {
        Shape::new(n, n, n, "test").unwrap()
    }

    /// A core and a faster device behind a link of 20 MB/s: alone, the device takes 0.6 s for what the core does in 17 ms,
    /// and a share of 0.2 % for it would save less than a hundredth of that.
    #[test]
    fn a_device_that_saves_nothing_stays_out() {
        let text = "[[processor]]\nname = \"cpu\"\nspeed = \"40 Gflop/s\"\n[[processor]]\nname = \"gpu\"\n\
                    device = \"opencl:0\"\nspeed = \"50 Gflop/s\"\n[[network.link]]\nbetween = [\"gpu\", \"cpu\"]\n\
                    bandwidth = { to = \"20 MB/s\", from = \"20 MB/s\" }\n";
        let machine =
            Machine::from_platform(parse_platform(text, "two").unwrap(), WorkUnit::MultiplyAdd).unwrap();
        let options = PlanOptions { inner_cuts: false, ..PlanOptions::open(256, 8) };
        let best = plan_matmul(cube(700), &machine, &options).unwrap().remove(0);
        assert_eq!(best.plan.shares, [490_000, 0]);
        assert_eq!(best.left_out.unwrap().ranks, [Rank(1)]);
        let alone = best.plan.baselines.as_ref().unwrap().fastest_alone.clone().unwrap();
        assert_eq!((alone.processor.as_str(), best.plan.gain()), ("cpu", Some(1.0)));
        let all = PlanOptions { keep_all: true, ..options };
        let all = plan_matmul(cube(700), &machine, &all).unwrap().remove(0);
        assert!(all.plan.shares[1] > 0 && all.left_out.is_none());
    }

    /// On random pairs of hosts behind slow links, both take part only where that saves 2 %, and whoever takes part has
    /// more than a sliver.
    #[test]
    fn hosts_have_no_slivers() {
        let (mut random, mut alone) = (Random::new(47), 0);
        for draw in 0..12 {
            let mut platform = Platform::from_speeds(&[1.0, 1.0]).unwrap();
            platform.network = Network::uniform(1e-4, 1.25e7 * 40f64.powf(random.unit()));
            let models = platform.names().into_iter().enumerate().map(|(i, name)| {
                let speed = if i == 0 { 2e10 } else { 2e10 * 2f64.powf(-random.unit()) };
                Model::constant(name, speed).unwrap()
            });
            let machine = Machine::new(platform.clone(), models.collect(), 1);
            let n = 600 + 200 * random.below(8) as u64;
            let options = PlanOptions::open(200, 8);
            let best = plan_matmul(cube(n), &machine, &options).unwrap().remove(0);
            let (seconds, one) = (best.rank.unwrap(), (n as f64).powi(3) / 2e10);
            match present(&best.plan.shares).len() {
                1 => {
                    alone += 1;
                    let all = PlanOptions { keep_all: true, ..options };
                    let both = plan_matmul(cube(n), &machine, &all).unwrap()[0].rank.unwrap();
                    assert!(seconds <= both * (1.0 + LEAST_GAIN), "{draw}: {seconds} {both}");
                }
                _ => assert!(seconds * (1.0 + LEAST_GAIN) < one, "{draw}: {seconds}, alone {one}"),
            }
            let least = best.plan.shares.iter().copied().filter(|share| *share > 0).min().unwrap();
            assert!(least as f64 >= 0.005 * (n * n) as f64, "{draw}: {:?}", best.plan.shares);
        }
        assert!(alone > 0 && alone < 12, "{alone}");
    }

    /// Sixty equal processors bring a sixtieth each, which is what they promise: all take part.
    #[test]
    fn many_equal_processors_all_take_part() {
        let mut platform = Platform::from_speeds(&[1.0; 60]).unwrap();
        platform.network = Network::uniform(1e-7, 1e11);
        let models = platform.names().into_iter().map(|name| Model::constant(name, 1e9).unwrap());
        let machine = Machine::new(platform.clone(), models.collect(), 1);
        let best = plan_matmul(cube(3000), &machine, &PlanOptions::open(500, 8)).unwrap().remove(0);
        assert!(best.left_out.is_none() && best.plan.shares.iter().all(|share| *share > 0));
    }
}
