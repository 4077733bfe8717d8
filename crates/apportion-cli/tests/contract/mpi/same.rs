//! MPI computes the same bytes as threads, and moves the same number of elements.

use super::launch::Mpi;
use super::lost::{field, ranks};
use crate::bench::Bench;
use apportion::matrix::npy_header;
use apportion_testing::object as json;
use rustix::process::Pid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Stdio;

/// Runs on threads and under an mpirun; the files must be the same. Returns the reports of both, if there is
/// an mpirun.
fn both(bench: &Bench, mpi: Mpi, processes: usize, arguments: &str) -> Option<(Value, Value)> {
    let under = format!("{arguments} -o mpi.npy --engine mpi --report run.json --json");
    let output = mpi.command(bench, processes, &under)?.output().unwrap();
    let mpi_report = json(&output);
    let file: Value = serde_json::from_slice(&bench.bytes("run.json")).unwrap();
    assert_eq!(file, mpi_report);
    let threads_report = json(&bench.run(&format!("{arguments} -o threads.npy --json")));
    let read = |name: &str| bench.bytes(name);
    assert!(read("mpi.npy") == read("threads.npy"), "{mpi:?} {processes} {arguments}");
    assert_eq!(mpi_report["engine"], "mpi");
    assert_eq!(mpi_report["verified"], true);
    for field in
        ["semiring", "element", "flow", "block", "overlap", "products", "volume", "volume_lower_bound"]
    {
        assert_eq!(mpi_report[field], threads_report[field], "{field}: {arguments}");
    }
    // The three-count law: by formula, and counted on both ends.
    let products = mpi_report["products"].as_u64().unwrap();
    let formula = mpi_report["plan"]["metrics"]["volume"].as_u64().unwrap();
    assert_eq!(mpi_report["volume"].as_u64().unwrap(), formula * products, "{arguments}");
    let count = |way: &str| -> u64 {
        mpi_report["processors"].as_array().unwrap().iter().map(|p| p[way].as_u64().unwrap()).sum()
    };
    assert_eq!((count("sent"), count("received")), (formula * products, formula * products));
    Some((mpi_report, threads_report))
}

/// Shapes of one element, primes, fewer rows than processors and shares of zero; flows, methods and orders of
/// storage in turn. All of them with each other: `combinations`.
fn products(mpi: Mpi, worlds: std::ops::RangeInclusive<usize>, rounds: usize) {
    let bench = Bench::new();
    let shapes = [(1, 1, 1), (31, 29, 37), (2, 41, 3), (3, 5, 67), (64, 7, 5)];
    let flows =
        ["one-to-all", "ring --overlap", "bulk", "broadcast --overlap", "one-to-all --overlap", "ring"];
    let methods = ["columns", "rows", "recursive", "nagamochi-abe", "cartesian"];
    let semirings = [("plus-times", "<f8"), ("min-plus", "<i8"), ("or-and", "|b1"), ("max-plus", "<f4")];
    let mut case = 0;
    for _ in 0..rounds {
        for processes in worlds.clone() {
            let (m, k, n) = shapes[(case + case / shapes.len()) % shapes.len()];
            let (flow, method) = (flows[case % flows.len()], methods[(case + case / 7) % methods.len()]);
            let (semiring, descr) = semirings[(case / 2) % semirings.len()];
            bench.platform(processes, case % 5 == 4);
            bench.numbers("a.npy", descr, (m, k), case % 3 == 1);
            bench.numbers("b.npy", descr, (k, n), case % 3 == 2);
            let method = if processes == 1 { "rows" } else { method };
            let arguments = format!(
                "matmul a.npy b.npy --semiring {semiring} --platform platform.toml --method {method} --flow {flow} --block 8"
            );
            if both(&bench, mpi, processes, &arguments).is_none() {
                return;
            }
            case += 1;
        }
    }
}

