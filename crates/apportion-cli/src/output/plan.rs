//! A plan as text.

use super::compare::relayed_volume;
use super::ranking::Ranking;
use apportion::plan::{Border, Division, Plan, Shape};
use apportion::platform::{Network, Topology};
use apportion::select::Choice;
use apportion::units;
use apportion_report::{About, gain_lines, pairs, table};

/// Bytes of a vertex's value in a message.
const VALUE: u64 = 8;

/// The shares, the metrics, and the candidates that were compared.
pub fn text(
    plan: &Plan,
    method: String,
    candidates: &[Choice],
    chosen: Option<&Ranking<'_>>,
    more: Vec<(&str, String)>,
    network: &Network,
) -> String {
    let total = plan.shares.iter().sum::<u64>().max(1) as f64;
    // If only ratios of speeds are known, there are no seconds.
    let forecast = plan.forecast.as_ref();
    let differ =
        |costs: &&Vec<f64>| costs.iter().zip(&plan.shares).any(|(cost, share)| *cost != *share as f64);
    let costs = plan.costs.as_ref().filter(differ).map(|costs| (costs, costs.iter().sum::<f64>()));
    let relative = plan.relative_times.as_ref().filter(|_| plan.layout().is_err());
    let rows = plan.processors.iter().enumerate().map(|(i, name)| {
        let mut row = vec![
            name.clone(),
            units::show_count(u128::from(plan.shares[i])),
            format!("{:.2} %", 100.0 * plan.shares[i] as f64 / total),
        ];
        row.extend(costs.map(|(costs, all)| format!("{:.2} %", 100.0 * costs[i] / all)));
        row.extend(forecast.map(|f| units::show_seconds(f.compute[i])));
        row.extend(relative.map(|times| format!("{:.4}", times[i])));
        row
    });
    let mut header = vec!["processor", "share", "of all"];
    header.extend(costs.map(|_| "of the cost"));
    header.extend(forecast.map(|_| "compute"));
    header.extend(relative.map(|_| "time / ideal"));
    let mut out = table(&header, rows);
    let mut facts = vec![("method", method), ("imbalance", format!("{:.4}", plan.metrics.imbalance))];
    if plan.order.is_some() {
        let names = plan.ranks_in_order().into_iter().map(|rank| &plan.processors[rank][..]);
        facts.push(("order", names.collect::<Vec<_>>().join(", ")));
    }
    if let Some(block) = plan.layout().ok().and_then(|l| l.block()) {
        let Shape { m, n, .. } = block.shape();
        facts.push(("repeated block", format!("{m} x {n}")));
    }
    let m = &plan.metrics;
    if let (Some(cost), Some(bound), Some(volume)) = (m.sum_half_perimeters, m.lower_bound, m.volume) {
        let ratio = cost / bound;
        facts.push((
            "half-perimeters",
            format!("{cost:.4} (lower bound {bound:.4}, cost / bound {ratio:.4})"),
        ));
        let boxes = plan.layout().is_ok_and(|layout| layout.boxes().is_some());
        let bound = m.volume_bound.filter(|_| boxes).map_or_else(String::new, |bound| {
            format!(" (lower bound {})", units::show_count(u128::from(bound)))
        });
        facts.push(("volume", format!("{} elements{bound}", units::show_count(u128::from(volume)))));
        if let Some(relayed) = relayed(plan, network).filter(|&relayed| relayed > 0) {
            facts.push(("relayed", format!("{} elements", units::show_count(u128::from(relayed)))));
        }
    }
    if let Division::Graph { edges, borders, .. } = &plan.division {
        let count = |n: u64| units::show_count(u128::from(n));
        let cut = m.edge_cut.map(|cut| format!("{} of {}", count(cut), count(*edges)));
        facts.extend(cut.map(|cut| ("edges cut", cut)));
        let seconds = |border: &Border| {
            let link = network.link(border.from, border.to);
            link.latency + (border.vertices * VALUE) as f64 / link.vertical
        };
        // Messages may travel at once, but none faster than its link.
        let longest = borders.iter().map(seconds).fold(0.0, f64::max);
        let bound = match longest > 0.0 {
            true => format!(", the longest message takes {}", units::show_seconds(longest)),
            false => String::new(),
        };
        facts.push(("volume", format!("{} values a step{bound}", count(m.volume.unwrap_or(0)))));
    }
    if let Some(f) = forecast {
        facts.push(("forecast", units::show_seconds(f.seconds)));
    }
    facts.extend(gain_lines(plan, About::default()));
    facts.extend(certificate(plan).map(|line| ("certificate", line)));
    facts.extend(more);
    facts.extend(chosen.and_then(Ranking::line).map(|line| ("chosen", line)));
    facts.extend(chosen.and_then(Ranking::left_out_line).map(|line| ("left out", line)));
    facts.extend(chosen.and_then(Ranking::shares_line).map(|line| ("shares", line)));
    out.push('\n');
    out.push_str(&pairs(&facts));
    out.push_str(&rivals(candidates, chosen, network));
    out
}

