//! Times that SimGrid 3.32 gave for 13 programs on 13 platforms, under four of its network models each.

use apportion::platform::{Speed, parse_platform};
use apportion::simulate::{Deployment, Fluid, Host, Tcp, parse_traces, simulate_actions};
use serde_json::Value;

/// A case whose reference differs from the model: how much, relatively, and why.
const DIFFERENT: [(&str, &str, f64); 0] = [];

fn rules(model: &str) -> Fluid {
    let tcp = match model {
        "CM02" => Tcp::cm02(),
        "CM02ct0" => Tcp { cross_traffic: false, ..Tcp::cm02() },
        "LV08" => Tcp::lv08(),
        "SMPI" => Tcp::smpi(),
        other => panic!("unknown model {other}"),
    };
    Fluid { tcp, ..Fluid::simgrid() }
}

fn seconds(case: &Value, model: &str) -> f64 {
    let text = |field: &Value| field.as_str().unwrap().to_owned();
    let platform = parse_platform(&text(&case["platform"]), "case").unwrap();
    let traces = case["traces"].as_array().unwrap().iter().enumerate().map(|(rank, trace)| {
        let lines = text(trace);
        let lines: Vec<String> = lines.lines().map(|line| format!("{rank} {line}")).collect();
        (format!("rank {rank}"), lines.join("\n"))
    });
    let scripts = parse_traces(&traces.collect::<Vec<_>>()).unwrap();
    let hosts: Vec<Host> = platform
        .processors
        .iter()
        .map(|p| Host { speed: p.speed.map(Speed::value).unwrap(), cores: 1 })
        .collect();
    let placement: Vec<usize> = (0..hosts.len()).collect();
    let names = platform.names();
    let on = Deployment { hosts: &hosts, placement: &placement, names: &names, network: &platform.network };
    let mut scripts: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    let outcome = simulate_actions(&mut scripts, on, &rules(model), true).unwrap();
    outcome.history.unwrap().ends.into_iter().fold(0.0, f64::max)
}

#[test]
fn the_52_cases_of_simgrid() {
    let cases: Value = serde_json::from_str(include_str!("cases.json")).unwrap();
    let mut count = 0;
    let mut wrong = Vec::new();
    for case in cases.as_array().unwrap() {
        for (model, expected) in case["seconds"].as_object().unwrap() {
            let (expected, ours) = (expected.as_f64().unwrap(), seconds(case, model));
            let name = case["name"].as_str().unwrap();
            let known = DIFFERENT.iter().find(|d| d.0 == name && d.1 == model).map_or(1e-6, |d| d.2);
            count += 1;
            let error = (ours - expected).abs() / expected;
            if error > known {
                wrong.push(format!("{name} {model}: {ours} instead of {expected}, {error:e}"));
            }
        }
    }
    assert_eq!(count, 52);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
