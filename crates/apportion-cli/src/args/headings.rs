//! Help: the order of its headings, which flags name, and what `-h` shows.

use crate::cli::Arguments;
use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command, CommandFactory};

/// The heading of flags that few people need: the last one, and only in `--help`.
const EXPERT: &str = "For experts";

/// Flags that a command takes, but does not list: what a product on several processors has, and a simulation of
/// events seldom needs.
const UNLISTED: [(&str, &[&str]); 1] = [(
    "mdem",
    &[
        "models",
        "keep-all",
        "remeasure",
        "plan",
        "method",
        "shares",
        "flow",
        "overlap",
        "look-ahead",
        "block",
        "blocks",
        "messages",
        "stall-timeout",
        "copy",
        "blas",
        "reproducible",
        "report",
        "trace",
        "explain",
        "svg",
    ],
)];

/// The heading of flags of all commands.
const GLOBAL: &str = "Global options";

/// The commands, by what a person wants to do.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("Try it", &["demo", "doctor"]),
    ("Divide work", &["run", "balance", "partition", "arrange", "plot"]),
    (
        "Multiply and factor matrices, find paths",
        &["matmul", "power", "closure", "factor", "solve", "spmv", "random"],
    ),
    ("Ask what if, and explain", &["simulate", "report", "study"]),
    ("Applications", &["advect", "mdem"]),
    ("The machine and its files", &["detect", "measure", "merge", "completions"]),
];

/// The commands that most people need: `-h` has these alone.
const COMMON: [&str; 8] = ["run", "balance", "partition", "matmul", "simulate", "report", "doctor", "demo"];

/// The same command, whose help lists these other commands.
fn listing(whole: Command, groups: &[(&str, &[&str])], after: &str) -> Command {
    let about = |name: &str| {
        let command = whole.find_subcommand(name).and_then(|command| command.get_about());
        command.map(ToString::to_string).unwrap_or_default()
    };
    let group = |(heading, names): &(&str, &[&str])| {
        let lines = names.iter().map(|name| format!("  {name:11}  {}\n", about(name)));
        format!("{heading}:\n{}", lines.collect::<String>())
    };
    let groups: Vec<String> = groups.iter().map(group).collect();
    let template = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned()
        + &groups.join("\n")
        + after
        + "\nOptions:\n{options}{after-help}";
    whole.help_template(template)
}

/// The grammar whose help lists the commands that most people need.
pub fn with_few_commands(grammar: Command) -> Command {
    listing(grammar, &[("Commands", &COMMON)], "All commands: --help\n")
}

/// The grammar with every flag under a heading, and every command in a group.
pub fn command() -> Command {
    let whole = listing(Arguments::command(), &COMMANDS, "");
    let names: Vec<String> = whole.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(with_help(whole), |whole, name| {
        whole.mut_subcommand(name, |command| {
            let unlisted = UNLISTED.iter().find(|(of, _)| *of == command.get_name());
            let unlisted = unlisted.map_or(&[][..], |(_, flags)| flags);
            let command = command.mut_args(with_short_help);
            let command = command.mut_args(|arg| {
                let hidden = arg.get_long().is_some_and(|long| unlisted.contains(&long));
                let expert = arg.get_help_heading() == Some(EXPERT);
                arg.hide(hidden).hide_short_help(expert)
            });
            with_examples(with_help(with_experts_last(command)))
        })
    })
}

/// The same command with the flags for experts after all others: help lists headings in the order of their first
/// flags.
fn with_experts_last(command: Command) -> Command {
    let mut ordered = Command::new(command.get_name().to_owned());
    ordered = match command.get_about() {
        Some(about) => ordered.about(about.clone()),
        None => ordered,
    };
    if let Some(text) = command.get_long_about() {
        ordered = ordered.long_about(text.clone());
    }
    if let Some(text) = command.get_after_help() {
        ordered = ordered.after_help(text.clone());
    }
    if let Some(text) = command.get_after_long_help() {
        ordered = ordered.after_long_help(text.clone());
    }
    let is_expert = |arg: &&Arg| arg.get_help_heading() == Some(EXPERT);
    let (experts, others): (Vec<&Arg>, Vec<&Arg>) = command.get_arguments().partition(is_expert);
    ordered
        .aliases(command.get_all_aliases().map(str::to_owned).collect::<Vec<_>>())
        .hide(command.is_hide_set())
        .args(others.into_iter().chain(experts).cloned())
        .groups(command.get_groups().cloned())
}

/// The first statement of a flag's help for `-h`, all of it for `--help`.
fn with_short_help(arg: Arg) -> Arg {
    let Some(text) = arg.get_help().map(ToString::to_string) else { return arg };
    let mut long = arg.get_long_help().map_or_else(|| text.clone(), ToString::to_string);
    let values = arg.get_possible_values();
    let values: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
    let many = values.join(", ").len() > SHORT;
    if many {
        long += &format!("\n\n[possible values: {}]", values.join(", "));
    }
    let short = first_statement(&text);
    // One long text is enough for clap to space the flags of a whole command widely.
    let arg = if short == long { arg } else { arg.long_help(long) };
    arg.help(short).hide_possible_values(many)
}

/// A help text that `-h` shows whole: one line, and a little.
const SHORT: usize = 50;

/// A text up to the end of its first sentence, or of the first part of a long one.
fn first_statement(text: &str) -> String {
    let whole = text.split(". ").next().unwrap_or(text);
    let whole = whole.split(" [default").next().unwrap_or(whole);
    if whole.chars().count() <= SHORT {
        return whole.to_owned();
    }
    let cut = [": ", "; ", " (", ", so that ", " instead of", ", such as", ", between"];
    let end = cut.into_iter().filter_map(|mark| whole.find(mark)).min().unwrap_or(whole.len());
    whole[..end].to_owned()
}

