//! How long the heuristics take (4.5.1, 4.5.2), repeated as the thesis repeats: until the 95 % interval of
//! the mean is within 2.5 % (4.5).

use super::mapping::{TABLE_4_1, one_cluster};
use super::ninety::flattened;
use crate::experiment::{About, Check, Context, Experiment, Kind, Report, Table, Verdict, short};
use apportion::error::{Error, Result};
use apportion::model::{Summary, summarise};
use apportion::plan::arrange::{Edges, GridDomain, SearchMethod, SearchOptions, arrange_grid};
use apportion::plan::shapes::Mesh;
use apportion::platform::Platform;
use std::time::Instant;

/// The thesis's precision.
const PRECISION: f64 = 0.025;
/// Repetitions at least and at most; a repetition is the mean of this many searches.
const REPETITIONS: std::ops::RangeInclusive<usize> = 10..=2000;
const SEARCHES: u32 = 20;

/// Why the search takes less time than the thesis's.
const FASTER: &str = "It is as quick as the thesis says, and quicker: the thesis names neither the program nor the \
     machine of its search.";

pub struct Timing;

impl Experiment for Timing {
    fn about(&self) -> About {
        About {
            ids: &["malik-4.5.1", "malik-4.5.2"],
            source: "Malik 2016, 4.5",
            shows: "times of Algorithm 3, repeated to a 95 % interval within 2.5 %",
            kind: Kind::Emulated,
            seconds: 2,
        }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let mut report = Report::default();
        let mut table = Table::new(
            "Algorithm 3 on twelve nodes, mean and half-width of the 95 % interval",
            &["platform", "published, s", "here, s", "interval", "repetitions"],
        );
        let within = flattened(TABLE_4_1, false)?;
        let grisou = one_cluster(0.03834, 0.48916)?;
        let domain = GridDomain::new(512, 512, Edges::Open);
        let from_2x6 = GridDomain { start: Some(Mesh::new(2, 6)), ..domain };
        for (section, name, platform, domain, published) in [
            ("4.5.1", "four clusters", &within, from_2x6, 1.13e-3),
            ("4.5.2", "Grisou", &grisou, domain, 3.73e-4),
        ] {
            let found = repeated(domain, platform, context)?;
            table.row([
                name.to_owned(),
                format!("{published:.2e}"),
                format!("{:.2e}", found.mean),
                format!("{:.1} %", 100.0 * found.ci / found.mean),
                found.count.to_string(),
            ]);
            report.checks.push(
                Check::near(
                    format!("Section {section}: seconds in which Algorithm 3 finds its mapping, {name}"),
                    published,
                    found.mean,
                    0.2,
                )
                .found(format!("{} +- {:.1} %", short(found.mean), 100.0 * found.ci / found.mean))
                .if_only_the_relation(found.mean < published, FASTER),
            );
            report.checks.push(
                Check::new(
                    format!("Section {section}: the mean is repeated to a 95 % interval of 2.5 %, {name}"),
                    "2.5 %",
                    format!("{:.1} % of {} repetitions", 100.0 * found.ci / found.mean, found.count),
                    found.is_within(PRECISION),
                )
                .within("at most")
                .unless(
                    Verdict::Short,
                    "Other programs took the processor during these repetitions; on an idle machine a few \
                     dozen are enough.",
                ),
            );
        }
        report.tables.push(table);
        report.note(format!(
            "A repetition is the mean of {SEARCHES} searches. Means, intervals and outliers are those of \
             `measure`, which repeats every measurement by this rule."
        ));
        Ok(report)
    }
}

/// Repeats the search until the mean is known well enough.
fn repeated(domain: GridDomain, platform: &Platform, context: &Context<'_>) -> Result<Summary> {
    let mut seconds = Vec::new();
    loop {
        if context.monitor.is_stopped() {
            return Err(Error::Interrupted);
        }
        let begin = Instant::now();
        for _ in 0..SEARCHES {
            arrange_grid(domain, platform, SearchOptions::new(SearchMethod::Published, 1))?;
        }
        seconds.push(begin.elapsed().as_secs_f64() / f64::from(SEARCHES));
        let found = summarise(&seconds);
        let enough = seconds.len() >= *REPETITIONS.start() && found.is_within(PRECISION);
        if enough || seconds.len() >= *REPETITIONS.end() {
            return Ok(found);
        }
    }
}
