//! `apportion plot`.

use crate::args::numbers::within;
use crate::args::pictures;
use crate::args::{LogArgs, Sources};
use crate::console::Console;
use apportion::error::Result;
use apportion::model::{Machine, WorkUnit, only_ratios, read_models};
use apportion::output::write_whole;
use apportion::plan::shares;
use apportion_report::{SpeedPlot, pairs, plot_svg_on, wide_axes};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion plot --models models.json --svg speeds.svg\n  \
    apportion plot --platform platforms/fpm-2007-table-2.toml --units 1e8 --svg line.svg")]
pub struct PlotArgs {
    #[command(flatten)]
    pub sources: Sources,
    /// Draw the line through the origin on which N units finish together, and each share on it.
    #[arg(long, value_name = "N", value_parser = within(1..=1 << 53), help_heading = "What is divided")]
    pub units: Option<u64>,
    /// Largest size shown [default: the last point, or 1.5 times the largest share].
    #[arg(long, value_name = "SIZE", value_parser = within(1..=1 << 53), help_heading = "Output")]
    pub to: Option<u64>,
    /// Picture to write.
    #[arg(long, value_name = "FILE", value_parser = pictures::picture, help_heading = "Output")]
    pub svg: PathBuf,
    #[command(flatten)]
    pub log: LogArgs,
}

pub fn run(args: &PlotArgs, console: &Console) -> Result<()> {
    let machine = args.sources.machine(WorkUnit::Unit)?;
    let sampled = args.sources.are_emulated(&machine);
    let Machine { models, platform, .. } = machine;
    let relative = only_ratios(&models);
    let shares = args.units.map(|n| shares::fpm(&models, n)).transpose()?;
    let source = match (&args.sources.platform, &args.sources.models) {
        (None, Some(models)) => models.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        (None, None) => "given speeds".into(),
        (Some(_), _) => platform.name,
    };
    let unit = args.sources.models.as_deref().map(read_models).transpose()?.map(|m| m.unit);
    let unit = unit.filter(|unit| unit != "units");
    let drawing = SpeedPlot { shares, marked: Vec::new(), to: args.to, source, unit, relative, sampled };
    let [wide, _] = args.log.log.axes([drawing.is_wide(&models), false]);
    let plot = drawing.plot(&models, wide);
    let tall = drawing.shares.is_none() && wide_axes(&plot)[1];
    let svg = plot_svg_on(&plot, args.log.log.axes([drawing.is_wide(&models), tall]));
    write_whole(&args.svg, svg.as_bytes())?;
    let path = args.svg.display().to_string();
    let (curves, shares) = (models.len(), &drawing.shares);
    console.result(
        || json!({"svg": path, "curves": curves, "shares": shares}),
        || pairs(&[("picture", path.clone()), ("curves", curves.to_string())]),
    );
    Ok(())
}
