//! Two processors and two clusters (5.6 to 5.8), and the max-plus product (7.5.1).

use super::bench::{BLOCK, Bench, HCL, Machine, Original, SLOWDOWN, Times, cell, serial};
use apportion::kernels::Kernel;
use apportion::plan::shapes;
use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Hierarchy, Layout};
use apportion::platform::Network;
use apportion::report::{Plot, Series, table};
use apportion::schedule::{Flow, ScheduleOptions};

const BULK: ScheduleOptions = ScheduleOptions::new(Flow::Bulk, BLOCK);

/// Between clusters, data that several nodes need cross the cable once and are forwarded; here, too, all
/// communication comes first.
const RING: ScheduleOptions = ScheduleOptions::new(Flow::Ring, u64::MAX);

/// 5.8: the fastest cluster alone took 198 s.
const BORDEAUX: Original = Original { size: 15_000, speed: 2.0 * 15e3 * 15e3 * 15e3 / 198.0 };
/// 7.5.1 states no speed: that of a plain loop on those processors is assumed.
const MAX_PLUS: Original = Original { size: 7000, speed: 1e9 };

/// One line of a figure.
struct Line {
    ratio: u64,
    /// Of straight line and square corner, measured and forecast.
    times: [(Times, Times); 2],
    /// Seconds of the first cluster alone.
    alone: f64,
}

/// The contents of a figure.
#[derive(Clone, Copy)]
struct What {
    name: &'static str,
    of: fn(&Times) -> f64,
}

const COMMUNICATION: What = What { name: "communication", of: |times| times.communication };
const EXECUTION: What = What { name: "execution", of: |times| times.execution };

/// Figures 5.13 to 5.18 (serial) and 5.19 to 5.24 (parallel communications).
pub fn processors(bench: &Bench) {
    let ratios = bench.some(&[1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 17, 20, 25], &[1, 2, 3, 5, 20]);
    let machines: Vec<(u64, Machine)> =
        ratios.into_iter().map(|r| (r, pair(bench, Kernel::plus_times(), r, SLOWDOWN))).collect();
    let figures = [
        (50.0, ["(none)"; 4]),
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
            print(bench, figure, &format!("two processors, {kind} communications, {mbit} Mbit/s"), &lines);
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
        print(
            bench,
            &names,
            &format!("two clusters of three, parallel communications, {mbit} Mbit/s"),
            &lines,
        );
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
    print(
        bench,
        &["5.32", "5.33"],
        "two clusters of constant power, parallel communications, 1000 Mbit/s",
        &lines,
    );
}

/// Figures 7.2 and 7.3: max-plus, serial communications.
pub fn max_plus(bench: &Bench) {
    let ratios = bench.some(&[1, 2, 3, 4, 5, 6], &[1, 6]);
    let machines: Vec<(u64, Machine)> =
        ratios.into_iter().map(|r| (r, pair(bench, Kernel::max_plus(), r, SLOWDOWN / 2.0))).collect();
    let network = serial(bench.network(&machines[0].1, MAX_PLUS, 1000.0));
    let lines: Vec<Line> =
        machines.iter().map(|(r, machine)| line(bench, Kernel::max_plus(), *r, machine, &network)).collect();
    print(bench, &["7.2", "7.3"], "max-plus, serial communications, 1000 Mbit/s", &lines);
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
        shapes::hierarchical(bench.shape, &weights, &hierarchy, methods, &MethodOptions::default())
            .expect("two parts")
    })
}

fn line(bench: &Bench, kernel: Kernel<f64>, ratio: u64, machine: &Machine, network: &Network) -> Line {
    let machine = Machine {
        platform: apportion::platform::Platform { network: network.clone(), ..machine.platform.clone() },
        models: machine.models.clone(),
    };
    let order = if machine.models.len() > 2 { RING } else { BULK };
    let times = layouts(bench, &machine).map(|layout| bench.times(kernel, &machine, &layout, order));
    Line { ratio, times, alone: bench.alone(&machine) }
}

/// The tables of communication and execution, and their pictures if there is a directory for them.
fn print(bench: &Bench, figures: &[&str], setting: &str, lines: &[Line]) {
    for (figure, what) in figures.iter().zip([COMMUNICATION, EXECUTION]) {
        println!("Figure {figure}: {}, {setting}, ms\n", what.name);
        let rows = lines.iter().map(|line| {
            let cells = line.times.iter().map(|(now, then)| cell((what.of)(now), (what.of)(then)));
            let alone = (what.name == EXECUTION.name).then(|| format!("{:.1}", line.alone * 1e3));
            [format!("{}:1", line.ratio)].into_iter().chain(cells).chain(alone).collect()
        });
        let header = ["ratio", "straight line", "square corner", "the fast alone"];
        println!(
            "{}{}\n",
            table(&header[..3 + usize::from(what.name == EXECUTION.name)], rows),
            crossover(lines, what)
        );
        bench.picture(figure, || plot(figure, what, setting, lines));
    }
    let worth = lines.iter().filter(|l| l.times[1].0.execution < l.alone).map(|l| l.ratio).max();
    println!(
        "Square corner faster than the fast alone up to {}\n",
        worth.map_or_else(|| "no ratio".into(), |r| format!("{r}:1"))
    );
}

/// The ratio from which the square corner is measured to be faster.
fn crossover(lines: &[Line], what: What) -> String {
    let [line, corner] = [0, 1].map(|i| move |l: &&Line| (what.of)(&l.times[i].0));
    match lines.iter().rev().take_while(|l| corner(l) < line(l)).last() {
        Some(line) => format!("square corner faster from {}:1 on", line.ratio),
        None => "square corner not faster at the last ratio".into(),
    }
}

/// Milliseconds over the ratio, measured, and forecast dashed.
fn plot(figure: &str, what: What, setting: &str, lines: &[Line]) -> Plot {
    let series = |name: &str, colour: usize, dashed: bool| Series {
        name: if dashed { format!("{name}, forecast") } else { name.to_owned() },
        points: lines
            .iter()
            .map(|line| {
                let (now, then) = &line.times[colour];
                [line.ratio as f64, (what.of)(if dashed { then } else { now }) * 1e3]
            })
            .collect(),
        dashed,
        colour,
        ..Series::default()
    };
    let alone = Series {
        name: "the fast alone".into(),
        points: lines.iter().map(|line| [line.ratio as f64, line.alone * 1e3]).collect(),
        dashed: true,
        colour: 2,
        ..Series::default()
    };
    Plot {
        title: [format!("As Fig. {figure} of Becker 2010: {}", what.name), setting.to_owned()],
        axes: ["speed of the fast processor / the slow one".into(), format!("{} time, ms", what.name)],
        series: [("straight line", 0), ("square corner", 1)]
            .into_iter()
            .flat_map(|(name, colour)| [false, true].map(|dashed| series(name, colour, dashed)))
            .chain((what.name == EXECUTION.name).then_some(alone))
            .collect(),
        ..Plot::default()
    }
}
