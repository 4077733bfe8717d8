//! Distributed matrices under MPI: each rank reads and writes the files of its own part.

use super::launch::{Mpi, said};
use crate::bench::Bench;
use apportion_testing::object;

/// Operands of which each rank has a file, and a result in as many: the same bytes as on threads, which write
/// the same files.
#[test]
fn files_of_ranks_are_read_and_written_as_they_are() {
    let bench = Bench::new();
    bench.platform(3, false);
    bench.numbers("a.npy", "<f8", (37, 31), false);
    bench.numbers("b.npy", "<f8", (31, 29), true);
    let threads = "matmul a.npy b.npy --platform platform.toml --method rows --block 8";
    object(&bench.run(&format!("{threads} -o c.npy --json")));
    object(&bench.run(&format!("{threads} -o threads.json --json")));
    // A and B as three ranks left them: powers of 1 by the plan of three processors.
    for (name, size) in [("a", "37x31"), ("b", "31x29")] {
        let plan = format!("partition --shape {size} --speeds 3,2,1 --method rows -o {name}-plan.json");
        assert!(bench.run(&plan).status.success());
        let cuts: Vec<u64> = bench.value(&format!("{name}-plan.json"))["layout"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["rows"][1].as_u64().unwrap())
            .collect();
        let cols: u64 = size.split('x').nth(1).unwrap().parse().unwrap();
        let block = |(i, end): (usize, &u64)| {
            let first = if i == 0 { 0 } else { cuts[i - 1] };
            format!(
                "{{\"rows\": [{first}, {end}], \"cols\": [0, {cols}], \"file\": \"{name}.npy\", \"at\": [{first}, 0]}}"
            )
        };
        let blocks: Vec<String> = cuts.iter().enumerate().map(block).collect();
        let rows = cuts.last().unwrap();
        bench.write(
            &format!("{name}.json"),
            format!(
                "{{\"format\": \"apportion-blocks\", \"version\": 1, \"shape\": [{rows}, {cols}], \"blocks\": [{}]}}",
                blocks.join(", ")
            ),
        );
    }
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let line =
            "matmul a.json b.json --platform platform.toml --method rows --block 8 --engine mpi --json";
        let Some(mut command) = mpi.command(&bench, 3, &format!("{line} -o mpi.npy")) else { continue };
        assert_eq!(object(&command.output().unwrap())["verified"], true);
        let read = |name: &str| bench.bytes(name);
        assert!(read("mpi.npy") == read("c.npy"), "{mpi:?}");
        object(&mpi.command(&bench, 3, &format!("{line} -o ranks.json")).unwrap().output().unwrap());
        for rank in 0..3 {
            assert!(
                read(&format!("ranks-{rank}.npy")) == read(&format!("threads-{rank}.npy")),
                "{mpi:?} {rank}"
            );
        }
        assert_eq!(bench.text("ranks.json"), bench.text("threads.json").replace("threads-", "ranks-"));
    }
}

#[test]
fn a_bad_layout_file_is_refused_once() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.numbers("a.npy", "<f8", (8, 8), false);
    bench.write(
        "hole.json",
        r#"{"format": "apportion-blocks", "version": 1, "shape": [9, 8],
            "blocks": [{"rows": [0, 8], "cols": [0, 8], "file": "a.npy"}]}"#,
    );
    let line = "matmul hole.json a.npy --platform platform.toml --engine mpi -o c.npy";
    let Some(mut command) = Mpi::Open.command(&bench, 2, line) else { return };
    let output = command.output().unwrap();
    let lines = said(&output);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("hole.json: blocks: cover 64 of 72 elements"), "{lines:?}");
    assert!(!bench.has("c.npy"));
}
