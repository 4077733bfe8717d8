//! Ninety nodes of six and of eight clusters (3.5, Tables 3.10 and 3.12), by simulation.
//!
//! The thesis prints neither speeds nor layouts: the speeds are those of the platform files, reconstructed
//! there. Clusters are flattened to two levels, as the thesis counts hops. Each network is simulated twice,
//! since the thesis does not say how links are shared either: with one link for each pair of clusters, which
//! all their messages share, and with one for each pair of nodes.

use crate::experiment::{About, Check, Context, Experiment, Kind, Picture, Report, Table, Verdict, percent};
use apportion::error::{Error, Result};
use apportion::geometry::Rank;
use apportion::plan::arrange::{
    CostFunction, Pivots, SearchMethod, SearchOptions, arrange, arrangement_cost,
};
use apportion::plan::shapes::LayoutMethod;
use apportion::plan::{Layout, Plan, Shape, in_blocks, shapes};
use apportion::platform::{Platform, Speed, parse_platform};
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::simulate::{CostModel, Fluid, simulate_fluid};
use apportion_report::plan_svg;

const RING: CostFunction = CostFunction::Bandwidth(Pivots::Ring);
const HOPS: CostFunction = CostFunction::Hops(Pivots::Ring);
/// Pivot block, and the blocks of a matrix's side: 90,000 units of one block each.
pub const BLOCK: u64 = 64;
const SIDE: u64 = 300;
/// The same in a quick run.
const QUICK_SIDE: u64 = 100;

/// Hop cost, bandwidth cost in microseconds, seconds of the ring flow and of one-to-all.
type Printed = [f64; 4];

/// Ninety nodes of some clusters.
pub struct Ninety {
    ids: &'static [&'static str],
    shows: &'static str,
    source: &'static str,
    pub file: (&'static str, &'static str),
    /// Rows: as given, hops heuristic, bandwidth heuristic.
    printed: [Printed; 3],
    /// Two pairs of clusters of whose traffic 3.5.1 speaks: a slow and a fast one.
    pairs: Option<[(&'static str, &'static str); 2]>,
}

pub const SIX: Ninety = Ninety {
    ids: &["malik-table-3.10", "malik-3.9", "malik-3.10"],
    shows: "90 nodes of six unlike clusters: costs, and gains by simulation",
    source: "Malik 2016, 3.5.1",
    file: ("grid5000-table-3-9", include_str!("../../../../platforms/grid5000-table-3-9.toml")),
    printed: [
        [2677.0, 29205.22, 244.5955, 202.6377],
        [1751.0, 21695.06, 200.0589, 176.3399],
        [1948.0, 18840.53, 180.5339, 164.1144],
    ],
    pairs: Some([("granduc", "suno"), ("edel", "taurus")]),
};
pub const EIGHT: Ninety = Ninety {
    ids: &["malik-table-3.12", "malik-3.11", "malik-3.12"],
    shows: "90 nodes of eight similar clusters: costs, and gains by simulation",
    source: "Malik 2016, 3.5.2",
    file: ("grid5000-table-3-11", include_str!("../../../../platforms/grid5000-table-3-11.toml")),
    printed: [
        [2248.0, 19394.13, 196.3404, 165.5698],
        [1987.0, 17087.58, 176.7677, 155.7851],
        [2083.0, 12497.47, 160.07, 150.0844],
    ],
    pairs: None,
};

/// A platform of the repository, its clusters as a tree of two levels, and whether all pairs of two clusters
/// share a link.
pub fn flattened(file: (&str, &str), shared: bool) -> Result<Platform> {
    flattened_by(file, shared.then_some(1.0), &mut |_| {})
}

/// The same with a shared link of `times` the table's bandwidth for each pair of clusters (`None`: a link for
/// each pair of nodes), and the clusters in another order, which `reorder` makes of a list of their indices.
pub fn flattened_by(
    (name, file): (&str, &str),
    times: Option<f64>,
    reorder: &mut dyn FnMut(&mut Vec<usize>),
) -> Result<Platform> {
    let given = parse_platform(file, name)?;
    let flat = |cluster: &str| cluster.rsplit('/').next().unwrap_or(cluster).to_owned();
    let mut clusters: Vec<(String, Vec<Rank>)> = Vec::new();
    for (i, processor) in given.processors.iter().enumerate() {
        let cluster = flat(&processor.cluster);
        match clusters.iter_mut().find(|c| c.0 == cluster) {
            Some((_, members)) => members.push(Rank(i)),
            None => clusters.push((cluster, vec![Rank(i)])),
        }
    }
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    reorder(&mut order);
    let mut text = format!("name = \"{name}\"\n");
    for (cluster, members) in order.into_iter().map(|c| &clusters[c]) {
        for member in members {
            let processor = &given.processors[member.0];
            let speed = processor.speed.map_or(1.0, Speed::value);
            text += &format!(
                "[[processor]]\nname = \"{}\"\ncluster = \"{cluster}\"\nspeed = {speed:?}\n",
                processor.name
            );
        }
    }
    for (i, (to, there)) in clusters.iter().enumerate() {
        for (from, here) in &clusters[..=i] {
            let inside = from == to;
            let link = given.network.link(here[0], there[usize::from(inside)]);
            let wider = if inside { 1.0 } else { times.unwrap_or(1.0) };
            text += &format!(
                "[[network.link]]\nbetween = [\"{from}\", \"{to}\"]\nshared = {}\n\
                 bandwidth = {{ horizontal = {:?}, vertical = {:?} }}\n",
                times.is_some() && !inside,
                wider * link.horizontal,
                wider * link.vertical
            );
        }
    }
    parse_platform(&text, name)
}

