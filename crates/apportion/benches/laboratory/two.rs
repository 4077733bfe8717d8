//! Two processors and two clusters (5.6 to 5.8), and the max-plus product (7.5.1).

use super::bench::{BLOCK, Bench, HCL, Machine, Original, SLOWDOWN, cell, serial};
use apportion::shapes::{self, Method, Terms};
use apportion::{Flow, Hierarchy, Kernel, Layout, Network, Order, table};

const BULK: Order = Order { flow: Flow::Bulk, block: BLOCK, overlap: false, look_ahead: 1 };

/// In clusters what several nodes need crosses the cable once and is forwarded; all communication first there, too.
const RING: Order = Order { flow: Flow::Ring, block: u64::MAX, ..BULK };

/// 5.8: the fastest cluster alone took 198 s.
const BORDEAUX: Original = Original { size: 15_000, speed: 2.0 * 15e3 * 15e3 * 15e3 / 198.0 };
/// 7.5.1 names no speed: a plain loop's on those processors, by assumption.
const MAX_PLUS: Original = Original { size: 7000, speed: 1e9 };

/// One line: communication and execution of both partitionings.
struct Line {
    ratio: u64,
    communication: [String; 2],
    execution: [String; 2],
    alone: f64,
    /// Measured: communication and execution, of straight line and square corner.
    measured: [[f64; 2]; 2],
}

/// Figures 5.13 to 5.18 (serial) and 5.19 to 5.24 (parallel communications).
pub fn processors(bench: &Bench) {
    let ratios = bench.some(&[1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 17, 20, 25], &[1, 2, 3, 5, 20]);
    let machines: Vec<(u64, Machine)> =
        ratios.into_iter().map(|r| (r, pair(bench, Kernel::plus_times(), r, SLOWDOWN))).collect();
    let figures = [
        (50.0, ["no figure"; 4]),
        (100.0, ["5.13", "5.16", "5.19", "5.22"]),
        (500.0, ["5.14", "5.17", "5.20", "5.23"]),
        (1000.0, ["5.15", "5.18", "5.21", "5.24"]),
    ];
    for (mbit, names) in bench.some(&figures, &figures[1..2]) {
        for (duplex, figure) in [(false, &names[..2]), (true, &names[2..])] {
            let network = bench.network(&machines[0].1, HCL, mbit);
            let network = if duplex { network } else { serial(network) };
            let lines: Vec<Line> = machines
                .iter()
                .map(|(ratio, machine)| line(bench, Kernel::plus_times(), *ratio, machine, &network))
                .collect();
            let kind = if duplex { "parallel" } else { "serial" };
            print(figure, &format!("two processors, {kind} communications, {mbit} Mbit/s"), &lines);
        }
    }
}

/// Figures 5.26 to 5.31: two clusters of three, parallel communications over one link.
pub fn clusters(bench: &Bench) {
    let ratios = bench.some(&[1, 2, 3, 4, 6, 8, 10, 15], &[2, 8]);
    let figures = [(100.0, ["5.26", "5.29"]), (500.0, ["5.27", "5.30"]), (1000.0, ["5.28", "5.31"])];
    let machines: Vec<(u64, Machine)> = ratios
        .into_iter()
        .map(|ratio| {
            let slower = ratio as f64;
            let members =
                [("one", 1.0), ("one", 1.0), ("one", 1.0), ("two", slower), ("two", slower), ("two", slower)];
            // A cluster of three is as fast as one processor elsewhere.
            (ratio, bench.machine(Kernel::plus_times(), &members, 3.0 * SLOWDOWN))
        })
        .collect();
    for (mbit, names) in bench.some(&figures, &figures[..1]) {
        let network = bench.cable(&machines[0].1, HCL, mbit);
        let lines: Vec<Line> = machines
            .iter()
            .map(|(ratio, machine)| line(bench, Kernel::plus_times(), *ratio, machine, &network))
            .collect();
        print(&names, &format!("two clusters of three, parallel communications, {mbit} Mbit/s"), &lines);
    }
}

