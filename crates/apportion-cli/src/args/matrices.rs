//! Names of matrix files.

use std::path::{Path, PathBuf};

/// The name of an output file for a matrix, which is written as .npy, or as the files of a layout (.json).
pub fn matrix_or_layout(text: &str) -> Result<PathBuf, String> {
    named(
        text,
        &["npy", "json"],
        "a matrix is written as .npy, or in the files of a layout (.json): use such a name",
    )
}

/// The name of an output file for a matrix or a field, which is written as .npy.
pub fn matrix(text: &str) -> Result<PathBuf, String> {
    named(text, &["npy"], "it is written as .npy: use a name that ends so")
}

/// The name of an output file of `random`.
pub fn random(text: &str) -> Result<PathBuf, String> {
    named(
        text,
        &["npy", "graph", "mtx"],
        "a matrix is written as .npy, a graph as .graph or .mtx: use such a name",
    )
}

/// A name with one of these endings, or with none, as devices have.
fn named(text: &str, endings: &[&str], remedy: &str) -> Result<PathBuf, String> {
    let ending = Path::new(text).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending {
        Some(other) if !endings.contains(&other.as_str()) => Err(remedy.into()),
        _ => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_has_the_ending_of_its_format() {
        for (name, layout, plain) in [
            ("C.npy", true, true),
            ("dir.x/C", true, true),
            ("/dev/stdout", true, true),
            ("c.NPY", true, true),
            ("c.json", true, false),
            ("c.mtx", false, false),
            ("c.npy.gz", false, false),
        ] {
            assert_eq!((matrix_or_layout(name).is_ok(), matrix(name).is_ok()), (layout, plain), "{name}");
        }
    }
}
