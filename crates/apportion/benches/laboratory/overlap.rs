//! The fraction of the recoverable time that overlap recovers, by flow.

use super::bench::{BLOCK, Bench, HCL, Machine, SLOWDOWN};
use apportion::kernels::Kernel;
use apportion::plan::shapes::square_corner;
use apportion::plan::{Layout, Metrics, Shape};
use apportion::platform::Platform;
use apportion::report::table;
use apportion::schedule::{Flow, ScheduleOptions};

/// The square corners that finish soonest if the part that needs no message is computed while data travel.
/// They are smaller than in proportion to speed, since their owners wait meanwhile (6.1.4: the rest of each
/// is in proportion). Found by search.
pub fn shares_for_overlap(machine: &Machine, weights: &[f64], shape: Shape) -> Layout {
    let order = ScheduleOptions::new(Flow::Bulk, BLOCK).with_look_ahead(1);
    let candidates = (20..=100).filter_map(|percent| {
        let scaled: Vec<f64> = weights
            .iter()
            .enumerate()
            .map(|(i, w)| if i == 0 { *w } else { w * f64::from(percent) / 100.0 })
            .collect();
        let layout = square_corner(shape, &scaled).ok()?;
        Some((machine.forecast(&layout, order).seconds(), layout))
    });
    candidates.min_by(|a, b| a.0.total_cmp(&b.0)).expect("the squares fit").1
}

/// Execution without and with overlap, 5:1, square corner.
pub fn recovered(bench: &Bench) {
    let machine = bench.machine(Kernel::plus_times(), &[("1", 1.0), ("2", 5.0)], SLOWDOWN);
    let mut rows = Vec::new();
    for mbit in bench.some(&[50.0, 100.0, 200.0, 500.0], &[100.0]) {
        let network = bench.network(&machine, HCL, mbit);
        let machine = Machine {
            platform: Platform { network, ..machine.platform.clone() },
            models: machine.models.clone(),
        };
        let weights = machine.weights(bench.shape);
        let corner = square_corner(bench.shape, &weights).expect("two parts");
        for flow in [Flow::Bulk, Flow::OneToAll, Flow::Ring, Flow::Broadcast] {
            let block = if flow == Flow::Bulk { BLOCK } else { BLOCK / 4 };
            let order = ScheduleOptions::new(flow, block);
            let with = order.with_look_ahead(1);
            let times = |layout: &Layout, order| bench.times(Kernel::plus_times(), &machine, layout, order);
            let (without, _) = times(&corner, order);
            let layout = match flow {
                Flow::Bulk => shares_for_overlap(&machine, &weights, bench.shape),
                _ => corner.clone(),
            };
            let (overlapped, forecast) = times(&layout, with);
            // The smaller of communication and of the computation that needs none: in bulk the free part of
            // the corner's layout; block by block everything but the first block.
            let rates = machine.rates(&corner);
            let computation = machine.forecast(&corner, order).compute().into_iter().fold(0.0, f64::max);
            let communication = without.execution - computation;
            let free = match flow {
                Flow::Bulk => {
                    let free = Metrics::of_layout(&corner, 1.0).communication_free.expect("few processors");
                    let work =
                        |(elements, rate): (&u64, &f64)| *elements as f64 * bench.shape.k as f64 / rate;
                    free.iter().zip(&rates).map(work).fold(0.0, f64::max)
                }
                _ => computation,
            };
            let recoverable = communication.min(free);
            let seconds = |s: f64| format!("{:.1}", s * 1e3);
            rows.push(vec![
                format!("{mbit}"),
                flow.to_string(),
                seconds(without.execution),
                seconds(overlapped.execution),
                seconds(forecast.execution),
                seconds(recoverable),
                format!("{:.0} %", 100.0 * (without.execution - overlapped.execution) / recoverable),
            ]);
        }
    }
    println!("Overlap, two processors of 5:1, square corner, parallel communications, ms\n");
    let header = ["Mbit/s", "flow", "without", "with", "forecast with", "recoverable", "recovered"];
    println!("{}", table(&header, rows.into_iter()));
}
