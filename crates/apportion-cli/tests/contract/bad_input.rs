//! Each bad input: the exit code, one line on stderr, nothing on stdout, and no file new or changed.

use super::Bench;
use super::bench::{TWO, whole};

/// Good factors, a platform, a plan and an output that must survive.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &whole::<f64>(8, 6, 1));
    bench.matrix("b.npy", &whole::<f64>(6, 7, 2));
    bench.write("c.npy", "an earlier result");
    bench.done("partition --shape 8x6x7 --platform two.toml -o plan.json");
    bench
}

/// `matmul` of these factors onto the existing output.
fn matmul(bench: &Bench, code: i32, a: &str, b: &str, more: &str) -> String {
    bench.fails(code, &format!("matmul {a} {b} -o c.npy --platform two.toml {more}"))
}

fn npy(descr: &str, shape: &str, body: usize) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(vec![0; body]);
    bytes
}

#[test]
fn matrices() {
    let bench = bench();
    let whole_file = bench.bytes("a.npy");
    bench.write("truncated.npy", &whole_file[..whole_file.len() - 1]);
    bench.write("headless.npy", &whole_file[..20]);
    bench.write("long.npy", [&whole_file[..], b"x"].concat());
    bench.write("empty.npy", "");
    bench.write("magic.npy", "PK\x03\x04 is what a zip file begins with");
    bench.write("vector.npy", npy("<f8", "(6,)", 48));
    bench.write("integers.npy", npy("<i8", "(8, 6)", 384));
    bench.write("complex.npy", npy("<c16", "(8, 6)", 768));
    bench.write("huge.npy", npy("<f8", "(4000000000, 4000000000)", 8));
    bench.write("none.npy", npy("<f8", "(0, 6)", 0));
    bench.write("matrix.txt", "1 2\n3 4\n");
    bench.write("matrix.mtx.gz", "\x1f");
    bench.write("broken.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n");
    bench.matrix("single.npy", &whole::<f32>(6, 7, 2));
    for (a, b, word) in [
        ("missing.npy", "b.npy", "missing.npy"),
        ("a.npy", "missing.npy", "missing.npy"),
        ("truncated.npy", "b.npy", "missing"),
        ("headless.npy", "b.npy", "header"),
        ("long.npy", "b.npy", "left over"),
        ("empty.npy", "b.npy", ".npy"),
        ("magic.npy", "b.npy", "begin"),
        ("vector.npy", "b.npy", "dimensions"),
        ("integers.npy", "b.npy", "f32 or f64"),
        ("complex.npy", "b.npy", "f32 or f64"),
        ("huge.npy", "b.npy", "huge.npy"),
        ("none.npy", "b.npy", "empty"),
        ("matrix.txt", "b.npy", ".mtx"),
        ("matrix.mtx.gz", "b.npy", "<(zcat FILE)"),
        ("broken.mtx", "b.npy", "broken.mtx"),
        (".", "b.npy", "."),
        ("a.npy", "a.npy", "rows"),
        ("a.npy", "single.npy", "f32"),
    ] {
        let said = matmul(&bench, 2, a, b, "");
        assert!(said.contains(word), "{said}");
    }
}

#[test]
fn speeds() {
    let bench = bench();
    for bad in ["NaN", "nan,1", "0,0", "-9,1", "9,-1", "inf,1", "nine,1", "9,,1", "", "1e999,1"] {
        bench.fails(2, &["partition", "--units", "10", "--speeds", bad, "-o", "p.json"]);
        bench.fails(2, &["matmul", "a.npy", "b.npy", "-o", "c.npy", "--speeds", bad]);
    }
    bench.fails(2, "partition --units 10");
    let said = matmul(&bench, 2, "a.npy", "b.npy", "--speeds 1,2,3");
    assert!(said.contains("3 speeds"), "{said}");
}