/// A A^T by its triangle: of the result, each rank has a part of both triangles.
#[test]
fn symmetric_products_under_mpi() {
    let bench = Bench::new();
    for (case, (n, k, processes)) in
        [(1, 3, 2), (31, 29, 3), (150, 41, 3), (65, 7, 4), (200, 20, 1)].into_iter().enumerate()
    {
        bench.platform(processes, case == 2);
        bench.numbers("a.npy", ["<f8", "<f4"][case % 2], (n, k), case % 2 == 1);
        bench.numbers("c0.npy", ["<f8", "<f4"][case % 2], (n, n), false);
        let flow = ["one-to-all", "ring --overlap", "bulk", "broadcast --overlap"][case % 4];
        let arguments = format!(
            "matmul a.npy --syrk --alpha 2 --c-in c0.npy --platform platform.toml --keep-all --flow {flow} --block 8"
        );
        if both(&bench, Mpi::Open, processes, &arguments).is_none() {
            return;
        }
    }
}

#[test]
fn products_under_open_mpi() {
    products(Mpi::Open, 1..=4, 4);
}

/// MPICH's ranks spin where there are more of them than cores: fewer cases.
#[test]
fn products_under_mpich() {
    products(Mpi::Mpich, 1..=4, 1);
}

/// Each rank reads its own parts of the transposes and of the initial C.
#[test]
fn scaled_and_transposed_products() {
    let bench = Bench::new();
    for (case, (mpi, processes, semiring, descr, scaled)) in [
        (Mpi::Open, 3, "plus-times", "<f8", "--transpose-a --alpha 0.5 --beta -3"),
        (Mpi::Open, 4, "plus-times", "<f4", "--transpose-a --transpose-b --alpha 0.3 --beta 0.1"),
        (Mpi::Open, 2, "plus-times", "<f8", "--transpose-b --alpha 0"),
        (Mpi::Open, 3, "max-plus", "<i4", "--transpose-b --alpha 2 --beta 5"),
        (Mpi::Mpich, 2, "min-plus", "<f4", "--transpose-a --alpha -1"),
        (Mpi::Mpich, 3, "or-and", "|u1", "--transpose-a --transpose-b --beta 1"),
    ]
    .into_iter()
    .enumerate()
    {
        let (m, k, n) = [(37, 31, 29), (2, 41, 3)][case % 2];
        let turned =
            |flag: &str, (rows, cols)| if scaled.contains(flag) { (cols, rows) } else { (rows, cols) };
        bench.platform(processes, case == 3);
        bench.numbers("a.npy", descr, turned("--transpose-a", (m, k)), case % 3 == 1);
        bench.numbers("b.npy", descr, turned("--transpose-b", (k, n)), case % 3 == 2);
        bench.numbers("c0.npy", descr, (m, n), case % 2 == 1);
        let arguments = format!(
            "matmul a.npy b.npy --c-in c0.npy {scaled} --semiring {semiring} --platform platform.toml --block 8"
        );
        both(&bench, mpi, processes, &arguments);
    }
}

/// A non-rectangular layout, from a plan file, on every flow.
#[test]
fn a_square_corner_plan() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.numbers("a.npy", "<f8", (53, 31), false);
    bench.numbers("b.npy", "<f8", (31, 47), true);
    let plan = "partition --shape 53x31x47 --speeds 9,1 --method square-corner -o plan.json";
    assert!(bench.run(plan).status.success());
    for flow in ["one-to-all", "ring", "bulk"] {
        let arguments = format!(
            "matmul a.npy b.npy --plan plan.json --platform platform.toml --flow {flow} --overlap --block 5"
        );
        both(&bench, Mpi::Open, 2, &arguments);
    }
}

/// Powers and closures use each product's parts as the next one's factors.
#[test]
fn powers_and_closures() {
    let bench = Bench::new();
    bench.platform(3, false);
    bench.numbers("a.npy", "<f8", (23, 23), false);
    bench.numbers("t.npy", "|u1", (23, 23), true);
    for (mpi, arguments) in [
        (Mpi::Open, "power a.npy -k 5 --semiring max-plus"),
        (Mpi::Open, "power a.npy -k 3"),
        (Mpi::Open, "power a.npy -k 0"),
        (Mpi::Open, "closure t.npy --semiring or-and"),
        (Mpi::Mpich, "closure t.npy --semiring or-and --flow ring"),
    ] {
        let products = both(&bench, mpi, 3, &format!("{arguments} --platform platform.toml --block 6"));
        if arguments.contains("-k 5") {
            assert!(products.is_none_or(|(report, _)| report["products"] == 3));
        }
    }
}

