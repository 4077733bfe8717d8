//! `matmul --panels`, `--memory`, `--checkpoint`, `--resume`: the same product for any cut, after kills and
//! damage.

use super::Bench;
use super::bench::{TWO, irrational, product, whole};
use apportion::matrix::{AnyMatrix, Matrix};
use apportion::random::Random;
use serde_json::json;
use std::process::Stdio;
use std::time::Duration;

/// Two unequal processors, slow enough that a kill comes in the middle.
const SLOW: &str = "name = \"slow\"\n\
    [[processor]]\nname = \"a\"\nspeed = \"2 Gflop/s\"\nslowdown = 60\n\
    [[processor]]\nname = \"b\"\nspeed = \"1 Gflop/s\"\nslowdown = 90\n";

#[test]
fn panels_make_the_same_product() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    for (m, k, n) in [(1, 1, 1), (31, 37, 29), (3, 500, 2), (70, 1, 90), (130, 6, 1)] {
        let (a, b, c0) = (whole::<f64>(m, k, 1), whole::<f64>(k, n, 2), whole::<f64>(m, n, 3));
        bench.matrix("a.npy", &a);
        bench.matrix("bt.npy", &{
            let data = (0..k * n).map(|at| b.row(at % k)[at / k]).collect();
            Matrix::new(n, k, data)
        });
        bench.matrix("c0.npy", &c0);
        let p = product(&a, &b);
        let data = p.as_slice().iter().zip(c0.as_slice()).map(|(x, y)| 2.0 * x - 3.0 * y).collect();
        for panels in ["1", "2", "7", "1000"] {
            let report = bench.json(&format!("matmul a.npy bt.npy -o c.npy --platform two.toml --transpose-b --alpha 2 --beta -3 --c-in c0.npy --panels {panels} --report run.json"));
            assert_eq!(
                bench.read("c.npy"),
                AnyMatrix::F64(Matrix::new(m, n, Clone::clone(&data))),
                "{m} {k} {n} {panels}"
            );
            assert_eq!(report, bench.value("run.json"));
            let rows = report["panels"]["rows"].as_u64().unwrap() as usize;
            assert_eq!(report["panels"]["count"].as_u64().unwrap() as usize, m.div_ceil(rows));
            assert_eq!((&report["verified"], &report["plan"]["problem"]["m"]), (&true.into(), &m.into()));
        }
    }
}

#[test]
fn other_semirings_and_types_come_in_panels_too() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &whole::<f32>(40, 30, 1));
    bench.matrix("b.npy", &whole::<f32>(30, 20, 2));
    bench.matrix("u.npy", &Matrix::new(9, 9, (0..81).map(|i| u8::from(i % 7 == 0)).collect()));
    for (file, other, semiring) in
        [("a.npy", "b.npy", "max-plus"), ("a.npy", "b.npy", "min-plus"), ("u.npy", "u.npy", "or-and")]
    {
        let run = format!("matmul {file} {other} -o c.npy --platform two.toml --semiring {semiring}");
        bench.done(&run);
        let plain = bench.bytes("c.npy");
        bench.done(&format!("{run} --panels 4 --block 8"));
        assert_eq!(bench.bytes("c.npy"), plain, "{semiring}");
    }
}

/// Larger than the memory that it is given, and measured by the operating system.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow"]
fn matrices_larger_than_memory_are_streamed() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    let (m, k, n) = (2600, 900, 1500);
    bench.matrix("a.npy", &whole::<f64>(m, k, 1));
    bench.matrix("b.npy", &whole::<f64>(k, n, 2));
    let run = "matmul a.npy b.npy -o c.npy --platform two.toml --block 128";
    bench.done(run);
    let plain = bench.bytes("c.npy");
    let cap = 40 << 20;
    assert!((m * k + k * n + m * n) * 8 > cap);
    let report = bench.json(&format!("{run} --memory 40MiB"));
    assert!(bench.bytes("c.npy") == plain);
    let panels = &report["panels"];
    let held = |field: &str| panels[field].as_u64().unwrap();
    assert!(
        held("predicted_memory_bytes") <= cap as u64 && held("peak_resident_bytes") <= cap as u64,
        "{panels}"
    );
    assert!(held("count") > 1, "{panels}");
}

#[test]
#[ignore = "slow"]
fn killed_at_any_moment_it_goes_on_to_the_same_bytes() {
    let bench = Bench::new();
    bench.write("slow.toml", SLOW);
    bench.matrix("a.npy", &irrational::<f64>(240, 300, 1.0));
    bench.matrix("b.npy", &irrational::<f64>(300, 250, 2.0));
    let run = "matmul a.npy b.npy -o c.npy --platform slow.toml --block 64 --panels 12";
    let mut random = Random::new(12345);
    let ways = ["", "--semiring max-plus", "--flow ring --overlap", "--memory 24MiB"];
    for (round, way) in ways.into_iter().enumerate() {
        let run = format!("{run} {way}");
        bench.done(&run);
        let wanted = bench.bytes("c.npy");
        bench.remove("c.npy");
        let directory = format!("kept{round}");
        let mut kills = 0;
        let report = loop {
            let flag = if kills == 0 { "--checkpoint" } else { "--resume" };
            let arguments = format!("{run} {flag} {directory} --report run.json");
            let mut child =
                bench.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // Early or late in its work, or before it has begun; after some kills it may end.
            std::thread::sleep(Duration::from_millis(random.below(250) as u64));
            if kills >= 4 {
                assert!(child.wait().unwrap().success());
                break bench.value("run.json");
            }
            child.kill().unwrap();
            if child.wait().unwrap().success() {
                break bench.value("run.json");
            }
            kills += 1;
            // Killed after its last operation, it leaves a complete result.
            let whole = !bench.has("c.npy") || bench.bytes("c.npy") == wanted;
            assert!(whole, "a result appears whole or not at all");
        };
        assert!(bench.bytes("c.npy") == wanted, "round {round}, {kills} kills");
        assert_eq!(report["panels"]["count"], 12);
    }
}

