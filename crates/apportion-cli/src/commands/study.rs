//! `apportion study`.

use crate::args::numbers::{self, whole, within};
use crate::args::{LogArgs, LogName};
use crate::console::{Console, monitor};
use crate::output::is_csv;
use crate::output::study::{csv_of, plots, text, value};
use apportion::error::{Error, Result};
use apportion::explore::{Distribution, Study, study};
use apportion::output::write_whole;
use apportion_report::{plot_svg_on, wide_axes};
use clap::Args;
use std::ops::RangeInclusive;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion study --draws 100k --processors 2..3\n  \
    apportion study --most-unequal 100 --searched 0 -o study.csv --svg pictures")]
pub struct StudyArgs {
    /// Number of processors, or a range with both ends included.
    #[arg(long, value_name = "P|P..P", default_value = "1..40", value_parser = range,
        help_heading = "Processors and speeds")]
    pub processors: RangeInclusive<usize>,
    /// Number of draws for each number of processors.
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = whole, help_heading = "Study")]
    pub draws: u64,
    /// Number of these draws that are also laid out by every method that auto compares, including the slow
    /// search.
    #[arg(long, value_name = "N", default_value = "100", value_parser = whole, help_heading = "For experts")]
    pub searched: u64,
    /// Number of random machines of two clusters, for each number of processors, on which auto may leave
    /// processors out.
    #[arg(long, value_name = "N", default_value = "0", value_parser = within(0..=1_000_000),
        help_heading = "For experts")]
    pub subsets: u64,
    /// Number of random products with a long inner dimension, for each number of processors, that boxes may
    /// cut.
    #[arg(long, value_name = "N", default_value = "0", value_parser = within(0..=1_000_000),
        help_heading = "For experts")]
    pub boxes: u64,
    /// Distribution of the speeds: uniform, simplex, log-uniform or pareto.
    #[arg(long, value_name = "NAME", default_value = "uniform", help_heading = "For experts")]
    pub distribution: Distribution,
    /// Drop draws whose fastest processor is more than RATIO times as fast as the slowest.
    #[arg(long, value_name = "RATIO", value_parser = numbers::number, help_heading = "For experts")]
    pub most_unequal: Option<f64>,
    /// Seed of the draws.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole, help_heading = "For experts")]
    pub seed: u64,
    /// Write the figures to this file (.csv or .json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Draw study-columns.svg and study-non-rectangular.svg in this directory.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub svg: Option<PathBuf>,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Reads `3` or `1..40`; both ends are included.
fn range(text: &str) -> std::result::Result<RangeInclusive<usize>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    match (whole(first), whole(last.trim_start_matches('='))) {
        (Ok(first), Ok(last)) => Ok(first as usize..=last as usize),
        _ => Err("write a number or a range, such as 1..40".to_owned()),
    }
}

pub fn run(args: &StudyArgs, console: &Console) -> Result<()> {
    let csv = args.output.as_deref().map(is_csv).transpose()?;
    let wanted = Study {
        processors: args.processors.clone(),
        draws: args.draws,
        searched: args.searched,
        subsets: args.subsets,
        boxes: args.boxes,
        distribution: args.distribution,
        most_unequal: args.most_unequal,
        seed: args.seed,
    };
    if args.log.log != LogName::Auto && args.svg.is_none() {
        return Err(Error::input("--log", "there is no picture", "add --svg DIR"));
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let monitor = monitor();
    let rows = console.watch("drawing", monitor, || study(&wanted, threads, monitor))?;
    if let Some(directory) = &args.svg {
        std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
        for (name, plot) in ["study-columns", "study-non-rectangular"].into_iter().zip(plots(&wanted, &rows))
        {
            let svg = plot_svg_on(&plot, args.log.log.axes(wide_axes(&plot)));
            write_whole(directory.join(format!("{name}.svg")), svg.as_bytes())?;
        }
    }
    if let (Some(path), Some(csv)) = (&args.output, csv) {
        let text = if csv { csv_of(&rows) } else { format!("{:#}\n", value(&wanted, &rows)) };
        write_whole(path, text.as_bytes())?;
    }
    console.result(|| value(&wanted, &rows), || text(&rows));
    Ok(())
}
