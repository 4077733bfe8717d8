//! The pictures and the outputs that the documentation shows are those that its commands produce.
//!
//! With `APPORTION_BLESS=1` in the environment, both are rewritten instead. Figures that are measured change
//! with the machine and are left out, by name.

mod links;
pub mod markdown;
mod paths;
mod pictures;
mod quoted;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Whether files are rewritten instead of compared.
fn blesses() -> bool {
    std::env::var_os("APPORTION_BLESS").is_some_and(|value| value == "1")
}
