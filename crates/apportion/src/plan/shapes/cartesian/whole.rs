//! From real heights and widths to whole rows and columns.

use crate::plan::Shape;
use crate::plan::shares::proportional;

/// Whole heights and widths: rounded, then each side in turn made optimal for the other while that helps.
pub(super) fn whole_numbers(
    shape: Shape,
    heights: &[f64],
    widths: &[f64],
    speed: impl Fn(usize, usize) -> f64,
) -> (Vec<u64>, Vec<u64>) {
    let mut high = proportional(shape.m, heights);
    let mut wide = proportional(shape.n, widths);
    let slowest = |high: &[u64], wide: &[u64]| {
        let mut time = 0.0_f64;
        for (i, h) in high.iter().enumerate() {
            for (j, w) in wide.iter().enumerate() {
                time = time.max((h * w) as f64 / speed(i, j));
            }
        }
        time
    };
    let mut least = slowest(&high, &wide);
    loop {
        // The capacity of a line for each unit of time, over the lines of the other side that are not empty.
        let capacity = |lengths: &[u64], cell: &dyn Fn(usize) -> f64| {
            let used = (0..lengths.len()).filter(|&j| lengths[j] > 0);
            used.map(|j| cell(j) / lengths[j] as f64).fold(f64::INFINITY, f64::min)
        };
        let rows: Vec<f64> = (0..high.len()).map(|i| capacity(&wide, &|j| speed(i, j))).collect();
        let new_high = proportional(shape.m, &rows);
        let cols: Vec<f64> = (0..wide.len()).map(|j| capacity(&new_high, &|i| speed(i, j))).collect();
        let new_wide = proportional(shape.n, &cols);
        let time = slowest(&new_high, &new_wide);
        if time >= least {
            return (high, wide);
        }
        (least, high, wide) = (time, new_high, new_wide);
    }
}
