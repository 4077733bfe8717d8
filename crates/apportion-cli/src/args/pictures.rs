//! Names of pictures.

use std::path::{Path, PathBuf};

/// Endings of pictures in other formats than SVG.
const OTHERS: [&str; 12] =
    ["png", "jpg", "jpeg", "gif", "pdf", "eps", "ps", "webp", "bmp", "tif", "tiff", "html"];

/// The name of a picture, which is written as SVG.
pub fn picture(text: &str) -> Result<PathBuf, String> {
    let ending = Path::new(text).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if OTHERS.iter().any(|other| ending.eq_ignore_ascii_case(other)) {
        return Err(format!(
            "pictures are SVG: use a name that ends in .svg (rsvg-convert or a browser converts it to {})",
            ending.to_uppercase()
        ));
    }
    Ok(text.into())
}
