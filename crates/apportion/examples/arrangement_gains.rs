//! What arrangements gain by simulation, beside what Malik 2016 measured:
//! `cargo run --release --example arrangement_gains [-- DIRECTORY]`.
//!
//! Ninety nodes of six and of eight clusters (his Tables 3.10 and 3.12) and twelve of four (Table 4.2). The
//! thesis prints neither speeds nor layouts: the speeds are those of the platform files, reconstructed there.
//! Each network is simulated twice, since the thesis does not say how links are shared either: with one link
//! for each pair of clusters, which all their messages share, and with one for each pair of nodes. With a
//! directory the arrangements are drawn into it.

use apportion::error::Result;
use apportion::geometry::{Rank, Rect, Span};
use apportion::output::write_whole;
use apportion::plan::arrange::{
    Arranged, Cost, Edges, GridDomain, Objective, Pivots, Search, arrange, arrange_grid, arrangement_cost,
};
use apportion::plan::{Layout, Part, Plan, Shape, in_blocks, shapes};
use apportion::platform::{Load, Platform, Speed, parse_platform, read_platform};
use apportion::report::{plan_svg, table};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::simulate::{
    Action, CostModel, Deployment, Fluid, Host, Then, simulate_actions, simulate_fluid,
};
use std::path::{Path, PathBuf};

const RING: Objective = Objective::Bandwidth(Pivots::Ring);
const HOPS: Objective = Objective::Hops(Pivots::Ring);
/// Pivot block, and the blocks of a matrix's side: 90,000 units of one block each.
const BLOCK: u64 = 64;
const SIDE: u64 = 300;

/// Hop cost, bandwidth cost in microseconds, seconds of the ring flow and of one-to-all.
type Printed = [f64; 4];
const TABLE_3_10: [Printed; 3] = [
    [2677.0, 29205.22, 244.5955, 202.6377],
    [1751.0, 21695.06, 200.0589, 176.3399],
    [1948.0, 18840.53, 180.5339, 164.1144],
];
const TABLE_3_12: [Printed; 3] = [
    [2248.0, 19394.13, 196.3404, 165.5698],
    [1987.0, 17087.58, 176.7677, 155.7851],
    [2083.0, 12497.47, 160.07, 150.0844],
];

fn main() -> Result<()> {
    let pictures = std::env::args().nth(1).map(PathBuf::from);
    ninety("6 clusters", "grid5000-table-3-9", &TABLE_3_10, pictures.as_deref())?;
    ninety("8 clusters", "grid5000-table-3-11", &TABLE_3_12, pictures.as_deref())?;
    twelve(pictures.as_deref())
}

/// A platform of the repository, its clusters as a tree of two levels, and whether all pairs of two clusters
/// share a link.
fn platform(name: &str, shared: bool) -> Result<Platform> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms").join(format!("{name}.toml"));
    let given = read_platform(&file)?;
    let flat = |cluster: &str| cluster.rsplit('/').next().unwrap_or(cluster).to_owned();
    let mut clusters: Vec<(String, Vec<Rank>)> = Vec::new();
    let mut text = format!("name = \"{name}\"\n");
    for (i, processor) in given.processors.iter().enumerate() {
        let cluster = flat(&processor.cluster);
        let speed = processor.speed.map_or(1.0, Speed::value);
        text += &format!(
            "[[processor]]\nname = \"{}\"\ncluster = \"{cluster}\"\nspeed = {speed:?}\n",
            processor.name
        );
        match clusters.iter_mut().find(|c| c.0 == cluster) {
            Some((_, members)) => members.push(Rank(i)),
            None => clusters.push((cluster, vec![Rank(i)])),
        }
    }
    for (i, (to, there)) in clusters.iter().enumerate() {
        for (from, here) in &clusters[..=i] {
            let inside = from == to;
            let link = given.network.link(here[0], there[usize::from(inside)]);
            text += &format!(
                "[[network.link]]\nbetween = [\"{from}\", \"{to}\"]\nshared = {}\n\
                 bandwidth = {{ horizontal = {:?}, vertical = {:?} }}\n",
                shared && !inside,
                link.horizontal,
                link.vertical
            );
        }
    }
    parse_platform(&text, name)
}

