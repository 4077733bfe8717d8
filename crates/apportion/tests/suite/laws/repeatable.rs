//! Same input, same bytes: plans, forecasts and models do not depend on anything but their inputs.

use super::shape;
use apportion::model::{Machine, Model, Point};
use apportion::plan::Plan;
use apportion::platform::{Network, Platform};
use apportion::schedule::Flow;
use apportion::select::{PlanOptions, plan_matmul};
use proptest::prelude::*;

fn texts(machine: &Machine, (m, k, n): (u64, u64, u64), options: &PlanOptions) -> Vec<String> {
    let choices = plan_matmul(shape(m, k, n), machine, options).unwrap();
    choices.iter().map(|c| c.plan.to_json()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn plans_and_forecasts_are_the_same_bytes_each_time(
        sizes in (1u64..40, 1u64..40, 1u64..40),
        speeds in prop::collection::vec((1.0f64..1e3, 0.2f64..1.0), 1..5),
        overlap: bool, relative: bool, duplex: bool, bulk in prop::option::of(any::<bool>()),
    ) {
        let mut platform = Platform::from_speeds(&vec![1.0; speeds.len()]).unwrap();
        platform.network = Network::uniform(1e-4, 1e4);
        platform.network.duplex = duplex;
        let models: Vec<Model> = speeds
            .iter()
            .enumerate()
            .map(|(i, &(speed, less))| {
                let points = vec![Point::new(10.0, 10.0 / speed), Point::new(500.0, 500.0 / (speed * less))];
                match relative {
                    true => Model::ratio(format!("p{i}"), speed).unwrap(),
                    false => Model::piecewise(format!("p{i}"), points, None).unwrap(),
                }
            })
            .collect();
        let machine = Machine::new(platform, models, 16);
        let options = PlanOptions {
            flow: bulk.map(|b| if b { Flow::Bulk } else { Flow::OneToAll }),
            overlap,
            ..PlanOptions::open(8, 8)
        };
        let first = texts(&machine, sizes, &options);
        prop_assert_eq!(&texts(&machine, sizes, &options), &first);
        for (place, text) in first.iter().enumerate() {
            let read = Plan::parse(text, "plan").unwrap();
            prop_assert_eq!((read.forecast.is_none(), read.relative_times.is_some()), (relative, relative));
            // Only the chosen plan has its table of directions, which reading adds.
            prop_assert!(place > 0 || read.to_json() == *text, "reading and writing changes nothing");
        }
    }
}
