//! `measure` by several processes: each its own processor, one file.

use super::launch::{Mpi, said};
use crate::bench::Bench;

#[test]
fn every_process_measures_its_own_processor() {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (40, 40), false);
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let line = "measure --engine mpi --sizes 100,400 --block 8 --max-seconds 0.2 -o m.json --json";
        let Some(mut command) = mpi.command(&bench, 2, line) else { continue };
        let models = apportion_testing::object(&command.output().unwrap());
        assert_eq!(models, bench.value("m.json"));
        let of = |i: usize| {
            (&models["models"][i]["processor"], models["models"][i]["points"].as_array().unwrap().len())
        };
        assert_eq!(models["models"].as_array().unwrap().len(), 2);
        assert_eq!((of(0), of(1)), ((&"rank0".into(), 2), (&"rank1".into(), 2)));
        // A product on as many processes takes them.
        let product = "matmul a.npy a.npy -o c.npy --engine mpi --models m.json";
        let output = mpi.command(&bench, 2, product).unwrap().output().unwrap();
        assert!(output.status.success(), "{:?}", said(&output));
        // With the links, into a platform file for the next run.
        let linked = mpi.command(&bench, 2, &format!("{line} --links links.toml")).unwrap().output().unwrap();
        assert!(linked.status.success(), "{:?}", said(&linked));
        apportion_testing::holds(
            &bench.text("links.toml"),
            &["name = \"rank1\"", "latency = ", "bandwidth = "],
        );
        let product = format!("{product} --platform links.toml");
        let output = mpi.command(&bench, 2, &product).unwrap().output().unwrap();
        assert!(output.status.success(), "{:?}", said(&output));
        bench.write("m.json", models.to_string());
        // Known points are not measured again.
        let again = mpi.command(&bench, 2, &format!("{line} --resume")).unwrap().output().unwrap();
        assert_eq!(apportion_testing::object(&again), models);
    }
}

#[test]
fn processes_that_would_do_the_same_work_are_refused() {
    let bench = Bench::new();
    bench.platform(3, false);
    for (line, words) in [
        ("measure --sizes 100 -o m.json --engine threads", ["--engine threads", "2 processes"]),
        ("measure --engine mpi --platform platform.toml -o m.json", ["2 processes", "3 processors"]),
        ("measure --engine mpi --alone -o m.json", ["--alone", "together"]),
        ("mdem platform.toml --engine threads", ["--engine threads", "2 processes"]),
        ("partition --units 9 --speeds 1,1 -o m.json", ["2 processes", "without mpirun"]),
        ("balance --units 9 --processors 1 --command true{share}", ["2 processes", "1 processor"]),
    ] {
        let Some(mut command) = Mpi::Open.command(&bench, 2, line) else { return };
        let output = command.output().unwrap();
        let lines = said(&output);
        assert_eq!((output.status.code(), lines.len()), (Some(2), 1), "{lines:?}");
        assert!(words.iter().all(|word| lines[0].contains(word)), "{lines:?}");
        assert!(!bench.has("m.json"));
    }
}
