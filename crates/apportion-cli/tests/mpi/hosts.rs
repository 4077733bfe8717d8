//! Two hosts on one machine: two network namespaces, each with its own host name, joined by a link of 100
//! Mbit/s.

use super::launch::{Bench, Mpi};
use apportion_testing::{Need, binary, object as json, skip};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The two hosts; they are removed when the test ends.
struct Hosts {
    names: [String; 2],
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
    fn new() -> Result<Self, String> {
        let id = std::process::id() % 100_000;
        let hosts = Self { names: [format!("aph{id}a"), format!("aph{id}b")] };
        let [a, b] = &hosts.names;
        for name in [a, b] {
            run(&format!("ip netns add {name}"))?;
        }
        run(&format!("ip link add {a}v netns {a} type veth peer name {b}v netns {b}"))?;
        for (i, name) in [a, b].iter().enumerate() {
            let within = |line: &str| run(&format!("ip netns exec {name} {line}"));
            within(&format!("ip addr add 10.213.77.{}/24 dev {name}v", i + 1))?;
            within(&format!("ip link set {name}v up"))?;
            within("ip link set lo up")?;
            within(&format!("tc qdisc add dev {name}v root tbf rate 100mbit burst 128kb latency 400ms"))?;
        }
        run("unshare --uts true")?;
        Ok(hosts)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = run(&format!("ip netns del {name}"));
        }
    }
}

/// Half of A and of B cross the wire: 2 MB, which take a sixth of a second at 100 Mbit/s.
#[test]
fn a_run_across_two_hosts() {
    let Some(mpirun) = Mpi::Open.mpirun() else { return };
    let hosts = match Hosts::new() {
        Ok(hosts) => hosts,
        Err(why) => {
            skip(Need::Netns, why);
            return;
        }
    };
    let [a, b] = &hosts.names;
    let bench = Bench::new();
    // What mpirun calls instead of ssh: a host's name, then a command for it.
    let agent = bench.path("agent");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in 10.213.77.2) host={b} ;; *) host=$1 ;; esac\nshift\n\
         exec ip netns exec \"$host\" unshare --uts sh -c 'hostname \"$0\"; eval \"$*\"' \"$host\" \"$@\"\n"
    );
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(
        bench.path("two-hosts.toml"),
        "name = \"two-hosts\"\n[[processor]]\nname = \"a\"\nspeed = \"10 Gflop/s\"\n\
         [[processor]]\nname = \"b\"\nspeed = \"10 Gflop/s\"\n\
         [network]\nlatency = \"100 us\"\nbandwidth = \"95.6 Mbit/s\"\n",
    )
    .unwrap();
    bench.matrix("a.npy", "<f8", (500, 500), false);
    let product = "matmul a.npy a.npy --platform two-hosts.toml --method rows --flow bulk --json";
    let line = format!(
        "ip netns exec {a} unshare --uts sh -c 'hostname {a}; exec {mpirun} --allow-run-as-root --bind-to none \
         --mca plm_rsh_agent {} --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.213.77.0/24 \
         --mca oob_tcp_if_include 10.213.77.0/24 --host {a}:1,10.213.77.2:1 -n 2 {} {product} -o mpi.npy --engine mpi'",
        agent.display(),
        binary().display(),
    );
    let output = Command::new("timeout")
        .args(["60", "sh", "-c", &line])
        .current_dir(bench.path("."))
        .output()
        .unwrap();
    let report = json(&output);
    assert_eq!(report["volume"], 250_000, "each row strip lacks half of B");
    let (seconds, forecast) =
        (report["seconds"].as_f64().unwrap(), report["forecast_seconds"].as_f64().unwrap());
    // 125,000 elements of 8 bytes each way, at most 12.5 MB/s and what the wire's bucket of 128 kB lets
    // through at once.
    assert!(seconds > 0.06, "{seconds} s is faster than the wire");
    eprintln!("across two hosts: {seconds:.3} s, forecast {forecast:.3} s");
    assert!(bench.run(&format!("{product} -o threads.npy")).status.success());
    assert_eq!(
        std::fs::read(bench.path("mpi.npy")).unwrap(),
        std::fs::read(bench.path("threads.npy")).unwrap()
    );
}
