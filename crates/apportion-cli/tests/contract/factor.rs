//! `factor`: LAPACK's factors and pivots in files, from any division and engine the same bytes; refusals by file and
//! index; its report, timeline and plan.

use super::bench::{Bench, TWO};
#[cfg(target_os = "linux")]
use super::mpi::launch::Mpi;
use apportion_testing::holds;

/// Elements that look random, of a matrix that can be factored by Cholesky and LU.
pub(super) fn matrix(n: usize) -> Vec<f64> {
    let value = |i: usize, j: usize| ((i * 31 + j * 17 + i * j) % 23) as f64 / 23.0 - 0.5;
    let one = |at: usize| {
        let (i, j) = (at / n, at % n);
        if i == j { n as f64 } else { value(i.max(j), i.min(j)) }
    };
    (0..n * n).map(one).collect()
}

fn load(bench: &Bench, name: &str) -> (String, Vec<u8>) {
    let bytes = bench.bytes(name);
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    (String::from_utf8(bytes[10..end].to_vec()).unwrap(), bytes[end..].to_vec())
}

fn doubles(bench: &Bench, name: &str) -> Vec<f64> {
    let (header, body) = load(bench, name);
    assert!(header.contains("'<f8'") && header.contains("'fortran_order': False"), "{header}");
    body.chunks_exact(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect()
}

pub(super) fn save(bench: &Bench, name: &str, n: usize, elements: &[f64]) {
    let mut bytes = apportion::matrix::npy_header::<f64>(&[n, n], false);
    bytes.extend(elements.iter().flat_map(|x| x.to_le_bytes()));
    bench.write(name, bytes);
}

#[test]
fn factors_are_those_of_three_loops() {
    let (bench, n) = (Bench::new(), 61);
    let mut a = matrix(n);
    save(&bench, "a.npy", n, &a);
    let report = bench.json("factor a.npy --kind cholesky -o l.npy --speeds 3,1 --block 8");
    assert_eq!((&report["application"], &report["factors"]), (&"factorisation".into(), &"cholesky".into()));
    assert!(report["residual"].as_f64().unwrap() < 1.0 && report["verified"] == true);
    let l = doubles(&bench, "l.npy");
    for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
        let product: f64 = (0..n).map(|p| l[i * n + p] * l[j * n + p]).sum();
        assert!((product - a[i * n + j]).abs() < 1e-11 && (j <= i || l[i * n + j] == 0.0), "({i}, {j})");
    }
    // The largest element of column 0 is in row 4.
    a[4 * n] = 1000.0;
    save(&bench, "a.npy", n, &a);
    let report = bench.json("factor a.npy --kind lu -o lu.npy --pivots p.npy --speeds 3,1 --block 8");
    assert!(report["residual"].as_f64().unwrap() < 1.0);
    let (header, pivots) = load(&bench, "p.npy");
    holds(&header, &["'<i8'", "(61,)"]);
    let pivots: Vec<usize> =
        pivots.chunks_exact(8).map(|x| i64::from_le_bytes(x.try_into().unwrap()) as usize).collect();
    assert!(pivots[0] == 4 && pivots.len() == n && (0..n).all(|i| pivots[i] >= i && pivots[i] < n));
    let lu = doubles(&bench, "lu.npy");
    let mut rows: Vec<&[f64]> = a.chunks(n).collect();
    pivots.iter().enumerate().for_each(|(i, pivot)| rows.swap(i, *pivot));
    for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
        let lower = |p: usize| if p == i { 1.0 } else { lu[i * n + p] };
        let product: f64 = (0..=i.min(j)).map(|p| lower(p) * lu[p * n + j]).sum();
        assert!((product - rows[i][j]).abs() < 1e-10, "({i}, {j})");
    }
}

