//! `apportion balance`.

use crate::args::BalanceArgs;
use crate::console::{Console, monitor};
use crate::output::balance::{headline, text, value};
use crate::prepare::measure::processors;
use apportion::error::{Error, Result};
use apportion::measure::{BalanceOptions, Round, UserCommand, balance};
use apportion::model::read_models;
use apportion::output::OutputFile;
use apportion::platform::Platform;

pub fn run(args: &BalanceArgs, console: &Console) -> Result<()> {
    if !(args.tolerance > 0.0 && args.tolerance.is_finite()) {
        let what = format!("{} is not a positive fraction", args.tolerance);
        return Err(Error::input("--tolerance", what, "use 0.05"));
    }
    let command = UserCommand::parse(&args.command, args.seconds_from.into())?;
    let known = args.models.as_deref().map(read_models).transpose()?;
    let platform = match (&known, &args.platform, args.processors) {
        (Some(models), None, None) => Platform::from_names(&models.names()),
        _ => processors(args.platform.as_deref(), args.processors)?,
    };
    let known = known.map(|models| models.in_order(&platform.names())).transpose()?;
    // From here on Ctrl-C cleans up.
    let monitor = monitor();
    let plan_file = args.output.as_deref().map(OutputFile::create).transpose()?;
    let models_file = args.models_out.as_deref().map(OutputFile::create).transpose()?;
    let options = BalanceOptions {
        tolerance: args.tolerance,
        most_rounds: args.max_rounds,
        repetitions: args.repetitions,
    };
    let mut count = 0;
    let mut each = |round: &Round| {
        count += 1;
        console.detail(headline(count, round));
    };
    let found = console.watch("balancing", monitor, || {
        balance(&platform, (&command, args.units), known.as_deref(), &options, &mut each, monitor)
    })?;
    let plan = found.plan(&platform);
    if let Some(mut file) = plan_file {
        file.put(plan.to_json().as_bytes())?;
        file.commit()?;
    }
    if let Some(mut file) = models_file {
        file.put(format!("{}\n", found.models.to_json()).as_bytes())?;
        file.commit()?;
    }
    if !found.balanced {
        console.note(format!(
            "not balanced within {}: kept the best of {} rounds, whose times differ by {:.1} %",
            args.tolerance,
            found.rounds.len(),
            100.0 * found.kept().spread()
        ));
    }
    console.result(|| value(&found, plan.to_value()), || text(&found, &platform));
    Ok(())
}
