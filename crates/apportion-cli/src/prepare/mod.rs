//! From files and flags to values.

pub mod advect;
pub mod options;
pub mod scheme;
pub mod world;

use crate::args::numbers::sides;
use apportion::error::{Error, Result};
use apportion::plan::Shape;

/// The sizes of a product that a flag gives, `MxN` (then k = n) or `MxKxN`.
///
/// # Errors
/// Other text, or sizes that are out of range.
pub fn shape(text: &str, flag: &str) -> Result<Shape> {
    match sides(text).as_deref() {
        Ok(&[m, n]) => Shape::new(m, n, n, flag),
        Ok(&[m, k, n]) => Shape::new(m, k, n, flag),
        _ => Err(Error::input(
            flag,
            format!("\"{text}\" is not a shape"),
            "use MxN or MxKxN, such as 1000x800 or 1000x500x800",
        )),
    }
}
