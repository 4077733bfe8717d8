//! `measure --network`: an emulated network is measured correctly, and the resulting file is usable at once.

use super::bench::Bench;
use serde_json::Value;

const LABORATORY: &str = r#"name = "laboratory"
[[processor]]
name = "a"
speed = 3
[[processor]]
name = "b"
speed = 2
memory = "1 GiB"
[[processor]]
name = "c"
speed = 1
[network]
latency = "8 ms"
bandwidth = "20 MB/s"
duplex = false
emulate = true
[[network.link]]
between = ["a", "b"]
latency = "3 ms"
bandwidth = { horizontal = "5 MB/s", vertical = "40 MB/s" }
[[network.link]]
between = ["c", "a"]
directed = true
bandwidth = "5 MB/s"
"#;

/// Whether the measurement matches [`LABORATORY`]. Sleeps on a busy machine end late: latencies may be far
/// higher, and bandwidths somewhat lower.
fn agrees(found: &Value) -> Result<(), String> {
    let links = found["links"].as_array().unwrap();
    // (from, to, one way only, latency in ms, horizontal and vertical in MB/s).
    let expected = [
        ("a", "b", false, 3.0, 5.0, 40.0),
        ("a", "c", true, 8.0, 20.0, 20.0),
        ("c", "a", true, 8.0, 5.0, 5.0),
        ("b", "c", false, 8.0, 20.0, 20.0),
    ];
    for (from, to, directed, latency, horizontal, vertical) in expected {
        let link = links
            .iter()
            .find(|l| l["between"][0] == from && l["between"][1] == to)
            .unwrap_or_else(|| panic!("{from} {to} in {links:?}"));
        if directed {
            assert_eq!(link["directed"], true);
        }
        assert!(link["horizontal"]["low"].as_f64() <= link["horizontal"]["bandwidth"].as_f64());
        assert!(
            link["latency_ci"].as_f64().unwrap() >= 0.0 && link["vertical"]["messages"].as_u64() > Some(5)
        );
        for (value, wanted, low, high) in [
            (&link["latency"], 1e-3 * latency, 0.8, 3.0),
            (&link["horizontal"]["bandwidth"], 1e6 * horizontal, 0.5, 1.5),
            (&link["vertical"]["bandwidth"], 1e6 * vertical, 0.4, 2.0),
        ] {
            let value = value.as_f64().unwrap();
            if !(low * wanted <= value && value <= high * wanted) {
                return Err(format!("{value}, not {wanted}: {link}"));
            }
        }
    }
    Ok(())
}

#[test]
fn an_emulated_network_is_found_again() {
    let place = &Bench::new();
    place.write("lab.toml", LABORATORY);
    let call = "measure --network --platform lab.toml -o out.toml --sizes 1,20000,200000 --max-repetitions 8";
    // A machine that is busy for a moment measures something else: it may try again.
    let attempts = (0..3).map(|_| agrees(&place.json(call)).err());
    let failures: Vec<String> = attempts.map_while(|failure| failure).collect();
    assert!(failures.len() < 3, "{failures:#?}");

    // The file is a platform: it keeps all previous fields and is usable at once.
    let text = place.text("out.toml");
    for kept in ["memory = \"1073741824 B\"", "duplex = false", "emulate = true", "# a - b: latency"] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    let plan = ["partition", "--shape", "60x60", "--platform", "out.toml", "-o", "plan.json"];
    assert_eq!(place.json(&plan)["processors"].as_array().unwrap().len(), 3);
    let times = place.json("simulate --plan plan.json --platform out.toml --flow bulk");
    // No message takes less than the smallest latency, 3 ms, and at least one is waited for.
    assert!(times["seconds"].as_f64().unwrap() > 0.0029, "{times}");
    let columns = [
        "partition",
        "--shape",
        "60x60",
        "--platform",
        "out.toml",
        "--method",
        "columns",
        "-o",
        "columns.json",
    ];
    place.json(&columns);
    place.json("arrange --plan columns.json --platform out.toml --objective bandwidth");
}

#[test]
fn this_machines_memory_is_a_network_too() {
    let place = &Bench::new();
    let call = "measure --network --processors 2 --max-repetitions 5 -o two.toml --sizes 1,4e6,3.2e7";
    let out = place.run(call);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.contains("latency") && text.contains("p0 ") && text.contains("/s"), "{text}");
    assert!(place.text("two.toml").contains("[[network.link]]"));
}

#[test]
fn wrong_calls_say_what_is_wrong() {
    let place = &Bench::new();
    place.write("one.toml", "[[processor]]\nname = \"a\"\n");
    let cases: [(&str, &str); 7] = [
        ("--platform one.toml", "at least two"),
        ("--processors 2 --sizes 1,2", "ascending"),
        ("--processors 2 --sizes 3,2,1", "ascending"),
        ("--processors 2 --sizes 1,2.5,9", "2.5"),
        ("--processors 2 --sizes 1,2,1e12", "2^30"),
        ("--processors 2 --kernel gemm-f64", "--kernel"),
        ("--processors 2 --tolerance 0", "--tolerance"),
    ];
    for (flags, expected) in cases {
        let out = place.run(&format!("measure --network -o o.toml {flags}"));
        let error = apportion_testing::without_progress(&String::from_utf8(out.stderr).unwrap());
        assert_eq!(out.status.code(), Some(2), "{error}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
        assert!(out.stdout.is_empty() && !place.join("o.toml").exists());
    }
}
