//! The quality of the arrangements, and the time to find them: `cargo run --release --example
//! arrangement_quality`.
//!
//! Two hundred seeded instances against the optimum; ninety processors with the bandwidths of Malik's Table
//! 3.9; and five thousand processors of sixty clusters.

use apportion::error::Result;
use apportion::plan::arrange::{
    Arrangement, CostFunction, Edges, Pivots, SearchMethod, SearchOptions, arrange,
};
use apportion::plan::shapes::{Columns, LayoutMethod};
use apportion::plan::{Plan, Shape};
use apportion::platform::{Platform, parse_platform, read_platform};
use apportion::random::Random;
use comfy_table::{Table, presets::NOTHING};
use std::path::Path;
use std::time::Instant;

const OBJECTIVES: [(&str, CostFunction); 4] = [
    ("hops", CostFunction::Hops(Pivots::Ring)),
    ("bandwidth", CostFunction::Bandwidth(Pivots::Ring)),
    ("bandwidth, one-to-all", CostFunction::Bandwidth(Pivots::OneToAll)),
    ("asymmetric, open", CostFunction::Asymmetric(Edges::Open)),
];

fn main() -> Result<()> {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["case", "objective", "search", "result", "seconds"]);
    small(&mut table)?;
    let ninety = read_platform(&platforms().join("grid5000-table-3-9.toml"))?;
    let shape = Shape::new(90_000, 90_000, 90_000, "shape")?;
    large(&mut table, "90 processors, Table 3.9", &ninety, shape, &OBJECTIVES)?;
    large(&mut table, "5,000 processors", &many(5_000)?, shape, &OBJECTIVES[..3])?;
    println!("{table}");
    Ok(())
}

fn platforms() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms")
}

/// Numbers in [0, 1) from a seed.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut random = Random::new(seed);
    move || random.unit()
}

/// `p` processors assigned at random to `clusters` clusters of sites of three, with random bandwidths.
fn random(p: usize, clusters: usize, seed: u64) -> Result<Platform> {
    let mut unit = numbers(seed);
    let mut text = String::new();
    let mut members = vec![false; clusters];
    for i in 0..p {
        let cluster = (unit() * clusters as f64) as usize;
        members[cluster] = true;
        text += &format!("[[processor]]\nname = \"p{i}\"\ncluster = \"s{}/c{cluster}\"\n", cluster / 3);
    }
    text += "[network]\nbandwidth = \"50 MB/s\"\n";
    for (i, j) in (0..clusters).flat_map(|i| (0..=i).map(move |j| (i, j))) {
        let megabytes = if i == j { 800.0 + 200.0 * unit() } else { 30.0 * 10f64.powf(unit()) };
        if members[i] && members[j] {
            text += &format!(
                "[[network.link]]\nbetween = [\"s{}/c{i}\", \"s{}/c{j}\"]\nbandwidth = \"{megabytes} MB/s\"\n",
                i / 3,
                j / 3
            );
        }
    }
    parse_platform(&text, "random platform")
}

fn many(p: usize) -> Result<Platform> {
    random(p, 60, 5)
}

/// A column-based plan for speeds drawn from 1 to `spread`.
fn plan(platform: &Platform, shape: Shape, spread: f64, seed: u64) -> Result<Plan> {
    let mut unit = numbers(seed);
    let weights: Vec<f64> = platform.processors.iter().map(|_| spread.powf(unit())).collect();
    let layout = Columns::default().layout(shape, &weights)?;
    Ok(Plan::of_layout("columns", platform.names(), layout, 1.0))
}

/// Two hundred instances of six to nine processors: the mean and the worst excess over the optimum.
fn small(table: &mut Table) -> Result<()> {
    for (name, objective) in OBJECTIVES {
        let mut excess = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let mut seconds = [0.0; 4];
        for seed in 0..200 {
            let platform = random(6 + seed as usize % 4, 2 + seed as usize % 3, seed)?;
            let plan = plan(&platform, Shape::new(900, 900, 1100, "shape")?, 9.0, seed + 1000)?;
            let best = arrange(&plan, &platform, objective, SearchOptions::new(SearchMethod::Exhaustive, 0))?
                .cost_after
                .total;
            let over = |cost: f64| if cost > best { cost / best - 1.0 } else { 0.0 };
            let searches = [SearchMethod::Published, SearchMethod::Heuristic, SearchMethod::Local];
            for (i, search) in searches.into_iter().enumerate() {
                let clock = Instant::now();
                let found = arrange(&plan, &platform, objective, SearchOptions::new(search, seed))?;
                seconds[i] += clock.elapsed().as_secs_f64();
                excess[i].push(over(found.cost_after.total));
                if i == 0 {
                    excess[3].push(over(found.cost_before.total));
                }
            }
        }
        for (i, search) in ["published", "heuristic", "local", "as given"].into_iter().enumerate() {
            let mean = excess[i].iter().sum::<f64>() / excess[i].len() as f64;
            let worst = excess[i].iter().copied().fold(0.0, f64::max);
            let result = format!("{:.2} % over the optimum, worst {:.1} %", 100.0 * mean, 100.0 * worst);
            table.add_row(["200 instances", name, search, &result, &format!("{:.3}", seconds[i])]);
        }
    }
    Ok(())
}

fn large(
    table: &mut Table,
    case: &str,
    platform: &Platform,
    shape: Shape,
    objectives: &[(&str, CostFunction)],
) -> Result<()> {
    let plan = plan(platform, shape, 9.0, 39)?;
    for (name, objective) in objectives {
        for (word, search) in [("heuristic", SearchMethod::Heuristic), ("local", SearchMethod::Local)] {
            let clock = Instant::now();
            let found = arrange(&plan, platform, *objective, SearchOptions::new(search, 1))?;
            let seconds = clock.elapsed().as_secs_f64();
            table.add_row([case, name, word, &gain(&found), &format!("{seconds:.3}")]);
        }
    }
    Ok(())
}

fn gain(found: &Arrangement) -> String {
    let (before, after) = (found.cost_before.total, found.cost_after.total);
    format!(
        "{before:.4e} -> {after:.4e} ({:.1} % less), {} evaluations",
        100.0 * (1.0 - after / before),
        found.evaluations
    )
}
