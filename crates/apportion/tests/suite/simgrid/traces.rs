//! Time-independent traces, recorded and written by hand: replayed here and by `smpirun -replay`.

use apportion::platform::{Network, Platform, Speed, parse_platform};
use apportion::random::Random;
use apportion::simulate::{Deployment, Fluid, Host, Tcp, read_traces, simulate_actions};
use apportion_testing::{Need, program, skip};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seeded programs of random actions, for two ranks or more: smpirun ends at `allgatherv` of one.
const PROGRAMS: u64 = 40;
/// The largest relative difference.
const BOUND: f64 = 1e-6;
const LATENCY: f64 = 1e-4;
const BANDWIDTH: f64 = 1.25e8;

/// Hosts of 1 to 2 Gflop/s, each pair with a link for each direction.
fn platform(ranks: usize) -> Platform {
    let mut text = String::new();
    for rank in 0..ranks {
        let speed = 1000 + 100 * (rank % 10);
        writeln!(text, "[[processor]]\nname = \"h{rank}\"\nspeed = \"{speed} Mflop/s\"").unwrap();
    }
    let mut platform = parse_platform(&text, "traces").unwrap();
    platform.network = Network::uniform(LATENCY, BANDWIDTH);
    platform
}

/// The same platform for SimGrid, with its host file, in `here`.
fn write_platform(here: &Path, ranks: usize) {
    let mut text = String::from(
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n\
         <platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n",
    );
    let mut hosts = String::new();
    for rank in 0..ranks {
        writeln!(text, "<host id=\"h{rank}\" speed=\"{}Mf\"/>", 1000 + 100 * (rank % 10)).unwrap();
        writeln!(hosts, "h{rank}").unwrap();
    }
    let pairs = || (0..ranks).flat_map(|a| (0..ranks).map(move |b| (a, b))).filter(|(a, b)| a != b);
    for (a, b) in pairs() {
        writeln!(text, "<link id=\"l{a}-{b}\" bandwidth=\"{BANDWIDTH}Bps\" latency=\"{LATENCY}s\"/>")
            .unwrap();
    }
    for (a, b) in pairs() {
        writeln!(
            text,
            "<route src=\"h{a}\" dst=\"h{b}\" symmetrical=\"NO\"><link_ctn id=\"l{a}-{b}\"/></route>"
        )
        .unwrap();
    }
    std::fs::write(here.join("platform.xml"), text + "</zone></platform>\n").unwrap();
    std::fs::write(here.join("hostfile"), hosts).unwrap();
}

/// The options of the network that [`Fluid::simgrid`] has without corrections.
const OPTIONS: &str = "--cfg=network/model:CM02 --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:1e15 \
     --cfg=network/optim:Full --cfg=smpi/host-speed:1Gf --cfg=maxmin/precision:1e-9";

/// Runs a shell command in `here` and returns what it prints.
fn shell(here: &Path, command: &str) -> String {
    let out = Command::new("sh").args(["-c", command]).current_dir(here).output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{command}\n{text}");
    text
}

/// Seconds by SimGrid.
fn theirs(here: &Path, ranks: usize, list: &str) -> f64 {
    let command = format!(
        "smpirun -np {ranks} -platform platform.xml -hostfile hostfile -replay {list} {OPTIONS} \
         --log=smpi_replay.thresh:verbose '--log=root.fmt:%.15r:%P:%m%n'"
    );
    let log = shell(here, &command);
    let time = log.lines().rev().find(|line| line.contains("Simulation time"));
    time.and_then(|line| line.split(':').next()).unwrap_or_else(|| panic!("{log}")).parse().unwrap()
}

/// Seconds here.
fn ours(here: &Path, ranks: usize, list: &str) -> f64 {
    let platform = platform(ranks);
    // The current directory is not that of the list: names in it become whole paths.
    let names = std::fs::read_to_string(here.join(list)).unwrap();
    let whole =
        names.lines().fold(String::new(), |text, name| text + here.join(name).to_str().unwrap() + "\n");
    std::fs::write(here.join("whole.txt"), whole).unwrap();
    let scripts = read_traces(&here.join("whole.txt")).unwrap();
    let host = |speed: Option<Speed>| Host { speed: speed.map(Speed::value).unwrap(), cores: 1 };
    let hosts: Vec<Host> = platform.processors.iter().map(|p| host(p.speed)).collect();
    let placement: Vec<usize> = (0..ranks).collect();
    let names = platform.names();
    let on = Deployment { hosts: &hosts, placement: &placement, names: &names, network: &platform.network };
    let mut scripts: Vec<_> = scripts.into_iter().map(Vec::into_iter).collect();
    let rules = Fluid { tcp: Tcp::default(), ..Fluid::simgrid() };
    let outcome = simulate_actions(&mut scripts, on, &rules, true).unwrap();
    outcome.history.unwrap().ends.into_iter().fold(0.0, f64::max)
}

fn installed(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|tool| program(&[tool]).is_none());
    if let Some(tool) = missing {
        skip(Need::Simgrid, format!("{tool} is not installed (Debian package libsimgrid-dev)"));
    }
    missing.is_none()
}

fn folder(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&here);
    std::fs::create_dir_all(&here).unwrap();
    here
}

