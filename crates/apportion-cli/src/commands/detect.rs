//! `apportion detect`.

use crate::args::EngineName;
use crate::console::{Console, monitor};
use crate::output::detect::{Description, Descriptions};
use crate::output::devices::describe_devices;
use crate::prepare::world::on_engine;
use apportion::error::{Error, Result};
use apportion::job::{InputFiles, find_devices};
use apportion::kernels::instruction_set;
use apportion::output::write_whole;
use apportion::platform::{Grouping, Host, Platform, Processor, discover};
use apportion::run::{Hosts, MpiLaunch, World};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which cores are one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GroupingName {
    /// Each core.
    Core,
    /// The cores of a kind: all cores of a machine whose cores are alike.
    Kind,
    /// The cores of a NUMA node.
    Node,
    /// All cores.
    Machine,
}

impl GroupingName {
    pub fn grouping(self) -> Grouping {
        match self {
            Self::Core => Grouping::Core,
            Self::Kind => Grouping::Kind,
            Self::Node => Grouping::Node,
            Self::Machine => Grouping::Machine,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  apportion detect\n  apportion detect --by core -o platform.toml")]
pub struct DetectArgs {
    /// Which cores are one processor; several are a pool, which works as one.
    #[arg(
        long,
        value_enum,
        default_value = "kind",
        value_name = "GROUP",
        help_heading = "Processors and speeds"
    )]
    pub by: GroupingName,
    /// Describe the machine whose files of /proc and /sys were recorded in this directory, in DIR/proc and
    /// DIR/sys.
    #[arg(long, value_name = "DIR", help_heading = "Processors and speeds")]
    pub root: Option<PathBuf>,
    /// Write the platform to this file (platform.toml).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

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
        None => describe_this_machine(None, console)?,
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
            let described = describe_this_machine(Some(hosts.names[hosts.of_rank[rank]].clone()), console);
            described.map(|one| serde_json::to_vec(&one).expect("a description has text for keys"))
        }
        false => Ok(Vec::new()),
    };
    let texts = world.all_gather(&world.all_ok(mine)?)?;
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
        let is_here = |p: &&Processor| p.outermost_cluster() == host;
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

/// Describes this machine, with a note about each driver that lists no devices.
fn describe_this_machine(name: Option<String>, console: &Console) -> Result<Description> {
    let found = find_devices(false, monitor())?;
    for fault in found.faults {
        console.note(format!("apportion: {fault}: its devices are not listed"));
    }
    Ok(Description {
        host: Host { name, ..discover() },
        instructions: Some(instruction_set().to_string()),
        devices: describe_devices(found.devices.unwrap_or_default()),
    })
}
