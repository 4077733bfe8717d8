//! The fraction of the recoverable time that overlap recovers, by flow (5.5.4, 6.1.4).

use super::two_parties::HCL;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table};
use crate::laboratory::{Algebra, BLOCK, Join, Machine, Measured, exact_size, measure};
use apportion::error::{Error, Result};
use apportion::plan::shapes::{LayoutMethod, SquareCorner};
use apportion::plan::{Layout, Metrics, Shape};
use apportion::platform::Topology;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::select::rates;

/// The square corners that finish soonest if the part that needs no message is computed while data travel.
/// They are smaller than in proportion to speed, since their owners wait meanwhile (6.1.4: the rest of each
/// is in proportion). Found by search over the size of the squares.
pub fn shares_for_overlap(machine: &Machine, weights: &[f64]) -> Result<Layout> {
    let order = ScheduleOptions::new(Flow::Bulk, BLOCK).with_look_ahead(1);
    let mut best: Option<(f64, Layout)> = None;
    for percent in 20..=100 {
        let scale = f64::from(percent) / 100.0;
        let scaled: Vec<f64> =
            weights.iter().enumerate().map(|(i, w)| if i == 0 { *w } else { w * scale }).collect();
        let Ok(layout) = SquareCorner.layout(machine.shape, &scaled) else { continue };
        let seconds = machine.forecast(&layout, order)?.seconds();
        if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
            best = Some((seconds, layout));
        }
    }
    let none = || Error::infeasible("no square corners fit", "use other speeds");
    best.map(|(_, layout)| layout).ok_or_else(none)
}

const FLOWS: [Flow; 4] = [Flow::Bulk, Flow::OneToAll, Flow::Ring, Flow::Broadcast];
const MBIT: [f64; 2] = [50.0, 200.0];

/// Execution without and with overlap, 5:1, square corner.
pub struct Recovered;

impl Experiment for Recovered {
    fn about(&self) -> About {
        About {
            ids: &["becker-5.5.4"],
            source: "Becker 2010, 5.5.4 and 6.1.4",
            shows: "what overlap of communication and computation recovers, by flow",
            kind: Kind::Emulated,
            seconds: 7,
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let weights = [5.0, 1.0];
        let corner = |shape: Shape, w: &[f64]| Ok(vec![SquareCorner.layout(shape, w)?]);
        let shape = exact_size(250..=400, &weights, &corner)?;
        let layout = SquareCorner.layout(shape, &weights)?;
        let (mut trials, mut settings) = (Vec::new(), Vec::new());
        for mbit in MBIT {
            let join = Join::Links { mbit, duplex: true, topology: Topology::Full };
            let machine = Machine::new(HCL, &[("1", 1.0), ("2", 5.0)], shape, join)?;
            for flow in FLOWS {
                let order = ScheduleOptions::new(flow, if flow == Flow::Bulk { BLOCK } else { shape.n / 16 });
                let moved = match flow {
                    Flow::Bulk => shares_for_overlap(&machine, &weights)?,
                    _ => layout.clone(),
                };
                trials.push(machine.trial(Algebra::PlusTimes, &layout, order)?);
                trials.push(machine.trial(Algebra::PlusTimes, &moved, order.with_look_ahead(1))?);
                settings.push((mbit, flow, free_seconds(&machine, &layout, flow) * HCL.scale()));
            }
        }
        let Measured { times, repeated } = measure(&trials, context)?;
        let header =
            ["Mbit/s", "flow", "without", "forecast", "with", "forecast", "recoverable", "recovered"];
        let mut table = Table::new(
            "Two processors of 5:1, square corner, parallel communications, seconds of the original",
            &header,
        );
        let mut report = Report::default();
        let compute = HCL.alone() * 5.0 / 6.0;
        for ((mbit, flow, free), times) in settings.into_iter().zip(times.chunks(2)) {
            let [without, with] = [times[0], times[1]];
            // The smaller of communication and of the computation that can go on meanwhile.
            let recoverable = (without[0].execution - compute).min(free);
            let recovered = (without[0].execution - with[0].execution) / recoverable;
            let seconds = |x: f64| format!("{x:.2}");
            table.row([
                mbit.to_string(),
                flow.to_string(),
                seconds(without[0].execution),
                seconds(without[1].execution),
                seconds(with[0].execution),
                seconds(with[1].execution),
                seconds(recoverable),
                format!("{:.0} %", 100.0 * recovered),
            ]);
            let (least, why) = match flow {
                Flow::Bulk => (0.7, "5/6 at most, with shares for it"),
                _ => (0.8, "all but the first block"),
            };
            let what = format!("{flow} at {mbit} Mbit/s: overlap recovers");
            report.checks.push(Check::new(
                what,
                why,
                format!("{:.0} %", 100.0 * recovered),
                recovered > least,
            ));
        }
        report.tables.push(table);
        report.note(repeated);
        report.note(
            "In bulk only the processor with the free part computes while data travel. With speeds r1 and \
                 r2, at most r1 / (r1 + r2) of the communication is gained, by shares that give it more \
                 (6.1.4).",
        );
        Ok(report)
    }
}

/// Seconds here of the computation that needs no message: in bulk the free part of the layout; block by
/// block everything.
fn free_seconds(machine: &Machine, layout: &Layout, flow: Flow) -> f64 {
    let rates = rates(&machine.models, &layout.shares(), 1);
    let elements = match flow {
        Flow::Bulk => Metrics::of_layout(layout, 1.0).communication_free.unwrap_or_default(),
        _ => layout.shares(),
    };
    let seconds = |(elements, rate): (&u64, &f64)| *elements as f64 * machine.shape.k as f64 / rate;
    elements.iter().zip(&rates).map(seconds).fold(0.0, f64::max)
}
