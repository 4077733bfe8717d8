//! Flags: old names, numbers as people write them, and rejected flags that a mode would ignore.

use super::bench::Bench;
use serde_json::json;

#[test]
fn renamed_flags_keep_their_old_names() {
    let here = Bench::new();
    let shares =
        |flags: &str| here.json(&format!("partition --units 100 --speeds 9,1 {flags}"))["shares"].clone();
    assert_eq!(shares("--least 20"), json!([80, 20]));
    assert_eq!(shares("--most 70"), shares("--max 70"));
    here.done("partition --shape 64x64 --speeds 9,1 -o plan.json");
    here.write("two.toml", TWO);
    let line = "simulate --plan plan.json --platform two.toml --sharing fair";
    let simulated = |flag: &str| {
        let mut value = here.json(&format!("{line} {flag} 0.1"));
        let provenance = value.as_object_mut().unwrap().remove("provenance").unwrap();
        assert!(provenance["command"].as_str().unwrap().ends_with(&format!("{flag} 0.1 --json")));
        value
    };
    assert_eq!(simulated("--coarse"), simulated("--rate-tolerance"));
    let help = |command: &str| here.done(&format!("{command} --help"));
    for (command, new, old) in [
        ("partition", "--min ", "--least"),
        ("partition", "--max ", "--most"),
        ("simulate", "--rate-tolerance", "--coarse"),
        ("matmul", "--remeasure", "--fresh"),
    ] {
        let help = help(command);
        assert!(help.contains(new) && !help.contains(old), "{command}: {help}");
    }
}

#[test]
fn numbers_are_read_as_people_write_them() {
    let here = Bench::new();
    let units = |line: &str| here.json(&format!("partition {line}"))["shares"].clone();
    assert_eq!(units("--units 1e6 --speeds 9:1"), json!([900_000, 100_000]));
    assert_eq!(units("--units 2.5M --speeds 9,1 --max 2M,1M"), json!([2_000_000, 500_000]));
    assert_eq!(units("--shape 1kx1k --speeds 3:1 --method straight-line"), json!([750_000, 250_000]));
}