/// By LAPACK's loops for systems with `sytrf`'s factors (`sytrs`), one pivot after the other.
#[test]
fn symmetric_factors_are_those_of_lapack() {
    let (bench, n) = (Bench::new(), 61);
    // Without definiteness: pairs of rows with zeros on the diagonal.
    let mut a = matrix(n);
    for i in (0..n - 1).step_by(3) {
        (a[i * n + i], a[(i + 1) * n + i + 1]) = (0.0, 0.0);
        (a[i * n + i + 1], a[(i + 1) * n + i]) = (40.0, 40.0);
    }
    save(&bench, "a.npy", n, &a);
    let report = bench.json("factor a.npy --kind ldlt -o f.npy --pivots p.npy --speeds 3,1 --block 9");
    assert_eq!((&report["factors"], &report["verified"]), (&"ldlt".into(), &true.into()));
    assert!(report["residual"].as_f64().unwrap() < 1.0);
    let (header, pivots) = load(&bench, "p.npy");
    holds(&header, &["'<i8'", "(61,)"]);
    let pivots: Vec<i64> =
        pivots.chunks_exact(8).map(|x| i64::from_le_bytes(x.try_into().unwrap())).collect();
    let f = doubles(&bench, "f.npy");
    assert!((0..n * n).all(|at| at % n <= at / n || f[at] == 0.0));
    let mut starts = Vec::new();
    let mut k = 0;
    while k < n {
        starts.push(k);
        k += if pivots[k] < 0 { 2 } else { 1 };
    }
    assert!(starts.len() < n - 15, "{pivots:?}");
    let right: Vec<f64> = (0..n).map(|i| i as f64 - 20.0).collect();
    let mut x = right.clone();
    for &k in &starts {
        let two = pivots[k] < 0;
        let below = if two { k + 2 } else { k + 1 };
        let with = if two { -pivots[k] - 1 } else { pivots[k] } as usize;
        assert!(with >= below - 1 && with / 9 == k / 9 && (!two || pivots[k + 1] == pivots[k]));
        x.swap(below - 1, with);
        for (i, j) in (below..n).flat_map(|i| (k..below).map(move |j| (i, j))) {
            x[i] -= f[i * n + j] * x[j];
        }
        if two {
            let [p, q, r] = [f[k * n + k], f[(k + 1) * n + k], f[(k + 1) * n + k + 1]];
            let determinant = p * r - q * q;
            (x[k], x[k + 1]) =
                ((r * x[k] - q * x[k + 1]) / determinant, (p * x[k + 1] - q * x[k]) / determinant);
        } else {
            x[k] /= f[k * n + k];
        }
    }
    for &k in starts.iter().rev() {
        let two = pivots[k] < 0;
        let below = if two { k + 2 } else { k + 1 };
        for (i, j) in (below..n).flat_map(|i| (k..below).map(move |j| (i, j))) {
            x[j] -= f[i * n + j] * x[i];
        }
        x.swap(below - 1, if two { -pivots[k] - 1 } else { pivots[k] } as usize);
    }
    for i in 0..n {
        let product: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum();
        assert!((product - right[i]).abs() < 1e-9, "{i}: {product}");
    }
}

/// Layouts, copies, and more processors than block columns, with the same block.
#[test]
fn every_layout_gives_the_same_bytes() {
    let (bench, n) = (Bench::new(), 90);
    save(&bench, "a.npy", n, &matrix(n));
    bench.write("two.toml", TWO);
    for kind in ["cholesky", "lu", "ldlt"] {
        let call = format!("factor a.npy --kind {kind} --block 16");
        bench.done(&format!("{call} --speeds 1 -o one.npy"));
        let one = bench.bytes("one.npy");
        for flags in [
            "--speeds 3,1,2 --method greedy",
            "--speeds 3,1,2 --method cyclic --copy",
            "--speeds 1,1,1,1,1,1,1,1,1,5 --method greedy",
            "--speeds 2,7 --method alone",
            "--platform two.toml",
            "--speeds 3,1,2 --method grid",
            "--speeds 1,2,0,4,1,1,1 --method grid --copy",
            "--speeds 9,1 --method grid",
        ] {
            let run = bench.json(&format!("{call} {flags} -o other.npy"));
            assert!(bench.bytes("other.npy") == one, "{kind} {flags}");
            assert_eq!(run["volume"], run["plan"]["metrics"]["volume"], "{kind} {flags}");
            assert_eq!(run["predicted_memory_bytes"], run["peak_memory_bytes"], "{kind} {flags}");
        }
        // Single precision, and an own block.
        bench.done("random 40 40 -o f.npy --kind f32");
        bench.done("matmul f.npy --syrk --speeds 1 -o s.npy");
        if kind != "cholesky" {
            let call = format!("factor s.npy --kind {kind} --block 40 --speeds 1,2 -o x.npy");
            assert_eq!(bench.json(&call)["element"], "f32");
        }
    }
}

