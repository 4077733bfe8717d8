//! Devices as processors, on the OpenCL devices that this machine has; and what the program says of CUDA drivers.

use super::bench::Bench;
use super::exports::installed;
use super::interrupt::stopped;
use super::mpi::launch::{Mpi, said};
use apportion::matrix::{Matrix, write_npy};
use apportion::output::OutputFile;
use apportion_testing::{Need, holds, skip};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

const PLATFORM: &str = "[[processor]]\nname = \"cpu\"\nspeed = \"1 Gflop/s\"\n\
    [[processor]]\nname = \"device\"\nspeed = \"1 Gflop/s\"\ndevice = \"opencl:0\"\n";

/// A link whose cost is stated, so that no time measured beside other programs decides whether the device is used.
const LINK: &str =
    "[[network.link]]\nbetween = [\"device\", \"cpu\"]\nlatency = \"1 us\"\nbandwidth = \"10 GB/s\"\n";

/// A place with a platform of a core and a device, and with matrices; `None` without a device.
fn place() -> Option<Bench> {
    if apportion::device::devices().is_none_or(|devices| devices.is_empty()) {
        skip(Need::Device, "there is no OpenCL device");
        return None;
    }
    let here = Bench::with_empty_cache();
    here.write("platform.toml", format!("{PLATFORM}{LINK}"));
    let capped = PLATFORM.replace("opencl:0\"", "opencl:0\"\nmemory = \"40 kB\"");
    assert_ne!(capped, PLATFORM);
    here.write("capped.toml", capped + LINK);
    Some(here)
}

fn save<T: apportion::matrix::Element>(
    here: &Bench,
    name: &str,
    rows: usize,
    cols: usize,
    of: impl Fn(usize) -> T,
) {
    let matrix = Matrix::new(rows, cols, (0..rows * cols).map(of).collect());
    let mut file = OutputFile::create(here.path(name)).unwrap();
    write_npy(&mut file, &matrix).unwrap();
    file.commit().unwrap();
}

/// Whole numbers: rounded sums are exact in any order.
fn whole(i: usize) -> f64 {
    ((i * 31) % 17) as f64 - 8.0
}

fn processor<'v>(run: &'v Value, name: &str) -> &'v Value {
    let mut all = run["processors"].as_array().unwrap().iter();
    all.find(|processor| processor["name"] == name).unwrap()
}

/// Products over every semiring and kind of element have the bytes of cores, with C on the device as a whole and
/// in tiles; what goes up and comes down is what the formula says.
#[test]
fn a_device_computes_what_cores_compute() {
    let Some(here) = place() else { return };
    let (m, k, n) = (97, 131, 113);
    save(&here, "a.npy", m, k, whole);
    save(&here, "b.npy", k, n, whole);
    save(&here, "af.npy", m, k, |i| whole(i) as f32);
    save(&here, "bf.npy", k, n, |i| whole(i) as f32);
    save(&here, "ai.npy", m, k, |i| whole(i) as i32);
    save(&here, "bi.npy", k, n, |i| if i % 7 == 0 { i32::MAX } else { whole(i) as i32 });
    save(&here, "al.npy", m, k, |i| whole(i) as i64);
    save(&here, "bl.npy", k, n, |i| whole(i) as i64);
    save(&here, "ab.npy", m, k, |i| u8::from(i % 5 == 0));
    save(&here, "bb.npy", k, n, |i| u8::from(i % 7 == 0));
    let cases = [
        ("", "plus-times", 8),
        ("f", "plus-times", 4),
        ("", "max-plus", 8),
        ("f", "min-plus", 4),
        ("i", "min-plus", 4),
        ("l", "max-plus", 8),
        ("b", "or-and", 1),
    ];
    for (kind, semiring, element) in cases {
        let product = format!("matmul a{kind}.npy b{kind}.npy --semiring {semiring} --block 32");
        here.done(&format!("{product} -o cores.npy --speeds 1,1"));
        let run = here.json(&format!("{product} -o device.npy --platform platform.toml --method columns"));
        assert_eq!(run["verified"], true);
        assert!(here.bytes("device.npy") == here.bytes("cores.npy"), "{kind} {semiring}: other bytes");
        let [cpu, device] = ["cpu", "device"].map(|name| processor(&run, name));
        assert_eq!((&cpu["kind"], &cpu["bytes_up"]), (&"core".into(), &Value::Null));
        let cols = device["share"].as_u64().unwrap() / m as u64;
        assert!(cols > 0 && cols < n as u64, "{run}");
        let up = element * k as u64 * (m as u64 + cols);
        assert_eq!((&device["kind"], &device["bytes_up"]), (&"device".into(), &up.into()));
        assert_eq!(device["bytes_down"], element * m as u64 * cols);

        let run = here.json(&format!("{product} -o tiles.npy --platform capped.toml --method columns"));
        assert!(
            here.bytes("tiles.npy") == here.bytes("cores.npy"),
            "{kind} {semiring}: other bytes in tiles"
        );
        let device = processor(&run, "device");
        let in_tiles = device["bytes_up"].as_u64().unwrap();
        assert!(in_tiles > up || element == 1, "{in_tiles} bytes of a C in tiles, {up} of a whole one");
        assert_eq!(device["bytes_down"], element * device["share"].as_u64().unwrap());
    }
}