/// The lengths and the vertices before, each rank its parts.
#[test]
fn predecessors() {
    let bench = Bench::new();
    bench.numbers("whole.npy", "<i4", (23, 23), true);
    bench.numbers("real.npy", "<f8", (23, 23), false);
    for (mpi, file, semiring) in [(Mpi::Open, "whole.npy", "min-plus"), (Mpi::Mpich, "real.npy", "max-plus")]
    {
        bench.platform(3, false);
        // Distances that are not negative, and lengths that are not positive.
        let (sign, item) =
            (if semiring == "min-plus" { 1 } else { -1 }, if file == "real.npy" { 8 } else { 4 });
        let mut bytes = bench.bytes(file);
        let body = bytes.len() - 23 * 23 * item;
        for x in bytes[body..].chunks_exact_mut(item) {
            if item == 8 {
                let length = f64::from_le_bytes(x.try_into().unwrap()).abs() * f64::from(sign);
                x.copy_from_slice(&length.to_le_bytes());
            } else {
                let length = i32::from_le_bytes(x.try_into().unwrap()).abs() * sign;
                x.copy_from_slice(&length.to_le_bytes());
            }
        }
        std::fs::write(bench.path(file), bytes).unwrap();
        let arguments = format!("closure {file} --semiring {semiring} --platform platform.toml --block 6");
        let ways = |name: &str| format!("{arguments} --predecessors {name} --json");
        let Some(mut command) = mpi.command(&bench, 3, &(ways("m.npy") + " -o mpi.npy --engine mpi")) else {
            return;
        };
        let under = json(&command.output().unwrap());
        let alone = json(&bench.run(&(ways("t.npy") + " -o threads.npy")));
        assert_eq!((&under["element"], &under["volume"]), (&alone["element"], &alone["volume"]));
        for (mpi, threads) in [("mpi.npy", "threads.npy"), ("m.npy", "t.npy")] {
            assert_eq!(bench.bytes(mpi), bench.bytes(threads), "{mpi}");
        }
    }
}

/// What was chosen, and against what, is told as on threads.
#[test]
fn the_choice_is_told() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.numbers("a.npy", "<f8", (40, 40), false);
    let arguments = "matmul a.npy a.npy --platform platform.toml";
    let Some((mpi, threads)) = both(&bench, Mpi::Open, 2, arguments) else { return };
    assert!(mpi["choice"]["against"].as_array().unwrap().len() > 5);
    assert_eq!(mpi["choice"], threads["choice"]);
    let text = Mpi::Open
        .command(&bench, 2, &format!("{arguments} --engine mpi --trace trace.svg -v"))
        .unwrap()
        .output()
        .unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("chosen ")).count(), 1, "{text}");
    assert!(bench.text("trace.svg").starts_with("<svg"));
}

/// Half of B is more than one MPI message may hold (8 MiB): it travels in shared memory, or in parts.
#[test]
fn long_messages_and_the_trace() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.numbers("a.npy", "<f8", (120, 1900), false);
    bench.numbers("b.npy", "<f8", (1900, 1700), false);
    let arguments = "matmul a.npy b.npy --platform platform.toml --method rows --flow bulk";
    if both(&bench, Mpi::Open, 2, arguments).is_none() {
        return;
    }
    let traced = format!("{arguments} --engine mpi --trace trace.json");
    assert!(Mpi::Open.command(&bench, 2, &traced).unwrap().output().unwrap().status.success());
    let trace: Value = serde_json::from_slice(&bench.bytes("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().or(trace.as_array()).unwrap();
    for lane in [0, 1] {
        assert!(events.iter().any(|e| e["tid"] == lane && e["ph"] == "X"), "lane {lane} has events");
    }
}

/// Messages of more than a few KiB go through memory that the ranks share, or, where files are limited,
/// through the library: in both cases the same bytes.
fn shared_memory(mpi: Mpi) {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (211, 211), false);
    let flows = ["one-to-all", "ring --overlap", "bulk --overlap", "broadcast", "one-to-all --overlap"];
    for (turn, flow) in flows.into_iter().enumerate() {
        let (processes, method) = (2 + turn % 3, ["columns", "rows", "recursive"][turn % 3]);
        bench.platform(processes, false);
        let arguments =
            format!("matmul a.npy a.npy --platform platform.toml --method {method} --flow {flow} --block 64");
        if both(&bench, mpi, processes, &arguments).is_none() {
            return;
        }
        let limited = format!("{arguments} --engine mpi -o limited.npy");
        let mut command = mpi.program(processes, "sh").unwrap();
        command.args(["-c", "ulimit -f 4000000 && exec \"$0\" \"$@\""]).arg(apportion_testing::binary());
        command.args(limited.split(' ')).current_dir(bench.path(".")).env("XDG_CACHE_HOME", bench.cache());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read = |name: &str| bench.bytes(name);
        assert!(read("limited.npy") == read("threads.npy"), "{mpi:?} {arguments}");
    }
}

