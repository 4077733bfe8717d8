//! One file per command: resolve the flags, call the library, print.

pub mod arrange;
pub mod closure;
mod compare;
pub mod demo;
pub mod detect;
pub mod matmul;
pub mod measure;
pub mod partition;
pub mod power;
mod product;
pub mod simulate;

use apportion::{Plan, Platform, Result, plan_svg, write_whole};
use std::path::Path;

/// Draws a plan, coloured by the platform's clusters.
fn draw(path: &Path, plan: &Plan, platform: &Platform) -> Result<()> {
    let clusters: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
    write_whole(path, plan_svg(plan, &clusters).as_bytes())
}