/// LU in a grid, whose pivots come from all processors: a plan, and its run.
#[test]
fn a_grid_of_lu_is_planned_and_run_as_it_is() {
    let (bench, n) = (Bench::new(), 96);
    bench.done("random 96 96 -o a.npy --seed 3");
    let call = "--kind lu --method grid --block 8 --speeds 2,1,1,3";
    let made = bench.json(&format!("partition --shape 96x96 {call} -o plan.json --svg plan.svg"));
    holds(&bench.text("plan.svg"), &["<svg", "grid", "lu of 96"]);
    let run = bench.json("factor a.npy --kind lu --plan plan.json -o planned.npy --pivots p.npy");
    assert_eq!((&run["plan"]["layout"], &run["volume"]), (&made["layout"], &made["metrics"]["volume"]));
    assert_eq!((&run["plan"]["method"], &run["verified"]), (&"grid".into(), &true.into()));
    bench.done("factor a.npy --kind lu --block 8 --speeds 1,5 --method greedy -o other.npy --pivots q.npy");
    assert!(bench.bytes("planned.npy") == bench.bytes("other.npy"));
    assert!(bench.bytes("p.npy") == bench.bytes("q.npy"));
    holds(&bench.done("factor a.npy --kind lu --plan plan.json"), &["grid layout of tiles"]);
    bench.done("random 96 96 -o b.npy");
    holds(&bench.fails(2, "solve a.npy b.npy -o x.npy --plan plan.json"), &["plan.json", "tiles"]);
    // The singular column is found by whom it belongs to, and said by all.
    let mut a = matrix(n);
    (0..n).for_each(|i| a[i * n + 41] = 0.0);
    save(&bench, "a.npy", n, &a);
    holds(&bench.fails(1, &format!("factor a.npy {call}")), &["singular", "U(41, 41)"]);
    // A processor with other rows in one of its columns.
    let mut plan = made;
    let parts = plan["layout"].as_array_mut().unwrap();
    let part = parts.iter_mut().find(|part| part["owner"] == 0).unwrap();
    part["owner"] = 1.into();
    let length = |axis: &str| part[axis][1].as_u64().unwrap() - part[axis][0].as_u64().unwrap();
    let lost = length("rows") * length("cols");
    let shares = plan["shares"].as_array_mut().unwrap();
    shares[0] = (shares[0].as_u64().unwrap() - lost).into();
    shares[1] = (shares[1].as_u64().unwrap() + lost).into();
    bench.write("other.json", plan.to_string());
    holds(&bench.fails(2, "factor a.npy --kind lu --plan other.json"), &["different block rows"]);
}