/// What runs on the same engine: powers, closures, products in panels, adaptive runs, one device alone.
#[test]
fn every_product_may_use_a_device() {
    let Some(here) = place() else { return };
    save(&here, "a.npy", 90, 90, whole);
    save(&here, "graph.npy", 90, 90, |i| if i % 11 == 3 { whole(i).abs() } else { f64::INFINITY });
    here.write(
        "alone.toml",
        "[[processor]]\nname = \"device\"\ndevice = \"opencl:0\"\nspeed = \"1 Gflop/s\"\n",
    );
    for product in [
        "power a.npy --exponent 3 --semiring max-plus",
        "closure graph.npy --semiring min-plus",
        "matmul a.npy a.npy --semiring min-plus --panels 3",
        "matmul a.npy a.npy --semiring max-plus --adaptive",
        "matmul a.npy a.npy --semiring max-plus --copy",
        "matmul a.npy a.npy --semiring max-plus --alpha 2 --beta 3 --c-in a.npy",
        "matmul a.npy --syrk --semiring max-plus",
    ] {
        here.done(&format!("{product} -o cores.npy --speeds 1,1"));
        for platform in ["platform.toml", "alone.toml"] {
            here.done(&format!("{product} -o device.npy --platform {platform}"));
            assert!(
                here.bytes("device.npy") == here.bytes("cores.npy"),
                "{product} on {platform}: other bytes"
            );
        }
    }
}

/// The device of a rank computes step by step, in every flow, and the bytes are those of cores.
#[test]
fn a_rank_may_have_a_device() {
    let Some(here) = place() else { return };
    save(&here, "a.npy", 97, 131, whole);
    save(&here, "b.npy", 131, 113, whole);
    save(&here, "graph.npy", 60, 60, |i| if i % 11 == 3 { whole(i).abs() } else { f64::INFINITY });
    here.done("matmul a.npy b.npy --semiring max-plus -o cores.npy --speeds 1,1");
    here.done("closure graph.npy --semiring min-plus -o paths.npy --speeds 1,1");
    let flows = ["one-to-all", "ring", "broadcast", "bulk"];
    let products = flows.map(|flow| {
        format!(
            "matmul a.npy b.npy --semiring max-plus --block 32 --flow {flow} --method square-corner -o c.npy"
        )
    });
    let closure = "closure graph.npy --semiring min-plus --block 16 -o c.npy".to_owned();
    let panels = "matmul a.npy b.npy --semiring max-plus --panels 2 -o c.npy".to_owned();
    for product in products.into_iter().chain([closure, panels]) {
        let line = format!("{product} --engine mpi --platform platform.toml --report run.json");
        let Some(mut command) = Mpi::Open.command(&here, 2, &line) else { return };
        let output = command.output().unwrap();
        assert!(output.status.success(), "{product}: {:?}", said(&output));
        let cores = if product.starts_with("closure") { "paths.npy" } else { "cores.npy" };
        assert!(here.bytes("c.npy") == here.bytes(cores), "{product}: other bytes");
        let run = here.value("run.json");
        let device = processor(&run, "device");
        assert!(device["bytes_up"].as_u64().is_some_and(|bytes| bytes > 0), "{product}: {device}");
    }
    let line = "matmul a.npy b.npy --engine mpi --platform capped.toml --keep-all -o d.npy";
    let output = Mpi::Open.command(&here, 2, line).unwrap().output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).iter().any(|line| line.contains("the device of a rank may hold")),
        "{:?}",
        said(&output)
    );
    assert!(!here.has("d.npy"));
}

