//! From the library's parameters to this command's flags.
//!
//! An error of the library names a parameter in backquotes, as `block`, or with a value, as `flow = ring`.
//! The user of this command knows the flags: `--block`, `--flow ring`.

use crate::cli::Arguments;
use apportion::error::Error;
use clap::CommandFactory;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The flags of all commands.
fn flags() -> &'static BTreeSet<String> {
    static FLAGS: OnceLock<BTreeSet<String>> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let command = Arguments::command();
        let names = command.get_subcommands().flat_map(|c| c.get_arguments()).filter_map(|a| a.get_long());
        names.map(str::to_owned).collect()
    })
}

/// Errors of a file's fields, which may have a parameter's name.
const OF_FILES: [&str; 4] = ["unknown field `", "missing field `", "duplicate field `", "unknown variant `"];

/// The error's line, with flags for parameters.
pub fn error_line(error: &Error) -> String {
    let text = error.to_string();
    // Names of fields stay as they are; the remedy in parentheses names parameters.
    if let Some(at) = OF_FILES.iter().filter_map(|phrase| text.find(phrase)).min() {
        let remedy = text.rfind(" (").filter(|&remedy| remedy > at).unwrap_or(text.len());
        return text[..remedy].to_owned() + &in_flags(&text[remedy..]);
    }
    in_flags(&text)
}

/// The text, with flags for parameters.
pub fn in_flags(text: &str) -> String {
    let mut pieces = text.split('`');
    let mut line = pieces.next().unwrap_or_default().to_owned();
    // Pieces alternate: quoted, not quoted. A last one without its closing quote stays as it is.
    while let Some(quoted) = pieces.next() {
        match pieces.next() {
            Some(rest) => {
                line += &flag(quoted).unwrap_or_else(|| format!("`{quoted}`"));
                line += rest;
            }
            None => {
                line.push('`');
                line += quoted;
            }
        }
    }
    line
}

/// The flag of `name` or `name = value`.
fn flag(quoted: &str) -> Option<String> {
    let (name, value) = match quoted.split_once(" = ") {
        Some((name, value)) => (name, Some(value)),
        None => (quoted, None),
    };
    let known = flags().get(&name.replace('_', "-"))?;
    Some(value.map_or_else(|| format!("--{known}"), |value| format!("--{known} {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(place: &str, what: &str, remedy: &str) -> String {
        error_line(&Error::input(place, what, remedy))
    }

    #[test]
    fn parameters_become_flags_and_the_rest_stays() {
        assert_eq!(
            line("`granularity`", "0 is too small", "give 1"),
            "--granularity: 0 is too small (give 1)"
        );
        assert_eq!(
            line("x.npy", "is large", "raise `most_unequal`, or set `flow = broadcast` and `blocks = N`"),
            "x.npy: is large (raise --most-unequal, or set --flow broadcast and --blocks N)"
        );
        for (place, what, remedy) in [
            ("plan.json: repeat", "is wrong", "run `apportion partition`"),
            ("a`b", "granularity", "set `emulated`"),
            ("", "``", "` block `"),
        ] {
            assert_eq!(line(place, what, remedy), format!("{place}: {what} ({remedy})"));
        }
    }

    #[test]
    fn fields_of_files_are_no_flags() {
        assert_eq!(
            line("p.toml:3", "unknown field `block`, expected `flow` or `name`", "set `flow = ring`"),
            "p.toml:3: unknown field `block`, expected `flow` or `name` (set --flow ring)"
        );
    }
}
