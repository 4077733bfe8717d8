//! `advect`: the same bytes from every plan, engine and resumption; pictures; refusals by file and field;
//! forecasts, by hand and beside runs.

use super::Bench;
use apportion::kernels::mpdata::Advectable;
use apportion::matrix::npy_header;

/// Writes an array.
pub fn array<T: Advectable>(bench: &Bench, name: &str, sizes: &[usize], value: impl Fn(usize) -> f64) {
    let mut bytes = npy_header::<T>(sizes, false);
    for x in (0..sizes.iter().product()).map(value) {
        match T::NAME {
            "f32" => bytes.extend((x as f32).to_le_bytes()),
            _ => bytes.extend(x.to_le_bytes()),
        }
    }
    bench.write(name, bytes);
}

/// A field of three dimensions and a flow that varies, on the faces.
fn three(bench: &Bench) -> &'static str {
    array::<f64>(bench, "psi.npy", &[12, 9, 5], |i| 1.0 + (i * 7 % 23) as f64);
    array::<f64>(bench, "cx.npy", &[13, 9, 5], |i| 0.01 * (i % 21) as f64 - 0.1);
    array::<f64>(bench, "cy.npy", &[12, 10, 5], |i| 0.2 - 0.015 * (i % 19) as f64);
    array::<f64>(bench, "cz.npy", &[12, 9, 6], |i| 0.1 - 0.02 * (i % 11) as f64);
    "advect --field psi.npy --courant cx.npy,cy.npy,cz.npy --boundary zero,extrapolated,zero --iterations 3 \
     --nonoscillatory --steps 7"
}

#[test]
#[ignore = "slow"]
fn every_plan_and_resumption_gives_the_same_bytes() {
    let bench = Bench::new();
    let call = three(&bench);
    bench.done(&format!("{call} --speeds 1 -o one.npy"));
    let one = bench.bytes("one.npy");
    let again = |flags: &str| {
        let run = bench.json(&format!("{call} {flags} -o other.npy"));
        assert!(bench.bytes("other.npy") == one, "{flags}");
        run
    };
    for flags in [
        "--speeds 3,1,2 --method columns",
        "--speeds 3,1,2,1 --method grid --exchange narrow",
        "--speeds 3,1,2 --method rows --exchange wide --overlap",
        "--speeds 3,1,2,5 --method cartesian --exchange narrow --overlap",
    ] {
        let run = again(flags);
        assert_eq!((&run["application"], &run["steps"]), (&"mpdata".into(), &7.into()));
        // Ratios of speeds give no times.
        assert!(run["forecast_seconds"].is_null() && run["volume"].as_u64().unwrap() > 0);
        let bytes = |field: &str| run[field].clone();
        assert_eq!(bytes("predicted_memory_bytes"), bytes("peak_memory_bytes"));
    }
    bench.done("partition --shape 12x9 --speeds 2,1 --method columns -o plan.json");
    again("--plan plan.json");
    // Three steps, kept; then the rest, with snapshots and pictures.
    let begun = call.replace("--steps 7", "--steps 4");
    bench.done(&format!("{begun} --speeds 1,1 --checkpoint kept --every 3"));
    assert!(bench.has("kept/field-000000000004.npy") && !bench.has("kept/field-000000000003.npy"));
    again("--speeds 5,1,1 --resume kept --every 3 --frames pictures");
    assert!(bench.has("other-000006.npy") && bench.has("pictures/frame-000007.png"));
    // A run that was killed before its first checkpoint begins again by the same command.
    again("--speeds 5,1,1 --resume fresh");
    assert!(bench.has("fresh/field-000000000007.npy"));
    let wrong = bench.fails(2, &format!("{call} --speeds 1 --resume kept --third-order"));
    assert!(wrong.contains("belongs to another advection"), "{wrong}");
}

#[test]
fn mass_is_kept_and_both_precisions_run() {
    let bench = Bench::new();
    array::<f32>(&bench, "line.npy", &[16], |i| f64::from(u8::from((3..8).contains(&i))));
    array::<f64>(&bench, "plane.npy", &[8, 16], |i| (i % 5) as f64);
    for (file, courant) in [("line.npy", "0.5"), ("plane.npy", "0.25,-0.5")] {
        let call = format!("advect --field {file} --courant {courant} --steps 8 --speeds 2,1 -o out.npy");
        let run = bench.json(&call);
        let [before, after] = ["before", "after"].map(|when| run["mass"][when].as_f64().unwrap());
        assert!((after - before).abs() < 1e-5 * before, "{before} {after}");
        assert!(run["least"]["after"].as_f64().unwrap() >= 0.0);
    }
    let text = bench.done("advect --field line.npy --courant 0.5 --steps 8 --speeds 1");
    assert!(text.contains("mass 5.0") && text.contains("Courant numbers add up to at most 0.5"), "{text}");
}

const CELLS: &str = "[[processor]]\nname = \"p0\"\nspeed = \"64 units/s\"\n\
    [[processor]]\nname = \"p1\"\nspeed = \"64 units/s\"\n[network]\nlatency = 1\nbandwidth = 64\n";