/// A matrix that has all kinds of factors.
fn factorable(n: usize) -> impl Fn(usize) -> f64 {
    move |at| {
        let (i, j) = (at / n, at % n);
        if i == j { 20.0 * n as f64 } else { whole(i.max(j) * n + i.min(j)) }
    }
}

/// A device owns block columns as any other processor: all, some or none of them, as many as its memory holds, with the
/// same bytes on threads and on ranks.
#[test]
fn a_device_owns_block_columns() {
    let Some(here) = place() else { return };
    let n = 61;
    save(&here, "a.npy", n, n, factorable(n));
    save(&here, "af.npy", n, n, |at| factorable(n)(at) as f32);
    save(&here, "r.npy", n, n, |at| whole(at * at + 3 * at) + (at % 7) as f64);
    let with = |more: &str| PLATFORM.replace("opencl:0\"", &format!("opencl:0\"\n{more}")) + LINK;
    here.write("room.toml", with("memory = \"60 kB\""));
    here.write("fast.toml", format!("{PLATFORM}{LINK}").replacen("1 Gflop/s", "1 kflop/s", 1));
    here.write("slow.toml", format!("{PLATFORM}{LINK}").replace("10 GB/s", "10 kB/s"));
    for (call, element) in [
        ("factor a.npy --kind cholesky", 8),
        ("factor r.npy --kind lu", 8),
        ("factor a.npy --kind ldlt", 8),
        ("factor af.npy --kind cholesky", 4),
        ("factor af.npy --kind lu", 4),
        ("factor af.npy --kind ldlt", 4),
    ] {
        let call = format!("{call} --block 8");
        let run = |platform: &str, output: &str| {
            let run = here.json(&format!("{call} --platform {platform}.toml -o {output}.npy"));
            assert!(run["residual"].as_f64().unwrap() < 2.0 && run["verified"] == true, "{call} {platform}");
            let device = processor(&run, "device");
            assert_eq!(device["kind"], "device");
            let count = |name: &str| device[name].as_u64().unwrap_or(0);
            (count("share"), [count("bytes_up"), count("bytes_down")])
        };
        let (some, [up, down]) = run("platform", "some");
        assert!(some > 0 && some < (n * n) as u64 && up > some * element, "{call}: {some} {up} {down}");
        let (all, [_, down_all]) = run("fast", "all");
        assert!(all == (n * n) as u64 && down_all > down, "{call}: {all} {down_all}");
        assert_eq!(run("slow", "none"), (0, [0, 0]), "{call}");
        let (room, _) = run("room", "room");
        assert!(room > 0 && room <= 4 * 8 * n as u64, "{call}: {room}");
        let line = format!("{call} --engine mpi --platform platform.toml -o rank.npy --report run.json");
        if let Some(mut command) = Mpi::Open.command(&here, 2, &line) {
            let output = command.output().unwrap();
            assert!(output.status.success(), "{call}: {:?}", said(&output));
            assert!(here.bytes("rank.npy") == here.bytes("some.npy"), "{call}: other bytes on ranks");
            let device = processor(&here.value("run.json"), "device").clone();
            assert_eq!((&device["bytes_up"], &device["bytes_down"]), (&up.into(), &down.into()), "{call}");
        }
    }
    save(&here, "b.npy", n, 2, whole);
    for line in
        ["solve r.npy b.npy", "solve a.npy b.npy --kind cholesky --mixed", "solve a.npy b.npy --kind ldlt"]
    {
        here.done(&format!("{line} --platform platform.toml -o x.npy"));
    }
    // A plan that knows nothing of the memory, and a matrix for which there is none.
    here.done("partition --shape 61x61 --kind lu --block 8 --platform fast.toml -o plan.json");
    let before = here.files();
    let error = here.fails(1, "factor a.npy --kind lu --plan plan.json --platform room.toml -o x.npy");
    holds(
        &error,
        &["61 columns of 61 rows with a panel of 8 need", "the device may hold 60.0 kB", "raise its"],
    );
    let alone = with("memory = \"60 kB\"").split_once("[[processor]]\nname = \"device").unwrap().1.to_owned();
    let (alone, _) = alone.split_once("[[network").unwrap();
    here.write("alone.toml", format!("[[processor]]\nname = \"device{alone}"));
    let error = here.fails(1, "factor a.npy --kind lu --block 8 --platform alone.toml -o x.npy");
    holds(&error, &["the devices have memory for 4 of 8 block columns", "add a processor of cores"]);
    here.remove("alone.toml");
    assert!(here.files() == before);
}

