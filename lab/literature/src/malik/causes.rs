//! What could have made the run times of Table 3.10: the gains of the heuristics on six clusters by
//! simulation, under assumptions that the thesis leaves open.

use super::ninety::{BLOCK, SIX, arranged, flattened_by, simulated};
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, percent};
use apportion::error::{Error, Result};
use apportion::schedule::Flow;

/// Blocks of a side: half of the thesis's, so that a simulation takes a fraction of a second.
const SIDE: u64 = 150;

/// Savings of Table 3.10: hop-count and bandwidth heuristic, ring and one-to-all.
const PUBLISHED: [f64; 4] = [
    1.0 - 200.0589 / 244.5955,
    1.0 - 176.3399 / 202.6377,
    1.0 - 180.5339 / 244.5955,
    1.0 - 164.1144 / 202.6377,
];

/// How many times Table 3.9's bandwidth a link between two clusters has, which all their nodes share; `None`:
/// that of the table for each pair of nodes.
const LINKS: [Option<f64>; 7] = [Some(1.0), Some(8.0), Some(16.0), Some(32.0), Some(64.0), Some(128.0), None];

/// A link in words.
fn name(link: Option<f64>) -> String {
    link.map_or_else(
        || "that of Table 3.9 for each pair of nodes".to_owned(),
        |times| format!("{times} times that of Table 3.9, shared"),
    )
}

pub struct Causes;

impl Experiment for Causes {
    fn about(&self) -> About {
        About {
            ids: &["malik-3.5.3"],
            source: "Malik 2016, 3.5",
            shows: "the gains on six clusters under assumptions that the thesis leaves open",
            kind: Kind::Computed,
            seconds: 5,
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let plans = arranged(&SIX, SIDE)?;
        let rates: Vec<f64> = plans.speeds.iter().map(|speed| speed / 2.0).collect();
        let header =
            ["assumption", "hops, ring", "hops, one-to-all", "bandwidth, ring", "bandwidth, one-to-all"];
        let mut table = Table::new("Run time saved: published, then by simulation", &header);
        table.row(["published".to_owned()].into_iter().chain(PUBLISHED.map(percent)));
        let mut found: Vec<[f64; 4]> = Vec::new();
        for link in LINKS {
            if context.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let platform = flattened_by(SIX.file, link, &mut |_| {})?;
            let mut saved = [0.0; 4];
            for (i, flow) in [Flow::Ring, Flow::OneToAll].into_iter().enumerate() {
                let given = simulated(&plans.given, flow, &platform, &rates)?;
                for (j, plan) in [&plans.hops, &plans.bandwidth].into_iter().enumerate() {
                    saved[2 * j + i] = 1.0 - simulated(plan, flow, &platform, &rates)? / given;
                }
            }
            table.row([name(link)].into_iter().chain(saved.map(percent)));
            found.push(saved);
        }
        let mut report = Report::default();
        report.tables.push(table);
        let off = |saved: &[f64; 4]| saved.iter().zip(PUBLISHED).map(|(a, b)| (a - b).abs()).sum::<f64>();
        let nearest =
            (0..found.len()).min_by(|&a, &b| off(&found[a]).total_cmp(&off(&found[b]))).unwrap_or(0);
        report.checks.push(Check::incomparable(
            "Table 3.10: run time saved, by assumption: hops and bandwidth, each ring and one-to-all",
            PUBLISHED.map(percent).join(", "),
            format!("nearest {} ({})", found[nearest].map(percent).join(", "), name(LINKS[nearest])),
            "The thesis gives neither the speeds of its nodes, nor its layouts, nor how many messages share a link \
             between two sites, nor the orders of MPI's messages.",
        ));
        report.note(format!(
            "{SIDE} blocks of {BLOCK} a side. With the table's bandwidths the run is all communication: nodes half or an \
             eighth as fast change the gains by 5 points at most. Sites are joined by 10 Gbit/s (Becker 2010, 6.3), some \
             20 times what Table 3.9 has for one message."
        ));
        Ok(report)
    }
}
