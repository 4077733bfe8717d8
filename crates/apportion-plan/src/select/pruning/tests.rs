//! Pruning against the simulation of every candidate.

use crate::model::{Machine, Model};
use crate::plan::Shape;
use crate::platform::{Network, Platform};
use crate::schedule::MatmulSchedule;
use crate::select::candidates::{Candidate, candidates};
use crate::select::{Appraiser, Choice, PlanOptions, Sizing, in_order_of_preference, rank_choices};
use crate::simulate::{CostModel, simulate};
use proptest::prelude::*;

/// All candidates by simulation of events, in order of preference: slow, and nothing is left out.
fn oracle(appraiser: &Appraiser<'_>, shape: Shape) -> Vec<(f64, u64, String, String)> {
    let all = candidates(shape, appraiser.machine, appraiser.options).unwrap();
    let each = all.into_iter().map(|Candidate { method, layout, order, .. }| {
        let rates = appraiser.machine.rates(&layout.sizes());
        let cost_model =
            CostModel { rates: &rates, network: &appraiser.machine.platform.network, element: 8 };
        let seconds = simulate(&MatmulSchedule::new(&layout, order), cost_model).unwrap().seconds();
        (seconds, layout.volume(), method, order.to_string())
    });
    let mut all: Vec<_> = each.collect();
    let least = all.iter().map(|found| found.0).fold(f64::INFINITY, f64::min);
    let near = |seconds: f64| if seconds <= least * (1.0 + 1e-9) { 0.0 } else { seconds };
    all.sort_by(|a, b| near(a.0).total_cmp(&near(b.0)).then(a.1.cmp(&b.1)));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The first choice is that of the oracle, its seconds are the same bit for bit, and what was ruled out
    /// takes as long as its bound says; with seconds and with ratios, with links of one's own and half
    /// duplex.
    #[test]
    fn nothing_that_could_win_is_ruled_out(
        speeds in prop::collection::vec(1.0f64..10.0, 6..9), sides in (60u64..200, 20u64..400, 60u64..200),
        ratios: bool, duplex: bool, speed in 5.0f64..12.0, bandwidth in 5.0f64..9.0,
    ) {
        let shape = Shape::new(sides.0, sides.1, sides.2, "test").unwrap();
        let mut platform = Platform::from_speeds(&speeds).unwrap();
        platform.network = Network::uniform(1e-5, 10f64.powf(bandwidth));
        platform.network.duplex = duplex;
        let model = |s: &f64| match ratios {
            true => Model::ratio("p", *s).unwrap(),
            false => Model::constant("p", s * 10f64.powf(speed)).unwrap(),
        };
        let machine = Machine::new(platform, speeds.iter().map(model).collect(), 1);
        let sizing = Sizing::Proportional;
        let options = PlanOptions { keep_all: true, sizing, ..PlanOptions::open(8, 8) };
        let appraiser = Appraiser::new(&machine, &options);
        let all = candidates(shape, &machine, &options).unwrap();
        let choices: Vec<Choice> = rank_choices(appraiser.choices_of(all, Some(0.0)).unwrap(), &options, false);
        let best = &choices[0];
        let expected = oracle(&appraiser, shape);
        let found = (best.rank.unwrap(), best.volume(), best.plan.method.clone(), best.order.to_string());
        prop_assert_eq!(&found, &expected[0]);
        prop_assert!(choices.iter().any(|choice| choice.rank.is_none()), "nothing was ruled out");
        for choice in &choices {
            let name = |e: &&(f64, u64, String, String)| {
                e.2 == choice.plan.method && e.3 == choice.order.to_string() && e.1 == choice.volume()
            };
            let slow: Vec<f64> = expected.iter().filter(name).map(|e| e.0).collect();
            match (choice.rank, choice.lower_bound) {
                (Some(rank), None) => prop_assert!(slow.contains(&rank)),
                (None, Some(least)) => {
                    prop_assert!(slow.iter().any(|s| *s >= least * (1.0 - 1e-9)), "{least} {slow:?}");
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
        prop_assert_eq!(in_order_of_preference(choices.clone()).len(), choices.len());
    }
}

/// On more processors than planning can simulate all candidates for, the best that was found has a forecast,
/// and what was left out takes as long as its bound says.
#[test]
fn without_work_left_bounds_remain() {
    let mut random = crate::random::Random::new(2);
    let speeds: Vec<f64> = (0..90).map(|_| 10f64.powf(random.unit())).collect();
    let shape = Shape::new(4000, 6000, 5000, "test").unwrap();
    let mut platform = Platform::from_speeds(&speeds).unwrap();
    platform.network = Network::uniform(1e-5, 1e9);
    platform.network.duplex = false;
    let models = speeds.iter().map(|s| Model::constant("p", s * 1e9).unwrap()).collect();
    let machine = Machine::new(platform, models, 1);
    let options = PlanOptions { keep_all: true, ..PlanOptions::open(250, 8) };
    let appraiser = Appraiser::new(&machine, &options);
    let all = candidates(shape, &machine, &options).unwrap();
    let choices = rank_choices(appraiser.choices_of(all, Some(0.0)).unwrap(), &options, false);
    let best = choices[0].rank.unwrap();
    let mut below = 0;
    for choice in &choices {
        let seconds = appraiser.forecast(choice).unwrap().seconds;
        match (choice.rank, choice.lower_bound) {
            (Some(rank), None) => assert_eq!(rank, seconds),
            (None, Some(least)) => {
                assert!(least <= seconds, "{least} {seconds}");
                below += usize::from(least < best);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(below > 0, "everything was simulated or ruled out: the test has no effect");
    let again = appraiser.choices_of(candidates(shape, &machine, &options).unwrap(), Some(0.0)).unwrap();
    assert_eq!(rank_choices(again, &options, false)[0].rank, Some(best));
}
