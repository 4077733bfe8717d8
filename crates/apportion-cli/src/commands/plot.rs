//! `apportion plot`.

use crate::args::PlotArgs;
use crate::console::Console;
use crate::output::curves::speeds;
use crate::prepare::processors::Processors;
use apportion::error::Result;
use apportion::model::WorkUnit;
use apportion::output::write_whole;
use apportion::plan::shares;
use apportion::report::{pairs, plot_svg};
use serde_json::json;

pub fn run(args: &PlotArgs, console: &Console) -> Result<()> {
    let Processors { models, platform, .. } = args.sources.processors(WorkUnit::Unit)?;
    let division = args.units.map(|n| shares::fpm(&models, n).map(|shares| (n, shares))).transpose()?;
    let subtitle = match (&args.sources.platform, &args.sources.models) {
        (None, Some(models)) => models.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        (None, None) => "given speeds".into(),
        (Some(_), _) => platform.name,
    };
    let plot = speeds(&models, division.as_ref(), args.to, subtitle);
    write_whole(&args.svg, plot_svg(&plot).as_bytes())?;
    let path = args.svg.display().to_string();
    let curves = plot.series.len();
    console.result(
        || json!({"svg": path, "curves": curves, "shares": division.as_ref().map(|d| &d.1)}),
        || pairs(&[("picture", path.clone()), ("curves", curves.to_string())]),
    );
    Ok(())
}