#[test]
fn shared_memory_under_open_mpi() {
    shared_memory(Mpi::Open);
}

#[test]
fn shared_memory_under_mpich() {
    shared_memory(Mpi::Mpich);
}

/// Several threads in each process: the same bytes, on the cores that the platform names.
#[test]
#[ignore = "slow"]
fn several_threads_in_each_process() {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (1021, 1021), false);
    let arguments = "matmul a.npy a.npy --platform platform.toml --method rows --flow ring --block 64";
    let mut threads = Vec::new();
    for cores in ["[0]", "[0, 1]"] {
        let processor =
            |i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"{}0 Gflop/s\"\ncores = {cores}\n", i + 1);
        bench.write("platform.toml", (0..2).map(processor).collect::<String>());
        if both(&bench, Mpi::Open, 2, arguments).is_none() {
            return;
        }
        let mut child = Mpi::Open.command(&bench, 2, &format!("{arguments} --engine mpi")).unwrap();
        let mut child = child.stdout(Stdio::null()).spawn().unwrap();
        let (mut most, mut together) = (0, BTreeSet::new());
        while child.try_wait().unwrap().is_none() {
            for (_, pid) in ranks(&bench) {
                most = most.max(field(pid, "Threads:").map_or(0, |n| n.parse().unwrap()));
                // At the start the library looks at one core after the other, with one thread.
                let pinned = cores_of_threads(pid);
                together = if pinned.len() > together.len() { pinned } else { together };
            }
        }
        let all = std::thread::available_parallelism().unwrap().get();
        assert_eq!(together.len() > 1, cores == "[0, 1]" && all > 1, "{cores}: {together:?}");
        threads.push(most);
    }
    assert!(threads[1] > threads[0], "two cores have a thread each: {threads:?}");
}

/// The cores on which a process has a thread that may use no other.
fn cores_of_threads(pid: Pid) -> BTreeSet<usize> {
    let threads =
        std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    let status = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    let list = |text: String| {
        text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.trim().parse().ok())
    };
    status.filter_map(list).collect()
}

/// Infinities rule Freivalds' sums out: elements are recomputed instead.
#[test]
fn infinities_are_verified_by_samples() {
    let bench = Bench::new();
    bench.platform(2, false);
    bench.numbers("b.npy", "<f8", (9, 11), false);
    bench.numbers("a.npy", "<f8", (7, 9), false);
    let mut bytes = bench.bytes("a.npy");
    let at = bytes.len() - 7 * 9 * 8 + 8 * 12;
    bytes[at..at + 8].copy_from_slice(&f64::INFINITY.to_le_bytes());
    bench.write("a.npy", bytes);
    let reports =
        both(&bench, Mpi::Open, 2, "matmul a.npy b.npy --platform platform.toml --method rows --flow ring");
    assert!(reports.is_none_or(|(mpi, _)| mpi["verification"]["recomputed"].as_u64() > Some(0)));
}

/// Nothing given: the processes are the processors, measured at the start. And alone, a world of one.
#[test]
fn speeds_are_measured_where_none_are_given() {
    let bench = Bench::new();
    bench.numbers("a.npy", "<f8", (60, 60), false);
    let Some(mut command) = Mpi::Open.command(&bench, 2, "matmul a.npy a.npy -o c.npy --engine mpi --json")
    else {
        return;
    };
    let report = json(&command.output().unwrap());
    let names: Vec<&str> =
        report["processors"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["rank0", "rank1"]);
    let seconds = |field: &str| report[field].as_f64().unwrap();
    let (forecast, ideal) = (seconds("forecast_seconds"), seconds("ideal_seconds"));
    assert!(ideal > 0.0 && forecast >= 0.999 * ideal, "no forecast is below the ideal: {report}");
    bench.platform(1, false);
    let alone = bench.run("matmul a.npy a.npy -o d.npy --engine mpi --platform platform.toml --json");
    assert_eq!(json(&alone)["engine"], "mpi");
    assert_eq!(bench.bytes("c.npy"), bench.bytes("d.npy"));
}

