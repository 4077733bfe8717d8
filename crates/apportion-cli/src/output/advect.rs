//! What `advect` shows: pictures of the field, and how it was cut into slabs.

use apportion::error::{Error, Result};
use apportion::output::write_whole;
use apportion::process_memory::peak_memory;
use apportion::units;
use apportion_advect::{Frames, SlabOutcome};
use apportion_report::{field_png, field_png_spacing, pairs};
use serde_json::{Value, json};
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

/// The `slabs` object of `run.json`.
pub fn slabs_value(about: &SlabOutcome) -> Value {
    json!({
        "count": about.count(),
        "planes": about.slabs.height(),
        "steps_per_sweep": about.steps,
        "sweeps": about.sweeps,
        "computed_twice": about.computed_twice(),
        "memory_cap_bytes": about.cap,
        "predicted_memory_bytes": about.predicted,
        "peak_resident_bytes": peak_memory(),
        "bytes_read": about.disk.read,
        "bytes_written": about.disk.written,
        "disk_seconds": about.disk.seconds,
        "seconds": about.seconds,
        "million_cells_per_second": about.speed() / 1e6,
    })
}

/// The lines below the table.
pub fn slabs_text(about: &SlabOutcome) -> String {
    let shown = |bytes: u64| units::show_bytes(bytes as f64);
    let plural = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let cut = format!(
        "{} of {}, {} of {}; {:.1} % of the cells computed twice",
        plural(about.count(), "slab"),
        plural(about.slabs.height(), "plane"),
        plural(about.sweeps, "sweep"),
        plural(about.steps, "step"),
        100.0 * about.computed_twice()
    );
    let disk = format!(
        "{} read, {} written, {}",
        shown(about.disk.read),
        shown(about.disk.written),
        units::show_seconds(about.disk.seconds)
    );
    let all = format!(
        "{} with reading and writing, {:.1} million cells/s",
        units::show_seconds(about.seconds),
        about.speed() / 1e6
    );
    let peak = peak_memory().map_or_else(|| "unknown".into(), shown);
    let memory = format!("{} predicted for the whole process, {peak} held at most", shown(about.predicted));
    pairs(&[("slabs  ", cut), ("sweeps ", all), ("disk   ", disk), ("memory ", memory)])
}