/// A program that does all that can be replayed, with waits of its own between the calls.
#[test]
#[ignore = "slow"]
fn a_recorded_program_takes_as_long_as_smpirun_says() {
    if !installed(&["smpirun", "smpicc"]) {
        return;
    }
    let here = folder("simgrid-recorded");
    std::fs::write(here.join("program.c"), include_str!("program.c")).unwrap();
    shell(&here, "smpicc -trace-call-location program.c -o program");
    for ranks in [2, 3, 4, 7] {
        write_platform(&here, ranks);
        let list = format!("recorded-{ranks}");
        shell(
            &here,
            &format!(
                "smpirun -np {ranks} -platform platform.xml -hostfile hostfile -trace-ti -trace-file {list} \
                 {OPTIONS} --cfg=smpi/trace-call-location:yes ./program"
            ),
        );
        let (theirs, ours) = (theirs(&here, ranks, &list), ours(&here, ranks, &list));
        assert!((ours - theirs).abs() < BOUND * theirs, "{ranks} ranks: {ours} here, {theirs} there");
    }
}

/// The lines of each rank of a random program.
fn random_program(ranks: usize, dice: &mut Random) -> Vec<Vec<String>> {
    let default_double = dice.below(2) == 0;
    let mut lines = vec![vec![if default_double { "init 1" } else { "init" }.to_owned()]; ranks];
    for step in 0..25 {
        for (rank, lines) in lines.iter_mut().enumerate() {
            lines.push(format!("compute {}", 1 + dice.below(1_000_000 + rank)));
        }
        let root = dice.below(ranks);
        let digits = 1 + dice.below(6) as u32;
        let count = 1 + dice.below(10usize.pow(digits));
        let typed = dice.below(2) == 0;
        let datatype = |n: usize| if typed { format!(" {step}").repeat(n) } else { String::new() };
        let mut counts: Vec<usize> = (0..ranks).map(|_| dice.below(1 + count)).collect();
        if dice.below(2) == 0 {
            counts = vec![count; ranks];
        }
        let list = |counts: &[usize]| counts.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        let kind = dice.below(19);
        for (rank, lines) in lines.iter_mut().enumerate() {
            let (next, last) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
            let zeros = list(&vec![0; ranks]);
            let at_root = |text: &str| if rank == root { text.to_owned() } else { zeros.clone() };
            lines.extend(match kind {
                0 => vec![format!("bcast {count} {root}{}", datatype(1))],
                1 => vec![format!("reduce {count} 1e5 {root}{}", datatype(1))],
                2 => vec![format!("allreduce {count} 1e5{}", datatype(1))],
                // smpirun ends where Open MPI's table asks 3, 5, 6 or 7 ranks for its exchange by pairs.
                3 | 4 if ranks.is_power_of_two() => vec![format!("alltoall {count} {count}{}", datatype(2))],
                3 | 4 => vec![format!("alltoall {0} {0} 6 6", count.min(500_000))],
                5 => vec![format!("allgather {count} {count}{}", datatype(2))],
                6 => vec![format!("gather {count} {count} {root}{}", datatype(2))],
                7 => vec![format!("scatter {count} {count} {root}{}", datatype(2))],
                8 | 9 => vec![format!("reducescatter {} 1e5{}", list(&counts), datatype(1))],
                10 => vec!["barrier".to_owned()],
                11 => vec![format!("sendRecv {count} {next} {count} {last}{}", " 3 3")],
                12 => vec![format!("scan {count} 1e5{}", datatype(1))],
                13 => vec![format!("gatherv {} {} {root} 0 0", counts[rank], at_root(&list(&counts)))],
                14 => vec![format!("scatterv {} {} {root} 0 0", at_root(&list(&counts)), counts[rank])],
                15 => vec![format!("allgatherv {} {} 0 0", counts[rank], list(&counts))],
                16 => {
                    let mine = list(&vec![counts[rank]; ranks]);
                    let all: usize = counts.iter().sum();
                    vec![format!("alltoallv {} {mine} {all} {} 0 0", ranks * counts[rank], list(&counts))]
                }
                17 => vec![
                    format!("isend {next} {step} {count}{}", datatype(1)),
                    format!("irecv {last} {step} {count}{}", datatype(1)),
                    format!("sleep 1e-{}", 2 + rank),
                    format!("wait {rank} {next} {step}"),
                    format!("wait {last} {rank} {step}"),
                ],
                _ => vec![
                    format!("isend {next} {step} {count}{}", datatype(1)),
                    format!("irecv {last} {step} {count}{}", datatype(1)),
                    format!("location program.c {step}"),
                    "waitall 2".to_owned(),
                ],
            });
        }
    }
    lines.iter_mut().for_each(|lines| lines.push("finalize".into()));
    lines
}

#[test]
#[ignore = "slow"]
fn random_programs_take_as_long_as_smpirun_says() {
    if !installed(&["smpirun"]) {
        return;
    }
    let here = folder("simgrid-random");
    let mut wrong = Vec::new();
    for case in 0..PROGRAMS {
        let mut dice = Random::new(case);
        let ranks = 2 + dice.below(if case % 8 == 7 { 23 } else { 8 });
        write_platform(&here, ranks);
        let mut list = String::new();
        for (rank, lines) in random_program(ranks, &mut dice).iter().enumerate() {
            let text: String = lines.iter().map(|line| format!("{rank} {line}\n")).collect();
            std::fs::write(here.join(format!("{rank}.txt")), text).unwrap();
            writeln!(list, "{rank}.txt").unwrap();
        }
        std::fs::write(here.join("list"), list).unwrap();
        let (theirs, ours) = (theirs(&here, ranks, "list"), ours(&here, ranks, "list"));
        if (ours - theirs).abs() >= BOUND * theirs {
            wrong.push(format!("case {case}, {ranks} ranks: {ours} here, {theirs} there"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