/// Width of the lines of examples.
const COLUMNS: usize = 80;

/// Long examples (lines that start with two blanks) continue on further lines, so that they can be pasted:
/// clap would break them within a command.
fn with_examples(command: Command) -> Command {
    let Some(after) = command.get_after_help().map(ToString::to_string) else { return command };
    let is_example = |line: &str| line.starts_with("  ");
    let broken = |line: &str| if is_example(line) { broken(line) } else { line.to_owned() };
    let lines: Vec<String> = after.lines().map(broken).collect();
    // The first examples are enough for `-h`, and explanations are for `--help`.
    let first = after.lines().filter(|line| is_example(line)).take(FEW_EXAMPLES).map(broken);
    let short: Vec<String> = ["Examples:".to_owned()].into_iter().chain(first).collect();
    let short = if short.len() > 1 { short.join("\n") + "\n" } else { String::new() };
    command.after_help(short + "All flags: --help").after_long_help(lines.join("\n"))
}

/// Number of examples in `-h`.
const FEW_EXAMPLES: usize = 1;

/// A command on several lines, broken before flags.
fn broken(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > COLUMNS {
        let fits = |at: &usize| rest[..*at].chars().count() + 2 <= COLUMNS;
        let flags = rest.match_indices(" -").map(|(at, _)| at).filter(|at| !rest[..*at].trim().is_empty());
        let Some(at) = flags.filter(fits).last() else { break };
        out += &format!("{} \\\n", &rest[..at]);
        rest = format!("     {}", &rest[at..]);
    }
    out + &rest
}

/// The help flag is listed with the other global ones.
fn with_help(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    command.disable_help_flag(true).arg(help.help("Print help").help_heading(GLOBAL))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_heading() {
        let whole = command();
        for sub in whole.get_subcommands() {
            for arg in sub.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set()) {
                let named = arg.get_help_heading().is_some();
                assert!(named, "{} --{}: add a help_heading", sub.get_name(), arg.get_long().unwrap_or("?"));
            }
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut listed: Vec<&str> = COMMANDS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let all = Arguments::command();
        let mut shown: Vec<&str> =
            all.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name).collect();
        listed.sort_unstable();
        shown.sort_unstable();
        assert_eq!(listed, shown);
    }

    /// The heading of a group of flags goes on to flags that follow the group in the same command.
    #[test]
    fn headings_of_groups_do_not_leak() {
        fn longs(command: &Command) -> Vec<String> {
            command.get_arguments().filter_map(|a| a.get_long().map(ToOwned::to_owned)).collect()
        }
        use crate::args::{ExportArgs, ProgramArgs, UnitsArgs};
        use crate::commands::sweep::SweepArgs;
        use clap::Args;
        let group = Command::new("group");
        let groups = [
            ("Your program", longs(&ProgramArgs::augment_args(group.clone()))),
            ("Export", longs(&ExportArgs::augment_args(group.clone()))),
            ("Parameter sweep", longs(&SweepArgs::augment_args(group.clone()))),
            ("Units", longs(&UnitsArgs::augment_args(group))),
        ];
        for sub in command().get_subcommands() {
            for arg in sub.get_arguments() {
                let group = groups.iter().find(|(heading, _)| arg.get_help_heading() == Some(*heading));
                let (Some((heading, flags)), Some(long)) = (group, arg.get_long()) else { continue };
                assert!(flags.iter().any(|flag| flag == long), "{} --{long}: {heading}", sub.get_name());
            }
        }
    }

    #[test]
    fn help_has_no_escapes() {
        for sub in command().get_subcommands_mut() {
            let text = sub.render_long_help().to_string();
            assert!(!text.contains("\\\""), "{}: {text}", sub.get_name());
        }
    }

    /// The first help of every command fits one screen, and points to the rest.
    #[test]
    fn short_help_fits_one_screen() {
        let mut grammar = command();
        grammar.build();
        for sub in grammar.get_subcommands_mut() {
            let text = sub.render_help().to_string();
            assert!(text.lines().count() <= 50, "{}: {} lines", sub.get_name(), text.lines().count());
            let listed = sub.get_arguments().filter(|arg| !arg.is_hide_set() && !arg.is_positional()).count();
            assert!(sub.get_name() != "mdem" || listed <= 15 + 4, "mdem lists {listed} flags");
        }
    }

    /// Examples are written in lines that fit 80 columns: clap would break them within a command.
    #[test]
    fn examples_fit_eighty_columns() {
        for sub in command().get_subcommands() {
            let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in after.lines().filter(|line| line.starts_with("  ")) {
                assert!(line.chars().count() <= 80, "{}: {line}", sub.get_name());
            }
        }
    }

    #[test]
    fn long_examples_are_broken_before_flags() {
        let line =
            format!("  apportion partition --shape 1000x1000 {} -o plan.json", "--speeds 9,1 ".repeat(5));
        let text = broken(&line);
        assert!(text.lines().count() == 2 && text.lines().all(|l| l.len() <= COLUMNS), "{text}");
        let joined = text.replace(" \\\n", " ");
        assert_eq!(
            joined.split_whitespace().collect::<Vec<_>>(),
            line.split_whitespace().collect::<Vec<_>>()
        );
        assert_eq!(broken("  apportion demo"), "  apportion demo");
    }

    #[test]
    fn the_grammar_is_sound() {
        command().debug_assert();
    }
}
