use super::columns::tests::three_clusters;
use super::*;
use crate::geometry::Rank;
use crate::plan::shapes::{Columns, LayoutMethod};
use crate::plan::{Part, Shape};
use proptest::prelude::*;

const SEARCHES: [SearchMethod; 5] = [
    SearchMethod::Exhaustive,
    SearchMethod::Published,
    SearchMethod::Heuristic,
    SearchMethod::Local,
    SearchMethod::Auto,
];

pub(super) fn plan_of(layout: Layout, platform: &Platform) -> Plan {
    Plan::of_layout("columns", platform.names(), layout, 1.0)
}

pub(super) fn column_plan(platform: &Platform, weights: &[f64], m: u64, n: u64) -> Plan {
    plan_of(Columns::default().layout(Shape::new(m, 10, n, "t").unwrap(), weights).unwrap(), platform)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// For every search: shares and volume stay, the reported cost is right and never higher than before,
    /// and the same seed gives the same plan.
    #[test]
    fn only_places_change(
        weights in prop::collection::vec(prop_oneof![Just(1.0), Just(3.0), 0.1f64..9.0], 1..9),
        m in 20u64..200, n in 20u64..200, seed in 0u64..9,
    ) {
        let platform = three_clusters(weights.len());
        let plan = column_plan(&platform, &weights, m, n);
        for objective in every_objective() {
            for search in SEARCHES {
                let found = arrange(&plan, &platform, objective, SearchOptions::new(search, seed)).unwrap();
                prop_assert_eq!(&found.plan.shares, &plan.shares);
                prop_assert_eq!(found.plan.layout().unwrap().shares(), plan.shares.clone());
                prop_assert_eq!(found.plan.metrics.volume, plan.metrics.volume);
                prop_assert!(found.cost_after.total <= found.cost_before.total);
                let again = arrangement_cost(&found.plan, &platform, objective).unwrap();
                prop_assert_eq!(again, found.cost_after);
                prop_assert_eq!(arrange(&plan, &platform, objective, SearchOptions::new(search, seed)).unwrap(), found);
            }
        }
    }
}

/// Four equal arms round a middle: no column-based layout.
fn pinwheel(platform: &Platform) -> Plan {
    let part = |owner, rows: [u64; 2], cols: [u64; 2]| Part {
        owner: Rank(owner),
        rows: rows.into(),
        cols: cols.into(),
    };
    let layout = Layout::new(
        Shape::new(3, 3, 3, "t").unwrap(),
        5,
        [
            part(0, [0, 1], [0, 2]),
            part(1, [0, 2], [2, 3]),
            part(2, [2, 3], [1, 3]),
            part(3, [1, 3], [0, 1]),
            part(4, [1, 2], [1, 2]),
        ],
    )
    .unwrap();
    plan_of(layout, platform)
}

/// Arms of the same length change owners; the middle stays.
#[test]
fn owners_of_equal_shares_change_places_in_any_layout() {
    let platform = three_clusters(5);
    let plan = pinwheel(&platform);
    for objective in every_objective() {
        let best =
            arrange(&plan, &platform, objective, SearchOptions::new(SearchMethod::Exhaustive, 0)).unwrap();
        assert_eq!(best.evaluations, 24);
        for search in [SearchMethod::Heuristic, SearchMethod::Local] {
            let found = arrange(&plan, &platform, objective, SearchOptions::new(search, 0)).unwrap();
            assert!(found.cost_after.total <= 1.05 * best.cost_after.total, "{objective:?} {search:?}");
            assert_eq!(found.plan.shares, plan.shares);
        }
        let local = arrange(&plan, &platform, objective, SearchOptions::new(SearchMethod::Local, 0)).unwrap();
        assert_eq!(best.cost_after, local.cost_after);
        assert!(best.cost_after.total <= best.cost_before.total);
        assert_eq!(best.plan.metrics.volume, plan.metrics.volume);
        assert_eq!(best.plan.shares, plan.shares);
    }
}

#[test]
fn what_cannot_be_is_said() {
    let platform = three_clusters(30);
    let weights: Vec<f64> = (1..=30).map(f64::from).collect();
    let plan = column_plan(&platform, &weights, 900, 900);
    let hops = CostFunction::Hops(Pivots::Ring);
    let refused =
        arrange(&plan, &platform, hops, SearchOptions::new(SearchMethod::Exhaustive, 0)).unwrap_err();
    assert_eq!((refused.exit_code(), refused.to_string().contains("local")), (1, true));
    let five = three_clusters(5);
    let refused =
        arrange(&pinwheel(&five), &five, hops, SearchOptions::new(SearchMethod::Published, 0)).unwrap_err();
    assert_eq!(refused.exit_code(), 1);
    let strange = arrange(&plan, &five, hops, SearchOptions::new(SearchMethod::Local, 0)).unwrap_err();
    assert_eq!(strange.exit_code(), 2);
    let units = Plan::of_units("even", plan.processors, plan.shares, 1.0);
    assert_eq!(
        arrange(&units, &platform, hops, SearchOptions::new(SearchMethod::Local, 0)).unwrap_err().exit_code(),
        2
    );
}

/// Two columns of four and five processors have 2 x 4! x 5! arrangements: the heuristic tries all of them.
#[test]
fn the_heuristic_tries_all_arrangements_where_there_are_few() {
    let platform = three_clusters(9);
    for seed in 0..6 {
        let mut random = crate::random::Random::new(seed);
        let weights: Vec<f64> = (0..9).map(|_| 1.0 + random.unit()).collect();
        let plan = column_plan(&platform, &weights, 2000, 1000);
        for objective in [CostFunction::Hops(Pivots::Ring), CostFunction::Bandwidth(Pivots::OneToAll)] {
            let cost = |search| {
                arrange(&plan, &platform, objective, SearchOptions::new(search, seed))
                    .unwrap()
                    .cost_after
                    .total
            };
            assert_eq!(cost(SearchMethod::Heuristic), cost(SearchMethod::Exhaustive), "{seed} {objective:?}");
        }
    }
}
