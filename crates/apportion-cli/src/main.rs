//! The `apportion` command: parses the arguments, calls the library and prints the result.

// These macros panic where a line cannot be written.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod allocator;
mod args;
mod cli;
mod commands;
mod console;
mod flags;
mod hints;
mod launch;
mod output;
mod prepare;
mod signals;

use apportion::error::Error;
use apportion::kernels::Instructions;
use apportion::run::MpiLaunch;
use clap::FromArgMatches;
use clap::error::ErrorKind;
use cli::{Arguments, Command};
use console::Console;

fn main() {
    apportion::measure::answer_device_requests();
    signals::prepare();
    allocator::catch_aborts();
    console::heed_signals();
    apportion::files::follow_command_line();
    // A panic is a bug in apportion: it is reported in one line, like every other error.
    console::record_panics();
    let outcome = std::panic::catch_unwind(|| match parse() {
        Ok((arguments, files)) => run(arguments, files),
        Err(error) => usage(&error),
    });
    console::leave(outcome.unwrap_or_else(|panic| {
        console::say_text(&console::internal_error(&*panic));
        1
    }))
}

/// The parsed arguments, and whether an output goes to stdout; an error if their files cannot be together, or
/// if each of several tasks would write them.
fn parse() -> Result<(Arguments, Result<bool, Error>), clap::Error> {
    let mut grammar = args::headings::command();
    if std::env::args_os().skip(1).all(|word| word == "-h") {
        grammar = args::headings::with_few_commands(grammar);
    }
    let matches = grammar.try_get_matches_from_mut(std::env::args_os())?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut grammar))?;
    let files = launch::check(&matches)
        .and_then(|()| output::distinct_files::check(&grammar, &matches, &arguments.command))
        .and_then(|taken| output::distinct_files::check_formats(&matches).map(|()| taken));
    Ok((arguments, files))
}

/// Runs a command; returns its exit code.
fn run(arguments: Arguments, files: Result<bool, Error>) -> u8 {
    console::fit_text();
    let console = Console::new(arguments.json, arguments.quiet, arguments.verbose)
        .with_stdout_taken(*files.as_ref().unwrap_or(&false));
    if let Command::Partition(_)
    | Command::Plot(_)
    | Command::Arrange(_)
    | Command::Simulate(_)
    | Command::Report(_)
    | Command::Study(_) = &arguments.command
        && files.is_ok()
    {
        console::end_at_once();
    }
    let outcome = files.and_then(|_| Instructions::limit()).and_then(|_| match &arguments.command {
        Command::Detect(a) => commands::detect::run(a, &console),
        Command::Doctor(a) => commands::doctor::run(a, &console),
        Command::Measure(a) => commands::measure::run(a, &console),
        Command::Merge(a) => commands::merge::run(a, &console),
        Command::Balance(a) => commands::balance::run(a, &console),
        Command::Run(a) => commands::run::run(a, &console),
        Command::Partition(a) => commands::partition::run(a, &console),
        Command::Plot(a) => commands::plot::run(a, &console),
        Command::Arrange(a) => commands::arrange::run(a, &console),
        Command::Matmul(a) => commands::product::matmul(a, &console),
        Command::Power(a) => commands::product::power(a, &console),
        Command::Closure(a) => commands::product::closure(a, &console),
        Command::Factor(a) => commands::factor::run(a, &console),
        Command::Solve(a) => commands::solve::run(a, &console),
        Command::Advect(a) => commands::advect::run(a, &console),
        Command::Spmv(a) => commands::spmv::run(a, &console),
        Command::Mdem(a) => commands::mdem::run(a, &console),
        Command::Simulate(a) => commands::simulate::run(a, &console),
        Command::Study(a) => commands::study::run(a, &console),
        Command::Report(a) => commands::report::run(a, &console),
        Command::Random(a) => commands::random::run(a, &console),
        Command::Demo(a) => commands::demo::run(a, &console),
        Command::Completions(a) => commands::completions::run(a, &console),
        Command::Man(a) => commands::completions::man(a, &console),
    });
    ended(outcome.and_then(|()| printed()))
}

/// Reports an error; returns the exit code.
fn ended(outcome: Result<(), Error>) -> u8 {
    outcome.map_or_else(
        |error| {
            report(&error);
            console::exit_code(&error)
        },
        |()| 0,
    )
}

/// The error of a result that could not be printed.
fn printed() -> Result<(), Error> {
    console::unprinted().map_or(Ok(()), Err)
}

/// The line with its longest words cut: what was typed may be long.
fn shortened(line: &str) -> String {
    let cut = |word: &str| match word.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    };
    line.split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

/// Prints the error. Among the processes of an mpirun the first does, which ends the others; those that live
/// on have an error of their own.
fn report(error: &Error) {
    match MpiLaunch::detect() {
        _ if !console::may_speak() => {}
        Some(launched) if launched.rank > 0 => {
            std::thread::sleep(console::LATER_RANKS);
            console::say_of(launched.rank, error);
        }
        _ => console::say(error),
    }
}

/// Prints help and version to stdout; bad usage is one line on stderr and exit code 2.
fn usage(error: &clap::Error) -> u8 {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            console::print_text(&error.to_string());
            ended(printed())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            console::say_text(error.to_string().trim_end());
            2
        }
        _ => {
            let text = error.to_string();
            let what = text.split("\n\nUsage:").next().unwrap_or(&text);
            let what = what.split("\n\nFor more").next().unwrap_or(what);
            let words: Vec<String> = std::env::args_os().map(|w| w.to_string_lossy().into_owned()).collect();
            let hint = hints::remedy(error, &words);
            // clap's own tip is a word that looks alike.
            let what = if hint.is_some() { what.split("\n\n").next().unwrap_or(what) } else { what };
            let line = what.split_whitespace().collect::<Vec<_>>().join(" ");
            let line = shortened(line.strip_prefix("error: ").unwrap_or(&line));
            let error =
                Error::input("usage", line, hint.map_or("see --help".into(), |hint| hint + "; see --help"));
            ended(Err(error))
        }
    }
}
