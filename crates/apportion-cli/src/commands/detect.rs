//! `apportion detect`.

use crate::args::{DetectArgs, EngineName};
use crate::console::Console;
use crate::output::detect::{Description, Descriptions};
use crate::output::devices::find_devices;
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::InputFiles;
use apportion::kernels::instruction_set;
use apportion::output::write_whole;
use apportion::platform::{Host, Platform, Processor, discover};
use apportion::run::{Hosts, MpiLaunch, World};

pub fn run(args: &DetectArgs, console: &Console) -> Result<()> {
    let launch = MpiLaunch::detect().filter(|launch| launch.is_of_several() && args.root.is_none());
    let Some(launch) = launch else { return describe_alone(args, console) };
    let joined = on_engine((EngineName::Mpi, None), &InputFiles::default(), console, |world, console| {
        describe_hosts(args, world, console)
    });
    match (joined, &args.output) {
        // Tasks that form no world describe their hosts one by one.
        (Err(Error::Input { .. }), None) => describe_alone(args, console),
        (Err(Error::Input { what, remedy, .. }), Some(path)) => {
            let (launcher, size) = (launch.launcher.name, launch.size);
            let what = format!("{launcher} started {size} processes, each of which would write it: {what}");
            Err(Error::input(path.display().to_string(), what, remedy))
        }
        (outcome, _) => outcome,
    }
}

/// Describes this machine, or a recorded one.
fn describe_alone(args: &DetectArgs, console: &Console) -> Result<()> {
    let description = match &args.root {
        None => describe_this_machine(None),
        Some(root) if !root.is_dir() => {
            let what = format!("{} is no directory", root.display());
            let remedy = "name the directory that holds the machine's proc and sys";
            return Err(Error::input("--root", what, remedy));
        }
        Some(root) => Description { host: Host::read(root), instructions: None, devices: Vec::new() },
    };
    let by = args.by.grouping();
    if let Some(path) = &args.output {
        write_whole(path, description.platform(by).to_toml().as_bytes())?;
    }
    console.result(|| description.to_value(by), || description.to_text(by));
    Ok(())
}

/// Describes the hosts of a world: the first rank of each describes its own, and rank 0 prints and writes all.
fn describe_hosts(args: &DetectArgs, world: &World, console: &Console) -> Result<()> {
    let hosts = world.hosts()?;
    let rank = world.rank();
    let mine = match hosts.first_ranks().contains(&rank) {
        true => {
            let name = hosts.names[hosts.of_rank[rank]].clone();
            serde_json::to_vec(&describe_this_machine(Some(name))).expect("a description has text for keys")
        }
        false => Vec::new(),
    };
    let texts = world.all_gather(&mine)?;
    let by = args.by.grouping();
    world.on_root(|| {
        let described = texts.iter().filter(|text| !text.is_empty());
        let described =
            described.map(|text| serde_json::from_slice(text).expect("a rank sends a description"));
        let all = Descriptions(described.collect());
        let platform = all.platform(by);
        if let Some(path) = &args.output {
            write_whole(path, platform.to_toml().as_bytes())?;
            if let Some(hint) = ranks_needed(&platform, &hosts) {
                console.note(hint);
            }
        }
        console.result(|| all.to_value(by), || all.to_text(by));
        Ok(())
    })?;
    Ok(())
}

/// How to start as many ranks on each host as it has processors, unless they are there.
fn ranks_needed(platform: &Platform, hosts: &Hosts) -> Option<String> {
    let of_host = |host: &String| {
        let is_here = |p: &&Processor| p.cluster.split('/').next() == Some(host.as_str());
        platform.processors.iter().filter(is_here).count()
    };
    let needed: Vec<usize> = hosts.names.iter().map(of_host).collect();
    let ranks = |host: usize| hosts.of_rank.iter().filter(|of| **of == host).count();
    if (0..needed.len()).all(|host| ranks(host) == needed[host]) {
        return None;
    }
    let slots = hosts.names.iter().zip(&needed).map(|(host, count)| format!("{host}:{count}"));
    let slots = slots.collect::<Vec<_>>().join(",");
    Some(format!(
        "to use all processors, start a rank for each: mpirun --host {slots} -n {} … (or detect --by machine)",
        platform.len()
    ))
}

fn describe_this_machine(name: Option<String>) -> Description {
    Description {
        host: Host { name, ..discover() },
        instructions: Some(instruction_set().to_string()),
        devices: find_devices().unwrap_or_default(),
    }
}
