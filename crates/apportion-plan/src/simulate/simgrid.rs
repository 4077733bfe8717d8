//! Export of a schedule to SimGrid's `smpirun -replay`: platform, hostfile and time-independent traces.

use super::CostModel;
use super::fluid::{Fabric, Fluid, Tcp};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::output::{OutputFile, write_whole};
use crate::platform::{Crossing, Load, Wire};
use crate::schedule::{Application, Step, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// Replaces an unlimited bandwidth, in bytes per second: SimGrid has none.
const UNLIMITED: f64 = 1e18;
/// Floating-point operations of one multiply-add.
const FLOPS: f64 = 2.0;

/// Writes `platform.xml`, `hostfile`, `traces.txt` and a `rank-N.txt` for each processor into a directory,
/// which is created if it is missing. Returns the command that replays them under the fluid rules that
/// SimGrid shares with [`Fluid::simgrid`]. Each wire becomes one link; relays become routes over two links.
/// If data along rows and along columns travel at different speeds, a message is exported with the number of
/// bytes that takes as long at the speed of rows. O(steps), streamed.
///
/// # Errors
/// A file that cannot be written, a tag that exceeds SimGrid's range, or corrections ([`Tcp`]) that SimGrid
/// does not have.
pub fn export_simgrid<A: Application>(
    schedule: &A,
    costs: CostModel<'_>,
    names: &[String],
    rules: &Fluid,
    directory: &Path,
) -> Result<String> {
    let model = model_of(&rules.tcp)?;
    std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
    let directory =
        std::path::absolute(directory).map_err(|e| Error::file(directory, "find the path of", e))?;
    let hosts = host_names(names);
    let placement: Vec<usize> = (0..hosts.len()).collect();
    let mut fabric = Fabric::new(costs.network, &placement, rules);
    let mut pairs = BTreeSet::new();
    let mut unlike = None;
    let mut list = String::new();
    for rank in 0..hosts.len() {
        let path = directory.join(format!("rank-{rank}.txt"));
        let mut amount = |from: Rank, to: Rank, load: Load| {
            pairs.insert((from.0, to.0));
            if rules.tcp.cross_traffic {
                // Acknowledgements take the way back, which SimGrid knows only if there is a route.
                pairs.insert((to.0, from.0));
            }
            let path = fabric.between(from.0, to.0);
            let (loaded, amount) = fabric.loaded(path, load);
            if loaded != path {
                unlike.get_or_insert((from, to));
            }
            amount
        };
        let mut file = OutputFile::create(&path)?;
        write_trace(schedule, Rank(rank), costs.element, &mut amount, &mut file)
            .map_err(|e| Error::file(&path, "write", e))?;
        if let Some((from, to)) = unlike {
            return Err(Error::input(
                "network",
                format!(
                    "messages from {} to {} take some of their links at another part of the speed than others, \
                     which SimGrid cannot express",
                    names[from.0], names[to.0]
                ),
                "give all links on the way one speed each, in both directions of the data",
            ));
        }
        file.commit()?;
        let _ = writeln!(list, "{}", path.display());
    }
    write_whole(directory.join("platform.xml"), platform(&hosts, costs, &pairs).as_bytes())?;
    write_whole(directory.join("hostfile"), format!("{}\n", hosts.join("\n")).as_bytes())?;
    write_whole(directory.join("traces.txt"), list.as_bytes())?;
    Ok(command(hosts.len(), rules, model, &directory))
}

/// SimGrid's options for the deviations from the ideal fluid.
fn model_of(tcp: &Tcp) -> Result<&'static str> {
    let known = [
        (
            Tcp::default(),
            "--cfg=network/model:CM02 --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:1e15",
        ),
        (Tcp::cm02(), "--cfg=network/model:CM02"),
        (Tcp::lv08(), "--cfg=network/model:LV08"),
        (Tcp::smpi(), "--cfg=network/model:SMPI"),
    ];
    known.iter().find(|(known, _)| known == tcp).map(|(_, options)| *options).ok_or_else(|| {
        let remedy = "use Tcp::default(), cm02(), lv08() or smpi()";
        Error::input("tcp", "SimGrid has no model with these corrections", remedy)
    })
}

