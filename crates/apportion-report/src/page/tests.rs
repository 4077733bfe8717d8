//! Every format makes a page, hostile names stay text, and what is no result is refused in one line.

use super::*;
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Plan, Shape, shapes};
use serde_json::json;

fn plan() -> Value {
    let shape = Shape::new(100, 100, 100, "test").unwrap();
    let layout = shapes::SquareCorner.layout(shape, &[9.0, 1.0]).unwrap();
    Plan::of_layout("square-corner", vec!["<b>fast".into(), "slow".into()], layout, 1.01).to_value()
}

fn run() -> Value {
    let lane = |end: f64| json!({"events": [[0.0, 1.0, "receive", 1], [1.0, end, "compute", null]], "messages": [[1, 0.0, 1.0]]});
    json!({
        "format": "apportion-run", "version": 1, "engine": "threads", "flow": "bulk", "overlap": false,
        "seconds": 4.0, "forecast_seconds": 3.0, "forecast_range": [2.5, 5.0], "ideal_seconds": 2.0,
        "io_seconds": 0.1, "verify_seconds": 0.5, "verified": true, "verification": {"method": "freivalds"},
        "products": 1, "algorithm": null, "volume": 6400, "volume_lower_bound": 5000,
        "processors": [
            {"name": "<b>fast", "share": 9000, "compute": 2.0, "communicate": 1.0, "idle": 1.0, "cpu_seconds": 2.0},
            {"name": "slow", "share": 1000, "compute": 3.0, "communicate": 1.0, "idle": 0.0, "cpu_seconds": 1.5}],
        "plan": plan(),
        "timeline": {"measured": [lane(3.0), lane(4.0)], "forecast": [lane(2.5), lane(3.0)]},
        "critical_path": {"ends": "slow", "work": 2.0, "queue": 0.25, "transfer": 0.75, "bytes": 8000.0},
        "choice": {"by": "forecast", "decided_by": "forecast",
            "chosen": {"method": "square-corner", "flow": "bulk", "overlap": false, "value": 3.0},
            "against": [{"method": "rows", "flow": "ring", "overlap": true, "value": 4.5, "excess": 0.5},
                        {"method": "grid", "flow": "ring", "overlap": true, "value": null, "at_least": 9.0}]},
        "provenance": {"command": "apportion matmul A.npy '<script>.npy'", "version": "0.1.0",
            "machine": {"host": "h", "model": "M", "cores": 2, "memory_bytes": 1e9}},
    })
}

fn document(name: &str, value: Value) -> Document {
    Document { name: name.into(), value }
}

#[test]
fn a_run_is_told_whole() {
    let page = report_page(&[document("run.json", run())]).unwrap();
    assert!(page.contains("750.0\u{a0}ms of messages"), "numbers stay with their units");
    let page = page.replace('\u{a0}', " ");
    for words in [
        "The plan",
        "Timeline",
        "Where the time went",
        "What would make it faster",
        "What else was considered",
        "Made by",
        "&lt;b&gt;fast receives from slow: 1.00 s, from 0 s to 1.00 s",
        "forecast: slow computes",
        "within the forecast of 2.50 s to 5.00 s",
        "a chain of 2.00 s of computation and 750.0 ms of messages",
        // 10,000 / (9,000 / 2 s + 1,000 / 3 s) = 2.07 s.
        "from 3.00 s to 2.07 s, at most 23 % of the run",
        "slow had 50 % of a core",
        "at most 1.00 s of 3.00 s: <code>--overlap</code> lets processors",
        "gain at most 50 % together: with every processor",
        "at least 9.00 s",
        "+50.0 %",
        "apportion matmul A.npy &#39;&lt;script&gt;.npy&#39;",
    ] {
        assert!(page.contains(words), "{words}");
    }
    for part in ["<b>fast", "<script>.npy", "http://", "https://", "src=", "@import", "NaN", "url("] {
        assert!(!page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "").contains(part), "{part}");
    }
    assert_eq!(page, report_page(&[document("run.json", run())]).unwrap().replace('\u{a0}', " "));
}