impl Experiment for Ninety {
    fn about(&self) -> About {
        About { ids: self.ids, source: self.source, shows: self.shows, kind: Kind::Computed, seconds: 3 }
    }

    fn run(&self, context: &Context<'_>) -> Result<Report> {
        let side = if context.quick { QUICK_SIDE } else { SIDE };
        let Arranged { own, shared, speeds, given, hops, bandwidth } = arranged(self, side)?;
        let found = |objective, search| {
            arrange(&given, &own, objective, SearchOptions::new(search, 1)).map(|found| found.plan)
        };
        let mut arrangements = vec![
            ("as given", given.clone(), Some(self.printed[0])),
            ("hops, published", hops, Some(self.printed[1])),
            ("bandwidth, published", bandwidth, Some(self.printed[2])),
        ];
        if !context.quick {
            arrangements.push(("bandwidth, heuristic", found(RING, SearchMethod::Heuristic)?, None));
            arrangements.push(("bandwidth, local", found(RING, SearchMethod::Local)?, None));
            let local = found(CostFunction::Bandwidth(Pivots::OneToAll), SearchMethod::Local)?;
            arrangements.push(("one-to-all, local", local, None));
        }
        let rates: Vec<f64> = speeds.iter().map(|s| s / 2.0).collect();
        let mut costs =
            Table::new("Costs, printed and here", &["arrangement", "hops", "here", "microseconds", "here"]);
        let header = ["arrangement", "ring", "shared", "own", "one-to-all", "shared", "own"];
        let mut gains = Table::new("Run time saved: printed, and here with shared and own links", &header);
        let mut report = Report::default();
        let mut first: Option<Vec<f64>> = None;
        let (mut found, mut traffic) = (Vec::new(), Vec::new());
        for (word, plan, printed) in arrangements {
            if context.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            let cost = |objective| arrangement_cost(&plan, &own, objective).map(|cost| cost.total);
            // Costs count elements; a smaller matrix has fewer.
            let full = SIDE as f64 / side as f64;
            let (hops, microseconds) = (full * cost(HOPS)? / BLOCK as f64, full * 1e6 * cost(RING)?);
            let mut seconds = Vec::new();
            for (flow, platform) in
                [(Flow::Ring, &shared), (Flow::Ring, &own), (Flow::OneToAll, &shared), (Flow::OneToAll, &own)]
            {
                seconds.push(simulated(&plan, flow, platform, &rates)?);
            }
            let before = first.get_or_insert_with(|| seconds.clone());
            let gain: Vec<f64> = seconds.iter().zip(before.iter()).map(|(s, b)| 1.0 - s / b).collect();
            let told = |i: usize| printed.map_or_else(String::new, |p| format!("{:.0}", p[i]));
            costs.row([word.into(), told(0), format!("{hops:.0}"), told(1), format!("{microseconds:.0}")]);
            let saved = |i: usize| printed.map(|p| 1.0 - p[i] / self.printed[0][i]);
            let published = |i: usize| saved(i).map_or_else(String::new, percent);
            let [ring, ring_own, all, all_own] = [0, 1, 2, 3].map(|i| percent(gain[i]));
            gains.row([word.into(), published(2), ring, ring_own, published(3), all, all_own]);
            found.push((word, saved(2), saved(3), gain, [hops, microseconds]));
            if let (Some(pairs), true) = (self.pairs, printed.is_some()) {
                let scale = full as u64;
                traffic.push(pairs.map(|(one, other)| links(&plan, &own, one, other, scale)));
            }
            let method = format!("{word}: {hops:.0} hops, {:.1} ms", microseconds / 1e3);
            if !word.starts_with("one-to-all") && !context.quick {
                let clusters: Vec<String> = own.processors.iter().map(|p| p.cluster.clone()).collect();
                let name = format!("{}-{}", self.ids[0], word.replace(", ", "-").replace(' ', "-"));
                report.pictures.push(Picture { name, svg: plan_svg(&Plan { method, ..plan }, &clusters) });
            }
        }
        report.tables.extend([costs, gains]);
        checks(&mut report, self.printed, &found);
        if let [_, hops, bandwidth] = traffic[..] {
            pair_checks(&mut report, hops, bandwidth);
        }
        report.note(
            "The thesis prints neither speeds nor layouts. Speeds are clock x 4 flops x threads, the size \
                 is 300 blocks a side, clusters are in two levels (the shipped files have sites above them, \
                 where a hop between sites counts twice), and the layouts are those that the library makes \
                 of these. *Shared*: one link for each pair of clusters; *own*: one for each pair of nodes.",
        );
        Ok(report)
    }
}

