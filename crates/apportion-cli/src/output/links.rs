//! Measured links as text, JSON and a platform file.

use apportion::geometry::Rank;
use apportion::input::harmless;
use apportion::measure::MeasuredLink;
use apportion::model::Hockney;
use apportion::platform::{PairLink, Platform};
use apportion::units::show_bytes;
use apportion_report::table;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The platform with its links; their intervals are comments at the top.
pub fn file(platform: &Platform, links: &[MeasuredLink]) -> String {
    let measured =
        |l: &MeasuredLink| PairLink { from: l.from, to: l.to, both_ways: l.both_ways, link: l.link() };
    let found: Vec<_> = links.iter().filter(|link| !link.shared).map(measured).collect();
    let mut text = "# Links measured by apportion measure --network, with 95 % intervals:\n".to_owned();
    for link in links {
        let [name, latency, horizontal, vertical, _] = row(platform, link);
        let name = harmless(&name);
        // Writing to a string does not fail.
        let _ = writeln!(text, "# {name}: latency {latency}, horizontal {horizontal}, vertical {vertical}");
    }
    for line in bursts(platform, links) {
        let _ = writeln!(text, "# {}", harmless(&line));
    }
    let mut linked = platform.with_links(&found);
    for link in links.iter().filter(|link| link.shared) {
        let [from, to] = [link.from, link.to].map(|rank| platform.processors[rank.0].outermost_cluster());
        linked = linked.with_shared_link(from, to, link.link());
        if link.both_ways {
            linked = linked.with_shared_link(to, from, link.link());
        }
    }
    text + &linked.to_toml()
}

/// A line for each link and kind of message that has no single bandwidth.
fn bursts(platform: &Platform, links: &[MeasuredLink]) -> Vec<String> {
    let kinds = |link: &MeasuredLink| {
        let pair = pair(platform, link);
        [("horizontal", link.horizontal), ("vertical", link.vertical)].into_iter().filter_map(
            move |(kind, fit)| {
                let (smaller, bytes) = (fit.smaller?, fit.largest.bytes);
                let how = if smaller > fit.bandwidth { "faster (a burst)" } else { "slower" };
                Some(format!(
                    "{pair}, {kind}: no single bandwidth: {} sustain {}, smaller messages pass {how}",
                    show_bytes(bytes),
                    show(fit.bandwidth)
                ))
            },
        )
    };
    links.iter().flat_map(kinds).collect()
}

/// An end of a link: a processor, or the host whose processors share it.
fn end<'a>(platform: &'a Platform, link: &MeasuredLink, rank: Rank) -> &'a str {
    let processor = &platform.processors[rank.0];
    if link.shared { processor.outermost_cluster() } else { &processor.name }
}

fn pair(platform: &Platform, link: &MeasuredLink) -> String {
    let name = |rank: Rank| end(platform, link, rank);
    format!("{} {} {}", name(link.from), if link.both_ways { "-" } else { "->" }, name(link.to))
}

fn row(platform: &Platform, link: &MeasuredLink) -> [String; 5] {
    let latency = link.latency();
    let bandwidth = |fit: &Hockney| {
        let (low, high) = (fit.bandwidth_low, fit.bandwidth_high);
        format!("{} ({} to {})", show(fit.bandwidth), show(low), show(high))
    };
    [
        pair(platform, link),
        format!("{} +- {}", microseconds(latency.seconds), microseconds(latency.ci)),
        bandwidth(&link.horizontal),
        bandwidth(&link.vertical),
        (link.horizontal.messages + link.vertical.messages).to_string(),
    ]
}

/// Bytes per second, in the decimal units of network figures.
fn show(bandwidth: f64) -> String {
    let units = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    match units.iter().find(|(unit, _)| bandwidth >= *unit) {
        _ if bandwidth.is_infinite() => "inf".into(),
        Some((unit, name)) => format!("{:.2} {name}", bandwidth / unit),
        None => format!("{bandwidth:.2} B/s"),
    }
}

fn microseconds(seconds: f64) -> String {
    format!("{:.1} us", 1e6 * seconds)
}

/// The text for readers.
pub fn text(platform: &Platform, links: &[MeasuredLink]) -> String {
    let rows = links.iter().map(|link| row(platform, link).to_vec());
    let bursts: String = bursts(platform, links).iter().map(|line| format!("{line}\n")).collect();
    let pairs =
        table(&["pair", "latency", "horizontal (strided)", "vertical (contiguous)", "messages"], rows);
    let devices = &platform.network.devices;
    if devices.is_empty() {
        return pairs + &bursts;
    }
    let rows = devices.iter().map(|(rank, memory)| {
        let [up, down] = [memory.up, memory.down].map(show);
        let duplex = if memory.duplex { "yes" } else { "no" }.to_owned();
        vec![platform.processors[rank.0].name.clone(), microseconds(memory.latency), up, down, duplex]
    });
    let header = ["device", "latency", "to the device", "to its host", "both at once"];
    format!("{pairs}{bursts}\n{}", table(&header, rows))
}

/// The JSON for programs.
pub fn value(platform: &Platform, links: &[MeasuredLink]) -> Value {
    let name = |rank: Rank| &platform.processors[rank.0].name;
    let fit = |fit: &Hockney| {
        let (low, high) = (fit.bandwidth_low, fit.bandwidth_high);
        json!({"bandwidth": fit.bandwidth, "bandwidth_of_smaller_messages": fit.smaller,
               "low": low, "high": high.is_finite().then_some(high),
               "latency": fit.latency, "latency_ci": fit.latency_ci, "messages": fit.messages})
    };
    let links: Vec<Value> = links
        .iter()
        .map(|link| {
            let latency = link.latency();
            let between = [link.from, link.to].map(|rank| end(platform, link, rank));
            json!({"between": between, "directed": !link.both_ways, "shared": link.shared,
                   "latency": latency.seconds,
                   "latency_ci": latency.ci, "horizontal": fit(&link.horizontal), "vertical": fit(&link.vertical)})
        })
        .collect();
    let devices: Vec<Value> = platform
        .network
        .devices
        .iter()
        .map(|(rank, memory)| {
            json!({"device": name(*rank), "host": memory.host, "latency": memory.latency, "to": memory.up,
                   "from": memory.down, "duplex": memory.duplex})
        })
        .collect();
    let mut value = json!({"platform": platform.name, "links": links});
    if !devices.is_empty() {
        value["devices"] = devices.into();
    }
    value
}
