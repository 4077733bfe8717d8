//! Values computed with an independent program (PyMPDATA 1.7.3).

use super::*;
use std::collections::BTreeMap;

/// The largest difference, relative to the largest value.
fn difference(found: &[f64], wanted: &[f64]) -> f64 {
    let largest = wanted.iter().fold(0.0, |most, x| x.abs().max(most));
    assert_eq!(found.len(), wanted.len());
    found.iter().zip(wanted).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max) / largest
}

fn scheme(name: &str) -> Option<Scheme> {
    let passes = match name {
        "upwind" => 1,
        _ => name.strip_prefix("mpdata")?[..1].parse().ok()?,
    };
    let has = |option| name.split('_').any(|part| part == option);
    Scheme { passes, nonoscillatory: has("fct"), infinite_gauge: has("iga"), third_order: has("tot") }
        .checked()
        .ok()
}

#[derive(serde::Deserialize)]
struct Case {
    n_steps: usize,
    psi0: Vec<f64>,
    #[serde(rename = "C")]
    courant: Vec<Vec<f64>>,
    results: BTreeMap<String, Outcome>,
}

#[derive(serde::Deserialize)]
struct Outcome {
    psi: Vec<f64>,
}

#[test]
fn one_dimension_agrees() {
    let text = include_str!("../../../../tests/data/mpdata-1d.json");
    let cases: BTreeMap<String, Case> = serde_json::from_str(text).unwrap();
    let mut checked = 0;
    for (case, data) in &cases {
        for (name, outcome) in &data.results {
            let (boundary, options) = name.split_once('/').unwrap();
            let Some(scheme) = scheme(options) else { continue };
            // The program that made the values extrapolates by ratios of differences: the gauge shows it.
            if boundary == "extrapolated" && scheme.infinite_gauge {
                continue;
            }
            for exchange in [Exchange::Wide, Exchange::Narrow] {
                let domain = Domain::new(&[data.psi0.len()], &[boundary.parse().unwrap()]);
                let courant = |_, at: [isize; 3]| data.courant[0][at[2] as usize];
                let mut serial = Serial::new(domain, Stencil { scheme, exchange }, &data.psi0, courant);
                serial.steps(data.n_steps);
                let error = difference(&serial.field(), &outcome.psi);
                assert!(error < 1e-12, "{case} {name} {exchange:?}: {error:.1e}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 38, "{checked}");
}

#[test]
fn two_dimensions_agree() {
    let text = include_str!("../../../../tests/data/mpdata-2d.json");
    let arrays: BTreeMap<String, Vec<f64>> = serde_json::from_str(text).unwrap();
    let mut checked = 0;
    for (name, wanted) in &arrays {
        let Some((boundary, options)) = name.split_once('/') else { continue };
        for exchange in [Exchange::Wide, Exchange::Narrow] {
            let domain = Domain::new(&[32, 32], &[boundary.parse().unwrap(); 2]);
            let courant = |axis: usize, _| if axis == 0 { 0.3 } else { -0.2 };
            let with = Stencil { scheme: scheme(options).unwrap(), exchange };
            let mut serial = Serial::new(domain, with, &arrays["psi0"], courant);
            serial.steps(20);
            let error = difference(&serial.field(), wanted);
            assert!(error < 1e-12, "{name} {exchange:?}: {error:.1e}");
        }
        checked += 1;
    }
    assert_eq!(checked, 12);
}
