//! Only divides a matrix among processors of given speeds, for programs that compute by themselves.
//!
//! `cargo run --release --example partition_only`

use apportion::plan::shapes::{Method, MethodOptions};
use apportion::plan::{Metrics, Shape};

fn main() -> apportion::Result<()> {
    let speeds = [9.0, 5.0, 3.0, 1.0];
    let shape = Shape::new(1000, 1000, 1000, "partition_only")?;
    println!("a product of 1000 x 1000 matrices on processors of speeds {speeds:?}\n");
    println!("method         elements moved  sum of half-perimeters (no layout is below the bound)");
    for method in [Method::Rows, Method::Columns, Method::Recursive] {
        let layout = method.layout(shape, &speeds, &MethodOptions::default())?;
        // 1.0: all processors end together, since the shares follow the speeds.
        let metrics = Metrics::of_layout(&layout, 1.0);
        if let (Some(volume), Some(sum), Some(bound)) =
            (metrics.volume, metrics.sum_half_perimeters, metrics.lower_bound)
        {
            println!("{:13}  {volume:14}  {sum:.3} (bound {bound:.3})", method.to_string());
        }
    }

    let layout = Method::Columns.layout(shape, &speeds, &MethodOptions::default())?;
    println!("\nparts by the method columns, half-open:");
    for part in layout.parts() {
        let (rows, cols) = (part.rows, part.cols);
        let share = rows.len() * cols.len();
        println!(
            "  processor {}: rows {:4} to {:4}, columns {:4} to {:4}, {share:6} elements",
            part.owner.0, rows.start, rows.end, cols.start, cols.end
        );
    }
    Ok(())
}