fn ninety(title: &str, name: &str, printed: &[Printed; 3], pictures: Option<&Path>) -> Result<()> {
    let [own, shared] = [platform(name, false)?, platform(name, true)?];
    let speeds: Vec<f64> = own.processors.iter().map(|p| p.speed.map_or(1.0, Speed::value)).collect();
    let shape = Shape::new(SIDE * BLOCK, SIDE * BLOCK, SIDE * BLOCK, "shape")?;
    let layout = in_blocks(shape, BLOCK, |blocks| shapes::columns(blocks, &speeds))?;
    let uneven = imbalance(&layout, &speeds);
    let given = Plan::of_layout("as given", own.names(), layout, uneven);
    let found = |objective, search| arrange(&given, &own, objective, search, 1).map(|found| found.plan);
    let arrangements = [
        ("as given", given.clone(), Some(printed[0])),
        ("hops, published", found(HOPS, Search::Published)?, Some(printed[1])),
        ("bandwidth, published", found(RING, Search::Published)?, Some(printed[2])),
        ("bandwidth, heuristic", found(RING, Search::Heuristic)?, None),
        ("bandwidth, local", found(RING, Search::Local)?, None),
        ("one-to-all, local", found(Objective::Bandwidth(Pivots::OneToAll), Search::Local)?, None),
    ];
    let rates: Vec<f64> = speeds.iter().map(|s| s / 2.0).collect();
    let mut rows = Vec::new();
    let mut first = None;
    for (word, plan, printed_here) in arrangements {
        let cost = |objective| arrangement_cost(&plan, &own, objective).map(|cost| cost.total);
        let (hops, microseconds) = (cost(HOPS)? / BLOCK as f64, 1e6 * cost(RING)?);
        let mut seconds = Vec::new();
        for (flow, platform) in
            [(Flow::Ring, &shared), (Flow::OneToAll, &shared), (Flow::Ring, &own), (Flow::OneToAll, &own)]
        {
            seconds.push(simulated(&plan, flow, platform, &rates)?);
        }
        let before = first.get_or_insert_with(|| seconds.clone());
        let gain = |i: usize| format!("{:.1} %", 100.0 * (1.0 - seconds[i] / before[i]));
        let told = |i: usize| match printed_here {
            Some(p) if i < 2 => format!("{:.0}", p[i]),
            Some(p) => format!("{:.1} %", 100.0 * (1.0 - p[i] / printed[0][i])),
            None => String::new(),
        };
        rows.push(vec![
            word.to_owned(),
            told(0),
            format!("{hops:.0}"),
            told(1),
            format!("{microseconds:.0}"),
            told(2),
            gain(0),
            gain(2),
            told(3),
            gain(1),
            gain(3),
        ]);
        if let Some(folder) = pictures.filter(|_| !word.starts_with("one-to-all")) {
            let method = format!("{word}: {hops:.0} hops, {:.1} ms", microseconds / 1e3);
            draw(
                folder,
                &format!("network-{}-{}", &title[..1], word.replace(", ", "-").replace(' ', "-")),
                &Plan { method, ..plan },
                &own,
            )?;
        }
    }
    println!(
        "90 nodes of {title}: costs and gains, printed and ours (ring and one-to-all, links shared and not)\n"
    );
    let head =
        ["arrangement", "hops", "ours", "us", "ours", "ring", "shared", "own", "one-to-all", "shared", "own"];
    println!("{}", table(&head, rows));
    Ok(())
}

fn simulated(plan: &Plan, flow: Flow, platform: &Platform, rates: &[f64]) -> Result<f64> {
    let order = ScheduleOptions::new(flow, BLOCK);
    let layout = plan.layout()?;
    let conditions = CostModel { rates, network: &platform.network, element: 8 };
    let schedule = MatmulSchedule::new(layout, order);
    Ok(simulate_fluid(&schedule, conditions, &platform.names(), &Fluid::fair(), false)?.trace.seconds())
}

