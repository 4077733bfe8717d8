//! `advect --memory`: the bytes of the run in memory, within the limit, from disk to disk; what is left
//! behind by a full disk and by Ctrl-C.

use super::Bench;
use super::advect::array;
use super::interrupt::stopped;
use rustix::process::Signal;

/// A grid whose arrays take 74 MB, and a flow that varies along two axes.
fn deep(bench: &Bench) -> &'static str {
    let sizes = [700, 40, 66];
    array::<f64>(bench, "psi.npy", &sizes, |i| 1.0 + (i * 7 % 23) as f64);
    array::<f64>(bench, "cx.npy", &[701, 40, 66], |i| 0.01 * (i % 2640 % 21) as f64 - 0.1);
    array::<f64>(bench, "cy.npy", &[700, 41, 66], |i| 0.2 - 0.015 * (i / 66 / 41 % 19) as f64);
    "advect --field psi.npy --courant cx.npy,cy.npy,-0.1 --nonoscillatory"
}

/// More than the arrays of the grid need.
const LIMIT: u64 = 56 << 20;

#[test]
#[ignore = "slow"]
fn a_field_larger_than_the_limit_gives_the_bytes_of_the_run_in_memory() {
    let bench = Bench::new();
    let call = deep(&bench);
    let same = |one: &str, other: &str| {
        assert!(
            std::fs::read(bench.path(one)).unwrap() == std::fs::read(bench.path(other)).unwrap(),
            "{other}"
        );
    };
    for (ends, speeds) in [("periodic", "1"), ("zero,extrapolated,periodic", "3,1")] {
        let call = format!("{call} --boundary {ends} --speeds {speeds} --steps 8 --every 3");
        bench.done(&format!("{call} --frames pictures -o one.npy"));
        let run = bench
            .json(&format!("{call} --frames frames --memory {LIMIT} --checkpoint kept-{speeds} -o out.npy"));
        same("one.npy", "out.npy");
        for step in ["000003", "000006"] {
            same(&format!("one-{step}.npy"), &format!("out-{step}.npy"));
        }
        for step in ["000000", "000003", "000008"] {
            same(&format!("pictures/frame-{step}.png"), &format!("frames/frame-{step}.png"));
        }
        same("one.npy", &format!("kept-{speeds}/field-000000000008.npy"));
        assert!(!bench.has(&format!("kept-{speeds}/field-000000000006.npy")));
        let slabs = &run["slabs"];
        let number = |field: &str| slabs[field].as_u64().unwrap();
        assert!(number("count") > 1 && number("planes") < 700, "{slabs}");
        assert!(
            number("bytes_written") >= 3 * 700 * 40 * 66 * 8
                && slabs["computed_twice"].as_f64().unwrap() > 0.0
        );
        assert!(number("predicted_memory_bytes") <= LIMIT, "{slabs}");
        if cfg!(target_os = "linux") {
            assert!(number("peak_resident_bytes") <= LIMIT, "{slabs}");
        }
        assert_eq!(run["predicted_memory_bytes"], run["peak_memory_bytes"]);
        assert_eq!((&run["steps"], &run["sizes"]), (&8.into(), &serde_json::json!([700, 40, 66])));
        let whole = bench.json(&format!("{call} -o one.npy"));
        for (field, slack) in [("mass", 1e-12), ("least", 0.0), ("most", 0.0)] {
            let [a, b] = [&run, &whole].map(|run| run[field]["after"].as_f64().unwrap());
            assert!((a - b).abs() <= slack * b.abs(), "{field}: {a} {b}");
        }
    }
    // No scratch file is left.
    assert!(bench.names().iter().all(|name| !name.starts_with(".apportion")), "{:?}", bench.names());
}

/// A run in memory continues in slabs, and the other way round; a finished one writes its result.
#[test]
#[ignore = "slow"]
fn checkpoints_are_those_of_the_run_in_memory() {
    let bench = Bench::new();
    let call = format!("{} --speeds 1 --boundary zero", deep(&bench));
    let limit = format!("--memory {LIMIT}");
    bench.done(&format!("{call} --steps 4 -o one.npy"));
    let one = bench.bytes("one.npy");
    for (begins, continues) in [("", &limit[..]), (&limit, ""), (&limit, &limit)] {
        let _ = std::fs::remove_dir_all(bench.path("kept"));
        bench.done(&format!("{call} --steps 2 --checkpoint kept --every 2 {begins}"));
        for steps_left in [2, 0] {
            let run = bench.json(&format!("{call} --steps 4 --every 2 --resume kept {continues} -o out.npy"));
            assert_eq!(run["steps"], steps_left);
            assert!(bench.bytes("out.npy") == one, "{begins}, {continues}");
        }
    }
    let wrong = bench.fails(2, &format!("{call} --steps 3 --resume kept {limit} -o out.npy"));
    assert!(wrong.contains("beyond --steps 3"), "{wrong}");
}