/// What knows block columns only refuses tiles; their plans are run as they are.
#[test]
fn tiles_are_planned_and_refused_where_they_cannot_be() {
    let (bench, n) = (Bench::new(), 96);
    save(&bench, "a.npy", n, &matrix(n));
    let made = bench.json(
        "partition --shape 96x96 --kind ldlt --method grid --block 8 --speeds 1,1,1 -o plan.json --svg plan.svg",
    );
    holds(&bench.text("plan.svg"), &["<svg", "grid", "ldlt of 96"]);
    let run = bench.json("factor a.npy --kind ldlt --plan plan.json -o planned.npy");
    assert_eq!((&run["plan"]["layout"], &run["volume"]), (&made["layout"], &made["metrics"]["volume"]));
    bench.done("factor a.npy --kind ldlt --block 8 --speeds 1,5 --method greedy -o other.npy");
    assert!(bench.bytes("planned.npy") == bench.bytes("other.npy"));
    holds(&bench.done("factor a.npy --kind ldlt --plan plan.json"), &["grid layout of tiles"]);
    // A processor has half of a tile.
    let mut plan = made;
    let parts = plan["layout"].as_array_mut().unwrap();
    let cut = parts.iter_mut().find(|part| part["cols"][1] == 8 && part["rows"][0] == 0).unwrap();
    cut["cols"][1] = 4.into();
    bench.write("cut.json", plan.to_string());
    assert!(!bench.fails(2, "factor a.npy --kind ldlt --plan cut.json").is_empty());
}

#[test]
fn reports_timelines_and_plans_are_written() {
    let (bench, n) = (Bench::new(), 120);
    save(&bench, "a.npy", n, &matrix(n));
    bench.write(
        "two.toml",
        "[[processor]]\nname = \"fast\"\nspeed = \"4 Gflop/s\"\n[[processor]]\nname = \"slow\"\nspeed = \
         \"1 Gflop/s\"\n[network]\nlatency = \"10 us\"\nbandwidth = \"1 GB/s\"\n",
    );
    let printed = bench.json(
        "factor a.npy --kind lu --platform two.toml --report run.json --trace run.svg --svg plan.svg --method auto",
    );
    assert_eq!(bench.value("run.json"), printed);
    assert!(printed["forecast_seconds"].as_f64().unwrap() > 0.0);
    assert!(printed["timeline"]["forecast"].is_array() && printed["timeline"]["measured"].is_array());
    let plan = &printed["plan"];
    assert_eq!(
        (&plan["problem"]["kind"], &plan["problem"]["factors"]),
        (&"factorisation".into(), &"lu".into())
    );
    assert!(plan["baselines"]["even_split"].is_number());
    assert!(plan["metrics"]["forecast_over_bound"].as_f64().unwrap() >= 1.0);
    holds(&bench.text("run.svg"), &["<svg", "fast", "slow"]);
    holds(&bench.text("plan.svg"), &["<svg", "lu of 120", "120 columns"]);
    let text = bench.done("factor a.npy --kind lu --platform two.toml");
    holds(&text, &["P A = L U of 120 x 120 f64", "residual", "forecast", "fast", "gain"]);
    // The plan alone is forecast as it was.
    bench.write("plan.json", plan.to_string());
    let simulated = bench.json("simulate --plan plan.json --platform two.toml");
    assert_eq!(simulated["seconds"], printed["forecast_seconds"]);
    bench.fails(2, "simulate --plan plan.json --platform two.toml --flow ring");
    holds(&bench.fails(2, "matmul a.npy a.npy --plan plan.json"), &["plan.json", "is not a plan of 120"]);
    bench.done("report run.json -o page.html");
    holds(&bench.text("page.html"), &["Factorisation", "Residual"]);
}

