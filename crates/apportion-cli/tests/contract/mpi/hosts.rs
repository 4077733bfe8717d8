//! Two hosts on one machine: two network namespaces, each with its own host name, joined by a link of 100
//! Mbit/s, with a burst or without.

use super::launch::{Mpi, said};
use crate::bench::Bench;
use apportion_testing::{Need, binary, object as json, skip};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bucket of 64 KiB, which passes at once.
const SMALL_BURST: &[&str] = &["root tbf rate 100mbit burst 64kb latency 50ms"];
/// A bucket of 256 KiB.
const LARGE_BURST: &[&str] = &["root tbf rate 100mbit burst 256kb latency 50ms"];
/// Hardly any burst.
const NO_BURST: &[&str] =
    &["root handle 1: htb default 1", "parent 1: classid 1:1 htb rate 100mbit quantum 20000"];

/// The bytes per second of such links: 95.6 Mbit/s of payload and a tenth more at most; less where the
/// machine is busy or the program not optimised, so that packing takes longer than sending.
const SUSTAINED: std::ops::Range<f64> = 6e6..13.2e6;

/// What keeps Open MPI to the link between the hosts.
const MCA: &str = "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.213.77.0/24 \
    --mca oob_tcp_if_include 10.213.77.0/24";

/// One pair of hosts at a time: they would slow each other down.
static ALONE: Mutex<()> = Mutex::new(());

/// The two hosts; they are removed when the test ends.
pub struct Hosts {
    names: [String; 2],
    mpirun: &'static str,
    pub bench: Bench,
    _alone: MutexGuard<'static, ()>,
}