/// Single precision, a line, and a limit that leaves the whole grid in memory.
#[test]
fn a_field_that_fits_is_one_slab() {
    let bench = Bench::new();
    array::<f32>(&bench, "line.npy", &[5000], |i| (i % 17) as f64);
    array::<f32>(&bench, "c.npy", &[5001], |i| 0.1 * (i % 5000 % 7) as f64);
    let call = "advect --field line.npy --courant c.npy --steps 9 --speeds 1";
    bench.done(&format!("{call} -o one.npy"));
    let text = bench.done(&format!("{call} --memory 1GiB --every 4 -o out.npy"));
    assert!(text.contains("1 slab of 5000 planes, 3 sweeps of 4 steps; 0.0 %"), "{text}");
    assert!(bench.bytes("out.npy") == bench.bytes("one.npy"));
    assert!(bench.has("out-000008.npy"));
}

#[test]
#[ignore = "slow"]
fn limits_that_cannot_be_kept_are_refused() {
    let bench = Bench::new();
    let call = format!("{} --steps 2 --speeds 1", deep(&bench));
    let small = bench.fails(1, &format!("{call} --memory 1MiB -o out.npy"));
    let words = ["1048576 bytes", "thinnest slab, of 7 planes, needs ", "--memory"];
    words.iter().for_each(|word| assert!(small.contains(word), "{small}"));
    // The need that it names is enough.
    let needed = small.split("needs ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    bench.done(&format!("{call} --memory {needed} -o out.npy"));
    for (flags, word) in [
        ("--memory 0 -o out.npy", "--memory"),
        ("--memory 1GiB", "add -o or --checkpoint"),
        ("--memory 1GiB --frames pictures", "add -o or --checkpoint"),
        ("--memory 1GiB -o out.npy --engine mpi", "each process holds its part"),
        ("--memory 1GiB -o missing/out.npy", "no directory missing"),
    ] {
        let said = bench.fails(2, &format!("{call} {flags}"));
        assert!(said.contains(word), "{flags}: {said}");
    }
    let call = deep(&bench);
    bench.fails(2, &format!("{call} --steps 2 --memory 1GiB -o out.npy --plan plan.json"));
    // Bad values are found before the first sweep.
    array::<f64>(&bench, "psi.npy", &[700, 40, 66], |i| if i == 660 * 2640 + 70 { f64::NAN } else { 1.0 });
    let said = bench.fails(2, &format!("{call} --steps 2 --speeds 1 --memory {LIMIT} -o out.npy"));
    assert!(said.contains("psi.npy: element (660, 1, 4)") && said.contains("NaN"), "{said}");
}

#[test]
fn ctrl_c_leaves_what_was_there() {
    let bench = Bench::new();
    let call = deep(&bench);
    bench.write("slow.toml", "[[processor]]\nname = \"a\"\nspeed = \"1 units/s\"\nslowdown = 1000\n");
    bench.write("out.npy", "an earlier result");
    let line = format!("{call} --steps 50 --platform slow.toml --memory {LIMIT} -o out.npy");
    let between = || bench.names().iter().any(|name| name.starts_with(".apportion"));
    let said = stopped(&bench, &line, between, Signal::INT);
    assert_eq!(said, "apportion: interrupted (nothing was written)\n");
    assert_eq!(bench.text("out.npy"), "an earlier result");
    assert!(!between(), "{:?}", bench.names());
}

/// Fields that were written beside the output stay, and the error names the last.
#[test]
fn ctrl_c_tells_of_the_fields_that_are_written() {
    let bench = Bench::new();
    let call = deep(&bench);
    bench.write("slow.toml", "[[processor]]\nname = \"a\"\nspeed = \"1 units/s\"\nslowdown = 2\n");
    let line = format!("{call} --steps 5000 --every 1 --platform slow.toml --memory {LIMIT} -o out.npy");
    let said =
        stopped(&bench, &line, || bench.names().iter().any(|name| name == "out-000001.npy"), Signal::INT);
    let last = bench.names().into_iter().filter(|name| name.starts_with("out-")).max().unwrap();
    assert_eq!(said, format!("apportion: interrupted (fields up to {last} are written)\n"));
    assert!(!bench.names().contains(&"out.npy".to_owned()));
}

/// The disk of the result is full, or that of the states between sweeps.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_what_was_there() {
    let bench = Bench::new();
    let call = format!("{} --steps 4 --speeds 1 --memory {LIMIT}", deep(&bench));
    let output = bench.run(&format!("{call} --checkpoint kept -o /dev/full"));
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("/dev/full") && said.contains("step 4 kept in kept"), "{said}");
    std::fs::create_dir_all(bench.path("small")).unwrap();
    let place = bench.path("small");
    let mount = ["-t", "tmpfs", "-o", "size=10m", "tmpfs"];
    let mount = std::process::Command::new("mount").args(mount).arg(&place).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        apportion_testing::skip(apportion_testing::Need::Mount, "mount is not permitted");
        return;
    }
    bench.write("small/out.npy", "an earlier result");
    let output = bench.run(&format!("{call} -o small/out.npy"));
    let earlier = bench.text("small/out.npy");
    let names: Vec<_> = std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let _ = std::process::Command::new("umount").arg(&place).status();
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("small") || said.contains("No space left"), "{said}");
    assert_eq!((earlier.as_str(), names.len()), ("an earlier result", 1), "{names:?}");
}