#[test]
fn systems_are_solved() {
    let (bench, n) = (Bench::new(), 53);
    let a = matrix(n);
    save(&bench, "a.npy", n, &a);
    let b: Vec<f64> = (0..n).map(|i| i as f64 - 20.0).collect();
    let mut bytes = apportion::matrix::npy_header::<f64>(&[n], false);
    bytes.extend(b.iter().flat_map(|x| x.to_le_bytes()));
    bench.write("b.npy", bytes);
    bench.numbers("sides.npy", "<f8", (n, 5), true);
    for kind in ["cholesky", "lu", "ldlt"] {
        let call = format!("solve a.npy b.npy --kind {kind} -o x.npy --speeds 3,1 --block 8");
        let report = bench.json(&call);
        assert!(
            report["residual"].as_f64().unwrap() < 1.0 && report["factors_residual"].as_f64().unwrap() < 1.0
        );
        assert_eq!(report["solution"]["right_hand_sides"], 1);
        assert!(report["solution"]["condition"].as_f64().unwrap() >= 1.0);
        let (header, _) = load(&bench, "x.npy");
        holds(&header, &["(53,)"]);
        let x = doubles(&bench, "x.npy");
        for i in 0..n {
            let product: f64 = (0..n).map(|j| a[i * n + j] * x[j]).sum();
            assert!((product - b[i]).abs() < 1e-9, "{kind} {i}");
        }
        holds(&bench.done(&call), &["residual", "1 right-hand side", "before refinement", "condition"]);
        bench.done(&format!("solve a.npy sides.npy --kind {kind} -o X.npy --speeds 1,1"));
        holds(&load(&bench, "X.npy").0, &["(53, 5)"]);
    }
    bench.numbers("other.npy", "<f8", (4, 1), false);
    bench.numbers("single.npy", "<f4", (n, 1), false);
    for (line, words) in [
        ("a.npy other.npy", &["other.npy", "4 x 1", "53 rows"][..]),
        ("a.npy single.npy", &["single.npy", "f32", "f64"]),
        ("a.npy nowhere.npy", &["nowhere.npy"]),
    ] {
        holds(&bench.fails(2, &format!("solve {line} --speeds 1 -o y.npy")), words);
        assert!(!bench.has("y.npy"));
    }
}

/// Mixed precision says how many steps it took, or why it failed, in the report and in one line; residuals have digits.
#[test]
fn mixed_precision_says_what_became_of_it() {
    let bench = Bench::new();
    save(&bench, "a.npy", 53, &matrix(53));
    bench.numbers("b.npy", "<f8", (53, 3), false);
    let call = "solve a.npy b.npy --mixed --speeds 3,1 -o x.npy";
    let run = bench.json(call);
    let mixed = &run["solution"]["mixed"];
    assert!(mixed["fell_back"] == false && mixed["why"].is_null() && run["element"] == "f32", "{mixed}");
    assert!(mixed["steps"].as_u64().unwrap() >= 1 && mixed["steps"] == run["solution"]["refinement_steps"]);
    let text = bench.done(call);
    holds(&text, &["factors in f32, refined to f64 by", " before 2 steps of refinement"]);
    assert!(!text.contains("is 0.000 of") && !text.contains("  0.000 of"), "{text}");
    let plain = bench.json("solve a.npy b.npy --speeds 3,1");
    assert!(plain["solution"]["mixed"].is_null() && plain["element"] == "f64");
    let hilbert: Vec<f64> = (0..121).map(|at| 1.0 / (at / 11 + at % 11 + 1) as f64).collect();
    save(&bench, "h.npy", 11, &hilbert);
    bench.numbers("c.npy", "<f8", (11, 1), false);
    let output = bench.run("solve h.npy c.npy --mixed --speeds 3,1 --json");
    let run = apportion_testing::object(&output);
    assert!(run["solution"]["mixed"]["fell_back"] == true && run["element"] == "f64");
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    let notes: Vec<&str> = said.lines().filter(|line| line.contains("mixed precision fails")).collect();
    assert!(notes.len() == 1 && notes[0].contains("solved in f64"), "{said}");
    bench.numbers("single.npy", "<f4", (4, 4), false);
    holds(&bench.fails(2, "solve single.npy single.npy --mixed --speeds 1"), &["--mixed", "f32"]);
}