/// A forecast counts the link: a device behind a slow one takes less, or nothing.
#[test]
fn a_slow_link_leaves_a_device_out() {
    let here = Bench::with_empty_cache();
    let behind = |link: &str| {
        format!(
            "{PLATFORM}[[network.link]]\nbetween = [\"device\", \"cpu\"]\nlatency = \"10 us\"\nbandwidth = {link}\n"
        )
    };
    let share = |name: &str, link: &str| {
        here.write(name, behind(link));
        let plan = here.json(&format!("partition --shape 400x400x400 --platform {name}"));
        plan["shares"][1].as_u64().unwrap()
    };
    let fast = share("fast.toml", "{ to = \"10 GB/s\", from = \"10 GB/s\" }");
    assert!((75_000..85_000).contains(&fast), "half of 160,000: {fast}");
    let slow = share("slow.toml", "{ to = \"20 MB/s\", from = \"10 MB/s\" }");
    assert!(slow < fast, "{slow}");
    assert_eq!(share("useless.toml", "\"10 kB/s\""), 0);
    let again = here.json("partition --shape 400x400x400 --platform useless.toml");
    assert_eq!(again["choice"]["left_out"][0]["processor"], "device", "{}", again["choice"]);
    let factored = |name: &str, kind: &str| {
        here.json(&format!("partition --shape 800x800 --kind {kind} --platform {name}"))
    };
    let device = |plan: &Value| plan["shares"][1].as_u64().unwrap();
    for kind in ["cholesky", "lu", "ldlt"] {
        let [fast, slow] = ["fast.toml", "slow.toml"].map(|name| factored(name, kind));
        // The core factors all panels, so that equal speeds are no equal shares: the seconds tell what the device is worth.
        let [alone, both] = [&fast["baselines"]["fastest_alone"], &fast["forecast"]]
            .map(|forecast| forecast["seconds"].as_f64().unwrap());
        assert!(device(&fast) > 0 && both < 0.6 * alone, "{kind}: {both} of {alone} s");
        assert!(device(&slow) < device(&fast), "{kind}: {} {}", device(&slow), device(&fast));
        assert_eq!(device(&factored("useless.toml", kind)), 0, "{kind}");
    }
}