/// Table 4.2: 512 x 512 x 64 on twelve nodes; the exchange of one layer of doubles with each neighbour,
/// alone.
fn twelve(pictures: Option<&Path>) -> Result<()> {
    let [own, shared] = [platform("grid5000-table-4-1", false)?, platform("grid5000-table-4-1", true)?];
    let shape = Shape::new(512, 1, 512, "shape")?;
    let cut = |i: usize, parts: usize| Span::new((512 * i / parts) as u64, (512 * (i + 1) / parts) as u64);
    let parts = (0..12).map(|i| Part::new(Rank(i), Rect::new(cut(i % 2, 2), cut(i / 2, 6))));
    let layout = Layout::new(shape, 12, parts)?;
    let uneven = imbalance(&layout, &[1.0; 12]);
    let given = Plan::of_grid("as given", own.names(), layout, uneven);
    let objective = Objective::Asymmetric(Edges::Open);
    let cost = |found: &Plan| arrangement_cost(found, &own, objective);
    let domain = GridDomain { start: Some([2, 6]), ..GridDomain::new(512, 512, Edges::Open) };
    let seated = |search| arrange_grid(domain, &own, (search, 1), &|_| true);
    let of = |found: Arranged| (found.plan, found.cost_after);
    let before = cost(&given)?;
    let arrangements = [
        ("as given", (given.clone(), before), Some((22_424_946.0, 994.02))),
        ("published", of(seated(Search::Published)?), Some((2_143_978.0, 154.20))),
        ("heuristic", of(seated(Search::Heuristic)?), None),
        ("local", of(seated(Search::Local)?), None),
    ];
    let mut rows = Vec::new();
    let mut first: Option<(Cost, [f64; 2])> = None;
    for (word, (plan, cost), printed) in arrangements {
        let seconds = [exchange(&plan, &shared)?, exchange(&plan, &own)?];
        let (whole, times) = *first.get_or_insert((cost, seconds));
        let told = |value: Option<f64>| value.map_or_else(String::new, |v| format!("{v:.2}"));
        rows.push(vec![
            word.to_owned(),
            told(printed.map(|p| 22_424_946.0 / p.0)),
            format!("{:.2}", whole.total / cost.total),
            told(printed.map(|p| 994.02 / p.1)),
            format!("{:.3} s", seconds[0]),
            format!("{:.2}", times[0] / seconds[0]),
            format!("{:.3} s", seconds[1]),
            format!("{:.2}", times[1] / seconds[1]),
        ]);
        if let Some(folder) = pictures.filter(|_| word != "local") {
            let method = format!("{word}: {:.1} ms", 1e3 * cost.total);
            draw(folder, &format!("network-grid-{word}").replace(' ', "-"), &Plan { method, ..plan }, &own)?;
        }
    }
    println!(
        "12 nodes of 4 clusters: ratios to the mapping given, printed (cost, run) and ours (cost, exchange)\n"
    );
    let head = ["mapping", "cost", "ours", "run", "shared", "ratio", "own", "ratio"];
    println!("{}", table(&head, rows));
    Ok(())
}

/// Seconds of one halo exchange: every processor sends one layer, 64 doubles deep, across each border, and
/// waits for all.
fn exchange(plan: &Plan, platform: &Platform) -> Result<f64> {
    let layout = plan.rectangles().expect("a grid has rectangles");
    let common = |a: Span, b: Span| a.end.min(b.end).saturating_sub(a.start.max(b.start));
    let meet = |a: Span, b: Span| a.end == b.start || b.end == a.start;
    let mut scripts: Vec<Vec<Action>> = vec![Vec::new(); platform.len()];
    for (a, b) in layout.parts().iter().flat_map(|a| layout.parts().iter().map(move |b| (a, b))) {
        let bytes = |lines: u64| (lines * 64 * 8) as f64;
        let load = if meet(a.cols, b.cols) {
            Load { horizontal: bytes(common(a.rows, b.rows)), vertical: 0.0 }
        } else if meet(a.rows, b.rows) {
            Load { horizontal: 0.0, vertical: bytes(common(a.cols, b.cols)) }
        } else {
            continue;
        };
        if load.bytes() > 0.0 {
            scripts[a.owner.0].push(Action::Send { to: b.owner, tag: 0, load, then: Then::Remember });
            scripts[b.owner.0].push(Action::Receive { from: a.owner, tag: 0, then: Then::Remember });
        }
    }
    let mut scripts: Vec<_> =
        scripts.into_iter().map(|posted| posted.into_iter().chain([Action::AwaitAll])).collect();
    let hosts = vec![Host { speed: 1.0, cores: 1 }; platform.len()];
    let placement: Vec<usize> = (0..platform.len()).collect();
    let names = platform.names();
    let on = Deployment { hosts: &hosts, placement: &placement, names: &names, network: &platform.network };
    Ok(simulate_actions(&mut scripts, on, &Fluid::fair(), false)?.trace.seconds())
}

fn draw(folder: &Path, name: &str, plan: &Plan, platform: &Platform) -> Result<()> {
    let clusters: Vec<String> = platform.processors.iter().map(|p| p.cluster.clone()).collect();
    write_whole(folder.join(format!("{name}.svg")), plan_svg(plan, &clusters).as_bytes())
}

/// The largest compute time over the ideal one.
fn imbalance(layout: &Layout, speeds: &[f64]) -> f64 {
    let shares = layout.shares();
    let longest = shares.iter().zip(speeds).map(|(&share, speed)| share as f64 / speed).fold(0.0, f64::max);
    longest * speeds.iter().sum::<f64>() / shares.iter().sum::<u64>() as f64
}
