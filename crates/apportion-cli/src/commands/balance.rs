//! `apportion balance`.

use super::measure::{SecondsName, processors};
use crate::console::{Console, monitor};
use apportion::error::{Error, Result};
use apportion::measure::{Balance, BalanceOptions, Round, UserCommand, balance};
use apportion::model::read_models;
use apportion::output::OutputFile;
use apportion::platform::Platform;
use apportion::report::{pairs, table};
use apportion::units;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    after_help = "Example: apportion balance --units 100000 --processors 4 --command './work {share}' -o plan.json\n\
    The first round gives equal shares, or with --models those of the speed functions; each further one divides by all times seen so far (DFPA), until the times of all \
    processors are within the tolerance of each other, or nothing better is to be had.\n\
    Exit codes: 0 also if the tolerance was not reached: the best shares found are written, and \"balanced\" is false in \
    --json. 1 if a processor's command fails or you interrupt it: nothing is written. 2 bad usage.\n\
    The command is split like a shell does, but no shell runs: write sh -c '…' for one. {share} (or {size}), \
    {processor} and {rank} are filled in; APPORTION_SIZE, APPORTION_PROCESSOR and APPORTION_RANK are set.\n\
    A processor's slowdown multiplies the seconds of its program."
)]
pub struct Arguments {
    /// Divide this many independent units.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub units: u64,
    /// The program that works on a share: './work {share}'.
    #[arg(long, value_name = "COMMAND")]
    pub command: String,
    /// The processors; default: this machine's cores.
    #[arg(long, value_name = "FILE", conflicts_with = "processors")]
    pub platform: Option<PathBuf>,
    /// So many processors p0, p1, … that are not pinned.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub processors: Option<u64>,
    /// Start from these speed functions instead of equal shares (models.json); their caps hold, their heights are corrected by
    /// the first round.
    #[arg(long, value_name = "FILE")]
    pub models: Option<PathBuf>,
    /// Where a run's time comes from.
    #[arg(long, value_enum, default_value = "wall")]
    pub seconds_from: SecondsName,
    /// Largest relative difference of two processors' times that counts as balanced.
    #[arg(long, value_name = "FRACTION", default_value_t = 0.05)]
    pub tolerance: f64,
    /// At most so many rounds.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_rounds: u32,
    /// Runs in each round, of which the median time counts.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: u32,
    /// Write the shares (plan.json).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write what was learnt of the processors' speeds (models.json).
    #[arg(long, value_name = "FILE")]
    pub models_out: Option<PathBuf>,
}

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
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
            "not balanced within {}: the best of {} rounds is kept, its times differ by {:.1} %",
            args.tolerance,
            found.rounds.len(),
            100.0 * found.kept().spread()
        ));
    }
    console.result(|| value(&found, plan.to_value()), || text(&found, &platform));
    Ok(())
}

fn headline(number: usize, round: &Round) -> String {
    format!(
        "round {number}: {}, times differ by {:.1} %, imbalance {:.4}",
        units::show_seconds(round.longest()),
        100.0 * round.spread(),
        round.imbalance()
    )
}

fn value(found: &Balance, plan: Value) -> Value {
    let rounds: Vec<Value> = found
        .rounds
        .iter()
        .map(|round| {
            json!({
                "shares": round.shares,
                "seconds": round.seconds,
                "spread": round.spread(),
                "imbalance": round.imbalance(),
            })
        })
        .collect();
    json!({"balanced": found.balanced, "best": found.best, "rounds": rounds, "plan": plan})
}

fn text(found: &Balance, platform: &Platform) -> String {
    let mut out = String::new();
    for (i, round) in found.rounds.iter().enumerate() {
        let rows =
            platform.processors.iter().zip(&round.shares).zip(&round.seconds).map(|((p, &share), &t)| {
                vec![p.name.clone(), units::show_count(u128::from(share)), units::show_seconds(t)]
            });
        out += &format!("{}\n{}\n", headline(i + 1, round), table(&["processor", "share", "time"], rows));
    }
    out + &pairs(&[
        ("balanced", if found.balanced { "yes" } else { "no" }.into()),
        ("kept", format!("round {}", found.best + 1)),
        ("imbalance", format!("{:.4}", found.kept().imbalance())),
        ("time", units::show_seconds(found.kept().longest())),
    ])
}
