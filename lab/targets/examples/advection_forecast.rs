//! How near forecasts of advections are to runs on emulated processors and networks.
//!
//! `cargo run --release -p targets --example advection_forecast` takes half a minute on a quiet machine.

use apportion::kernels::mpdata::{Boundary, Exchange, Scheme};
use apportion::model::{Machine, WorkUnit};
use apportion::plan::shapes::Method;
use apportion::platform::{Platform, parse_platform};
use apportion::run::{Monitor, Session, World};
use apportion::{Rect, Result, Span};
use apportion_advect::{
    AdvectJob, AdvectOptions, AdvectOrder, AdvectProblem, Courant, advect, plan_advection,
};
use apportion_report::table;
use harness::Sample;

/// The grid, and the number of steps.
const SIZES: [usize; 3] = [96, 96, 16];
const STEPS: u64 = 12;

const UNIFORM: &str = "latency = \"2 ms\"\nbandwidth = \"2 MB/s\"\n";
const HALF: &str = "latency = \"2 ms\"\nbandwidth = \"2 MB/s\"\nduplex = false\n";
const STAR: &str = "latency = \"2 ms\"\nbandwidth = \"4 MB/s\"\ntopology = \"star\"\ncentre = \"p0\"\n";
const BUS: &str = "latency = \"1 ms\"\nbandwidth = \"8 MB/s\"\ntopology = \"bus\"\n";
const ASYMMETRIC: &str =
    "latency = \"2 ms\"\nbandwidth = { horizontal = \"1 MB/s\", vertical = \"5 MB/s\" }\n";

fn platform(speeds: &[f64], network: &str) -> Result<Platform> {
    let one = |(i, speed): (usize, &f64)| {
        format!("[[processor]]\nname = \"p{i}\"\nemulated = \"peak {}\"\n", speed * 1e5)
    };
    let processors: String = speeds.iter().enumerate().map(one).collect();
    parse_platform(&format!("{processors}[network]\nemulate = true\n{network}"), "example")
}

fn main() -> Result<()> {
    let basic = Scheme::new(2)?;
    let limited = Scheme { nonoscillatory: true, ..basic };
    let order = |exchange, overlap| AdvectOrder { exchange, overlap };
    let (wide, narrow) = (order(Exchange::Wide, false), order(Exchange::Narrow, false));
    let (wide_overlap, narrow_overlap) = (order(Exchange::Wide, true), order(Exchange::Narrow, true));
    let (two, three, four) = (&[9.0, 3.0][..], &[6.0, 3.0, 3.0][..], &[5.0, 4.0, 2.0, 1.0][..]);
    let mut errors = Vec::new();
    let mut lines = Vec::new();
    for (name, network, speeds, method, scheme, order) in [
        ("full duplex", UNIFORM, two, Method::Columns, basic, wide),
        ("full duplex", UNIFORM, two, Method::Columns, basic, narrow),
        ("full duplex", UNIFORM, four, Method::Grid, basic, wide),
        ("full duplex", UNIFORM, four, Method::Cartesian, limited, wide_overlap),
        ("full duplex", UNIFORM, four, Method::Columns, limited, narrow_overlap),
        ("half duplex", HALF, three, Method::Columns, basic, wide),
        ("half duplex", HALF, three, Method::Rows, limited, narrow),
        ("star", STAR, three, Method::Columns, basic, wide),
        ("star", STAR, three, Method::Columns, basic, narrow_overlap),
        ("bus", BUS, three, Method::Rows, basic, wide),
        ("bus", BUS, three, Method::Columns, limited, wide_overlap),
        ("5 : 1 along columns", ASYMMETRIC, four, Method::Rows, basic, wide),
        ("5 : 1 along columns", ASYMMETRIC, four, Method::Grid, limited, narrow),
    ] {
        let platform = platform(speeds, network)?;
        let problem = AdvectProblem { sizes: SIZES.to_vec(), boundary: vec![Boundary::Periodic; 3], scheme };
        let machine = Machine::from_platform(platform, WorkUnit::Unit)?;
        let choice = plan_advection(
            &problem,
            &machine,
            &AdvectOptions { method: Some(method), orders: &[order], plan: None, steps: STEPS, element: 8 },
        )?
        .remove(0);
        let forecast = choice.plan.forecast.as_ref().expect("a forecast was made").seconds;
        let measured = run(&problem, &machine.platform, (&choice.plan, order))?;
        let error = 100.0 * (forecast / measured - 1.0);
        errors.push(error.abs());
        lines.push(vec![
            name.to_owned(),
            format!("{speeds:?}"),
            method.to_string(),
            format!("{scheme}"),
            order.to_string(),
            format!("{forecast:.3} s"),
            format!("{measured:.3} s"),
            format!("{error:+.1} %"),
        ]);
    }
    let header = ["network", "speeds", "layout", "scheme", "exchange", "forecast", "measured", "error"];
    print!("{}", table(&header, lines));
    let errors = Sample::of(errors);
    println!("\nmedian {:.1} %, worst {:.1} %", errors.median(), errors.most());
    Ok(())
}

/// Seconds of a run.
fn run(
    problem: &AdvectProblem,
    platform: &Platform,
    (plan, order): (&apportion::plan::Plan, AdvectOrder),
) -> Result<f64> {
    let [rows, cols, levels] = SIZES;
    let rect = Rect::new(Span::new(0, rows as u64), Span::new(0, (cols * levels) as u64));
    let field = vec![(rect, (0..rows * cols * levels).map(|i| 1.0 + (i % 97) as f64 / 97.0).collect())];
    let courant = [0.25, 0.125, 0.1875].map(Courant::Constant);
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    let session = Session::new(&world, platform, &monitor, 0.0);
    let job = AdvectJob { problem, plan, order, signed: false };
    Ok(advect(&job, &field, &courant, STEPS, &session)?.1.seconds())
}
