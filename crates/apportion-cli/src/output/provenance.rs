//! Where a result comes from: the command, the version, and the machine on which work ran.

use apportion::kernels::instruction_set;
use apportion::platform::discover;
use apportion::record::{HostFacts, Provenance};
use serde_json::{Value, json};
use std::path::Path;

/// The command as it can be pasted into a shell, and the version.
fn of_command() -> Provenance {
    Provenance { command: Some(command()), version: Some(env!("CARGO_PKG_VERSION").into()), machine: None }
}

/// The same, and the machine on which the work of this command ran: this one.
pub fn provenance() -> Provenance {
    let host = discover();
    let machine = HostFacts {
        host: Some(apportion::run::host_name()),
        model: Some(host.model),
        cores: Some(host.cores.len() as u64),
        memory_bytes: host.memory.map(Into::into),
        instructions: Some(instruction_set().to_string()),
        quota_cores: host.quota_cores,
        memory_limit_bytes: host.memory_limit.map(Into::into),
    };
    Provenance { machine: Some(machine), ..of_command() }
}

/// Adds the field `provenance` to a result that comes from this command alone.
pub fn add_command(value: &mut Value) {
    value["provenance"] = json!(of_command());
}

/// Adds the field `provenance` to the result of work on this machine.
pub fn add_machine(value: &mut Value) {
    value["provenance"] = json!(provenance());
}

/// The command of this process, with the program by its name.
fn command() -> String {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let words = words.map(|word| quoted(&word.to_string_lossy()));
    std::iter::once(program).chain(words).collect::<Vec<_>>().join(" ")
}

/// One word of a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_them() {
        for (word, expected) in [
            ("a.npy", "a.npy"),
            ("--sweep=n", "--sweep=n"),
            ("", "''"),
            ("./work {from}", "'./work {from}'"),
            ("it's", "'it'\\''s'"),
            ("9:1", "9:1"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
