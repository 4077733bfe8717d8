//! Tinetti's broadcasts on a bus beside his time model (chapter 3, equations (3.6) to (3.11)).

use super::bench::{Bench, HCL, Machine, SLOWDOWN, cell, joined};
use apportion::geometry::Rank;
use apportion::kernels::Kernel;
use apportion::plan::shapes::rows;
use apportion::platform::{Platform, Topology};
use apportion::report::table;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::simulate::BroadcastTime;

/// Four workstations of 4:3:2:1 on Ethernet of 10 and 100 Mbit/s.
pub fn broadcasts(bench: &Bench) {
    let slower = [1.0, 4.0 / 3.0, 2.0, 4.0];
    let members: Vec<(&str, f64)> = ["a", "b", "c", "d"].into_iter().zip(slower).collect();
    let machine = bench.machine(Kernel::plus_times(), &members, SLOWDOWN);
    let mut lines = Vec::new();
    for mbit in bench.some(&[10.0, 100.0], &[100.0]) {
        let network = joined(bench.network(&machine, HCL, mbit), Topology::Bus);
        let machine = Machine {
            platform: Platform { network, ..machine.platform.clone() },
            models: machine.models.clone(),
        };
        let layout = rows(bench.shape, &machine.weights(bench.shape)).expect("four strips");
        let speeds: Vec<f64> = machine.rates(&layout).iter().map(|rate| 2.0 * rate).collect();
        let link = machine.platform.network.link(Rank(0), Rank(1));
        for blocks in bench.some(&[1, 4, 10], &[1, 4]) {
            let model = BroadcastTime::new(bench.shape, (link.latency, 8.0 / link.vertical), &speeds, blocks);
            for overlap in [false, true] {
                let block = bench.shape.k.div_ceil(blocks);
                let order = ScheduleOptions::new(Flow::Broadcast, block).with_look_ahead(u64::from(overlap));
                let (now, then) = bench.times(Kernel::plus_times(), &machine, &layout, order);
                let equation = if overlap { model.overlapped() } else { model.sequential() };
                lines.push(vec![
                    format!("{mbit}"),
                    blocks.to_string(),
                    if overlap { "yes" } else { "no" }.to_owned(),
                    cell(now.execution, then.execution),
                    format!("{:.1}", equation * 1e3),
                ]);
            }
        }
    }
    println!("Tinetti: broadcasts on a bus, four processors of 4:3:2:1, strips, ms\n");
    println!(
        "{}",
        table(&["Mbit/s", "blocks", "overlap", "measured (forecast)", "equations"], lines.into_iter())
    );
}
