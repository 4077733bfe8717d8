//! MPDATA: points per second of whole steps on one core and on two, beside the roofline of memory.
//!
//! `cargo bench -p targets --bench advection` takes about a minute on a quiet machine; `-- 256` runs at
//! another side than 512. Courant numbers are constants (one for each axis), or arrays with one for each
//! face. The roofline is the speed of memory (a triad over arrays larger than the caches) divided by the
//! bytes that a step must move: the field read and written, and three Courant numbers read where they are
//! arrays.
//!
//! With `PYMPDATA=PYTHON` in the environment, the path of a Python that has PyMPDATA, its speed is shown
//! beside ours in double precision (benches/pympdata.py; its compilation takes another minute). It has arrays
//! of Courant numbers in any case.

use apportion::kernels::mpdata::{Advectable, Boundary, Scheme};
use apportion::matrix::LocalBlocks;
use apportion::plan::shapes::{LayoutMethod, Rows};
use apportion::plan::{Plan, Shape};
use apportion::platform::Platform;
use apportion::run::{Monitor, Session, World};
use apportion::{Rect, Span};
use apportion_advect::{
    AdvectJob, AdvectOrder, AdvectProblem, AdvectSchedule, Courant, advect, needed_faces,
};
use apportion_report::table;
use std::process::Command;
use std::time::Instant;

/// Levels of the grid.
const LEVELS: usize = 64;

/// Steps of a run, and runs of which the fastest counts.
const STEPS: u64 = 8;
const RUNS: usize = 3;

fn main() {
    let side = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(512);
    let bytes_per_second = triad();
    println!("{side} x {side} x {LEVELS}, periodic; memory {:.1} GB/s on one core\n", bytes_per_second / 1e9);
    let basic = Scheme::new(2).expect("two passes");
    let limited = Scheme { nonoscillatory: true, ..basic };
    let rival = rival(side);
    let mut lines = Vec::new();
    for (name, scheme) in
        [("1 pass", Scheme::new(1).expect("one")), ("2 passes", basic), ("2, non-oscillatory", limited)]
    {
        let known = rival.iter().find(|(known, _)| *known == scheme).map(|(_, speed)| *speed);
        lines.push(line::<f64>((name, false), (scheme, known), side, bytes_per_second));
        lines.push(line::<f64>((name, true), (scheme, known), side, bytes_per_second));
        lines.push(line::<f32>((name, false), (scheme, None), side, bytes_per_second));
    }
    let head =
        ["scheme", "type", "Courant", "one core", "two cores", "gain", "roofline", "PyMPDATA", "ahead"];
    print!("{}", table(&head, lines));
    println!("\nmillion points a second");
}

/// Million points a second of PyMPDATA by scheme; none if it is not asked for.
fn rival(side: usize) -> Vec<(Scheme, f64)> {
    let Some(python) = std::env::var_os("PYMPDATA") else { return Vec::new() };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/pympdata.py");
    let output = Command::new(python).arg(script).arg(side.to_string()).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let passes = words.next()?.parse().ok()?;
        let nonoscillatory = words.next()? == "1";
        let scheme = Scheme { nonoscillatory, ..Scheme::new(passes).expect("a scheme") };
        Some((scheme, words.next()?.parse().ok()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect()
}

fn line<T: Advectable>(
    (name, faces): (&str, bool),
    (scheme, rival): (Scheme, Option<f64>),
    side: usize,
    bytes_per_second: f64,
) -> Vec<String> {
    let [one, two] = [1, 2].map(|processors| speed::<T>(scheme, faces, side, processors));
    let arrays = if faces { 5 } else { 2 };
    let roofline = bytes_per_second / (arrays * size_of::<T>()) as f64 / 1e6;
    let shown = |speed: f64| format!("{speed:.1}");
    vec![
        name.into(),
        T::NAME.into(),
        if faces { "arrays" } else { "constant" }.into(),
        shown(one),
        shown(two),
        format!("{:.2}", two / one),
        format!("{roofline:.0} ({:.0} %)", 100.0 * one / roofline),
        rival.map_or_else(String::new, shown),
        rival.map_or_else(String::new, |rival| format!("{:.1} x", one / rival)),
    ]
}

/// Million points a second.
fn speed<T: Advectable>(scheme: Scheme, faces: bool, side: usize, processors: usize) -> f64 {
    let problem =
        AdvectProblem { sizes: vec![side, side, LEVELS], boundary: vec![Boundary::Periodic; 3], scheme };
    let shape = Shape::new(side as u64, 1, side as u64, "grid").expect("a grid");
    let layout = Rows::default().layout(shape, &vec![1.0; processors]).expect("rows");
    let mut platform = Platform::from_speeds(&vec![1.0; processors]).expect("processors");
    platform.processors.iter_mut().enumerate().for_each(|(core, processor)| processor.cores = vec![core]);
    let plan = Plan::of_grid("rows", platform.names(), layout, 1.0);
    let rect = Rect::new(Span::new(0, side as u64), Span::new(0, (side * LEVELS) as u64));
    let field = (0..side * side * LEVELS).map(|i| T::from_f64(1.0 + (i % 97) as f64 / 97.0)).collect();
    let field = vec![(rect, field)];
    let numbers = [0.25, 0.125, 0.1875].map(T::from_f64);
    let (monitor, job) = (
        Monitor::new(),
        AdvectJob { problem: &problem, plan: &plan, order: AdvectOrder::ALL[0], signed: false },
    );
    let world = World::solo(&monitor);
    let schedule = AdvectSchedule::new(&problem, plan.rectangles().expect("a grid"), job.order, STEPS);
    let schedule = schedule.expect("a schedule");
    let arrays: Vec<LocalBlocks<T>> = (0..if faces { 3 } else { 0 })
        .map(|axis| {
            let rects = needed_faces(&schedule, axis, &world).into_iter();
            rects.map(|rect| (rect, vec![numbers[axis]; rect.area() as usize])).collect()
        })
        .collect();
    let courant: Vec<Courant<'_, T>> = match faces {
        true => arrays.iter().map(Courant::Faces).collect(),
        false => numbers.map(Courant::Constant).to_vec(),
    };
    let run = |_| {
        let session = Session::new(&world, &platform, &monitor, 0.0);
        advect(&job, &field, &courant, STEPS, &session).expect("a run").1.seconds()
    };
    let fastest = (0..RUNS).map(run).fold(f64::INFINITY, f64::min);
    (side * side * LEVELS) as f64 * STEPS as f64 / fastest / 1e6
}

/// Bytes per second of a = b + s c, with what the caches read before they write.
fn triad() -> f64 {
    let n = 1 << 24;
    let (mut a, b, c) = (vec![0.0_f64; n], vec![1.0_f64; n], vec![2.0_f64; n]);
    let mut fastest = f64::INFINITY;
    for round in 0..5 {
        let begin = Instant::now();
        let s = f64::from(round);
        a.iter_mut().zip(b.iter().zip(&c)).for_each(|(a, (b, c))| *a = b + s * c);
        std::hint::black_box(&mut a);
        fastest = fastest.min(begin.elapsed().as_secs_f64());
    }
    (4 * 8 * n) as f64 / fastest
}