/// Plans of ninety nodes, and their networks.
pub struct Arranged {
    pub own: Platform,
    pub shared: Platform,
    pub speeds: Vec<f64>,
    pub given: Plan,
    pub hops: Plan,
    pub bandwidth: Plan,
}

/// The layout as given and those of Algorithms 1 and 2, for matrices of `side` blocks.
pub fn arranged(of: &Ninety, side: u64) -> Result<Arranged> {
    let [own, shared] = [flattened(of.file, false)?, flattened(of.file, true)?];
    let speeds: Vec<f64> = own.processors.iter().map(|p| p.speed.map_or(1.0, Speed::value)).collect();
    let shape = Shape::new(side * BLOCK, side * BLOCK, side * BLOCK, "shape")?;
    let layout = in_blocks(shape, BLOCK, |blocks| shapes::Columns::default().layout(blocks, &speeds))?;
    let given = Plan::of_layout("as given", own.names(), layout.clone(), imbalance(&layout, &speeds));
    let by = |objective| {
        arrange(&given, &own, objective, SearchOptions::new(SearchMethod::Published, 1))
            .map(|found| found.plan)
    };
    let (hops, bandwidth) = (by(HOPS)?, by(RING)?);
    Ok(Arranged { own, shared, speeds, given, hops, bandwidth })
}

/// The traffic of two clusters in an arrangement.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    /// Neighbours in a column, the last and the first among them.
    vertical: u64,
    /// Rows of blocks in which they are neighbours in a row, likewise.
    horizontal: u64,
}

/// The traffic of two clusters in the rings of a column-based plan; a block of the plan is `scale` of the
/// original's.
fn links(plan: &Plan, platform: &Platform, one: &str, other: &str, scale: u64) -> Traffic {
    let layout = plan.rectangles().expect("a plan of rectangles");
    let mut parts = layout.parts().to_vec();
    parts.sort_by_key(|part| (part.cols.start, part.rows.start));
    let columns: Vec<&[apportion::plan::Part]> = parts.chunk_by(|a, b| a.cols == b.cols).collect();
    let cluster = |part: &apportion::plan::Part| platform.processors[part.owner.0].cluster.as_str();
    let of_pair = |a: &apportion::plan::Part, b: &apportion::plan::Part| {
        [(one, other), (other, one)].contains(&(cluster(a), cluster(b)))
    };
    let mut traffic = Traffic { vertical: 0, horizontal: 0 };
    for (i, column) in columns.iter().enumerate() {
        for (j, part) in column.iter().enumerate() {
            traffic.vertical += u64::from(of_pair(part, &column[(j + 1) % column.len()]));
            for beside in columns[(i + 1) % columns.len()].iter().filter(|beside| of_pair(part, beside)) {
                let rows =
                    part.rows.end.min(beside.rows.end).saturating_sub(part.rows.start.max(beside.rows.start));
                traffic.horizontal += rows / BLOCK * scale;
            }
        }
    }
    traffic
}

/// What 3.5.1 says of two pairs of clusters: a slow one and a fast one, each by hops and by bandwidth.
fn pair_checks(report: &mut Report, [slow_by_hops, fast_by_hops]: [Traffic; 2], [slow, fast]: [Traffic; 2]) {
    let text = |traffic: Traffic| {
        format!("{} links in columns, {} rows of blocks", traffic.vertical, traffic.horizontal)
    };
    report.checks.push(
        Check::new(
            "3.5.1: Granduc and Suno in the bandwidth heuristic's arrangement",
            "not engaged at all",
            text(slow),
            slow.vertical + slow.horizontal == 0,
        )
        .unless(Verdict::DataNotGiven, LAYOUTS),
    );
    report.checks.push(
        Check::new(
            "3.5.1: Granduc and Suno in the hop-count heuristic's arrangement",
            "significant traffic in both directions",
            text(slow_by_hops),
            slow_by_hops.vertical > 0 && slow_by_hops.horizontal > 0,
        )
        .within("in both directions")
        .unless(Verdict::DataNotGiven, LAYOUTS),
    );
    let sum = |traffic: Traffic| traffic.vertical * 300 + traffic.horizontal;
    report.checks.push(
        Check::new(
            "3.5.1: Edel and Taurus communicate more in the bandwidth heuristic's arrangement",
            "much more",
            format!("{}; by hops {}", text(fast), text(fast_by_hops)),
            sum(fast) > sum(fast_by_hops),
        )
        .within("more")
        .unless(Verdict::DataNotGiven, LAYOUTS),
    );
}