/// The elements of a plan that the centre of a star passes on; `None` on other networks.
pub fn relayed(plan: &Plan, network: &Network) -> Option<u64> {
    let with_relayed = plan.layout().and_then(|layout| relayed_volume(layout, network)).ok().flatten()?;
    with_relayed.checked_sub(plan.metrics.volume?)
}

/// How near the forecast is to the time that no plan can beat by the speeds that the plan was made for.
pub fn certificate(plan: &Plan) -> Option<String> {
    let (bound, ratio) = (plan.metrics.time_bound?, plan.metrics.forecast_over_bound?);
    Some(match ratio {
        ratio if ratio < 1.0005 => "no plan could be faster".to_owned(),
        ratio if ratio < 2.0 => {
            let (percent, bound) = (100.0 * (ratio - 1.0), units::show_seconds(bound));
            format!("{percent:.1} % above the lower bound of {bound}, which no plan can beat")
        }
        ratio => {
            format!(
                "{ratio:.1} times the lower bound of {}, which no plan can beat",
                units::show_seconds(bound)
            )
        }
    })
}

/// Maximum number of candidates listed.
const MOST_RIVALS: usize = 12;

/// The methods compared, each with its best order of steps.
fn rivals(candidates: &[Choice], chosen: Option<&Ranking<'_>>, network: &Network) -> String {
    let mut seen = Vec::new();
    let best: Vec<&Choice> = candidates
        .iter()
        .filter(|c| {
            let new = !seen.contains(&&c.plan.method);
            seen.push(&c.plan.method);
            new
        })
        .collect();
    if best.len() < 2 {
        return String::new();
    }
    let decided = chosen.and_then(|chosen| Some((chosen, chosen.column()?)));
    let rows = best.iter().map(|c| {
        let relayed = c.plan.layout().and_then(|l| relayed_volume(l, network)).ok().flatten();
        let volume =
            relayed.or(c.plan.metrics.volume).map_or_else(String::new, |v| units::show_count(u128::from(v)));
        let mut row = vec![c.plan.method.clone(), volume];
        if let Some((chosen, _)) = decided {
            row.push(chosen.cell(c));
        }
        if let Some(f) = &c.plan.forecast {
            let flow = format!("{}{}", c.order.flow, if c.order.overlaps() { ", overlapped" } else { "" });
            row.extend([flow, units::show_seconds(f.seconds)]);
        }
        row
    });
    let star = matches!(network.topology, Topology::Star { .. });
    let volume = if star { "volume, relayed" } else { "volume" };
    let mut header = vec!["candidate", volume];
    header.extend(decided.map(|(_, heading)| heading));
    if best[0].plan.relative_times.is_none() {
        header.extend(["flow", "forecast"]);
    }
    let more = match best.len().saturating_sub(MOST_RIVALS) {
        0 => String::new(),
        more => format!("and {more} more\n"),
    };
    format!("\n{}{more}", table(&header, rows.take(MOST_RIVALS)))
}