/// A is looked at as it is: one triangle alone is told, other differences are refused, and so is trust in a solution
/// that the condition of A forbids.
#[test]
fn what_is_known_of_a_is_told() {
    let (bench, n) = (Bench::new(), 20);
    let mut a = matrix(n);
    bench.numbers("b.npy", "<f8", (n, 1), false);
    a[3 * n + 17] += 1.0;
    save(&bench, "a.npy", n, &a);
    (0..n * n).filter(|at| at / n < at % n).for_each(|at| a[at] = 0.0);
    save(&bench, "lower.npy", n, &a);
    for call in ["factor a.npy", "solve a.npy b.npy -o x.npy"] {
        for kind in ["cholesky", "ldlt"] {
            let said = bench.fails(2, &format!("{call} --kind {kind} --speeds 1"));
            holds(&said, &["a.npy: is not symmetric: element (17, 3)", "--kind lu"]);
            let output =
                bench.run(&format!("{} --kind {kind} --speeds 1", call.replace("a.npy", "lower.npy")));
            holds(
                &String::from_utf8_lossy(&output.stderr),
                &["lower.npy", "symmetric matrix of its lower triangle"],
            );
            assert!(output.status.success());
        }
    }
    let hilbert: Vec<f64> = (0..196).map(|at| 1.0 / (at / 14 + at % 14 + 1) as f64).collect();
    save(&bench, "h.npy", 14, &hilbert);
    bench.numbers("c.npy", "<f8", (14, 1), false);
    let output = bench.run("solve h.npy c.npy -o x.npy --speeds 1");
    assert!(output.status.success());
    holds(
        &String::from_utf8_lossy(&output.stderr),
        &["singular up to rounding", "condition number is about"],
    );
}

/// Ranks solve to the bytes of threads, for few right-hand sides and many.
#[cfg(target_os = "linux")]
#[test]
fn ranks_solve_to_the_bytes_of_threads() {
    let (bench, n) = (Bench::new(), 77);
    save(&bench, "a.npy", n, &matrix(n));
    bench.numbers("one.npy", "<f8", (n, 1), false);
    bench.numbers("many.npy", "<f8", (n, 40), false);
    bench.platform(3, false);
    for (kind, b) in
        [("cholesky", "one.npy"), ("cholesky", "many.npy"), ("lu", "many.npy"), ("lu", "many.npy --mixed")]
    {
        let call = format!("solve a.npy {b} --kind {kind} --platform platform.toml --block 8");
        let line = format!("{call} --json --engine mpi -o mpi.npy");
        let Some(mut command) = Mpi::Open.command(&bench, 3, &line) else { return };
        let ranks = apportion_testing::object(&command.output().unwrap());
        let threads = bench.json(&format!("{call} -o threads.npy"));
        assert!(bench.bytes("mpi.npy") == bench.bytes("threads.npy"), "{kind} {b}");
        for field in ["residual", "condition", "refinement_steps", "mixed"] {
            assert_eq!(ranks["solution"][field], threads["solution"][field], "{kind} {b} {field}");
        }
    }
}

/// One rank a processor: the bytes of threads, pivots too.
#[cfg(target_os = "linux")]
#[test]
fn ranks_give_the_bytes_of_threads() {
    let (bench, n) = (Bench::new(), 77);
    bench.platform(3, false);
    for (kind, method) in [("cholesky", "greedy"), ("lu", "greedy"), ("lu", "grid"), ("ldlt", "grid")] {
        let mut a = matrix(n);
        match kind {
            // A pivot far from the diagonal.
            "lu" => a[30 * n + 2] = 500.0,
            // Pivots of two rows.
            "ldlt" => (0..n - 2).step_by(8).for_each(|i| {
                (a[i * n + i], a[(i + 2) * n + i + 2]) = (0.0, 0.0);
                (a[(i + 2) * n + i], a[i * n + i + 2]) = (99.0, 99.0);
            }),
            _ => {}
        }
        save(&bench, "a.npy", n, &a);
        let pivots = if kind == "cholesky" { "--trace" } else { "--pivots" };
        let call = format!("factor a.npy --kind {kind} --platform platform.toml --block 8 --method {method}");
        let Some(mut command) = Mpi::Open.command(
            &bench,
            3,
            &format!("{call} --json --engine mpi -o mpi.npy {pivots} mpi-p.npy"),
        ) else {
            return;
        };
        let output = command.output().unwrap();
        let ranks = apportion_testing::object(&output);
        let threads = bench.json(&format!("{call} -o threads.npy {pivots} threads-p.npy"));
        assert!(bench.bytes("mpi.npy") == bench.bytes("threads.npy"), "{kind} {method}");
        if kind != "cholesky" {
            assert!(bench.bytes("mpi-p.npy") == bench.bytes("threads-p.npy"));
        }
        for field in ["volume", "residual", "block", "peak_memory_bytes"] {
            assert_eq!(ranks[field], threads[field], "{kind} {method} {field}");
        }
    }
}