/// MPDATA on ranks gives the bytes of threads, with wide and narrow halos.
/// Each rank keeps its rows; sums of an iteration travel along a tree.
#[test]
fn sparse_products_and_solutions_are_the_same() {
    let bench = Bench::new();
    bench.done("random --graph dense-region 300 -o a.mtx");
    bench.done("random 300 1 -o x.npy");
    for (mpi, processes, speeds) in
        [(Mpi::Open, 3, "3,0,2"), (Mpi::Open, 4, "1,2,3,1"), (Mpi::Mpich, 2, "3,1")]
    {
        let call = format!("spmv a.mtx x.npy --speeds {speeds}");
        both(&bench, mpi, processes, &format!("{call} --steps 7 --divide contiguous"));
        let solve = format!("{call} --method cg --steps 300");
        let Some(mut command) = mpi.command(&bench, processes, &format!("{solve} -o mpi.npy --json")) else {
            continue;
        };
        let run = json(&command.output().unwrap());
        assert!(run["solution"]["converged"] == true && run["engine"] == "mpi", "{run}");
        bench.done(&format!("{solve} -o threads.npy"));
        assert!(bench.bytes("mpi.npy") == bench.bytes("threads.npy"), "{mpi:?} {processes}");
    }
}

#[test]
fn advection_is_the_same() {
    for mpi in [Mpi::Open, Mpi::Mpich] {
        let bench = Bench::new();
        let array = |name: &str, sizes: &[usize], value: fn(usize) -> f64| {
            let mut bytes = npy_header::<f64>(sizes, false);
            bytes.extend((0..sizes.iter().product()).flat_map(|i| value(i).to_le_bytes()));
            bench.write(name, bytes);
        };
        array("psi.npy", &[17, 13, 4], |i| 1.0 + (i * 7 % 29) as f64);
        array("cx.npy", &[18, 13, 4], |i| 0.01 * (i % 23) as f64 - 0.1);
        for order in ["--exchange narrow", "--exchange wide --overlap"] {
            let call = format!(
                "advect --field psi.npy --courant cx.npy,-0.2,0.1 --boundary zero,periodic,extrapolated \
                 --steps 5 --iterations 3 --nonoscillatory --speeds 3,2,1 {order}"
            );
            let under = format!("{call} -o mpi.npy --engine mpi --json");
            let Some(mut command) = mpi.command(&bench, 3, &under) else { break };
            let report = json(&command.output().unwrap());
            bench.done(&format!("{call} -o threads.npy"));
            let read = |name: &str| bench.bytes(name);
            assert!(read("mpi.npy") == read("threads.npy"), "{mpi:?} {order}");
            assert_eq!(report["engine"], "mpi");
        }
    }
}

/// Boxes: slabs and cuts in all dimensions, over every semiring; partial sums are added in one order.
#[test]
fn boxes_under_mpi() {
    let bench = Bench::new();
    for (mpi, processes, method, flow, semiring, descr) in [
        (Mpi::Open, 4, "inner", "one-to-all", "plus-times", "<f8"),
        (Mpi::Open, 4, "boxes", "one-to-all --overlap", "plus-times", "<f4"),
        (Mpi::Open, 3, "boxes", "bulk", "max-plus", "<f8"),
        (Mpi::Open, 3, "boxes", "bulk --overlap", "min-plus", "<i8"),
        (Mpi::Mpich, 3, "inner", "one-to-all --look-ahead 2", "or-and", "|b1"),
        (Mpi::Mpich, 2, "boxes", "one-to-all", "plus-times", "<f8"),
        (Mpi::Open, 1, "boxes", "one-to-all", "plus-times", "<f8"),
    ] {
        bench.platform(processes, false);
        bench.numbers("a.npy", descr, (37, 97), false);
        bench.numbers("b.npy", descr, (97, 23), true);
        let arguments = format!(
            "matmul a.npy b.npy --semiring {semiring} --platform platform.toml --method {method} --flow {flow} --block 8"
        );
        both(&bench, mpi, processes, &arguments);
    }
}
