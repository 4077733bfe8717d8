//! `apportion measure --network`.

use super::measure::{Arguments, options, processors};
use crate::console::{Console, monitor};
use crate::output::{appear, open};
use crate::prepare::product::EngineName;
use crate::prepare::world::{fits, in_world, processes};
use apportion::error::{Error, Result};
use apportion::measure::{
    LinkOptions, MeasureOptions, MeasuredLink, measure_links, measure_links_mpi, threads_probe,
};
use apportion::model::Hockney;
use apportion::platform::Platform;
use apportion::report::table;
use apportion::run::World;
use serde_json::{Value, json};
use std::fmt::Write as _;

pub fn run(args: &Arguments, console: &Console) -> Result<()> {
    if args.engine == EngineName::Mpi {
        return in_world(console, |world, console| on_rank(args, world, console));
    }
    let options = link_options(args)?;
    let platform = several(processors(args.platform.as_deref(), args.processors)?)?;
    let monitor = monitor();
    let output = open(args.output.as_ref())?;
    let links = console.watch("measuring", monitor, || {
        measure_links(&platform, &options, &mut threads_probe(&platform, monitor), monitor)
    })?;
    appear([(output, &|| file(&platform, &links))])?;
    console.result(|| value(&platform, &links), || text(&platform, &links));
    Ok(())
}

/// A process's part of it: rank 0 measures, the others answer.
fn on_rank(args: &Arguments, world: &World, console: &Console) -> Result<()> {
    let (monitor, first) = (monitor(), world.rank() == 0);
    let here = processes(world)?;
    let read = || {
        let given = args.platform.is_some() || args.processors.is_some();
        let platform = if given { processors(args.platform.as_deref(), args.processors)? } else { here };
        if platform.network.emulate {
            let what = "an emulated network has no messages between processes";
            return Err(Error::input("network.emulate", what, "use --engine threads, or remove emulate"));
        }
        fits(world, platform.len())?;
        Ok((several(platform)?, link_options(args)?))
    };
    let (platform, options) = world.agree(read())?;
    let output = world.agree(if first { open(args.output.as_ref()) } else { Ok(None) })?;
    let links =
        console.watch("measuring", monitor, || measure_links_mpi(&platform, &options, world, monitor))?;
    world.agree(appear([(output, &|| file(&platform, &links))]))?;
    if first {
        console.result(|| value(&platform, &links), || text(&platform, &links));
    }
    Ok(())
}

fn several(platform: Platform) -> Result<Platform> {
    if platform.len() >= 2 {
        return Ok(platform);
    }
    Err(Error::input("platform", "one processor sends no messages", "name at least two processors"))
}

fn link_options(args: &Arguments) -> Result<LinkOptions> {
    let usual = LinkOptions::default();
    let otherwise = MeasureOptions {
        most_repetitions: usual.most_repetitions as u64,
        seconds_per_size: usual.seconds_per_size,
        ..MeasureOptions::default()
    };
    let given = options(args, otherwise)?;
    let sizes = match &args.sizes {
        None => usual.sizes,
        Some(sizes) => sizes.iter().map(|&size| bytes(size)).collect::<Result<_>>()?,
    };
    Ok(LinkOptions {
        sizes,
        tolerance: given.tolerance,
        most_repetitions: given.most_repetitions as usize,
        seconds_per_size: given.seconds_per_size,
    })
}

fn bytes(size: f64) -> Result<u64> {
    let whole = size >= 1.0 && size <= f64::from(1 << 30) && size.fract() == 0.0;
    whole.then_some(size as u64).ok_or_else(|| {
        let what = format!("{size} is not a whole number of bytes from 1 to 2^30");
        Error::input("--sizes", what, "give some such as 1,4096,65536,1048576")
    })
}

/// The platform with its links; the intervals stand in front as comments.
fn file(platform: &Platform, links: &[MeasuredLink]) -> String {
    let found: Vec<_> = links.iter().map(|l| (l.from, l.to, l.both_ways, l.link())).collect();
    let mut text = "# Links measured by apportion measure --network, with 95 % intervals:\n".to_owned();
    for link in links {
        let [name, latency, horizontal, vertical, _] = row(platform, link);
        let name = name.replace(char::is_control, " ");
        // Writing to a string does not fail.
        let _ = writeln!(text, "# {name}: latency {latency}, horizontal {horizontal}, vertical {vertical}");
    }
    text + &platform.with_links(&found).to_toml()
}

fn row(platform: &Platform, link: &MeasuredLink) -> [String; 5] {
    let name = |rank: apportion::geometry::Rank| &platform.processors[rank.0].name;
    let arrow = if link.both_ways { "-" } else { "->" };
    let (latency, ci) = link.latency();
    let bandwidth = |fit: &Hockney| {
        let (low, high) = fit.bandwidth_interval;
        format!("{} ({} to {})", show(fit.bandwidth), show(low), show(high))
    };
    [
        format!("{} {arrow} {}", name(link.from), name(link.to)),
        format!("{} +- {}", microseconds(latency), microseconds(ci)),
        bandwidth(&link.horizontal),
        bandwidth(&link.vertical),
        (link.horizontal.kept + link.vertical.kept).to_string(),
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

fn text(platform: &Platform, links: &[MeasuredLink]) -> String {
    let rows = links.iter().map(|link| row(platform, link).to_vec());
    table(&["pair", "latency", "horizontal (strided)", "vertical (contiguous)", "messages"], rows)
}

fn value(platform: &Platform, links: &[MeasuredLink]) -> Value {
    let name = |rank: apportion::geometry::Rank| &platform.processors[rank.0].name;
    let fit = |fit: &Hockney| {
        let (low, high) = fit.bandwidth_interval;
        json!({"bandwidth": fit.bandwidth, "low": low, "high": high.is_finite().then_some(high),
               "latency": fit.latency, "latency_ci": fit.latency_ci, "messages": fit.kept})
    };
    let links: Vec<Value> = links
        .iter()
        .map(|link| {
            let (latency, ci) = link.latency();
            json!({"between": [name(link.from), name(link.to)], "directed": !link.both_ways, "latency": latency,
                   "latency_ci": ci, "horizontal": fit(&link.horizontal), "vertical": fit(&link.vertical)})
        })
        .collect();
    json!({"platform": platform.name, "links": links})
}
