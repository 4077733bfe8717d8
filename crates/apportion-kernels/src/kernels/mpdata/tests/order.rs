//! The order of convergence on flow along a diagonal.

use super::*;
use std::f64::consts::TAU;

/// The error (L2) after a wave has moved by the same distance on a grid of n cells per axis.
fn error(n: usize, courant: &[f64], scheme: Scheme, steps: usize) -> f64 {
    let domain = Domain::new(&vec![n; courant.len()], &vec![Boundary::Periodic; courant.len()]);
    let wave = |at: [usize; 3], moved: f64| -> f64 {
        let along =
            |number: usize, axis: usize| TAU * (at[axis] as f64 + 0.5 - moved * courant[number]) / n as f64;
        domain.axes().iter().enumerate().map(|(number, axis)| along(number, *axis).sin()).product::<f64>()
            + 2.0
    };
    let [planes, rows, row] = domain.cells;
    let field = |moved: f64| -> Vec<f64> {
        let cells = (0..planes).flat_map(|i| (0..rows).flat_map(move |j| (0..row).map(move |k| [i, j, k])));
        cells.map(|at| wave(at, moved)).collect()
    };
    let number = |axis: usize| domain.axes().iter().position(|a| *a == axis).unwrap();
    let mut serial =
        Serial::new(domain, Stencil { scheme, exchange: Exchange::Wide }, &field(0.0), |axis, _| {
            courant[number(axis)]
        });
    serial.steps(steps);
    let wanted = field(steps as f64);
    let squares: f64 = serial.field().iter().zip(&wanted).map(|(x, y)| (x - y) * (x - y)).sum();
    (squares / wanted.len() as f64).sqrt()
}

fn order(courant: &[f64], scheme: Scheme, n: usize) -> f64 {
    (error(n, courant, scheme, n) / error(2 * n, courant, scheme, 2 * n)).log2()
}

#[test]
#[ignore = "slow"]
fn both_cross_terms_make_second_order() {
    let basic = Scheme::new(2).unwrap();
    let diagonal = [0.25, 0.125, 0.1875];
    let third = Scheme { third_order: true, ..Scheme::new(3).unwrap() };
    for (name, courant, scheme, n, least) in [
        ("3-D", &diagonal[..], basic, 16, 1.9),
        ("3-D", &diagonal[..], basic, 32, 1.9),
        ("3-D, gauge", &diagonal[..], Scheme { infinite_gauge: true, ..basic }, 16, 1.9),
        ("2-D", &diagonal[..2], basic, 32, 1.9),
        ("1-D", &diagonal[..1], basic, 32, 1.9),
        ("1-D, third", &diagonal[..1], third, 32, 2.8),
        ("2-D, third", &diagonal[..2], third, 64, 2.8),
        ("3-D, third", &diagonal[..], third, 16, 2.7),
    ] {
        let found = order(courant, scheme, n);
        assert!(found > least, "{name} with {scheme} at {n}: order {found:.2}");
    }
}