/// By hand: a step sends a row of 8 doubles each way (1 s of latency and 1 s at 64 B/s); meanwhile each
/// processor computes 3 of its 4 rows, and then the last one in 1/8 s.
#[test]
fn an_advection_is_simulated_by_hand() {
    let bench = Bench::new();
    bench.write("two.toml", CELLS);
    bench.done("partition --shape 8x8 --speeds 1,1 --method rows -o plan.json");
    let line = "simulate --platform two.toml --iterations 1 --boundary zero --steps 3";
    let said = bench.json(&format!("{line} --plan plan.json --grid 8x8 --explain p0"));
    assert_eq!((&said["seconds"], &said["steps"]), (&6.375.into(), &3.into()));
    assert_eq!((&said["exchange"], &said["overlap"]), (&"wide".into(), &true.into()));
    assert_eq!(said["processors"][0]["compute"], 1.5);
    assert_eq!(said["explain"]["waits"][0]["bytes"], 64.0);
    // Eight levels: eight times the bytes and the cells. Without a plan the fastest layout is taken.
    let deep = bench.json(&format!("{line} --grid 8x8x8"));
    assert_eq!((&deep["seconds"], &deep["method"]), (&(3.0 * (1.0 + 8.0 + 1.0)).into(), &"columns".into()));
    let fair = bench.json(&format!("{line} --grid 8x8 --plan plan.json --sharing fair"));
    assert!((fair["seconds"].as_f64().unwrap() - 6.375).abs() < 1e-9);
    // A plan of a grid says its sizes.
    bench.done("arrange --grid 8x8 --platform two.toml -o grid.json");
    let text = bench.done(&format!("{line} --plan grid.json --trace timeline.svg"));
    assert!(text.contains("3 of 1 pass") && text.contains("wide halo, overlap"), "{text}");
    assert!(bench.text("timeline.svg").contains("3 time steps"));
    for (flags, word) in [
        ("--plan grid.json --flow ring", "--flow"),
        ("--plan grid.json --export-simgrid to", "--export-simgrid"),
        ("--plan grid.json --grid 8x9", "divides 8 x 8"),
        ("--plan plan.json", "--iterations"),
        ("--grid 8x0", "--grid"),
        ("--grid 8x8x8x8", "--grid"),
    ] {
        let error = bench.fails(2, &format!("{line} {flags}"));
        assert!(error.contains(word), "{flags}: {error}");
    }
    let error = bench.fails(1, "simulate --platform two.toml --grid 8x8 --steps 1e12");
    assert!(error.contains("--steps"), "{error}");
}

/// From measured speeds and from an arrangement to a run and its forecast, on files.
#[test]
fn measured_models_and_arranged_grids_feed_advect() {
    let bench = Bench::new();
    array::<f64>(&bench, "psi.npy", &[32, 32, 4], |i| 1.0 + (i % 7) as f64);
    bench.done("measure --kernel mpdata-f64 --processors 2 --sizes 1024,4096 -o models.json");
    bench.done("partition --shape 32x32 --models models.json --method rows -o plan.json");
    bench.write(
        "platform.toml",
        "[[processor]]\nname = \"p0\"\n[[processor]]\nname = \"p1\"\n[network]\nlatency = 1e-6\n\
         bandwidth = { horizontal = \"1 GB/s\", vertical = \"2 GB/s\" }\n",
    );
    bench.done("arrange --grid 32x32 --platform platform.toml -o grid.json");
    let call = "advect --field psi.npy --courant 0.25,-0.125,0.1 --steps 3";
    for plan in ["plan.json", "grid.json"] {
        let run = bench.json(&format!("{call} --models models.json --plan {plan} -o out.npy"));
        assert!(run["forecast_seconds"].as_f64().unwrap() > 0.0, "{plan}");
        let line = "simulate --grid 32x32x4 --platform platform.toml --models models.json --steps 3";
        let said = bench.json(&format!("{line} --plan {plan}"));
        let sum: f64 =
            said["processors"].as_array().unwrap().iter().map(|p| p["compute"].as_f64().unwrap()).sum();
        assert!(sum > 0.0 && said["seconds"].as_f64().unwrap() >= sum / 2.0, "{plan}: {said}");
    }
    let names = bench.value("models.json");
    assert_eq!((&names["kernel"], &names["parameters"]["passes"]), (&"mpdata-f64".into(), &2.0.into()));
}

/// Where speeds and links are emulated by the clock, the forecast is what the run takes. The band is wide
/// because a busy machine delays threads; `--example advection_forecast` prints the errors.
#[test]
fn the_forecast_is_what_an_emulated_run_takes() {
    let bench = Bench::new();
    let processors = [12_000, 6_000, 6_000].iter().enumerate();
    let processors =
        processors.map(|(i, speed)| format!("[[processor]]\nname = \"p{i}\"\nemulated = \"peak {speed}\"\n"));
    let network = "[network]\nemulate = true\nlatency = \"4 ms\"\n\
                   bandwidth = { horizontal = \"200 kB/s\", vertical = \"400 kB/s\" }\n";
    bench.write("platform.toml", processors.collect::<String>() + network);
    array::<f64>(&bench, "psi.npy", &[20, 20, 4], |i| 1.0 + (i % 7) as f64);
    let call = "advect --field psi.npy --courant 0.25,-0.125,0.1 --steps 6 --platform platform.toml \
                --method columns";
    for exchange in ["wide", "narrow"] {
        let run = bench.json(&format!("{call} --exchange {exchange}"));
        let [forecast, measured] = ["forecast_seconds", "seconds"].map(|field| run[field].as_f64().unwrap());
        assert!(
            (0.95..2.0).contains(&(measured / forecast)),
            "{exchange}: {forecast} s, measured {measured} s"
        );
    }
}