/// Runs a command line; its last words if it fails.
fn run(line: &str) -> Result<(), String> {
    let mut words = line.split(' ');
    let output =
        Command::new(words.next().unwrap()).args(words).output().map_err(|e| format!("{line}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{line}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Hosts {
    /// Two hosts whose link is shaped by these arguments of tc, in both directions; `None` if that cannot be
    /// done here, with a visible skip.
    pub fn joined_by(shaping: &[&str]) -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let mpirun = Mpi::Open.mpirun()?;
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let id = std::process::id() % 100_000 * 10 + NUMBER.fetch_add(1, Ordering::Relaxed) % 10;
        let names = [format!("aph{id}a"), format!("aph{id}b")];
        let hosts = Self { names, mpirun, bench: Bench::with_empty_cache(), _alone: alone };
        match hosts.set_up(shaping) {
            Ok(()) => Some(hosts),
            Err(why) => {
                skip(Need::Netns, why);
                None
            }
        }
    }

    fn set_up(&self, shaping: &[&str]) -> Result<(), String> {
        let [a, b] = &self.names;
        for name in [a, b] {
            run(&format!("ip netns add {name}"))?;
        }
        run(&format!("ip link add {a}v netns {a} type veth peer name {b}v netns {b}"))?;
        for (i, name) in [a, b].iter().enumerate() {
            let within = |line: &str| run(&format!("ip netns exec {name} {line}"));
            within(&format!("ip addr add 10.213.77.{}/24 dev {name}v", i + 1))?;
            within(&format!("ip link set {name}v up"))?;
            within("ip link set lo up")?;
            for (kind, arguments) in ["qdisc", "class"].iter().zip(shaping) {
                within(&format!("tc {kind} add dev {name}v {arguments}"))?;
            }
        }
        run("unshare --uts true")?;
        // What mpirun calls instead of ssh: a host's name, then a command for it. The namespaces are those of alpha and
        // beta, too. /sys stays as it is, so that the control group is seen.
        let script = format!(
            "#!/bin/sh\nhost=$1; shift\ncase $host in alpha) netns={a} ;; beta) netns={b} ;; 10.213.77.2) netns={b}; \
             host={b} ;; *) netns=$host ;; esac\n[ $netns != {b} ] || [ ! -e \"$0-group\" ] || \
             echo $$ >\"$(cat \"$0-group\")\"\n\
             exec nsenter --net=/var/run/netns/$netns unshare --uts sh -c 'hostname \"$0\"; eval \"$*\"' \"$host\" \"$@\"\n"
        );
        std::fs::write(self.agent(), script).unwrap();
        std::fs::set_permissions(self.agent(), std::fs::Permissions::from_mode(0o755)).unwrap();
        run(&format!("{} {a} true", self.agent().display()))
    }

    /// Starts a command on a host.
    pub fn agent(&self) -> PathBuf {
        self.bench.path("agent")
    }

    /// Holds all that is started on the second host to so many CPU seconds per second.
    pub fn limit_second(&self, quota: f64) -> Result<(), String> {
        let period = 20_000;
        let quota = (quota * f64::from(period)) as u32;
        let attempt = |group: PathBuf, members: &str, limits: &[(&str, String)]| {
            std::fs::create_dir(&group).map_err(|e| format!("{}: {e}", group.display()))?;
            for (file, value) in limits {
                std::fs::write(group.join(file), value)
                    .map_err(|e| format!("{}/{file}: {e}", group.display()))?;
            }
            std::fs::write(self.bench.path("agent-group"), group.join(members).display().to_string())
                .unwrap();
            Ok(())
        };
        let [first, second] = self.groups();
        let limits = [("cpu.cfs_period_us", period.to_string()), ("cpu.cfs_quota_us", quota.to_string())];
        attempt(first, "tasks", &limits)
            .or_else(|_: String| attempt(second, "cgroup.procs", &[("cpu.max", format!("{quota} {period}"))]))
    }

    /// The second host's control group, of either version.
    fn groups(&self) -> [PathBuf; 2] {
        ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(|root| PathBuf::from(root).join(&self.names[1]))
    }

    /// A script that is the `mpirun` of alpha, which knows beta. It may itself be called `mpirun`.
    pub fn mpirun_script(&self) -> String {
        let path = std::env::var_os("PATH").unwrap();
        let places = std::env::split_paths(&path).map(|folder| folder.join(self.mpirun));
        let mpirun = places.into_iter().find(|place| place.exists()).unwrap();
        format!(
            "#!/bin/sh\nexec nsenter --net=/var/run/netns/{} unshare --uts sh -c 'hostname alpha; exec {} \
             --allow-run-as-root --mca plm_rsh_agent {} {MCA} \"$@\"' mpirun \"$@\"\n",
            self.names[0],
            mpirun.display(),
            self.agent().display(),
        )
    }

    /// `apportion` with these arguments, `--engine mpi` and a rank on each host.
    fn apportion(&self, arguments: &str) -> Output {
        self.plain(&format!("{arguments} --engine mpi"))
    }

    /// The same without `--engine mpi`.
    fn plain(&self, arguments: &str) -> Output {
        self.with_ranks(1, arguments)
    }

    /// The same with so many ranks on each host.
    fn with_ranks(&self, ranks: usize, arguments: &str) -> Output {
        let ([a, _], mpirun) = (&self.names, self.mpirun);
        let line = format!(
            "ip netns exec {a} unshare --uts sh -c 'hostname {a}; exec {mpirun} --allow-run-as-root --bind-to none \
             --mca plm_rsh_agent {} {MCA} --host {a}:{ranks},10.213.77.2:{ranks} -n {} {} {arguments}'",
            self.agent().display(),
            2 * ranks,
            binary().display(),
        );
        Command::new("timeout")
            .args(["100", "sh", "-c", &line])
            .current_dir(self.bench.path("."))
            .env("XDG_CACHE_HOME", self.bench.cache())
            .output()
            .unwrap()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = run(&format!("ip netns del {name}"));
        }
        for group in self.groups() {
            let _ = std::fs::remove_dir(group);
        }
    }
}

