//! `apportion simulate --traces`: traces of MPI programs.

use crate::args::sharing::Rule;
use crate::output::forecast::Forecast;
use apportion::error::{Error, Result};
use apportion::platform::{Platform, Speed};
use apportion::simulate::{Deployment, Host, read_traces, simulate_actions};
use std::path::Path;

/// Replays traces, assigning ranks to the platform's processors in turn. A processor has as many cores as
/// its file gives, at least one.
pub fn of_traces(list: &Path, platform: Platform, rule: &Rule, explain: bool) -> Result<Forecast> {
    let Rule::Fluid(rules) = rule else { unreachable!("traces are replayed by the fluid model") };
    let scripts = read_traces(list)?;
    let hosts = platform
        .processors
        .iter()
        .map(|p| match p.speed {
            Some(Speed::Flops(speed)) if speed > 0.0 => {
                Ok(Host { speed, cores: p.cores.len().max(1) as u32 })
            }
            given => Err(Error::input(
                format!("processor \"{}\": speed", p.name),
                match given {
                    Some(speed) if speed.value() == 0.0 => "is 0, and a host of a trace must compute".into(),
                    Some(speed) => {
                        format!("{} has no unit of flop/s, in which traces count work", speed.value())
                    }
                    None => "is missing".into(),
                },
                "add a speed such as \"2.5 Gflop/s\" to the platform file",
            )),
        })
        .collect::<Result<Vec<_>>>()?;
    let placement: Vec<usize> = (0..scripts.len()).map(|rank| rank % hosts.len()).collect();
    let alone = scripts.len() <= hosts.len();
    let name = |(rank, &host): (usize, &usize)| {
        let host = &platform.processors[host].name;
        if alone { host.clone() } else { format!("{host}#{rank}") }
    };
    let names: Vec<String> = placement.iter().enumerate().map(name).collect();
    let on = Deployment { hosts: &hosts, placement: &placement, names: &names, network: &platform.network };
    let mut scripts: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    let simulated = simulate_actions(&mut scripts, on, rules, explain)?.into();
    Ok(Forecast {
        simulated,
        names,
        order: None,
        command: None,
        taken_apart: false,
        alone: false,
        plan: None,
        fitted: None,
    })
}
