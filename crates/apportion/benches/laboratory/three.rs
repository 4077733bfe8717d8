//! Three processors on a star and fully connected (6.2): Figures 6.14 to 6.17.

use super::bench::{BLOCK, Bench, Machine, Original, SLOWDOWN, cell, joined};
use super::overlap::shares_for_overlap;
use apportion::geometry::Rank;
use apportion::kernels::Kernel;
use apportion::plan::shapes::{square_corner, straight_line};
use apportion::platform::{Platform, Topology};
use apportion::report::table;
use apportion::schedule::{Flow, ScheduleOptions};

/// Nodes of the HCL cluster, N = 5,000.
pub const HCL_THREE: Original = Original { size: 5000, speed: 1761e6 };

pub fn star_and_full(bench: &Bench) {
    let order = ScheduleOptions::new(Flow::Bulk, BLOCK);
    let overlapped = order.with_look_ahead(1);
    let slow = bench.some(&[5, 10, 15, 20, 25], &[5, 25]);
    let machines: Vec<(u64, Machine)> = slow
        .into_iter()
        .map(|s| {
            let slower = (100 - 2 * s) as f64 / s as f64;
            (s, bench.machine(Kernel::plus_times(), &[("1", 1.0), ("2", slower), ("3", slower)], SLOWDOWN))
        })
        .collect();
    let star = Topology::Star { centre: Rank(0) };
    for (topology, name, figures) in
        [(star, "star", ["6.14", "6.15"]), (Topology::Full, "full", ["6.16", "6.17"])]
    {
        let (mut communication, mut execution) = (Vec::new(), Vec::new());
        for (s, machine) in &machines {
            let network = joined(bench.network(machine, HCL_THREE, 100.0), topology);
            let machine = Machine {
                platform: Platform { network, ..machine.platform.clone() },
                models: machine.models.clone(),
            };
            let weights = machine.weights(bench.shape);
            let line = straight_line(bench.shape, &weights).expect("three strips");
            let Ok(corner) = square_corner(bench.shape, &weights) else {
                continue; // Measured a little slower than 2:1:1: the squares would overlap.
            };
            let ratio = format!("{}:{s}:{s}", 100 - 2 * s);
            let times = |layout, order| bench.times(Kernel::plus_times(), &machine, layout, order);
            let (a, b) = (times(&line, order), times(&corner, order));
            let same = times(&corner, overlapped);
            let moved = shares_for_overlap(&machine, &weights, bench.shape);
            let moved = times(&moved, overlapped);
            let cells = |of: fn(&super::bench::Times) -> f64,
                         all: &[(super::bench::Times, super::bench::Times)]| {
                let cells = all.iter().map(|(now, then)| cell(of(now), of(then)));
                [ratio.clone()].into_iter().chain(cells).collect::<Vec<String>>()
            };
            communication.push(cells(|t| t.communication, &[a, b]));
            execution.push(cells(|t| t.execution, &[a, b, same, moved]));
        }
        println!("Figure {}: communication, three processors, {name}, 100 Mbit/s, ms\n", figures[0]);
        println!("{}", table(&["speeds", "straight line", "square corner"], communication.into_iter()));
        println!("Figure {}: execution, three processors, {name}, 100 Mbit/s, ms\n", figures[1]);
        let header = ["speeds", "straight line", "square corner", "overlapped", "overlapped, shares for it"];
        println!("{}", table(&header, execution.into_iter()));
    }
}
