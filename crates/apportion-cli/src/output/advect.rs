//! What `advect` shows: pictures of the field.

use apportion::error::{Error, Result};
use apportion::output::write_whole;
use apportion_advect::Frames;
use apportion_report::{field_png, field_png_spacing};
use std::path::Path;

/// Pictures in a directory.
pub struct Pictures<'a>(pub &'a Path);

impl Frames for Pictures<'_> {
    fn spacing(&self, rows: usize, cols: usize) -> usize {
        field_png_spacing(rows, cols)
    }

    fn draw(
        &self,
        step: u64,
        values: &[f64],
        [rows, cols]: [usize; 2],
        [least, most]: [f64; 2],
    ) -> Result<()> {
        std::fs::create_dir_all(self.0).map_err(|e| Error::file(self.0, "create", e))?;
        let png = field_png(values, rows, cols, least, most);
        write_whole(self.0.join(format!("frame-{step:06}.png")), &png)
    }
}