const CLUSTER: &str = "[[processor]]\nname = \"new\"\nspeed = \"3 Tflop/s\"\n[[processor]]\nname = \"old\"\nspeed = \
    \"1 Tflop/s\"\n[network]\nlatency = \"2 us\"\nbandwidth = \"100 Gbit/s\"\n";

/// A plan of `partition` or of a report is run as it is, whatever the speeds are now.
#[test]
fn plans_are_run_as_they_are() {
    let (bench, n) = (Bench::new(), 96);
    save(&bench, "a.npy", n, &matrix(n));
    bench.write("cluster.toml", CLUSTER);
    let made = bench.json(
        "partition --shape 96x96 --kind lu --method ratio --block 8 --platform cluster.toml -o plan.json --svg plan.svg",
    );
    assert_eq!((&made["method"], &made["problem"]["block"]), (&"ratio".into(), &8.into()));
    assert_eq!(made["shares"], serde_json::json!([72 * 96, 24 * 96]));
    holds(&bench.text("plan.svg"), &["<svg", "lu of 96"]);
    let run = bench.json("factor a.npy --kind lu --plan plan.json -o planned.npy");
    assert_eq!((&run["plan"]["layout"], &run["plan"]["method"]), (&made["layout"], &"ratio".into()));
    assert_eq!((&run["block"], &run["volume"]), (&8.into(), &made["metrics"]["volume"]));
    bench.done("factor a.npy --kind lu --block 8 --speeds 1,5 -o other.npy");
    assert!(bench.bytes("planned.npy") == bench.bytes("other.npy"));
    bench.write("again.json", run["plan"].to_string());
    let again = bench.json("factor a.npy --kind lu --plan again.json --platform cluster.toml");
    assert_eq!(again["plan"]["layout"], made["layout"]);
    assert!(again["plan"]["baselines"]["even_split"].is_number());
    // Panels by another processor than their owners: the bytes stay, more travels, and it is counted.
    let mut taken_over = run["plan"].clone();
    taken_over["panels"] = vec![0; 12].into();
    bench.write("panels.json", taken_over.to_string());
    let run = bench.json("factor a.npy --kind lu --plan panels.json -o planned.npy");
    assert!(bench.bytes("planned.npy") == bench.bytes("other.npy"));
    assert!(run["volume"].as_u64() > made["metrics"]["volume"].as_u64());
    assert_eq!(run["volume"], run["plan"]["metrics"]["volume"]);
    assert_eq!(run["plan"]["panels"], taken_over["panels"]);
    taken_over["panels"] = vec![0; 11].into();
    bench.write("panels.json", taken_over.to_string());
    let refused = bench.fails(2, "factor a.npy --kind lu --plan panels.json");
    holds(&refused, &["panels.json: panels", "11 processors for 12 block columns"]);
    bench.done("partition --units 96 --speeds 1,2 -o units.json");
    for (line, words) in [
        ("--kind cholesky --plan plan.json", &["plan.json", "lu of 96 rows", "cholesky of 96 rows"][..]),
        ("--kind lu --plan units.json", &["units.json", "of no factorisation"]),
        ("--kind lu --plan plan.json --block 8", &["--plan", "--block"]),
        ("--kind lu --plan plan.json --speeds 1,2", &["--plan", "--speeds"]),
    ] {
        holds(&bench.fails(2, &format!("factor a.npy {line}")), words);
    }
    for (line, words) in [
        ("--shape 96x90 --kind lu --speeds 1,2", &["--shape", "not square"][..]),
        ("--units 96 --kind lu --speeds 1,2", &["--kind"]),
        ("--shape 96x96 --kind lu --speeds 1,2 --compare", &["--kind", "--compare"]),
        ("--shape 96x96 --kind lu --speeds 1,2 --method columns", &["--method", "greedy"]),
    ] {
        holds(&bench.fails(2, &format!("partition {line}")), words);
    }
}

