//! The documents' machines: every file is read, and holds the numbers of its source.
#![allow(clippy::unwrap_used)] // A test says what went wrong by failing.

use apportion::{Platform, Rank, read_platform};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms")
}

fn platform(name: &str) -> Platform {
    read_platform(&folder().join(format!("{name}.toml"))).expect("the file is read")
}

/// Horizontal and vertical MB/s between the first processors of two clusters (the second of one cluster).
fn megabytes(platform: &Platform, from: &str, to: &str) -> (f64, f64) {
    let find = |cluster: &str, skip: Option<usize>| {
        let mut found = platform.processors.iter().enumerate();
        let place = found.position(|(i, p)| p.cluster == cluster && Some(i) != skip);
        place.unwrap_or_else(|| panic!("no {cluster}"))
    };
    let first = find(from, None);
    let link = platform.network.link(Rank(first), Rank(find(to, Some(first))));
    (link.horizontal / 1e6, link.vertical / 1e6)
}

#[test]
fn every_file_is_read() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "toml") {
            read_platform(&path).unwrap();
            count += 1;
        }
    }
    assert!(count >= 8, "{count} platforms");
}

#[test]
fn the_hcl_cluster_has_sixteen_nodes() {
    for (name, clusters) in [("hcl", 1), ("hcl-two-clusters", 2), ("hcl-hybrid", 3), ("hcl-hierarchy", 3)] {
        let hcl = platform(name);
        let speed: f64 = hcl.speeds().unwrap().iter().map(|s| s.value()).sum();
        // Table 3.1 prints a total of 42,827 MFlops; its sixteen lines add up to 41,267.
        assert_eq!((hcl.len(), speed), (16, 41_267e6), "{name}");
        let names: std::collections::BTreeSet<&str> =
            hcl.processors.iter().map(|p| p.cluster.as_str()).collect();
        assert_eq!(names.len(), clusters);
    }
    assert_eq!(megabytes(&platform("hcl-hierarchy"), "switch1", "switch2").0, 62.5);
    assert_eq!(megabytes(&platform("hcl-hierarchy"), "switch1", "both").0, 125.0);
}

#[test]
fn grid_5000_has_the_printed_bandwidths() {
    let nine = platform("grid5000-table-3-9");
    assert_eq!(nine.len(), 90);
    assert_eq!(megabytes(&nine, "luxembourg/granduc", "sophia/suno").0, 28.90);
    assert_eq!(megabytes(&nine, "lyon/taurus", "lyon/taurus").0, 6850.27);
    let eleven = platform("grid5000-table-3-11");
    assert_eq!(eleven.len(), 90);
    assert_eq!(megabytes(&eleven, "grenoble/genepi", "grenoble/edel").0, 891.02);
    assert_eq!(megabytes(&eleven, "lyon/orion", "lyon/orion").0, 6908.83);
    let three = platform("grid5000-table-3-3");
    assert_eq!((three.len(), megabytes(&three, "c0", "c2").0), (16, 249.53));
    let four = platform("grid5000-table-4-1");
    assert_eq!(four.len(), 12);
    assert_eq!(megabytes(&four, "nancy/grimoire", "nancy/grisou"), (38.89, 493.41));
    assert_eq!(megabytes(&four, "rennes/parasilo", "nancy/grisou"), (0.07, 0.56));
}
