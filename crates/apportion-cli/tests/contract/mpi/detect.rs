//! `detect` by several processes: one description for each host, and one platform of all.

use super::launch::{Mpi, said};
use crate::bench::Bench;
use apportion::platform::read_platform;
use apportion_testing::object;
use serde_json::Value;

#[test]
fn the_ranks_of_a_host_describe_it_once() {
    let bench = Bench::new();
    let alone = bench.json("detect --by core");
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let line = "detect --by core -o platform.toml --json";
        let Some(mut command) = mpi.command(&bench, 2, line) else { continue };
        let all = object(&command.output().unwrap());
        let hosts = all["hosts"].as_array().unwrap();
        assert_eq!(hosts.len(), 1, "{all}");
        let host = hosts[0]["name"].as_str().unwrap();
        for field in ["model", "memory", "instructions", "quota_cores", "kinds", "devices", "online_cores"] {
            assert_eq!(hosts[0][field], alone[field], "{field}");
        }
        let (processors, here) = (&all["processors"], alone["processors"].as_array().unwrap());
        assert_eq!(processors.as_array().unwrap().len(), here.len());
        for (i, core) in here.iter().enumerate() {
            assert_eq!(processors[i]["name"], format!("{host}-core{i}"));
            assert_eq!(processors[i]["host"], host);
            assert_eq!(processors[i]["cores"], core["cores"]);
            assert!(processors[i]["cluster"].as_str().unwrap().starts_with(host));
        }
        let platform = read_platform(&bench.path("platform.toml")).unwrap();
        assert_eq!(platform.name, host);
        assert!(platform.names().iter().all(|name| name.starts_with(&format!("{host}-core"))));
        // Text: a line for the host, then the processors.
        let output = mpi.command(&bench, 2, "detect --by machine").unwrap().output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(text.starts_with(&format!("{host}: ")), "{text} {:?}", said(&output));
        assert_eq!(text.lines().filter(|line| line.starts_with("processor")).count(), 1, "{text}");
        // What cannot be written is said once.
        let output = mpi.command(&bench, 2, "detect -o nowhere/p.toml").unwrap().output().unwrap();
        let lines = said(&output);
        assert!(output.status.code() == Some(2) && lines.len() == 1, "{lines:?}");
        assert!(lines[0].contains("nowhere/p.toml"), "{lines:?}");
    }
}

/// A recorded machine is described by every task, as by a process alone.
#[test]
fn a_recorded_machine_is_no_host_of_the_world() {
    let bench = Bench::new();
    let machine = apportion_testing::recorded_machine("rk3588");
    let line = format!("detect --root {} --json", machine.path().display());
    let Some(mut command) = Mpi::Open.command(&bench, 1, &line) else { return };
    let board: Value = object(&command.output().unwrap());
    assert_eq!((&board["model"], &board["hosts"]), (&"Radxa ROCK 5B".into(), &Value::Null));
}