/// Each flag of `partition` and `plot` does something in a mode, or is refused there by its name.
#[test]
fn every_flag_of_the_planning_commands_is_used_or_refused() {
    let here = Bench::new();
    here.write("two.toml", TWO);
    here.done("partition --units 100 --platform two.toml -o plan.json");
    let units = "partition --units 100 --speeds 9,1";
    let shape = "partition --shape 64x64 --speeds 9,1";
    let saved = "partition --plan plan.json --export csv";
    let graph = "partition --graph mesh.graph --speeds 9,1";
    here.write("mesh.graph", "2 1\n2\n1\n");
    // A value for the flag, and whether units, shapes, saved plans and graphs use it; `None` takes no value.
    let flags: [(&str, Option<&str>, [bool; 4]); 49] = [
        ("--units", Some("5"), [true, false, false, false]),
        ("--shape", Some("8x8"), [false, true, false, false]),
        ("--kind", Some("lu"), [false, true, false, false]),
        ("--graph", Some("mesh.graph"), [false, false, false, true]),
        ("--parts", Some("parts"), [false, false, false, true]),
        ("--coordinates", Some("mesh.xyz"), [false, false, false, true]),
        ("--nodal", None, [false, false, false, true]),
        ("--common", Some("2"), [false, false, false, true]),
        ("--values", None, [false, false, false, true]),
        ("--plan", Some("plan.json"), [false, false, true, false]),
        ("--speeds", Some("1,1"), [true, true, false, true]),
        ("--models", Some("m.json"), [true, true, false, true]),
        ("--platform", Some("two.toml"), [true, true, false, true]),
        ("--surfaces", Some("s.json"), [true, true, false, false]),
        ("--at", Some("n=5"), [true, false, false, false]),
        ("--method", Some("even"), [true, true, false, true]),
        ("--communication", Some("serial"), [false, true, false, false]),
        ("--groups", Some("p0;p1"), [false, true, false, false]),
        ("--minimise", Some("sum"), [false, true, false, false]),
        ("--levels", Some("rows"), [false, true, false, false]),
        ("--granularity", Some("8"), [false, true, false, false]),
        ("--repeat", Some("8x8"), [false, true, false, false]),
        ("--mesh", Some("1x2"), [false, true, false, false]),
        ("--shares", Some("overlap"), [false, true, false, false]),
        ("--keep-all", None, [false, true, false, false]),
        ("--left-over", Some("first"), [true, true, false, false]),
        ("--messages", Some("separate"), [false, true, false, false]),
        ("--compare", None, [false, true, false, true]),
        ("--flow", Some("ring"), [false, true, false, false]),
        ("--overlap", None, [false, true, false, false]),
        ("--look-ahead", Some("2"), [false, true, false, false]),
        ("--block", Some("8"), [false, true, false, false]),
        ("--blocks", Some("2"), [false, true, false, false]),
        ("--output", Some("o.json"), [true, true, false, true]),
        ("--svg", Some("o.svg"), [true, true, true, true]),
        ("--export", Some("csv"), [true, true, true, true]),
        ("--export-to", Some("o.csv"), [true, true, true, true]),
        ("--robust", None, [true, false, false, false]),
        ("--objective", Some("time"), [true, false, false, false]),
        ("--costs", Some("costs"), [true, false, false, true]),
        ("--unit-memory", Some("costs"), [true, false, false, false]),
        ("--any-order", None, [true, false, false, false]),
        ("--min", Some("1"), [true, false, false, true]),
        ("--max", Some("90"), [true, false, false, true]),
        ("--multiple-of", Some("1"), [true, false, false, false]),
        ("--bytes-per-unit", Some("1"), [true, false, false, true]),
        ("--mix", Some("0.5"), [true, false, false, false]),
        ("--any-size", None, [true, false, false, false]),
        ("--hierarchical", None, [true, false, false, false]),
    ];
    let known: Vec<String> = named_in(&here.done("partition --help"));
    let listed: Vec<&str> = flags.iter().map(|f| f.0).collect();
    assert!(known.iter().all(|flag| listed.contains(&flag.as_str())), "{known:?} against {listed:?}");
    assert!(listed.iter().all(|flag| known.iter().any(|k| k == flag)), "{known:?} against {listed:?}");
    for (flag, value, used) in flags {
        for (line, used) in [units, shape, saved, graph].into_iter().zip(used) {
            if !used {
                let line = format!("{line} {flag} {}", value.unwrap_or(""));
                let told = here.fails(2, line.trim());
                assert!(told.contains(flag), "{line}: {told}");
            }
        }
    }
    let mut of_plot = named_in(&here.done("plot --help"));
    of_plot.sort();
    of_plot.dedup();
    assert_eq!(of_plot, ["--log", "--models", "--platform", "--speeds", "--svg", "--to", "--units"]);
}

/// The flags that a help text lists, but for the global ones.
fn named_in(help: &str) -> Vec<String> {
    let flag = |line: &str| {
        let start = line.trim_start();
        let start =
            start.split_once(", --").filter(|(short, _)| short.len() == 2).map_or(start, |(_, long)| long);
        let name = start.trim_start_matches("--").split([' ', '<', '[', '.']).next().unwrap_or_default();
        (line.trim_start().starts_with('-') && name.starts_with(|c: char| c.is_ascii_lowercase()))
            .then(|| format!("--{name}"))
    };
    let global = ["--json", "--quiet", "--verbose", "--help"];
    help.lines().filter_map(flag).filter(|name| !global.contains(&name.as_str())).collect()
}

const TWO: &str = "[[processor]]\nname = \"p0\"\nspeed = \"9 Gflop/s\"\n[[processor]]\nname = \"p1\"\nspeed \
= \"1 Gflop/s\"\n\
    [network]\nlatency = \"1 us\"\nbandwidth = \"1 Gbit/s\"\n";