/// The processors' own names if all of them are plain and distinct; otherwise p0, p1 and so on.
fn host_names(names: &[String]) -> Vec<String> {
    let plain = |n: &String| {
        n.starts_with(|c: char| c.is_ascii_alphabetic())
            && n.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    let different = names.iter().collect::<BTreeSet<_>>().len() == names.len();
    if different && names.iter().all(plain) {
        return names.to_vec();
    }
    (0..names.len()).map(|i| format!("p{i}")).collect()
}

/// Writes one processor's steps. A wait for earlier sends becomes one `wait` per send, since `waitall` would
/// also wait for receives.
fn write_trace<A: Application>(
    schedule: &A,
    rank: Rank,
    element: u64,
    amount: &mut impl FnMut(Rank, Rank, Load) -> f64,
    file: &mut impl Write,
) -> io::Result<()> {
    let me = rank.0;
    let mut sent = Vec::new();
    writeln!(file, "{me} init")?;
    for step in schedule.steps(rank) {
        match step {
            Step::Send(_) | Step::Broadcast(_) => {
                for m in step.sent() {
                    let bytes = amount(m.from, m.to, m.load(element));
                    writeln!(file, "{me} isend {} {} {bytes:.0}", m.to.0, tag(m.tag)?)?;
                    sent.push((m.to.0, m.tag));
                }
            }
            Step::PostReceive(m) => {
                let bytes = amount(m.from, m.to, m.load(element));
                writeln!(file, "{me} irecv {} {} {bytes:.0}", m.from.0, tag(m.tag)?)?;
            }
            Step::WaitReceive { from, tag } => writeln!(file, "{me} wait {} {me} {tag}", from.0)?,
            Step::WaitSends => {
                for (to, tag) in sent.drain(..) {
                    writeln!(file, "{me} wait {me} {to} {tag}")?;
                }
            }
            Step::Compute(work) => writeln!(file, "{me} compute {}", FLOPS * work.amount())?,
            Step::Free(_) => {}
        }
    }
    writeln!(file, "{me} finalize")
}

/// SimGrid's tags have C's type `int`.
fn tag(tag: u64) -> io::Result<u64> {
    if tag <= i32::MAX as u64 {
        return Ok(tag);
    }
    Err(io::Error::other(format!("tag {tag} is more than SimGrid can hold: use a larger `block`")))
}

/// Writes hosts, links, and the routes of the pairs that communicate.
fn platform(hosts: &[String], costs: CostModel<'_>, pairs: &BTreeSet<(usize, usize)>) -> String {
    let crossings = |&(from, to): &(usize, usize)| -> Vec<Crossing> {
        let route = costs.network.route(Rank(from), Rank(to));
        route.into_iter().flat_map(|hop| hop.crossings).collect()
    };
    // A wire has one latency if all messages that cross it agree; otherwise every route has its own.
    let mut wires: BTreeMap<Wire, (f64, Option<f64>)> = BTreeMap::new();
    for crossing in pairs.iter().flat_map(crossings) {
        let latency = crossing.link.latency;
        let known = wires.entry(crossing.wire).or_insert((crossing.capacity, Some(latency)));
        known.1 = known.1.filter(|l| *l == latency);
    }
    let mut out = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
         <platform version=\"4.1\">\n<zone id=\"platform\" routing=\"Full\">\n",
    );
    for (host, rate) in hosts.iter().zip(costs.rates) {
        let rate = if rate.is_finite() && *rate > 0.0 { *rate } else { 1.0 }; // has no work
        let _ = writeln!(out, "  <host id=\"{host}\" speed=\"{}f\"/>", FLOPS * rate);
    }
    let mut link = |id: &str, bandwidth: f64, latency: f64, policy: &str| {
        let bandwidth = bandwidth.min(UNLIMITED);
        let _ = writeln!(
            out,
            "  <link id=\"{id}\" bandwidth=\"{bandwidth}Bps\" latency=\"{latency}s\" sharing_policy=\"{policy}\"/>"
        );
    };
    for (wire, &(capacity, latency)) in wires.iter().filter(|(_, w)| w.0.is_finite()) {
        link(&link_name(*wire), capacity, latency.unwrap_or(0.0), "SHARED");
    }
    let mut delays: BTreeMap<u64, f64> = BTreeMap::new();
    let mut routes = String::new();
    for pair in pairs {
        let mut links = String::new();
        let mut delay = 0.0;
        for crossing in crossings(pair) {
            let (capacity, latency) = wires[&crossing.wire];
            if capacity.is_finite() {
                let _ = write!(links, "<link_ctn id=\"{}\"/>", link_name(crossing.wire));
            }
            if latency.is_none() || capacity.is_infinite() {
                delay += crossing.link.latency;
            }
        }
        if delay > 0.0 || links.is_empty() {
            delays.insert(delay.to_bits(), delay);
            let _ = write!(links, "<link_ctn id=\"delay-{delay}\"/>");
        }
        let (from, to) = (&hosts[pair.0], &hosts[pair.1]);
        let _ = writeln!(routes, "  <route src=\"{from}\" dst=\"{to}\" symmetrical=\"NO\">{links}</route>");
    }
    for delay in delays.values() {
        link(&format!("delay-{delay}"), UNLIMITED, *delay, "FATPIPE");
    }
    out + &routes + "</zone>\n</platform>\n"
}

fn link_name(wire: Wire) -> String {
    match wire {
        Wire::Pair(from, to) => format!("link-{}-{}", from.0, to.0),
        Wire::Bus => "bus".into(),
        Wire::Shared { number, backward } => {
            format!("shared-{number}{}", if backward { "-back" } else { "" })
        }
        Wire::Uplink { number, down } => format!("uplink-{number}{}", if down { "-down" } else { "" }),
    }
}

/// The command line, quoted for a shell. It requests full updates, since SimGrid's default, lazy updates,
/// gives different times for some programs.
fn command(processors: usize, rules: &Fluid, model: &str, directory: &Path) -> String {
    let folder = directory.display().to_string();
    let quoted = shlex::try_quote(&folder).map_or_else(|_| folder.clone(), |q| q.into_owned());
    // smpirun does not quote the names that it passes on: from inside the directory they are plain.
    let (start, place) = match quoted == folder {
        true => (String::new(), directory),
        false => (format!("cd {quoted} && "), Path::new("")),
    };
    let path = |name: &str| place.join(name).display().to_string();
    let mut command = format!(
        "{start}smpirun -np {processors} -platform {} -hostfile {} -replay {} {} --cfg=network/optim:Full \
         --cfg=smpi/host-speed:1Gf",
        path("platform.xml"),
        path("hostfile"),
        path("traces.txt"),
        model,
    );
    if rules.detached != Fluid::simgrid().detached {
        let _ = write!(command, " --cfg=smpi/send-is-detached-thresh:{}", rules.detached);
    }
    if rules.eager != 0 {
        let _ = write!(command, " --cfg=smpi/async-small-thresh:{}", rules.eager);
    }
    command + " --log=smpi_replay.thresh:verbose '--log=root.fmt:%.9r:%P:%m%n'"
}
