//! The documents' machines: every file is read, and holds the numbers of its source.

use apportion::geometry::Rank;
use apportion::plan::Shape;
use apportion::plan::shapes::columns;
use apportion::platform::{Platform, Topology, read_platform};
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::select::forecast;
use apportion::simulate::CostModel;
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

/// All platform files, those of subfolders too.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            Some(ending) if ending == "toml" => found.push(path),
            None if path.is_dir() => found.extend(files(&path)),
            _ => {}
        }
    }
    found.sort();
    found
}

/// Speeds as given, or one core's divided by the slowdown: every file is read and a product on it is
/// forecast.
#[test]
fn every_file_is_read_and_simulated() {
    let all = files(&folder());
    assert!(all.len() >= 90, "{} platforms", all.len());
    for path in all {
        let platform = read_platform(&path).unwrap();
        let speed = |p: &apportion::platform::Processor| p.speed.map_or(1e9 / p.slowdown, |s| s.value());
        let rates: Vec<f64> = platform.processors.iter().map(speed).collect();
        let shape = Shape::new(600, 600, 600, "test").unwrap();
        let layout = columns(shape, &rates).unwrap();
        for flow in Flow::ALL {
            let order = ScheduleOptions::new(flow, 300);
            let conditions = CostModel { rates: &rates, network: &platform.network, element: 8 };
            let forecast = forecast(&layout, order, conditions).unwrap();
            // No faster than the computation alone, were all processors busy all the time.
            let least = 600f64.powi(3) / rates.iter().sum::<f64>();
            let seconds = forecast.seconds;
            assert!(seconds.is_finite() && seconds >= least * 0.999, "{}: {seconds} s", path.display());
        }
    }
}

#[test]
fn becker_s_clusters() {
    let two = platform("becker-two-clusters");
    assert_eq!((two.len(), megabytes(&two, "cluster1", "cluster2").0), (6, 12.5));
    assert_eq!(megabytes(&two, "cluster1", "cluster1").0, 125.0);
    for (name, topology) in [
        ("becker-three-star", Topology::Star { centre: Rank(0) }),
        ("becker-three-full", Topology::Full),
        ("becker-three-sites", Topology::Star { centre: Rank(0) }),
    ] {
        let three = platform(name);
        assert_eq!((three.len(), three.network.topology), (3, topology));
        let speeds: Vec<f64> = three.speeds().unwrap().iter().map(|s| s.value()).collect();
        assert_eq!(speeds[0], 8.0 * speeds[1]);
        assert_eq!(speeds[1], speeds[2]);
    }
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
