//! What could have made the savings that 6.2 publishes: Figures 6.14 to 6.17 by forecast, under assumptions
//! that the thesis leaves open.

use super::overlap::shares_for_overlap;
use super::three::HCL_THREE;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, percent};
use crate::laboratory::{BLOCK, Join, Machine, Times};
use apportion::error::Result;
use apportion::geometry::Rank;
use apportion::plan::shapes::{LayoutMethod, SquareCorner, StraightLine};
use apportion::plan::{Layout, Shape};
use apportion::platform::Topology;
use apportion::schedule::{Flow, Messages, ScheduleOptions};

/// Order of the matrices: nothing is computed.
const SIZE: u64 = 6_000;
/// Speeds of the slower two, of 100.
const SLOW: [f64; 5] = [5.0, 10.0, 15.0, 20.0, 25.0];

/// What the thesis may have had.
struct Assumption {
    name: &'static str,
    duplex: bool,
    /// The nominal bandwidth over that which messages reach; as much faster processors do the same.
    slower: f64,
    /// One message for each pair of processors, or one for each rectangle.
    messages: Messages,
}

const PLAIN: Assumption = Assumption {
    name: "as stated: 100 Mbit/s, 1,761 Mflop/s",
    duplex: true,
    slower: 1.0,
    messages: Messages::Together,
};
const ASSUMPTIONS: [Assumption; 7] = [
    PLAIN,
    Assumption { name: "a message for each rectangle", messages: Messages::Separate, ..PLAIN },
    Assumption { name: "one message at a time on a link", duplex: false, ..PLAIN },
    Assumption { name: "messages at half the bandwidth, or processors twice as fast", slower: 2.0, ..PLAIN },
    Assumption { name: "a quarter, or four times", slower: 4.0, ..PLAIN },
    Assumption { name: "an eighth, or eight times", slower: 8.0, ..PLAIN },
    Assumption { name: "an eighth, one message at a time", slower: 8.0, duplex: false, ..PLAIN },
];

/// The published savings: communication on average, execution on average, with overlap at 90:5:5 on the star
/// and fully connected.
const PUBLISHED: [(&str, f64); 4] = [
    ("6.14: less communication time, on average, by assumption", 0.40),
    ("6.15: less execution time without overlap, on average, by assumption", 0.14),
    ("6.15: less execution time with overlap at 90:5:5, by assumption", 0.38),
    ("6.17: less execution time with overlap at 90:5:5, by assumption", 0.30),
];

pub struct Causes;

impl Experiment for Causes {
    fn about(&self) -> About {
        About {
            ids: &["becker-6.2.1"],
            source: "Becker 2010, 6.2",
            shows: "the published savings on three processors under assumptions that the thesis leaves open",
            kind: Kind::Computed,
            seconds: 1,
        }
    }

    fn run(&self, _: &Context<'_>) -> Result<Report> {
        let header = ["assumption", "6.14", "6.15", "6.15, overlap", "6.17, overlap"];
        let mut table = Table::new("Saved by the square corner: as published, then by forecast", &header);
        table.row(["published".to_owned()].into_iter().chain(PUBLISHED.map(|(_, saved)| percent(saved))));
        let mut found: Vec<[f64; 4]> = Vec::new();
        for assumption in &ASSUMPTIONS {
            let star = savings(assumption, Topology::Star { centre: Rank(0) })?;
            let full = savings(assumption, Topology::Full)?;
            let saved = [star.communication, star.execution, star.overlapped, full.overlapped];
            table.row([assumption.name.to_owned()].into_iter().chain(saved.map(percent)));
            found.push(saved);
        }
        let mut report = Report::default();
        report.tables.push(table);
        for (i, (what, published)) in PUBLISHED.into_iter().enumerate() {
            let nearest = (0..found.len())
                .min_by(|&a, &b| (found[a][i] - published).abs().total_cmp(&(found[b][i] - published).abs()));
            let nearest = nearest.unwrap_or(0);
            let here = format!(
                "{} as stated, {} at best ({})",
                percent(found[0][i]),
                percent(found[nearest][i]),
                ASSUMPTIONS[nearest].name
            );
            report.checks.push(Check::incomparable(what, percent(published), here, OPEN));
        }
        report.note(
            "With an eighth of the nominal bandwidth, or processors eight times as fast, and one message at a time, \
             three of the four come within a fifth of what is published. The saving in communication time stays \
             where it is, since such a factor multiplies the times of both partitionings.",
        );
        Ok(report)
    }
}

/// Why these are assumptions.
const OPEN: &str = "The thesis gives neither the bandwidth that its MPI reached, nor the order of messages, \
     nor how fast ATLAS was on the slowed nodes in these runs.";

/// The parts by which the square corner is below the straight line.
struct Savings {
    communication: f64,
    execution: f64,
    overlapped: f64,
}

fn savings(assumption: &Assumption, topology: Topology) -> Result<Savings> {
    let bulk = ScheduleOptions::new(Flow::Bulk, BLOCK).with_messages(assumption.messages);
    let join = Join::Links { mbit: 100.0 / assumption.slower, duplex: assumption.duplex, topology };
    let mut sum = Savings { communication: 0.0, execution: 0.0, overlapped: 0.0 };
    for slow in SLOW {
        let weights = [100.0 - 2.0 * slow, slow, slow];
        let slower = weights[0] / slow;
        let shape = Shape::new(SIZE, SIZE, SIZE, "6.2")?;
        let machine = Machine::new(HCL_THREE, &[("1", 1.0), ("2", slower), ("3", slower)], shape, join)?;
        let times =
            |layout: &Layout| Ok::<Times, apportion::Error>(Times::of(&machine.forecast(layout, bulk)?));
        let line = times(&StraightLine.layout(shape, &weights)?)?;
        let corner = times(&SquareCorner.layout(shape, &weights)?)?;
        sum.communication += (1.0 - corner.communication / line.communication) / SLOW.len() as f64;
        sum.execution += (1.0 - corner.execution / line.execution) / SLOW.len() as f64;
        if slow == SLOW[0] {
            let moved = shares_for_overlap(&machine, &weights)?;
            let overlapped = machine.forecast(&moved, bulk.with_look_ahead(1))?.seconds();
            sum.overlapped = 1.0 - overlapped / line.execution;
        }
    }
    Ok(sum)
}
