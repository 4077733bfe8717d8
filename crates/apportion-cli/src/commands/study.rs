//! `apportion study`.

use crate::args::{LogName, StudyArgs};
use crate::console::{Console, monitor};
use crate::output::is_csv;
use crate::output::study::{csv_of, plots, text, value};
use apportion::error::{Error, Result};
use apportion::explore::{Study, study};
use apportion::output::write_whole;
use apportion_report::{plot_svg_on, wide_axes};

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