/// An arrangement: its name, what is printed of the gains of ring and one-to-all, ours (ring shared, own,
/// one-to-all shared, own), and its costs.
type Found<'a> = (&'a str, Option<f64>, Option<f64>, Vec<f64>, [f64; 2]);

fn checks(report: &mut Report, printed: [Printed; 3], found: &[Found<'_>]) {
    let given = found[0].4;
    for ((word, ring, all, gain, costs), printed_here) in found.iter().zip(printed).skip(1) {
        for (i, name) in ["hops", "bandwidth cost"].into_iter().enumerate() {
            // The bandwidth heuristic does not count hops.
            if i == 0 && word.starts_with("bandwidth") {
                continue;
            }
            let [theirs, here] = [1.0 - printed_here[i] / printed[0][i], 1.0 - costs[i] / given[i]];
            let what = format!("{word}: less {name} than as given");
            report
                .checks
                .push(Check::points(what, theirs, here, POINTS).if_only_the_relation(here > 0.0, LAYOUTS));
        }
        for (flow, theirs, shared, own) in
            [("ring", ring, gain[0], gain[1]), ("one-to-all", all, gain[2], gain[3])]
        {
            let theirs = theirs.unwrap_or(f64::NAN);
            let here = format!("{} with shared links ({} with own ones)", percent(shared), percent(own));
            let what = format!("{word}, {flow}: run time saved");
            let check = Check::points(what, theirs, shared, POINTS).found(here);
            // A gain that rounds to nothing has no sign.
            report.checks.push(if shared > 0.005 {
                check.if_only_the_relation(true, RUN_TIMES)
            } else {
                check.unless(Verdict::DataNotGiven, RUN_TIMES)
            });
        }
    }
    let hops = [found[2].4[0], found[1].4[0]];
    report.checks.push(Check::new(
        "the bandwidth heuristic's hops are more than the hop-count heuristic's",
        format!("{} against {}", printed[2][0], printed[1][0]),
        format!("{:.0} against {:.0}", hops[0], hops[1]),
        hops[0] > hops[1],
    ));
    let better = found[2].3[0] > found[1].3[0];
    report.checks.push(Check::new(
        "ring, shared links: the bandwidth heuristic saves more than the hop count's",
        "yes",
        format!("{} against {}", percent(found[2].3[0]), percent(found[1].3[0])),
        better,
    ));
    let more = found[1..3].iter().all(|f| f.3[0] > f.3[2]);
    report.checks.push(Check::new(
        "shared links: the ring saves more than one-to-all",
        "yes",
        if more { "yes" } else { "no" },
        more,
    ));
}

/// Percentage points by which a gain may differ from the printed one.
const POINTS: f64 = 5.0;

/// Why a cost falls by another part than the printed one.
const LAYOUTS: &str = "The thesis prints neither the speeds nor the layouts whose costs these are; they are \
     reconstructed.";

/// Why a simulated gain differs from the printed one.
const RUN_TIMES: &str = "Layouts and speeds are reconstructed, the real links are shared in ways that the \
     thesis does not state, and MPI's flat trees for one-to-all are not modelled.";

/// The longest time over the ideal one.
fn imbalance(layout: &Layout, speeds: &[f64]) -> f64 {
    let ideal = layout.shape().elements() as f64 / speeds.iter().sum::<f64>();
    let times = layout.shares().into_iter().zip(speeds).map(|(share, speed)| share as f64 / speed);
    times.fold(0.0, f64::max) / ideal
}

/// Seconds of a product by a plan.
pub fn simulated(plan: &Plan, flow: Flow, platform: &Platform, rates: &[f64]) -> Result<f64> {
    let order = ScheduleOptions::new(flow, BLOCK);
    let layout = plan.layout()?;
    let costs = CostModel { rates, network: &platform.network, element: 8 };
    let schedule = MatmulSchedule::new(layout, order);
    Ok(simulate_fluid(&schedule, costs, &platform.names(), &Fluid::fair(), false)?.trace.seconds())
}