/// Half of A and of B cross the wire: 2 MB, which take a sixth of a second at 100 Mbit/s.
#[test]
fn a_run_across_two_hosts() {
    let Some(hosts) = Hosts::joined_by(&["root tbf rate 100mbit burst 128kb latency 400ms"]) else { return };
    let bench = &hosts.bench;
    std::fs::write(
        bench.path("two-hosts.toml"),
        "name = \"two-hosts\"\n[[processor]]\nname = \"a\"\nspeed = \"10 Gflop/s\"\n\
         [[processor]]\nname = \"b\"\nspeed = \"10 Gflop/s\"\n\
         [network]\nlatency = \"100 us\"\nbandwidth = \"95.6 Mbit/s\"\n",
    )
    .unwrap();
    bench.numbers("a.npy", "<f8", (500, 500), false);
    let product = "matmul a.npy a.npy --platform two-hosts.toml --method rows --flow bulk --json";
    let output = hosts.apportion(&format!("{product} -o mpi.npy"));
    let report = json(&output);
    assert_eq!(report["volume"], 250_000, "each row strip lacks half of B");
    assert_eq!(report["network"], Value::Null, "the platform file says what the network costs");
    let (seconds, forecast) =
        (report["seconds"].as_f64().unwrap(), report["forecast_seconds"].as_f64().unwrap());
    // 125,000 elements of 8 bytes each way, at most 12.5 MB/s and what the wire's bucket of 128 kB lets
    // through at once.
    assert!(seconds > 0.06, "{seconds} s is faster than the wire");
    eprintln!("across two hosts: {seconds:.3} s, forecast {forecast:.3} s");
    assert!(bench.run(&format!("{product} -o threads.npy")).status.success());
    assert_eq!(bench.bytes("mpi.npy"), bench.bytes("threads.npy"));
}

/// Whatever burst a link passes, `measure --network` finds what it sustains, with an interval that says so.
#[test]
#[ignore = "slow"]
fn shaped_links_are_measured_at_what_they_sustain() {
    for shaping in [SMALL_BURST, LARGE_BURST, NO_BURST] {
        let Some(hosts) = Hosts::joined_by(shaping) else { return };
        let platform = "[[processor]]\nname = \"alpha\"\n[[processor]]\nname = \"beta\"\n";
        std::fs::write(hosts.bench.path("two.toml"), platform).unwrap();
        let measured = json(&hosts.apportion("measure --network --platform two.toml --json -o net.toml"));
        let links = measured["links"].as_array().unwrap();
        for fit in links.iter().flat_map(|link| [&link["horizontal"], &link["vertical"]]) {
            let number = |field: &str| fit[field].as_f64().unwrap();
            assert!(SUSTAINED.contains(&number("bandwidth")), "{shaping:?}: {fit}");
            assert!(number("low") < SUSTAINED.end && number("high") > SUSTAINED.start, "{shaping:?}: {fit}");
        }
        for link in links {
            assert!(link["latency"].as_f64().unwrap() < 5e-3, "{shaping:?}: {link}");
        }
    }
}

/// Where nothing says what the network costs, it is measured, said, used and remembered, by every command
/// that plans.
#[test]
fn an_unknown_network_between_hosts_is_measured() {
    let Some(hosts) = Hosts::joined_by(LARGE_BURST) else { return };
    let bench = &hosts.bench;
    bench.numbers("a.npy", "<f8", (200, 200), false);
    bench.numbers("g.npy", "|b1", (200, 200), false);
    // So fast that hardly a message is worth its time.
    let processor = |name: &str| format!("[[processor]]\nname = \"{name}\"\nspeed = \"40 Gflop/s\"\n");
    bench.write("two.toml", processor("alpha") + &processor("beta"));
    let check = |arguments: &str, source: &str| {
        let output = hosts.apportion(&format!("{arguments} --platform two.toml --json"));
        let report = json(&output);
        assert_eq!(report["network"]["source"], source, "{arguments}: {report}");
        let links = report["network"]["links"].as_array().unwrap();
        assert_eq!(links.len(), 2, "{links:?}");
        for link in links {
            let bandwidth = link["bandwidth"].as_f64().unwrap();
            assert!(SUSTAINED.contains(&bandwidth), "{arguments}: {links:?}");
        }
        let notes = said(&output);
        let note = format!("apportion: network between hosts, {source}: ");
        assert!(notes.iter().any(|line| line.starts_with(&note)), "{arguments}: {notes:?}");
        report
    };
    let report = check("matmul a.npy a.npy", "measured");
    // A hundredth of what equal shares move.
    assert!(report["volume"].as_u64() <= Some(400), "one host is about as fast alone: {report}");
    let rows = check("matmul a.npy a.npy --method rows", "remembered");
    // Each direction carries half of the elements that travel.
    let (volume, forecast) = (rows["volume"].as_f64().unwrap(), rows["forecast_seconds"].as_f64().unwrap());
    assert!(volume > 0.0 && forecast >= 4.0 * volume / SUSTAINED.end, "forecast {forecast} for {volume}");
    check("matmul a.npy a.npy", "remembered");
    check("matmul a.npy a.npy --remeasure", "measured");
    check("power a.npy --exponent 2", "remembered");
    check("closure g.npy --semiring or-and", "remembered");
    check("advect --field a.npy --courant 0.1,0.1 --steps 2", "remembered");
}