/// On a cluster that is not there, without a matrix: every layout, and each of them along a parameter.
#[test]
fn layouts_are_forecast_for_a_cluster() {
    let bench = Bench::new();
    bench.write("cluster.toml", CLUSTER);
    let call = "simulate --kind lu --shape 6000x6000 --platform cluster.toml";
    let all = bench.json(&format!("{call} --block 192"));
    let names: Vec<&str> =
        all["layouts"].as_array().unwrap().iter().map(|layout| layout["method"].as_str().unwrap()).collect();
    assert_eq!(names, ["greedy", "grid", "ratio", "cyclic", "alone"]);
    let place = |method: &str| names.iter().position(|name| *name == method).unwrap();
    let seconds = |method: &str| all["layouts"][place(method)]["seconds"].as_f64().unwrap();
    let ideal = all["ideal_seconds"].as_f64().unwrap();
    // Two thirds of n cubed by four teraflops.
    assert!((ideal / (2.0 / 3.0 * 6000f64.powi(3) / 4e12) - 1.0).abs() < 1e-9);
    // In turn, the old node has half of the columns; alone, the new one has all of them.
    let [greedy, cyclic, alone] = ["greedy", "cyclic", "alone"].map(seconds);
    assert!(greedy > ideal && cyclic > 1.9 * ideal && alone > 1.3 * ideal && seconds("grid") > ideal);
    assert!(greedy < alone && alone < cyclic, "{all}");
    assert!((0..names.len()).all(|i| all["layouts"][i]["block"] == 192));
    // The plan of the fastest is forecast alike.
    let fastest = all["fastest"].as_str().unwrap();
    let plan =
        "partition --shape 6000x6000 --kind lu --block 192 --platform cluster.toml -o plan.json --method";
    bench.done(&format!("{plan} {fastest}"));
    let planned = bench.json("simulate --plan plan.json --platform cluster.toml");
    assert_eq!(planned["seconds"], all["layouts"][place(fastest)]["seconds"]);
    let free = bench.json(&format!("{call} --methods greedy"));
    assert!(free["layouts"][0]["seconds"].as_f64().unwrap() <= greedy);
    holds(&bench.done(call), &["layout", "Gflop/s", "of ideal", "lu of 6,000 x 6,000", "fastest"]);
    let sweep =
        format!("{call} --block 192 --sweep ratio=1..9 --sweep-points 3 --methods greedy,cyclic,alone");
    let swept = bench.json(&format!("{sweep} -o sweep.csv --svg sweep.svg"));
    let points = swept["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[1]["blocks"]), (3, &serde_json::json!([192, 192, 192])));
    assert!(
        points[2]["winner"] != "cyclic"
            && points[2]["seconds"][1].as_f64() > points[2]["seconds"][0].as_f64()
    );
    holds(&bench.text("sweep.csv"), &["ratio,greedy,cyclic,alone,winner"]);
    holds(&bench.text("sweep.svg"), &["<svg", "lu of 6,000 x 6,000"]);
    for (line, words) in [
        ("simulate --kind lu --platform cluster.toml", &["--shape"][..]),
        ("simulate --shape 60x60 --platform cluster.toml", &["--shape", "--kind"]),
        ("simulate --kind lu --shape 60x50 --platform cluster.toml", &["--shape", "not square"]),
        (
            "simulate --kind lu --shape 60x60 --platform cluster.toml --methods columns",
            &["--methods", "greedy"],
        ),
        ("simulate --kind lu --shape 60x60 --platform cluster.toml --flow ring", &["--kind", "--flow"]),
    ] {
        holds(&bench.fails(2, line), words);
    }
}
