//! A short round of each part of the campaign, so that a regression is found before a release. The long
//! rounds are commands: see CONTRIBUTING.md.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

use apportion_testing::{Need, skip};
use std::process::Command;

/// Runs a part of the campaign, which must find no defect. What a part needs and the machine lacks is
/// reported.
fn finds_nothing(part: &str) {
    let finds = tempfile::tempdir().unwrap();
    let mut campaign = Command::new(env!("CARGO_BIN_EXE_campaign"));
    let output =
        campaign.args(part.split(' ')).arg("--finds").arg(finds.path().join("finds")).output().unwrap();
    let (said, table) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    if !output.status.success() {
        // The inputs that reveal a defect would be lost with their directory.
        panic!("campaign {part}: {said}: kept in {}", finds.keep().display());
    }
    if let Some(why) = table.lines().find(|line| line.contains("skipped: ")) {
        let need = if why.contains("mpirun") { Need::Mpi } else { Need::Compiler };
        skip(need, format!("campaign {part}: {why}"));
    }
}

#[test]
fn lost_late_and_doubled_messages_do_no_harm() {
    finds_nothing("messages --most 1");
}

/// The whole corpus, which has what was a defect once, and a fraction of a second of damaged inputs for each
/// parser.
#[test]
fn damaged_input_is_used_or_refused_in_one_line() {
    finds_nothing("fuzz --seconds 0.3");
}

#[test]
fn failing_system_calls_lose_nothing() {
    finds_nothing("faults --most 3");
}

#[test]
fn refused_memory_loses_nothing() {
    finds_nothing("memory --most 6");
}

#[test]
fn killed_runs_are_finished_to_the_same_bytes() {
    finds_nothing("kills --count 3");
}

#[test]
fn random_configurations_give_the_same_bytes() {
    finds_nothing("bytes --count 4");
}

#[test]
fn many_products_leave_nothing_behind() {
    finds_nothing("load --count 20 --together 8");
}

#[test]
fn refused_threads_lose_nothing() {
    finds_nothing("threads --most 4");
}
