use super::*;

const GOOD: &str = r#"{"format": "apportion-plan", "version": 1, "method": "square-corner",
 "problem": {"kind": "matmul", "m": 1000, "k": 1000, "n": 1000},
 "processors": ["p0", "p1"], "shares": [900144, 99856],
 "layout": [{"owner": 0, "rows": [0, 684], "cols": [0, 1000]}, {"owner": 0, "rows": [684, 1000], "cols": [0, 684]},
        {"owner": 1, "rows": [684, 1000], "cols": [684, 1000]}],
 "metrics": {"sum_half_perimeters": 2.632, "lower_bound": 2.5295, "volume": 632000,
         "volume_matrix": [[0, 199712], [432288, 0]], "imbalance": 1.0002, "communication_free": [467856, 0]},
 "forecast": {"seconds": 1.23, "compute": [1.0, 1.0], "communicate": [0.2, 0.2]}}"#;

#[test]
fn the_contract_example_is_read_and_written_again() {
    let plan = Plan::parse(GOOD, "plan.json").unwrap();
    assert_eq!(plan.metrics.imbalance, 1.0002);
    let again = Plan::parse(&plan.to_json(), "again").unwrap();
    assert_eq!(again, plan);
    assert_eq!(again.to_json(), plan.to_json());
}

/// Two processors at 3:1 in blocks of 4 x 4: the file holds the block, reading it the whole matrix.
const REPEATED: &str = r#"{"format": "apportion-plan", "version": 1, "method": "columns",
 "problem": {"kind": "matmul", "m": 10, "k": 6, "n": 9}, "processors": ["a", "b"], "shares": [70, 20],
 "layout": [{"owner": 0, "rows": [0, 4], "cols": [0, 3]}, {"owner": 1, "rows": [0, 4], "cols": [3, 4]}],
 "repeat": [4, 4]}"#;

#[test]
fn a_repeated_block_is_expanded_and_written_again() {
    let plan = Plan::parse(REPEATED, "plan.json").unwrap();
    let layout = plan.layout().unwrap();
    assert_eq!(layout.parts().len(), 5);
    assert_eq!(layout.cols_by_owner()[1].spans(), [[3, 4].into(), [7, 8].into()]);
    assert_eq!(plan.metrics.volume, Some(6 * (10 + 7 + 10 + 2) - 6 * 10 - 6 * 9));
    let again = Plan::parse(&plan.to_json(), "again").unwrap();
    assert_eq!(again.layout().unwrap(), layout);
    assert_eq!(again.to_json(), plan.to_json());
    for (from, to) in [
        ("[4, 4]}", "[4, 0]}"),
        ("[4, 4]}", "[4, 3]}"),
        ("[4, 4]}", "[4, 5]}"),
        ("[4, 4]}", "[4]}"),
        ("[70, 20]", "[12, 4]"),
    ] {
        assert_eq!(
            Plan::parse(&REPEATED.replacen(from, to, 1), "plan.json").unwrap_err().exit_code(),
            2,
            "{to}"
        );
    }
    let units = r#"{"format": "apportion-plan", "version": 1, "method": "even", "repeat": [1, 1],
        "problem": {"kind": "units", "n": 3}, "processors": ["a"], "shares": [3]}"#;
    assert_eq!(Plan::parse(units, "plan.json").unwrap_err().exit_code(), 2);
}

const DOMAIN: &str = r#"{"format": "apportion-plan", "version": 1, "method": "grid",
 "problem": {"kind": "grid", "m": 4, "n": 6}, "processors": ["a", "b"], "shares": [12, 12],
 "layout": [{"owner": 0, "rows": [0, 4], "cols": [0, 3]}, {"owner": 1, "rows": [0, 4], "cols": [3, 6]}],
 "metrics": {"imbalance": 1.0}}"#;

#[test]
fn a_domain_is_no_product() {
    let plan = Plan::parse(DOMAIN, "plan.json").unwrap();
    assert_eq!(plan.problem(), Problem::Grid { m: 4, n: 6 });
    assert_eq!((plan.metrics.volume, plan.rectangles().unwrap().parts().len()), (None, 2));
    assert_eq!(plan.layout().unwrap_err().exit_code(), 2);
    assert_eq!(Plan::parse(&plan.to_json(), "again").unwrap(), plan);
    let repeated = DOMAIN.replace("\"layout\"", "\"repeat\": [4, 6], \"layout\"");
    assert_eq!(Plan::parse(&repeated, "plan.json").unwrap_err().exit_code(), 2);
}

