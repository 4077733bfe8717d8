//! Names in braces in the words of a command.

use std::fmt::Display;

/// The names that are replaced in a command.
pub(super) const PLACEHOLDERS: [&str; 6] = ["size", "share", "from", "to", "processor", "rank"];

/// The name of the first `{name}` in a word that is no placeholder; `${name}` is the shell's.
pub(super) fn unknown_placeholder(word: &str) -> Option<&str> {
    word.match_indices('{').find_map(|(at, _)| {
        let name = &word[at + 1..at + 1 + word[at + 1..].find('}')?];
        let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        (plain && !word[..at].ends_with('$') && !PLACEHOLDERS.contains(&name)).then_some(name)
    })
}

/// Replaces each `{name}`. Other braces stay, and inserted text is not scanned again.
pub(super) fn filled(word: &str, values: &[(&str, &dyn Display)]) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let hit = values
            .iter()
            .find(|(name, _)| rest[1..].strip_prefix(name).is_some_and(|after| after.starts_with('}')));
        match hit {
            Some((name, value)) => {
                out.push_str(&value.to_string());
                rest = &rest[name.len() + 2..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_are_placeholders() {
        for (word, name) in [("{n}", Some("n")), ("x{foo_1}y{size}", Some("foo_1")), ("{a}{", Some("a"))] {
            assert_eq!(unknown_placeholder(word), name, "{word}");
        }
        for word in
            ["{size}{to}{rank}", "${HOME}", "{}", "{ n }", "{1}", "{a,b}", "{print $1}", "}{", "{\u{e9}}"]
        {
            assert_eq!(unknown_placeholder(word), None, "{word}");
        }
    }
}