/// What is said of the ideal time depends on the run.
#[test]
fn a_run_may_be_ideal_or_faster() {
    for (seconds, words) in [
        (2.0, "the run took 0 % over the ideal time"),
        (1.5, "faster than the plan knew: at those speeds the work takes 2.00 s"),
        (4.0, "gain at most 50 % together"),
    ] {
        let mut value = run();
        value["seconds"] = seconds.into();
        let page = report_page(&[document("run.json", value)]).unwrap().replace('\u{a0}', " ");
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn several_results_are_compared_first() {
    let mut half = run();
    half["seconds"] = 2.0.into();
    let page =
        report_page(&[document("a.json", run()), document("b.json", half), document("p.json", plan())])
            .unwrap();
    let overview = page.split("<article").next().unwrap();
    for words in [
        "3 results beside each other",
        "a.json",
        "b.json",
        "of the least",
        "2.00 ×",
        "1.00 ×",
        "#result-3",
        "gallery",
    ] {
        assert!(overview.contains(words), "{words}");
    }
    assert_eq!(page.matches("<article").count(), 3);
    // Results of different problems have no ratio.
    let units = Plan::of_units("fpm", vec!["a".into()], vec![7], 1.0).to_value();
    let simulation = json!({"format": "apportion-simulation", "seconds": 1.0, "flow": null, "plan": units,
        "processors": [{"name": "a", "compute": 1.0, "communicate": 0.0, "idle": 0.0}]});
    let page = report_page(&[document("a.json", run()), document("s.json", simulation)]).unwrap();
    assert!(!page.contains("of the least"));
}

#[test]
fn layouts_of_a_factorisation_are_a_table() {
    let row =
        |method: &str, seconds: f64| json!({"method": method, "block": 32, "seconds": seconds, "volume": 7});
    let value = json!({"format": "apportion-layouts", "factors": "cholesky", "n": 6000, "ideal_seconds": 1.0,
        "layouts": [row("greedy", 4.0), row("grid", 1.25)], "fastest": "grid"});
    let page = report_page(&[document("a.json", value)]).unwrap();
    for words in ["cholesky of 6,000", "Layouts", "grid", "25.0 %", "80.0 %", "1.25 s"] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn what_is_no_result_is_refused_with_its_place() {
    let mut damaged = run();
    damaged["processors"][0]["compute"] = json!("long");
    let mut no_plan = run();
    no_plan["plan"]["shares"] = json!([1]);
    let cases = [
        (json!({"format": "apportion-platform"}), "x.json: format: \"apportion-platform\""),
        (json!({"seconds": 1.0}), "x.json: format: is missing"),
        (json!([]), "x.json: format"),
        (damaged, "x.json: processors"),
        (no_plan, "shares"),
        (json!({"format": "apportion-balance", "rounds": [], "plan": plan()}), "x.json: "),
        (json!({"format": "apportion-events", "seconds": 1.0, "chart": {"jobs": []}}), "x.json: chart"),
        (json!({"format": "apportion-layouts", "n": 4, "layouts": [{"seconds": "long"}]}), "x.json: seconds"),
        (json!({"format": "apportion-models"}), "models"),
    ];
    for (value, expected) in cases {
        let error = report_page(&[document("x.json", value)]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let line = error.to_string();
        assert!(line.contains(expected) && !line.contains('\n'), "{line}");
    }
    assert_eq!(report_page(&[]).unwrap_err().exit_code(), 2);
}

/// Whatever a field holds, there is a page or a refusal in one line.
#[test]
fn damaged_results_make_a_page_or_are_refused() {
    fn places(value: &Value, place: String, all: &mut Vec<String>) {
        all.push(place.clone());
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| places(value, format!("{place}/{name}"), all));
            }
            Value::Array(entries) => {
                entries.iter().enumerate().for_each(|(i, value)| places(value, format!("{place}/{i}"), all));
            }
            _ => {}
        }
    }
    let chart = json!({"title": "t", "seconds": 9.0, "jobs": ["cut"], "left_out": 0,
        "lanes": [{"name": "mill", "bars": [{"from": 0.0, "to": 5.0, "job": 0, "waits": false}]}]});
    let events = json!({"format": "apportion-events", "workcell": "w", "end": "finished", "seconds": 9.0,
        "products": {"piece": 3}, "chart": chart, "deadlock": {"text": "d"}, "starved": null,
        "resources": [{"name": "mill", "capacity": 1, "utilisation": 0.5, "working_seconds": 5.0,
                       "waiting_seconds": 0.0}],
        "conflicts": [{"place": "mill", "rules": ["a", "b"], "times": 2}],
        "scenarios": [{"name": "a", "mean_seconds": 9.0}, {"name": "b", "mean_seconds": 8.0}]});
    let units = Plan::of_units("dfpa", vec!["a".into(), "b".into()], vec![7, 3], 1.0).to_value();
    let models = json!({"format": "apportion-models", "version": 1, "kernel": "k", "unit": "units", "models": [
        {"processor": "a", "points": [{"size": 1, "seconds": 1, "ci": 0.1, "repetitions": 2},
                                      {"size": 9, "seconds": 5, "ci": 0.1, "repetitions": 2}]},
        {"processor": "b", "points": [{"size": 1, "seconds": 2, "ci": 0.1, "repetitions": 2}]}]});
    let balance = json!({"format": "apportion-balance", "balanced": true, "best": 1, "plan": units, "models": models,
        "rounds": [{"shares": [5, 5], "seconds": [3.0, 5.0], "spread": 0.4},
                   {"shares": [7, 3], "seconds": [4.0, 4.0], "spread": 0.0}],
        "gain": {"against": "even split", "seconds": 5.0, "kept_seconds": 4.0},
        "caps": [{"processor": "a", "works": 7, "fails": 9, "reason": "r"}]});
    let mut pages = 0;
    for good in [run(), events, balance] {
        assert!(report_page(&[document("x.json", good.clone())]).is_ok(), "{good}");
        let mut all = Vec::new();
        places(&good, String::new(), &mut all);
        let odd = [json!(null), json!(-1), json!(1e300), json!("<x>"), json!([]), json!({}), json!(true)];
        for (place, odd) in all.iter().flat_map(|place| odd.iter().map(move |odd| (place, odd))) {
            let mut damaged = good.clone();
            damaged.pointer_mut(place).unwrap().clone_from(odd);
            match report_page(&[document("x.json", damaged)]) {
                Ok(page) => {
                    assert!(!page.contains("NaN") && !page.contains("<x>"), "{place} {odd}");
                    pages += 1;
                }
                Err(error) => {
                    assert!(
                        error.exit_code() == 2 && !error.to_string().contains('\n'),
                        "{place} {odd}: {error}"
                    );
                }
            }
        }
    }
    assert!(pages > 500, "{pages}");
}
