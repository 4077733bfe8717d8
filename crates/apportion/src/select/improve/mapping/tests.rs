//! Auto on clusters, against named levels and against the layout as given.

use super::super::shares::tests::two_level;
use crate::plan::LayoutConstraints;
use crate::plan::Shape;
use crate::plan::shapes::Method;
use crate::random::Random;
use crate::select::{PlanOptions, Sizing, plan_matmul};

/// Auto is never slower than any named combination of methods for the levels, nor than any method alone.
#[test]
fn no_named_levels_are_faster() {
    let mut random = Random::new(11);
    let shape = Shape::new(240, 240, 240, "test").unwrap();
    let mut by_levels = 0;
    for _ in 0..6 {
        let between = 1e4 * 10f64.powf(random.unit());
        // Slow enough for every combination to be affordable.
        let machine = two_level(&mut random, between, 0.01);
        let plain = PlanOptions { sizing: Sizing::Proportional, ..PlanOptions::open(60, 8) };
        let best = plan_matmul(shape, &machine, &plain).unwrap().remove(0);
        by_levels += usize::from(best.plan.method.contains('/'));
        for above in [Method::Columns, Method::SquareCorner, Method::StraightLine] {
            for below in [Method::Columns, Method::Rows, Method::Recursive] {
                let levels = Some(vec![Some(above), Some(below)]);
                let form = LayoutConstraints { levels, ..LayoutConstraints::default() };
                let named = PlanOptions { form, ..plain.clone() };
                let Ok(named) = plan_matmul(shape, &machine, &named) else { continue };
                let (ours, theirs) = (best.rank.unwrap(), named[0].rank.unwrap());
                assert!(
                    ours <= theirs * (1.0 + 1e-9),
                    "{} {ours}, {above}/{below} {theirs}",
                    best.plan.method
                );
            }
        }
    }
    assert!(by_levels > 0, "no platform gains by levels");
}
