//! Where a result comes from: the command, the version, and the machine on which work ran.

use apportion::kernels::instruction_set;
use apportion::platform::discover;
use serde_json::{Value, json};
use std::path::Path;

/// Adds the field `provenance`: the command as it can be pasted into a shell, and the version.
pub fn add_command(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        let entry = object.entry("provenance").or_insert_with(|| json!({}));
        entry["command"] = command().into();
        entry["version"] = env!("CARGO_PKG_VERSION").into();
    }
}

/// Adds the machine on which the work of this command ran: this one.
pub fn add_machine(value: &mut Value) {
    add_command(value);
    let host = discover();
    value["provenance"]["machine"] = json!({
        "host": apportion::run::host_name(), "model": host.model, "cores": host.cores.len(),
        "memory_bytes": host.memory, "instructions": instruction_set().to_string(),
        "quota_cores": host.quota_cores, "memory_limit_bytes": host.memory_limit,
    });
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
