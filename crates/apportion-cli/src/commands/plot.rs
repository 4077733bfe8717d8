//! `apportion plot`.

use crate::args::PlotArgs;
use crate::console::Console;
use apportion::error::Result;
use apportion::model::{Machine, WorkUnit, only_ratios, read_models};
use apportion::output::write_whole;
use apportion::plan::shares;
use apportion_report::{SpeedPlot, pairs, plot_svg_on, wide_axes};
use serde_json::json;

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