/// The ranks of two hosts share the link between them, which is measured once; each host's have links of their own.
#[test]
fn ranks_of_two_hosts_share_their_link() {
    let Some(hosts) = Hosts::joined_by(NO_BURST) else { return };
    let [a, b] = &hosts.names;
    let measured = json(&hosts.with_ranks(2, "measure --network -o net.toml --json"));
    let links = measured["links"].as_array().unwrap();
    let between = |link: &Value| [0, 1].map(|i| link["between"][i].as_str().unwrap().to_owned());
    let shared: Vec<&Value> = links.iter().filter(|link| link["shared"] == true).collect();
    assert!(!shared.is_empty() && shared.len() <= 2, "one in each direction at most: {links:?}");
    for link in &shared {
        let mut ends = between(link);
        ends.sort();
        assert_eq!(ends, [a.clone(), b.clone()]);
    }
    let own = links.iter().filter(|link| link["shared"] == false).map(between);
    assert!(
        own.clone().count() >= 2 && own.clone().all(|[x, y]| x.starts_with(a) == y.starts_with(a)),
        "{links:?}"
    );
    let text = hosts.bench.text("net.toml");
    assert!(text.contains("shared = true\n") && text.contains(&format!("cluster = \"{b}\"")), "{text}");
    let platform = apportion::platform::read_platform(&hosts.bench.path("net.toml")).unwrap();
    assert_eq!(platform.len(), 4);
    let fast = |i: usize, j: usize| {
        platform.network.link(apportion::geometry::Rank(i), apportion::geometry::Rank(j)).vertical
    };
    assert!(fast(0, 1) > fast(0, 2) && fast(0, 2) == fast(1, 3), "{text}");
}

/// Each host is a cluster of one platform, with names of its own.
#[test]
fn all_hosts_are_described_together() {
    let Some(hosts) = Hosts::joined_by(NO_BURST) else { return };
    let [a, b] = &hosts.names;
    let all = json(&hosts.plain("detect --by core -o platform.toml --json"));
    let of = |field: &str, key: &str| -> Vec<String> {
        let entries = all[field].as_array().unwrap().iter();
        entries.map(|entry| entry[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("hosts", "name"), [a.clone(), b.clone()]);
    let cores = all["processors"].as_array().unwrap().len() / 2;
    let name = |i: usize| format!("{}-core{}", if i < cores { a } else { b }, i % cores);
    let names: Vec<String> = (0..2 * cores).map(name).collect();
    assert_eq!(of("processors", "name"), names);
    let platform = apportion::platform::read_platform(&hosts.bench.path("platform.toml")).unwrap();
    assert_eq!((platform.names(), platform.name), (names, format!("{a}, {b}")));
    for (i, processor) in platform.processors.iter().enumerate() {
        let host = if i < cores { a } else { b };
        assert!(
            processor.cluster == *host || processor.cluster.starts_with(&format!("{host}/")),
            "{processor:?}"
        );
    }
    // One processor a host: as many as ranks, which take it.
    hosts.plain("detect --by machine -o machines.toml");
    let platform = apportion::platform::read_platform(&hosts.bench.path("machines.toml")).unwrap();
    assert_eq!(platform.names(), [a.clone(), b.clone()]);
    hosts.bench.numbers("a.npy", "<f8", (200, 200), false);
    let product = json(
        &hosts.apportion("matmul a.npy a.npy --platform machines.toml --speeds 9Gflop/s,9Gflop/s --json"),
    );
    assert_eq!((&product["verified"], &product["processors"][1]["name"]), (&true.into(), &b.as_str().into()));
}
