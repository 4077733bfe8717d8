//! Workcells under MPI: every process follows the same events as one core.

use super::launch::{Mpi, said};
use crate::bench::Bench;
use apportion_testing::object as json;

/// A cell of two machines and a robot, with random times.
const CELL: &str = include_str!("../../../../../examples/mdem/tacconi-lewis.toml");
const DEADLOCK: &str = include_str!("../../../../../examples/mdem/deadlock.toml");

fn same_events(mpi: Mpi, processes: std::ops::RangeInclusive<usize>) {
    let bench = Bench::new();
    bench.write("cell.toml", CELL.replace("duration = \"60 s\"", "duration = { uniform = [30, 90] }"));
    bench.write("deadlock.toml", DEADLOCK);
    let line = "mdem cell.toml --replications 3";
    let mut alone = json(&bench.run(&format!("{line} --json")));
    // Their commands differ.
    alone["provenance"].take();
    for processes in processes {
        bench.platform(processes, false);
        let under = format!(
            "{line} --engine mpi --platform platform.toml --flow ring -o events.csv --report run.json --json"
        );
        let Some(mut command) = mpi.command(&bench, processes, &under) else { return };
        let mut value = json(&command.output().unwrap());
        let run = value.as_object_mut().unwrap().remove("run").unwrap();
        value["provenance"].take();
        assert!(value == alone, "{mpi:?}, {processes} processes");
        assert_eq!((&run["engine"], &run["verified"]), (&"mpi".into(), &true.into()));
        assert_eq!(bench.value("run.json"), run);
        assert!(bench.text("events.csv").lines().count() > 50);
        // A deadlock is reported once, and nothing is written.
        let line = "mdem deadlock.toml --engine mpi --platform platform.toml -o none.csv";
        let output = mpi.command(&bench, processes, line).unwrap().output().unwrap();
        assert_eq!((output.status.code(), said(&output).len()), (Some(1), 1), "{output:?}");
        assert!(said(&output)[0].starts_with("apportion: deadlock at 68 s: job \"load\""));
        assert!(!bench.has("none.csv"));
    }
}

#[test]
fn the_same_events_under_open_mpi() {
    same_events(Mpi::Open, 1..=3);
}

#[test]
fn the_same_events_under_mpich() {
    same_events(Mpi::Mpich, 2..=2);
}