#[test]
fn sizes() {
    let bench = bench();
    for bad in [
        "0x5",
        "5",
        "5x",
        "-1x5",
        "5x5x5x5",
        "1.5x5",
        "99999999999x99999999999",
        "99999999999999999999x1",
        "",
    ] {
        bench.fails(2, &["partition", "--shape", bad, "--speeds", "9,1", "-o", "p.json"]);
    }
    for bad in ["-1", "1.5", "9007199254740993", "99999999999999999999", "ten"] {
        bench.fails(2, &["partition", "--units", bad, "--speeds", "9,1", "-o", "p.json"]);
    }
    bench.fails(2, "measure --platform two.toml --sizes 1e15 -o m.json");
    for bad in ["0", "-4", "NaN", "x"] {
        bench.fails(2, &["measure", "--platform", "two.toml", "--sizes", bad, "-o", "m.json"]);
    }
}

#[test]
fn usage() {
    let bench = bench();
    for bad in [
        &["multiply"][..],
        &["matmul"],
        &["matmul", "a.npy"],
        &["matmul", "a.npy", "b.npy", "--speed", "1"],
        &["matmul", "a.npy", "b.npy", "--flow", "rings"],
        &["matmul", "a.npy", "b.npy", "--method", "triangles", "--platform", "two.toml"],
        &["matmul", "a.npy", "b.npy", "--semiring", "plus-plus"],
        &["matmul", "a.npy", "b.npy", "--block", "0"],
        &["matmul", "a.npy", "b.npy", "--plan", "plan.json", "--speeds", "1,1"],
        &["partition", "--speeds", "9,1"],
        &["partition", "--units", "5", "--shape", "5x5", "--speeds", "9,1"],
        &["partition", "--shape", "5x5", "--speeds", "9,1", "--method", "triangles"],
        &["partition", "--shape", "5x5", "--speeds", "9,1", "--method", "fpm"],
        &["partition", "--units", "5", "--speeds", "9,1", "--method", "rows"],
        &["simulate", "--plan", "plan.json"],
        &["measure", "--kernel", "guess"],
        &["measure", "--tolerance", "0"],
        &["measure", "--max-seconds", "NaN"],
        &["demo", "--size", "1"],
    ] {
        bench.fails(2, bad);
    }
}

#[test]
fn platforms() {
    let bench = bench();
    let two = |from: &str, to: &str| TWO.replacen(from, to, 1);
    for (text, word) in [
        (two("speed", "sped"), "sped"),
        (two("9 Gflop/s", "9 parsec"), "parsec"),
        (two("9 Gflop/s", "-9 Gflop/s"), "speed"),
        (two("9 Gflop/s", "0 Gflop/s").replace("1 Gflop/s", "0"), "speed"),
        (two("\"9 Gflop/s\"", "nan"), "speed"),
        (two("\"slow\"", "\"fast\""), "fast"),
        (two("\"slow\"", "\"\""), "name"),
        (two("[[processor]]", "[[procesor]]"), "procesor"),
        (format!("{TWO}slowdown = 0.5\n"), "slowdown"),
        (format!("{TWO}memory = \"16 parsec\"\n"), "memory"),
        (format!("{TWO}[network]\nbandwidth = \"10 Mb/s\"\n"), "bandwidth"),
        (format!("{TWO}[network]\nbandwidth = 0\n"), "bandwidth"),
        (format!("{TWO}[network]\nbandwidth = {{ horizontal = 1, vertical = 2, vertcal = 9 }}\n"), "vertcal"),
        (format!("{TWO}[network]\nbandwidth = {{ horizontal = 1 }}\n"), "missing field `vertical`"),
        (format!("{TWO}[network]\nbandwidth = true\n"), "a bandwidth such as"),
        (format!("{TWO}[network]\ntopology = \"moebius\"\n"), "moebius"),
        (format!("{TWO}[network]\ntopology = \"star\"\ncentre = \"sun\"\n"), "sun"),
        (format!("{TWO}[[network.link]]\nbetween = [\"fast\", \"gone\"]\nbandwidth = 1\n"), "gone"),
        ("name = \"nobody\"\n".into(), "processor"),
        ("name = \"two".into(), "bad.toml"),
        ("\u{0}\u{1}".into(), "bad.toml"),
    ] {
        bench.write("bad.toml", &text);
        let said = bench.fails(2, "partition --units 10 --platform bad.toml -o p.json");
        assert!(said.contains(word), "{word}: {said}");
        bench.fails(2, "matmul a.npy b.npy -o c.npy --platform bad.toml");
    }
    bench.write("bad.toml", [0xff, 0xfe, 0x00]);
    bench.fails(2, "partition --units 10 --platform bad.toml");
    bench.fails(2, "partition --units 10 --platform missing.toml");
    bench.fails(2, "partition --units 10 --platform .");
}

