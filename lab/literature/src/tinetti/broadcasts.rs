//! Tinetti's broadcasts on a bus beside his time model (chapter 3, equations (3.1) to (3.11)).

use super::broadcast_time::BroadcastTime;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table};
use crate::laboratory::{Algebra, Join, Machine, Measured, Original, exact_size, measure};
use apportion::error::Result;
use apportion::plan::Shape;
use apportion::plan::shapes::{LayoutMethod, Rows};
use apportion::platform::Topology;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion_report::{Plot, Series};

/// A PC of the chapter's time: 400 Mflop/s, N = 2,000.
const PC: Original = Original { size: 2000, speed: 400e6, element: 8, here: 3.0 };
/// Relative powers (3.2) of two and of four workstations.
const POWERS: [&[f64]; 2] = [&[1.0, 0.5], &[1.0, 0.75, 0.5, 0.25]];
/// Ethernet, Mbit/s.
const MBIT: [f64; 2] = [10.0, 100.0];
/// Blocks of messages (3.4.4).
const BLOCKS: [u64; 3] = [1, 2, 10];

pub struct Equations;

/// A setting: Mbit/s, processors, blocks, overlap, and the equations' seconds.
struct Setting {
    mbit: f64,
    processors: usize,
    blocks: u64,
    overlap: bool,
    equations: f64,
}

impl Experiment for Equations {
    fn about(&self) -> About {
        About {
            ids: &["tinetti-3.10", "tinetti-3.11"],
            source: "Tinetti, 3.4.2-3.4.4",
            shows: "broadcasts on a bus: equations (3.10) and (3.11), forecast and run, P = 2 and 4",
            kind: Kind::Emulated,
            seconds: 6,
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let (mut trials, mut settings) = (Vec::new(), Vec::new());
        for mbit in MBIT {
            for powers in POWERS {
                let layouts = |shape: Shape, w: &[f64]| Ok(vec![Rows::default().layout(shape, w)?]);
                // Turns and blocks are equal where N is a multiple of both.
                let shape = exact_size(480..=480, powers, &layouts)?;
                let members: Vec<(&str, f64)> = powers.iter().map(|power| ("bus", 1.0 / power)).collect();
                let join = Join::Links { mbit, duplex: true, topology: Topology::Bus };
                let machine = Machine::new(PC, &members, shape, join)?;
                let layout = Rows::default().layout(shape, powers)?;
                // The original's: N = 2,000, (3.9) in flop/s, and beta (3.1) in seconds per element.
                let there = Shape::new(PC.size, PC.size, PC.size, "original")?;
                let speeds: Vec<f64> = powers.iter().map(|power| PC.speed * power).collect();
                let beta = (8 * PC.element) as f64 / (1e6 * mbit);
                for blocks in BLOCKS {
                    let model = BroadcastTime::new(there, 0.0, beta, &speeds, blocks);
                    for overlap in [false, true] {
                        let block = shape.k / blocks;
                        let order =
                            ScheduleOptions::new(Flow::Broadcast, block).with_look_ahead(u64::from(overlap));
                        trials.push(machine.trial(Algebra::PlusTimes, &layout, order)?);
                        let equations = if overlap { model.overlapped() } else { model.sequential() };
                        settings.push(Setting { mbit, processors: powers.len(), blocks, overlap, equations });
                    }
                }
            }
        }
        let Measured { times, repeated } = measure(&trials, context)?;
        let header =
            ["Mbit/s", "P", "blocks", "equation", "seconds", "forecast", "measured", "over the equation"];
        let mut table = Table::new("Broadcasts on a bus, strips of rows, seconds of the original", &header);
        let mut report = Report::default();
        let (mut worst_forecast, mut worst) = (0.0_f64, 0.0_f64);
        for (setting, [now, then]) in settings.iter().zip(&times) {
            worst_forecast = worst_forecast.max((then.execution / setting.equations - 1.0).abs());
            let over = now.execution / setting.equations - 1.0;
            worst = worst.max(over.abs());
            table.row([
                format!("{}", setting.mbit),
                setting.processors.to_string(),
                setting.blocks.to_string(),
                if setting.overlap { "(3.11)" } else { "(3.10)" }.to_owned(),
                format!("{:.2}", setting.equations),
                format!("{:.2}", then.execution),
                format!("{:.2}", now.execution),
                format!("{:+.1} %", 100.0 * over),
            ]);
        }
        report.tables.push(table);
        let percent = |x: f64| format!("within {:.2} %", 100.0 * x);
        report.checks.push(
            Check::new(
                "the forecast is the equations' time",
                "equal",
                percent(worst_forecast),
                worst_forecast < 0.001,
            )
            .within("0.1 %"),
        );
        report.checks.push(
            Check::new("the run takes the equations' time", "equal", percent(worst), worst < 0.05)
                .within("5 %"),
        );
        let shorter = settings.iter().zip(&times).collect::<Vec<_>>();
        let overlap = shorter.chunks(2).all(|pair| pair[1].1[0].execution < pair[0].1[0].execution);
        report.checks.push(Check::new(
            "overlap is shorter in every setting",
            "yes",
            if overlap { "yes" } else { "no" },
            overlap,
        ));
        report.note(repeated);
        report.draw("tinetti-3.10", &plot(&settings, &times));
        report.note(
            "Equations: t_bcast = alpha + beta n^2 / (P blocks) (3.7), t_comp = (2 n^3 - n^2) / (P blocks \
                 pw) (3.8), without overlap P blocks (t_bcast + t_comp) (3.10), with it t_bcast + (P blocks \
                 - 1) max(t_bcast, t_comp) + t_comp (3.11). The forecast counts 2 n^3 operations, and the \
                 latency is 0. The chapter's machines are taken as 400 Mflop/s with N = 2,000; relative \
                 powers are 1 and 1/2, and 1, 3/4, 1/2, 1/4.",
        );
        Ok(report)
    }
}

/// Seconds over blocks for four workstations.
fn plot(settings: &[Setting], times: &[[crate::laboratory::Times; 2]]) -> Plot {
    let mut series = Vec::new();
    for (colour, (mbit, overlap)) in
        [(10.0, false), (10.0, true), (100.0, false), (100.0, true)].into_iter().enumerate()
    {
        let these = || {
            let all = settings.iter().zip(times);
            all.filter(move |(s, _)| s.mbit == mbit && s.overlap == overlap && s.processors == 4)
        };
        let equation = if overlap { "(3.11)" } else { "(3.10)" };
        let measured = these().map(|(s, t)| [s.blocks as f64, t[0].execution]).collect();
        let model = these().map(|(s, _)| [s.blocks as f64, s.equations]).collect();
        series.push(Series {
            name: format!("{mbit} Mbit/s, run"),
            points: measured,
            dashed: false,
            colour,
            ..Series::default()
        });
        series.push(Series {
            name: format!("{mbit} Mbit/s, {equation}"),
            points: model,
            dashed: true,
            colour,
            ..Series::default()
        });
    }
    Plot {
        title: [
            "Broadcasts on a bus: equations (3.10) and (3.11) and runs".into(),
            "four workstations of 1, 3/4, 1/2, 1/4, seconds of the original".into(),
        ],
        axes: ["blocks of a message".into(), "seconds of the original".into()],
        series,
        references: Vec::new(),
        ..Plot::default()
    }
}