#[test]
fn a_damaged_panel_is_computed_again_and_another_product_refused() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &irrational::<f64>(40, 30, 1.0));
    bench.matrix("b.npy", &irrational::<f64>(30, 20, 2.0));
    let run = "matmul a.npy b.npy -o c.npy --platform two.toml";
    let whole = bench.json(&format!("{run} --panels 5 --checkpoint kept"));
    assert!(whole["volume_lower_bound"].as_u64().unwrap() <= whole["volume"].as_u64().unwrap(), "{whole}");
    let wanted = bench.bytes("c.npy");
    let resume = format!("{run} --resume kept");
    assert_eq!(bench.json(&resume)["panels"]["resumed"], 5);

    // The lowest bit of one element: far below what any check by sums could see.
    let mut names: Vec<_> =
        std::fs::read_dir(bench.path("kept")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let panel = names.iter().find(|path| path.to_string_lossy().contains("panel-000002-")).unwrap();
    let mut bytes = std::fs::read(panel).unwrap();
    bytes[128 + 8 * 11] ^= 1;
    std::fs::write(panel, &bytes).unwrap();
    let output = bench.run(&resume);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is damaged"), "it is said");
    assert_eq!(bench.bytes("c.npy"), wanted);
    let again = bench.json(&resume);
    assert_eq!((&again["panels"]["resumed"], &again["volume_lower_bound"]), (&json!(5), &json!(null)));

    assert!(bench.fails(2, &format!("{run} --checkpoint kept")).contains("--resume"));
    let scaled = bench.fails(2, &format!("{resume} --alpha 2"));
    assert!(scaled.contains("another product"), "{scaled}");
    bench.matrix("b.npy", &irrational::<f64>(30, 20, 2.5));
    assert!(bench.fails(2, &resume).contains("another product"));
    bench.matrix("b.npy", &irrational::<f64>(30, 20, 2.0));
    for other in ["--semiring max-plus", "--transpose-a", "--speeds 1,1"] {
        bench.fails(2, &format!("matmul a.npy b.npy -o c.npy --resume kept {other}"));
    }
    // Decisions of the first run cannot be changed later.
    let order = bench.value("kept/checkpoint.json")["order"]["flow"].as_str().unwrap().to_owned();
    let flow = if order == "ring" { "bulk" } else { "ring" };
    for (flag, value) in [
        ("--flow", flow),
        ("--block", "7"),
        ("--look-ahead", "5"),
        ("--method", "cartesian"),
        ("--panels", "6"),
        ("--memory", "1MiB"),
    ] {
        let refused = bench.fails(2, &format!("{resume} {flag} {value}"));
        assert!(refused.contains(flag) && refused.contains("kept"), "{refused}");
    }
    assert_eq!(bench.json(&format!("{resume} --panels 5"))["panels"]["resumed"], 5);
}

/// The disk is full: that of the result, or that of the finished panels. Existing files stay, and the run
/// continues elsewhere.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &irrational::<f64>(400, 50, 1.0));
    bench.matrix("b.npy", &irrational::<f64>(50, 400, 2.0));
    let run = "matmul a.npy b.npy --platform two.toml --panels 8";
    bench.done(&format!("{run} -o c.npy"));
    let wanted = bench.bytes("c.npy");

    let output = bench.run(&format!("{run} -o /dev/full --checkpoint kept"));
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("/dev/full") && said.contains("panels kept in kept"), "{said}");
    bench.done(&format!("{run} -o c.npy --resume kept"));
    assert!(bench.bytes("c.npy") == wanted);

    // Room for two panels of 50 x 400 and the manifest.
    std::fs::create_dir_all(bench.path("small")).unwrap();
    let mount = |arguments: &[&str]| {
        let done = std::process::Command::new("mount").args(arguments).arg(bench.path("small")).output();
        done.is_ok_and(|output| output.status.success())
    };
    if !mount(&["-t", "tmpfs", "-o", "size=400k", "tmpfs"]) {
        apportion_testing::skip(apportion_testing::Need::Mount, "mount is not permitted");
        return;
    }
    bench.write("c.npy", "an earlier result");
    let output = bench.run(&format!("{run} -o c.npy --checkpoint small"));
    let said = apportion_testing::without_progress(&String::from_utf8_lossy(&output.stderr));
    let earlier = bench.text("c.npy");
    let grown = mount(&["-o", "remount,size=4m"]);
    let again = bench.run(&format!("{run} -o c.npy --resume small --json"));
    let report: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap_or_default();
    let _ = std::process::Command::new("umount").arg(bench.path("small")).status();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains("No space left") && said.contains("of 8 panels kept in small"), "{said}");
    assert_eq!(earlier, "an earlier result");
    assert!(grown && again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    assert!((1..8).contains(&report["panels"]["resumed"].as_u64().unwrap()), "{report}");
    assert!(bench.bytes("c.npy") == wanted);
}