#[test]
fn defects_are_refused() {
    for (from, to) in [
        ("\"version\": 1", "\"version\": 7"),
        ("\"method\"", "\"methud\""),
        ("\"m\": 1000", "\"m\": 0"),
        ("\"m\": 1000", "\"m\": 999"),
        ("\"m\": 1000", "\"m\": 99999999999999999"),
        ("900144", "900145"),
        ("[684, 1000], \"cols\": [684, 1000]", "[684, 1000], \"cols\": [600, 1000]"),
        ("\"owner\": 1", "\"owner\": 2"),
        ("\"owner\": 1", "\"owner\": -1"),
        ("[\"p0\", \"p1\"]", "[\"p0\"]"),
        ("[\"p0\", \"p1\"]", "[\"p0\", \"p0\"]"),
    ] {
        let error = Plan::parse(&GOOD.replacen(from, to, 1), "plan.json").unwrap_err();
        assert_eq!(error.exit_code(), 2, "{from} -> {to}");
        assert!(!error.to_string().contains('\n'));
    }
}

const PANELS: &str = r#"{"format": "apportion-plan", "version": 1, "method": "greedy",
 "problem": {"kind": "factorisation", "factors": "lu", "n": 5, "block": 2}, "processors": ["a", "b"],
 "shares": [15, 10], "panels": [0, 0, 0],
 "layout": [{"owner": 0, "rows": [0, 5], "cols": [0, 2]}, {"owner": 1, "rows": [0, 5], "cols": [2, 4]},
            {"owner": 0, "rows": [0, 5], "cols": [4, 5]}],
 "metrics": {"imbalance": 1.0}}"#;

#[test]
fn a_plan_says_who_factors_panels() {
    let plan = Plan::parse(PANELS, "plan.json").unwrap();
    assert_eq!(plan.blocks().unwrap().1.panels(), Some(&[Rank(0); 3][..]));
    assert_eq!(Plan::parse(&plan.to_json(), "again").unwrap(), plan);
    // Processor 0 takes over five rows; 1 gets back its panel with marks and two rows of U, and the last pivots.
    assert_eq!(plan.metrics.volume, Some(5 * 2 + (3 * 2 + 3 + 2 * 2) + 2));
    let owners = Plan::parse(&PANELS.replace("[0, 0, 0]", "[0, 1, 0]"), "plan.json").unwrap();
    assert_eq!(owners.blocks().unwrap().1.panels(), None);
    assert!(!owners.to_json().contains("panels"));
    for (from, to) in [
        ("[0, 0, 0]", "[0, 0]"),
        ("[0, 0, 0]", "[0, 2, 0]"),
        ("[0, 0, 0]", "[0, -1, 0]"),
        ("[0, 0, 0]", "[0, \"b\", 0]"),
    ] {
        let error = Plan::parse(&PANELS.replacen(from, to, 1), "plan.json").unwrap_err();
        assert_eq!(error.exit_code(), 2, "{to}");
        assert!(error.to_string().contains("plan.json"), "{error}");
    }
    let domain = DOMAIN.replace("\"layout\"", "\"panels\": [0], \"layout\"");
    assert!(Plan::parse(&domain, "plan.json").unwrap_err().to_string().contains("panels"));
}

const LINES: &str = r#"{"format": "apportion-plan", "version": 1, "method": "one-pass",
 "problem": {"kind": "units", "n": 10}, "processors": ["a", "b"], "shares": [7, 3],
 "metrics": {"imbalance": 1.0}, "start_up": [0.5, null], "per_unit": [0.25, null]}"#;

#[test]
fn a_plan_of_units_knows_times_of_processors() {
    let plan = Plan::parse(LINES, "plan.json").unwrap();
    assert_eq!(plan.lines, Some(vec![Some(Line { start_up: 0.5, per_unit: 0.25 }), None]));
    assert_eq!(Plan::parse(&plan.to_json(), "again").unwrap(), plan);
    for (from, to) in [
        ("[0.5, null]", "[0.5]"),
        ("[0.25, null]", "[-0.25, null]"),
        ("[0.25, null]", "[1e999, null]"),
        (", \"per_unit\": [0.25, null]", ""),
        ("\"start_up\": [0.5, null], ", ""),
    ] {
        let error = Plan::parse(&LINES.replacen(from, to, 1), "plan.json").unwrap_err();
        assert_eq!(error.exit_code(), 2, "{to}");
    }
    let domain = DOMAIN.replace("\"layout\"", "\"start_up\": [1], \"per_unit\": [1], \"layout\"");
    assert!(Plan::parse(&domain, "plan.json").unwrap_err().to_string().contains("start_up"));
}