#[test]
fn the_speed_and_the_link_of_a_device_are_measured() {
    let Some(here) = place() else { return };
    here.write("unknown.toml", PLATFORM.replace("speed = \"1 Gflop/s\"\n", ""));
    let quick = "--max-seconds 0.05 --platform unknown.toml";
    let models =
        here.json(&format!("measure --kernel min-plus-f32 --sizes 4096,16384 {quick} -o models.json"));
    assert_eq!(models["models"][1]["points"].as_array().unwrap().len(), 2);
    here.done(&format!("measure --kernel min-plus-f32 --sizes 4096 {quick} --links both.toml"));
    holds(&here.text("both.toml"), &["between = [\"device\", \"cpu\"]"]);
    let links = here.json(&format!("measure --network --sizes 1,4Ki,64Ki {quick} -o links.toml"));
    assert_eq!(
        (&links["devices"][0]["device"], &links["devices"][0]["host"]),
        (&"device".into(), &"cpu".into())
    );
    holds(&here.text("links.toml"), &["between = [\"device\", \"cpu\"]", "bandwidth = { to = "]);
    save(&here, "a.npy", 60, 60, |i| whole(i) as f32);
    let run = "matmul a.npy a.npy --semiring min-plus -o c.npy --platform links.toml --models models.json";
    assert_eq!(here.json(run)["verified"], true);
}

#[test]
fn what_a_device_cannot_do_is_refused_with_a_remedy() {
    let here = Bench::with_empty_cache();
    save(&here, "a.npy", 8, 8, whole);
    let platform = |device: &str, rest: &str| {
        format!("[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\ndevice = {device}\n{rest}")
    };
    here.write("absent.toml", platform("\"opencl:999\"", ""));
    let error = here.fails(2, "matmul a.npy a.npy -o c.npy --platform absent.toml");
    assert!(error.contains("opencl:999") || error.contains("OpenCL"), "{error}");
    let error = here.fails(2, "factor a.npy --kind lu -o c.npy --platform absent.toml");
    assert!(error.contains("opencl:999") || error.contains("OpenCL"), "{error}");
    assert!(!here.has("c.npy"));
    let Some(here) = place() else { return };
    save(&here, "a.npy", 8, 8, whole);
    let error = here
        .fails(2, "closure a.npy --semiring min-plus --predecessors p.npy -o c.npy --platform platform.toml");
    assert!(error.contains("a device does not compute"), "{error}");
    let error = here.fails(2, "matmul a.npy a.npy -o c.npy --platform platform.toml --tail 0.1");
    assert!(error.contains("a device computes its own tiles only"), "{error}");
    here.write("tiny.toml", PLATFORM.replace("opencl:0\"", "opencl:0\"\nmemory = \"100 B\""));
    let error = here.fails(1, "matmul a.npy a.npy -o c.npy --platform tiny.toml --keep-all");
    assert!(error.contains("raise the device's"), "{error}");
}

/// A tile of a minute ends within one pair of panels.
#[test]
fn a_signal_ends_a_device_in_the_middle_of_a_tile() {
    let Some(here) = place() else { return };
    save(&here, "a.npy", 64, 64, whole);
    here.done("matmul a.npy a.npy -o c.npy --platform platform.toml");
    let before = here.bytes("c.npy");
    let alone = "[network]\nemulate = true\n[[processor]]\nname = \"device\"\ndevice = \"opencl:0\"\n\
        speed = \"1 Gflop/s\"\n[[network.link]]\nbetween = [\"device\", \"device\"]\nbandwidth = \"1 kB/s\"\n";
    here.write("crawl.toml", alone);
    let line = "matmul a.npy a.npy -o c.npy --platform crawl.toml --block 1";
    assert_eq!(stopped(&here, line, || true, Signal::INT), "apportion: interrupted (nothing was written)\n");
    let line = "factor a.npy --kind lu -o c.npy --platform crawl.toml --block 1";
    assert_eq!(stopped(&here, line, || true, Signal::INT), "apportion: interrupted (nothing was written)\n");
    assert!(here.bytes("c.npy") == before);
}