/// Figures 5.32 and 5.33: the sum of the speeds stays the same.
pub fn constant_power(bench: &Bench) {
    let lines: Vec<Line> = bench
        .some(&[1, 2, 3, 4, 5, 6, 7, 8], &[1, 4])
        .into_iter()
        .map(|ratio| {
            let share = ratio as f64 / (1.0 + ratio as f64);
            let machine = pair(bench, Kernel::plus_times(), ratio, SLOWDOWN / 2.0 / share);
            // The scale is that of the whole, not of the faster part.
            let faster = Original { speed: BORDEAUX.speed * share, ..BORDEAUX };
            let network = bench.network(&machine, faster, 1000.0);
            line(bench, Kernel::plus_times(), ratio, &machine, &network)
        })
        .collect();
    print(&["5.32", "5.33"], "two clusters of constant power, parallel communications, 1000 Mbit/s", &lines);
}

/// Figures 7.2 and 7.3: max-plus, serial communications.
pub fn max_plus(bench: &Bench) {
    let ratios = bench.some(&[1, 2, 3, 4, 5, 6], &[1, 6]);
    let machines: Vec<(u64, Machine)> =
        ratios.into_iter().map(|r| (r, pair(bench, Kernel::max_plus(), r, SLOWDOWN / 2.0))).collect();
    let network = serial(bench.network(&machines[0].1, MAX_PLUS, 1000.0));
    let lines: Vec<Line> =
        machines.iter().map(|(r, machine)| line(bench, Kernel::max_plus(), *r, machine, &network)).collect();
    print(&["7.2", "7.3"], "max-plus, serial communications, 1000 Mbit/s", &lines);
}

fn pair(bench: &Bench, kernel: Kernel<f64>, ratio: u64, slowdown: f64) -> Machine {
    bench.machine(kernel, &[("one", 1.0), ("two", ratio as f64)], slowdown)
}

/// Straight line and square corner between the two, strips within a cluster.
fn layouts(bench: &Bench, machine: &Machine) -> [Layout; 2] {
    let weights = machine.weights(bench.shape);
    let paths: Vec<String> = machine.platform.processors.iter().map(|p| p.cluster.clone()).collect();
    let hierarchy = Hierarchy::of_paths(&paths);
    [Method::StraightLine, Method::SquareCorner].map(|method| {
        let methods = [Some(method), Some(Method::Columns)];
        let methods = &methods[..hierarchy.levels()];
        shapes::hierarchical(bench.shape, &weights, &hierarchy, methods, &Terms::default())
            .expect("two parts")
    })
}

fn line(bench: &Bench, kernel: Kernel<f64>, ratio: u64, machine: &Machine, network: &Network) -> Line {
    let machine = Machine {
        platform: apportion::Platform { network: network.clone(), ..machine.platform.clone() },
        models: machine.models.clone(),
    };
    let order = if machine.models.len() > 2 { RING } else { BULK };
    let found = layouts(bench, &machine).map(|layout| bench.times(kernel, &machine, &layout, order));
    Line {
        ratio,
        communication: found.map(|(now, then)| cell(now.communication, then.communication)),
        execution: found.map(|(now, then)| cell(now.execution, then.execution)),
        alone: bench.alone(&machine),
        measured: found.map(|(now, _)| [now.communication, now.execution]),
    }
}

fn print(figures: &[&str], what: &str, lines: &[Line]) {
    println!("Figure {}: communication, {what}, ms\n", figures[0]);
    let rows = lines.iter().map(|l| [vec![format!("{}:1", l.ratio)], l.communication.to_vec()].concat());
    println!("{}{}\n", table(&["ratio", "straight line", "square corner"], rows), crossover(lines, 0));
    println!("Figure {}: execution, {what}, ms\n", figures[1]);
    let rows = lines.iter().map(|l| {
        let alone = format!("{:.1}", l.alone * 1e3);
        [vec![format!("{}:1", l.ratio)], l.execution.to_vec(), vec![alone]].concat()
    });
    let worth = lines.iter().filter(|l| l.measured[1][1] < l.alone).map(|l| l.ratio).max();
    println!(
        "{}{}; square corner faster than the fast alone up to {}\n",
        table(&["ratio", "straight line", "square corner", "the fast alone"], rows),
        crossover(lines, 1),
        worth.map_or_else(|| "no ratio".into(), |r| format!("{r}:1"))
    );
}

/// From which ratio on the square corner is measured to be faster.
fn crossover(lines: &[Line], what: usize) -> String {
    let last = lines.iter().rev().take_while(|l| l.measured[1][what] < l.measured[0][what]).last();
    match last {
        Some(line) => format!("square corner faster from {}:1 on", line.ratio),
        None => "square corner not faster at the last ratio".into(),
    }
}