const MODELS: &str = r#"{"format": "apportion-models", "version": 1, "kernel": "gemm-f64", "unit": "u", "parameters": {},
 "models": [{"processor": "fast", "max_size": 100, "points": [{"size": 10, "seconds": 1}, {"size": 20, "seconds": 2}]},
            {"processor": "slow", "max_size": 50, "points": [{"size": 10, "seconds": 9}]}]}"#;

#[test]
fn models() {
    let bench = bench();
    for (from, to) in [
        ("\"seconds\": 1}", "\"seconds\": NaN}"),
        ("\"seconds\": 1}", "\"seconds\": 0}"),
        ("\"seconds\": 1}", "\"seconds\": -1}"),
        ("\"size\": 20", "\"size\": 10"),
        ("\"size\": 20", "\"size\": 0"),
        ("[{\"size\": 10, \"seconds\": 9}]", "[]"),
        ("\"slow\"", "\"fast\""),
        ("\"unit\"", "\"units\""),
        ("{\"size\": 10, \"seconds\": 9}", "[10, 9, null, 1, null, null, null, null]"),
        ("apportion-models", "apportion-plan"),
        ("]}]}", "]}]"),
    ] {
        let text = MODELS.replacen(from, to, 1);
        assert_ne!(text, MODELS);
        bench.write("models.json", text);
        let said = bench.fails(2, "partition --units 10 --models models.json -o p.json");
        assert!(said.contains("models.json"), "{said}");
        matmul(&bench, 2, "a.npy", "b.npy", "--models models.json");
    }
    bench.write("models.json", MODELS);
    bench.fails(2, "partition --units 10 --models models.json --speeds 1,1");
    bench.write("others.toml", TWO.replace("slow", "other"));
    let said = bench.fails(2, "partition --units 9 --models models.json --platform others.toml");
    assert!(said.contains("other"), "{said}");
}