/// Makes a library of a source beside this file.
pub fn compile(here: &Bench, cc: &str, source: &str, library: &str, more: &str) {
    let built = Command::new(cc)
        .args("-std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC".split(' '))
        .args(more.split_whitespace())
        .args(["-o", library])
        .arg(format!("{}/tests/contract/{source}", env!("CARGO_MANIFEST_DIR")))
        .current_dir(here.path("."))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// A layer around the real drivers fails one of their calls and all that follow, at many places of a run.
#[test]
fn a_device_that_is_lost_ends_the_run_with_its_error() {
    let Some(here) = place() else { return };
    let Some(cc) = installed(Need::Compiler, &["cc", "gcc"], "gcc") else { return };
    save(&here, "a.npy", 97, 131, whole);
    save(&here, "b.npy", 131, 113, whole);
    compile(&here, cc, "lost_device.c", "layer.so", "");
    let layer = here.path("layer.so");
    save(&here, "s.npy", 61, 61, factorable(61));
    for (job, platform, engine) in [
        ("matmul a.npy b.npy --block 32", "platform.toml", ""),
        ("matmul a.npy b.npy --block 32", "capped.toml", ""),
        ("matmul a.npy b.npy --block 32", "platform.toml", "--engine mpi"),
        ("factor s.npy --kind lu --block 8", "platform.toml", ""),
        ("factor s.npy --kind cholesky --block 8", "platform.toml", "--engine mpi"),
    ] {
        let line = format!("{job} -o c.npy --platform {platform} {engine}");
        let command = || match engine {
            "" => Some(here.command(&line)),
            _ => Mpi::Open.command(&here, 2, &line),
        };
        // Prepared, and counted: each call adds a byte.
        let Some(mut prepare) = command() else { return };
        assert!(prepare.output().unwrap().status.success(), "{line}");
        let mut count = command().unwrap();
        count.env("OPENCL_LAYERS", &layer).env("CALLS", here.path("calls"));
        let counted = count.output().unwrap();
        assert!(counted.status.success(), "{line}: {:?}", said(&counted));
        if !here.has("calls") {
            skip(Need::Device, "the OpenCL library loads no layers");
            return;
        }
        let calls = here.bytes("calls").len();
        here.remove("calls");
        let before = here.files();
        for (turn, at) in (1..=calls).step_by((calls / 8).max(1)).enumerate() {
            let (code, says) = [("-36", "failed (cl"), ("-5", "failed or is out of resources")][turn % 2];
            let mut lost = command().unwrap();
            lost.env("OPENCL_LAYERS", &layer).env("FAIL_AT", at.to_string()).env("FAIL_CODE", code);
            let output = lost.output().unwrap();
            let said = said(&output);
            // mpirun may end another rank before it hears of the error.
            let ended = |line: &&String| line.contains("interrupted (nothing was written)");
            let errors: Vec<&String> = said.iter().filter(|line| engine.is_empty() || !ended(line)).collect();
            assert_eq!(output.status.code(), Some(1), "{line}, call {at} of {calls}: {said:?}");
            assert!(errors.len() == 1 && errors[0].contains(says), "{line}, call {at} of {calls}: {said:?}");
            assert!(here.files() == before, "{line}, call {at} of {calls}: it left something behind");
        }
    }
}

/// What is wrong with a driver, and when a card is listed: by a library that starts, or not, and computes nothing.
#[cfg(target_os = "linux")]
#[test]
fn a_cuda_driver_that_fails_is_an_error_with_a_remedy() {
    let here = Bench::with_empty_cache();
    let Some(cc) = installed(Need::Compiler, &["cc", "gcc"], "gcc") else { return };
    for (place, more) in [("old", "-DOLD"), ("new", "")] {
        std::fs::create_dir(here.path(place)).unwrap();
        compile(&here, cc, "lost_cuda.c", &format!("{place}/libcuda.so.1"), more);
    }
    save(&here, "a.npy", 40, 40, whole);
    here.write("cuda.toml", PLATFORM.replace("opencl:0", "cuda:0"));
    here.write("second.toml", PLATFORM.replace("opencl:0", "cuda:1"));
    let before = here.files();
    let run = |line: &str, place: &str, fail: &str, more: &[(&str, &str)]| {
        let mut command = here.command(line);
        let (function, code) = fail.split_once('=').unwrap_or_default();
        command.env("LD_LIBRARY_PATH", here.path(place)).env("FAIL", function).env("FAIL_CODE", code);
        command.envs(more.iter().copied()).output().unwrap()
    };
    let product = |platform: &str| format!("matmul a.npy a.npy -o c.npy --platform {platform}.toml");
    for (platform, place, fail, code, says) in [
        ("cuda", "old", "", 2, &["`device = cuda:0`", "has no cuLaunchKernel", "update the driver"][..]),
        ("cuda", "new", "cuInit=100", 2, &["finds no card", "`nvidia-smi`"]),
        ("cuda", "new", "cuInit=803", 2, &["does not start (cuInit: error 803)", "`opencl:0`"]),
        ("cuda", "new", "cuDeviceTotalMem_v2=999", 2, &["finds no card"]),
        ("second", "new", "", 2, &["no such device", "this machine has cuda:0 (a card)"]),
        (
            "cuda",
            "new",
            "cuDevicePrimaryCtxRetain=101",
            1,
            &["cuda:0 (a card) failed (cuDevicePrimaryCtxRetain"],
        ),
        (
            "cuda",
            "new",
            "cuStreamCreate=999",
            1,
            &["failed (cuStreamCreate: error 999)", "leave the device out"],
        ),
        ("cuda", "new", "cuCtxPushCurrent_v2=201", 1, &["failed (cuCtxPushCurrent: error 201)"]),
        (
            "cuda",
            "new",
            "cuModuleLoadDataEx=218",
            1,
            &["a kernel does not build: ptxas", "error   : a word", "update"],
        ),
        (
            "cuda",
            "new",
            "cuModuleLoadDataEx=222",
            1,
            &["does not build: cuModuleLoadDataEx: error 222", "update"],
        ),
        ("cuda", "new", "cuMemAlloc_v2=2", 1, &["is out of memory (cuMemAlloc: error 2)", "give it less"]),
        ("cuda", "new", "cuMemcpyHtoDAsync_v2=700", 1, &["failed (cuMemcpyHtoDAsync: error 700)"]),
        ("cuda", "new", "cuStreamSynchronize=719", 1, &["failed (cuStreamSynchronize: error 719)"]),
        ("cuda", "new", "cuModuleGetFunction=500", 1, &["failed (cuModuleGetFunction: error 500)"]),
        ("cuda", "new", "cuLaunchKernel=701", 1, &["out of resources", "cuLaunchKernel: error 701"]),
        ("cuda", "new", "cuEventRecord=46", 1, &["failed (cuEventRecord: error 46)"]),
        ("cuda", "new", "cuEventSynchronize=702", 1, &["out of resources", "cuEventSynchronize: error 702"]),
    ] {
        let output = run(&product(platform), place, fail, &[]);
        let said = said(&output);
        assert_eq!((output.status.code(), said.len()), (Some(code), 1), "{fail}: {said:?}");
        holds(&said[0], says);
        assert!(here.files() == before, "{fail}: it left something behind");
    }
    // A card is listed unless OpenCL lists it, and no error of its driver is one of `detect`.
    let listed = |fail: &str, card: &str| {
        let output = run("detect --json", "new", fail, &[("CARD", card)]);
        assert!(output.status.success(), "{fail}: {:?}", said(&output));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let devices = found["devices"].as_array().unwrap().clone();
        let cards = devices.into_iter().filter(|device| device["api"] == "cuda").collect::<Vec<_>>();
        cards.into_iter().map(|card| card["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(listed("", "a card that OpenCL does not list"), ["cuda:0"]);
    assert!(listed("cuInit=999", "a card").is_empty());
    if let Some(device) = apportion::device::devices().unwrap_or_default().first() {
        assert!(listed("", &device.name).is_empty(), "{}", device.name);
    }
}
