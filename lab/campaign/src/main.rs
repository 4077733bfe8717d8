//! A campaign against apportion itself.
//!
//! `cargo run --release -p campaign -- all` takes minutes, `-- all --quick` about one, and `-- fuzz --seconds
//! 3600` an hour for each parser. Exit code 1 means that a defect was found; its input is kept and named.

mod bytes;
mod commands;
mod faults;
mod figures;
mod fuzz;
mod kills;
mod load;
mod messages;
mod neighbour;
mod refusals;
mod threads;
mod tool;

use clap::{Args, Parser, Subcommand};
use figures::{Figure, page};
use std::path::PathBuf;
use std::process::ExitCode;
use tool::Tool;

/// Attacks apportion: hostile input, failing system calls, refused memory, kills, concurrency.
#[derive(Debug, Parser)]
#[command(name = "campaign", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 no defect found; 1 a defect was found; 2 bad usage.")]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Common {
    /// The apportion to attack [default: the one beside this program].
    #[arg(long, global = true, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Seed of all random choices.
    #[arg(long, global = true, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the figures to this page (Markdown).
    #[arg(long, global = true, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Keep inputs that reveal a defect here; one that aborts the campaign itself stays as TARGET-now.
    #[arg(long, global = true, value_name = "DIR", default_value = "campaign-finds")]
    finds: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Damaged and made-up files for every parser, and random command lines.
    Fuzz {
        /// Only these targets; default: all.
        targets: Vec<String>,
        /// Time for each target.
        #[arg(long, value_name = "S", default_value_t = 30.0)]
        seconds: f64,
    },
    /// Fails each system call on files once, in turn.
    Faults {
        /// At most this many calls of each command, spread over all of them.
        #[arg(long, value_name = "N", default_value_t = u32::MAX)]
        most: u32,
    },
    /// Refuses each allocation of memory once, in turn, alone or with all that follow.
    Memory {
        /// About this many allocations of each command, spread over all of them.
        #[arg(long, value_name = "N", default_value_t = 2000)]
        most: u32,
    },
    /// Refuses each thread once, in turn, alone or with all that follow.
    Threads {
        /// At most this many threads of each command, spread over all of them.
        #[arg(long, value_name = "N", default_value_t = 200)]
        most: u32,
    },
    /// Loses, delays and doubles each message between ranks once, in turn.
    Messages {
        /// At most this many messages of each command, spread over all of them.
        #[arg(long, value_name = "N", default_value_t = 60)]
        most: u32,
    },
    /// Kills runs with checkpoints at random moments, and resumes them.
    Kills {
        /// Number of kills.
        #[arg(long, value_name = "N", default_value_t = 1000)]
        count: u32,
    },
    /// Random configurations that must give the same bytes.
    Bytes {
        /// Number of configurations.
        #[arg(long, value_name = "N", default_value_t = 200)]
        count: u32,
    },
    /// Many products, one after the other and at the same time.
    Load {
        /// Number of products in turn.
        #[arg(long, value_name = "N", default_value_t = 1000)]
        count: u32,
        /// Number of products at the same time.
        #[arg(long, value_name = "N", default_value_t = 64)]
        together: u32,
    },
    /// Products under --adaptive beside a neighbour that comes and goes. Needs no other program, and an idle
    /// machine.
    Neighbour(neighbour::Options),
    /// All of these but neighbour.
    All {
        /// About a minute instead of many.
        #[arg(long)]
        quick: bool,
    },
}

/// What a part of the campaign returns: figures, or the defect that ended it.
type Found = Result<Vec<Figure>, String>;

fn main() -> ExitCode {
    let Arguments { common, command } = Arguments::parse();
    let outcome = run(&command, &common).and_then(|figures| {
        let text = page(&figures);
        print!("{text}");
        common.report.as_ref().map_or(Ok(()), |path| {
            apportion::output::write_whole(path, text.as_bytes()).map_err(|e| e.to_string())
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(defect) => {
            eprintln!("campaign: {defect}");
            ExitCode::from(1)
        }
    }
}

fn run(command: &Command, common: &Common) -> Found {
    let seed = common.seed;
    let tool = || Tool::new(common.binary.clone());
    let fuzz = |targets: &[String], seconds: f64| fuzz::run(targets, seconds, common, &tool()?);
    match command {
        Command::Fuzz { targets, seconds } => fuzz(targets, *seconds),
        Command::Faults { most } => faults::run(*most, &tool()?),
        Command::Memory { most } => refusals::run(*most, &tool()?),
        Command::Threads { most } => threads::run(*most, &tool()?),
        Command::Messages { most } => messages::run(*most, &tool()?),
        Command::Kills { count } => kills::run(*count, seed, &tool()?),
        Command::Bytes { count } => bytes::run(*count, seed, &tool()?),
        Command::Load { count, together } => load::run(*count, *together, &tool()?),
        Command::Neighbour(options) => neighbour::run(options, seed),
        Command::All { quick } => {
            let (seconds, most, memory, messages, kills, configurations, load) = match quick {
                true => (2.0, 12, 30, 6, 20, 20, (40, 16)),
                false => (30.0, u32::MAX, 2000, 60, 1000, 200, (1000, 64)),
            };
            let tool = &tool()?;
            let parts: [&dyn Fn() -> Found; 8] = [
                &|| fuzz(&[], seconds),
                &|| faults::run(most, tool),
                &|| refusals::run(memory, tool),
                &|| threads::run(most.min(200), tool),
                &|| messages::run(messages, tool),
                &|| kills::run(kills, seed, tool),
                &|| bytes::run(configurations, seed, tool),
                &|| load::run(load.0, load.1, tool),
            ];
            let figures: Result<Vec<Vec<Figure>>, String> = parts.iter().map(|part| part()).collect();
            Ok(figures?.concat())
        }
    }
}