#[test]
fn plans() {
    let bench = bench();
    bench.matrix("wide.npy", &whole::<f64>(6, 8, 2));
    let said = matmul(&bench, 2, "a.npy", "wide.npy", "--plan plan.json");
    assert!(said.contains("plan.json") && said.contains("8 x 6 x 8"), "{said}");
    let good = bench.text("plan.json");
    for (from, to) in [
        ("\"version\": 1", "\"version\": 2"),
        ("\"m\": 8", "\"m\": 9"),
        ("\"m\": 8", "\"m\": 1e300"),
        ("\"owner\": 0", "\"owner\": 7"),
        ("\"method\"", "\"mehtod\""),
        ("\"m\": 8", "\"m\": 8, \"transposed\": true"),
        ("\"imbalance\": ", "\"imbalance\": -"),
        ("\"seconds\": ", "\"seconds\": -"),
        ("apportion-plan", "apportion-run"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        bench.write("bad.json", text);
        let said = matmul(&bench, 2, "a.npy", "b.npy", "--plan bad.json");
        assert!(said.contains("bad.json"), "{said}");
        bench.fails(2, "simulate --plan bad.json --platform two.toml --trace t.json");
    }
    bench.write("three.toml", format!("{TWO}[[processor]]\nname = \"third\"\nspeed = \"1 Gflop/s\"\n"));
    bench.done("partition --shape 8x6x7 --speeds 9,1 -o strangers.json");
    for platform in ["two.toml", "three.toml"] {
        bench.fails(2, &format!("simulate --plan strangers.json --platform {platform}"));
    }
    bench.done("partition --units 56 --speeds 9,1 -o units.json");
    matmul(&bench, 2, "a.npy", "b.npy", "--plan units.json");
    let layout = "\"layout\": [{\"owner\": 7, \"rows\": [0, 1], \"cols\": [0, 1]}], \"shares\"";
    bench.write("units.json", bench.text("units.json").replacen("\"shares\"", layout, 1));
    let said = bench.fails(2, "partition --plan units.json --export csv");
    assert!(said.contains("layout"), "{said}");
    matmul(&bench, 2, "a.npy", "b.npy", "--plan missing.json");
}

#[test]
fn what_no_plan_can_serve_is_exit_code_1() {
    let bench = bench();
    bench.write("models.json", MODELS);
    let said = bench.fails(1, "partition --units 151 --models models.json -o p.json");
    assert!(said.contains("1 are missing"), "{said}");
    bench.fails(1, "partition --units 120 --models models.json --method even");
    bench.fails(1, "partition --shape 20x20 --models models.json -o p.json");
    let corner = |shape: &str, speeds: &str| {
        bench.fails(
            1,
            &format!("partition --shape {shape} --speeds {speeds} --method square-corner -o p.json"),
        )
    };
    assert!(corner("30x30", "1,1,1").contains("overlap"));
    corner("10x1000", "1,1");
    bench.fails(1, "partition --shape 9x9 --speeds 1,1,1,1 --method hybrid --svg p.svg");
    bench.write("models.json", MODELS.replace("100", "10").replace("50", "5"));
    matmul(&bench, 1, "a.npy", "b.npy", "--models models.json");
    bench.write("tight.toml", TWO.replace("speed", "memory = \"100 B\"\nspeed"));
    bench.fails(1, "matmul a.npy b.npy -o c.npy --platform tight.toml");
}

#[test]
fn outputs_that_cannot_be_written() {
    let bench = bench();
    std::fs::create_dir(bench.path("folder")).unwrap();
    let run = "matmul a.npy b.npy --platform two.toml";
    for bad in ["nowhere/c.npy", "folder", "folder/", ".", "a.npy/c.npy"] {
        bench.fails(2, &format!("{run} -o {bad}"));
        for flag in ["--report", "--trace", "--svg"] {
            // A side file that cannot be written also keeps the product from appearing.
            bench.fails(2, &format!("{run} -o c.npy {flag} {bad}"));
        }
        let partition = "partition --shape 9x9 --speeds 9,1";
        bench.fails(2, &format!("{partition} -o {bad}"));
        bench.fails(2, &format!("{partition} -o {bad} --svg p.svg"));
        bench.fails(2, &format!("{partition} -o p.json --svg {bad}"));
        bench.fails(2, &["detect", "-o", bad]);
        let arrange = "arrange --plan plan.json --platform two.toml";
        bench.fails(2, &format!("{arrange} -o p.json --svg {bad}"));
        bench.fails(2, &format!("{arrange} -o {bad} --svg p.svg"));
        bench.fails(2, &["measure", "--platform", "two.toml", "--sizes", "64", "-o", bad]);
        bench.fails(2, &["simulate", "--plan", "plan.json", "--platform", "two.toml", "--trace", bad]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let bench = bench();
    let run = "matmul a.npy b.npy --platform two.toml -o /dev/full";
    assert!(bench.fails(1, run).contains("/dev/full"));
    bench.fails(1, "partition --units 9 --speeds 9,1 -o /dev/full");
    bench.fails(1, "detect -o /dev/full");
}

#[test]
fn a_demonstration_in_a_directory_of_others() {
    let bench = bench();
    std::fs::create_dir(bench.path("mine")).unwrap();
    bench.write("mine/plan.svg", "my picture");
    let error = bench.fails(2, "demo --size 64 --dir mine");
    assert!(error.contains("has files that the demo did not write"), "{error}");
    assert_eq!(bench.text("mine/plan.svg"), "my picture");
    bench.fails(2, "demo --size 64 --dir two.toml");
}

/// Permissions do not bind the superuser: for it the directory is writable, and there is nothing to test.
#[cfg(unix)]
#[test]
fn a_directory_without_permission() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
    let folder = bench.path("closed");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_err() {
        bench.fails(2, "matmul a.npy b.npy --platform two.toml -o closed/c.npy");
        bench.fails(2, "partition --units 9 --speeds 9,1 -o closed/p.json");
    }
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
