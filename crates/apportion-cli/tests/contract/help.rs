//! Help, completions, man pages, and tables that fit the terminal.

use crate::bench::{Bench, TWO};
use apportion_testing::holds;

const COMMANDS: [&str; 18] = [
    "detect",
    "measure",
    "merge",
    "balance",
    "run",
    "partition",
    "plot",
    "arrange",
    "matmul",
    "power",
    "closure",
    "factor",
    "solve",
    "mdem",
    "simulate",
    "study",
    "random",
    "demo",
];

#[test]
fn every_help_fits_eighty_columns_and_examples_are_whole() {
    let bench = Bench::new();
    for command in COMMANDS {
        let text = bench.done(&[command, "--help"]);
        let mut open = false;
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{command}: {line}");
            // A continued example ends in a backslash, and what follows is indented further.
            assert!(!open || line.starts_with("      "), "{command}: {line}");
            open = line.ends_with(" \\");
        }
    }
    let help = bench.done("matmul --help");
    holds(
        &help,
        &["Processors and speeds:", "Flow:", "Running:", "Output:", "- bulk: all communication, then"],
    );
    let (_, global) = help.split_once("Global options:").unwrap();
    assert!(global.contains("--quiet") && global.contains("--help"), "{global}");
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = bench.done(&format!("completions {shell}"));
        for word in COMMANDS {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    std::fs::create_dir(bench.path("man1")).unwrap();
    bench.done("man man1");
    for command in COMMANDS {
        let page = std::fs::read_to_string(bench.path(&format!("man1/apportion-{command}.1"))).unwrap();
        assert!(page.starts_with(".ie") || page.contains(".TH"), "{command}: {page}");
        assert!(page.contains("json"), "{command} has the global flags");
    }
    assert!(bench.has("man1/apportion.1"));
}

/// The widest tables, at the default width: every line fits, and no figure is lost.
#[test]
fn tables_fit_eighty_columns() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.write("slow.toml", format!("{TWO}[network]\nlatency = \"1 ms\"\nbandwidth = \"100 Mbit/s\"\n"));
    let runs: [&[&str]; 4] = [
        &["partition", "--shape", "500x500", "--platform", "slow.toml", "--compare"],
        &["simulate", "--shape", "500x500", "--platform", "slow.toml", "--sweep", "ratio=1..4"],
        &["study", "--draws", "2000", "--searched", "1", "--processors", "2..4"],
        &["matmul", "a.npy", "a.npy", "--platform", "two.toml", "-v"],
    ];
    bench.matrix("a.npy", &crate::bench::whole::<f64>(64, 64, 1));
    for run in runs {
        let output = bench.command(run).env("COLUMNS", "80").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && !text.is_empty());
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{run:?}: {line}");
        }
    }
    let sweep = bench.done(runs[1]);
    holds(&sweep, &["winner", "straight-line", "square-corner", "ratio"]);
    assert!(sweep.lines().filter(|line| line.starts_with("ratio")).count() > 1, "{sweep}");
}
