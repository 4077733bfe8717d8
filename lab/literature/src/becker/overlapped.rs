//! The time of a run that overlaps on three processors: t = max(I, II) + max(III, IV, V) (6.1.4, Figures 6.11
//! and 6.12), by forecast.

use super::three::HCL_THREE;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, short};
use crate::laboratory::{BLOCK, Join, Machine, Times};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::plan::shapes::{LayoutMethod, SquareCorner};
use apportion::plan::{Layout, Metrics, Shape};
use apportion::platform::Topology;
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::select::rates;

/// Order of the matrices; nothing is computed, so that rounding may be small.
const SIZE: u64 = 20_000;
/// Speeds of the slower two, of 100.
const SLOW: [f64; 5] = [5.0, 10.0, 15.0, 20.0, 25.0];

pub struct Overlapped;

/// The square corner whose parts C2, X and Y are in proportion to the speeds: sides 2 q / (1 + q^2) times
/// those of the areas in proportion, q the sum of their roots.
fn in_proportion(shape: Shape, speeds: [f64; 3]) -> Result<Layout> {
    let total: f64 = speeds.iter().sum();
    let q: f64 = speeds[1..].iter().map(|speed| (speed / total).sqrt()).sum();
    let factor = (2.0 * q / (1.0 + q * q)).powi(2);
    let [second, third] = [speeds[1], speeds[2]].map(|speed| factor * speed / total);
    SquareCorner.layout(shape, &[1.0 - second - third, second, third])
}

impl Experiment for Overlapped {
    fn about(&self) -> About {
        About {
            ids: &["becker-6.12", "becker-6.11", "becker-6.1.4"],
            source: "Becker 2010, 6.1.4",
            shows: "three processors with overlap: t = max(I, II) + max(III, IV, V), by forecast",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let bulk = ScheduleOptions::new(Flow::Bulk, BLOCK);
        let mut table = Table::new(
            "Three processors on a star, 100 Mbit/s: seconds of the original",
            &["speeds", "I", "II", "III", "IV", "V", "formula", "forecast", "without"],
        );
        let mut report = Report::default();
        let (mut off, mut free_off, mut gains) = (0.0_f64, 0.0_f64, Vec::new());
        let mut together = 0.0_f64;
        for slow in SLOW {
            let speeds = [100.0 - 2.0 * slow, slow, slow];
            let slower = speeds[0] / slow;
            let shape = Shape::new(SIZE, SIZE, SIZE, "6.1.4")?;
            let join =
                Join::Links { mbit: 100.0, duplex: true, topology: Topology::Star { centre: Rank(0) } };
            let machine = Machine::new(HCL_THREE, &[("1", 1.0), ("2", slower), ("3", slower)], shape, join)?;
            let layout = in_proportion(shape, speeds)?;
            let (shares, scale) = (layout.shares(), HCL_THREE.scale());
            let rates = rates(&machine.models, &shares, 1);
            let free = Metrics::of_layout(&layout, 1.0).communication_free.unwrap_or_default()[0];
            let seconds = |elements: u64, rank: usize| elements as f64 * SIZE as f64 / rates[rank] * scale;
            let first = Times::of(&machine.forecast(&layout, bulk)?);
            let communication = first.communication * scale;
            let work = [seconds(shares[0] - free, 0), seconds(shares[1], 1), seconds(shares[2], 2)];
            let formula = communication.max(seconds(free, 0)) + work.into_iter().fold(0.0, f64::max);
            let forecast = machine.forecast(&layout, bulk.with_look_ahead(1))?.seconds() * scale;
            let plain = SquareCorner.layout(shape, &speeds)?;
            let without = machine.forecast(&plain, bulk)?.seconds() * scale;
            off = off.max((forecast / formula - 1.0).abs());
            together = together.max((work[1] / work[0] - 1.0).abs()).max((work[2] / work[0] - 1.0).abs());
            // The free part of the corner in proportion, by hand (Figure 6.11).
            let q = 2.0 * (slow / 100.0).sqrt();
            let free = Metrics::of_layout(&plain, 1.0).communication_free.unwrap_or_default()[0];
            free_off = free_off.max((free as f64 / (SIZE as f64).powi(2) - (1.0 - q).powi(2)).abs());
            gains.push(1.0 - forecast / without);
            table.row(
                [format!("{}:{slow}:{slow}", speeds[0])].into_iter().chain(
                    [
                        communication,
                        seconds(shares[0], 0) - work[0],
                        work[0],
                        work[1],
                        work[2],
                        formula,
                        forecast,
                        without,
                    ]
                    .map(|x| format!("{x:.2}")),
                ),
            );
        }
        report.tables.push(table);
        let within = |off: f64| format!("within {:.2} %", 100.0 * off);
        report.checks.push(
            Check::new(
                "Figure 6.12: forecast over max(I, II) + max(III, IV, V)",
                "equal",
                within(off),
                off < 0.01,
            )
            .within("1 %"),
        );
        report.checks.push(
            Check::new(
                "Figure 6.12: III, IV and V end together",
                "at the same time",
                within(together),
                together < 0.01,
            )
            .within("1 %"),
        );
        report.checks.push(
            Check::new(
                "Figure 6.11: the part C1 that needs no message",
                "(1 - sqrt(s2) - sqrt(s3))^2 N^2",
                format!("within {free_off:.1e} N^2"),
                free_off < 1e-3,
            )
            .within("0.001 N^2"),
        );
        let here: Vec<String> =
            gains.iter().map(|&gain| format!("{} %", short((1e4 * gain).round() / 100.0 + 0.0))).collect();
        report.checks.push(
            Check::new(
                "6.2: the times with and without overlap converge as the speeds go to 50:25:25",
                "0 saved there",
                format!("saved from 90:5:5 on: {}", here.join(", ")),
                gains[4].abs() < 1e-3 && gains[1..4].iter().all(|gain| *gain > 1e-3),
            )
            .within("0.1 %"),
        );
        report.note(
            "At 90:5:5 C1 takes longer than the messages (II > I), so that areas in proportion make the \
             first processor the last; becker-6.14 searches for the shares that end soonest.",
        );
        Ok(report)
    }
}
