//! The documents' machines: every file is read, and holds the numbers of its source.

use apportion::geometry::Rank;
use apportion::plan::Shape;
use apportion::plan::shapes::{Columns, LayoutMethod};
use apportion::platform::{LinkBookings, Load, Platform, Topology, read_platform};
use apportion::schedule::{Flow, ScheduleOptions};
use apportion::select::forecast;
use apportion::simulate::{CostModel, Deployment, Fluid, Host, parse_traces, simulate_actions};
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

/// Speeds as given, or one core's divided by the slowdown: every file is read and a product on it is
/// forecast.
#[test]
fn every_file_is_read_and_simulated() {
    let mut all = under(&folder(), "toml");
    all.sort();
    assert!(all.len() >= 90, "{} platforms", all.len());
    for path in all {
        let platform = read_platform(&path).unwrap();
        let speed = |p: &apportion::platform::Processor| p.speed.map_or(1e9 / p.slowdown, |s| s.value());
        let rates: Vec<f64> = platform.processors.iter().map(speed).collect();
        let shape = Shape::new(600, 600, 600, "test").unwrap();
        let layout = Columns::default().layout(shape, &rates).unwrap();
        for flow in Flow::ALL {
            let order = ScheduleOptions::new(flow, 300);
            let costs = CostModel { rates: &rates, network: &platform.network, element: 8 };
            let forecast = forecast(&layout, order, costs).unwrap();
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
}

/// Seconds of messages of 100 MB that are posted at once, by one rule or the other.
fn seconds(platform: &Platform, messages: &[[usize; 2]]) -> [f64; 2] {
    let scripts: Vec<(String, String)> = (0..platform.len())
        .map(|rank| {
            let send = |m: &&[usize; 2]| format!("{rank} isend {} 0 1e8\n", m[1]);
            let receive = |m: &&[usize; 2]| format!("{rank} irecv {} 0 1e8\n", m[0]);
            let sends: String = messages.iter().filter(|m| m[0] == rank).map(|m| send(&m)).collect();
            let receives: String = messages.iter().filter(|m| m[1] == rank).map(|m| receive(&m)).collect();
            (
                format!("rank {rank}"),
                format!("{rank} init\n{receives}{sends}{rank} waitall\n{rank} finalize\n"),
            )
        })
        .collect();
    let hosts: Vec<Host> = platform.processors.iter().map(|_| Host { speed: 1.0, cores: 1 }).collect();
    let placement: Vec<usize> = (0..platform.len()).collect();
    let names = platform.names();
    let on = Deployment { hosts: &hosts, placement: &placement, names: &names, network: &platform.network };
    let mut scripts: Vec<_> = parse_traces(&scripts).unwrap().into_iter().map(Vec::into_iter).collect();
    let fair = simulate_actions(&mut scripts, on, &Fluid::fair(), false).unwrap().trace.seconds();
    let mut links = LinkBookings::new(&platform.network);
    let load = Load { horizontal: 1e8, vertical: 0.0 };
    let arrivals = messages.iter().map(|&[from, to]| links.book(Rank(from), Rank(to), load, 0.0).arrival);
    [fair, arrivals.fold(0.0, f64::max)]
}

/// Section 3.4.3: all pairs across the switches share one cable, and all senders to a node its port.
#[test]
fn the_hcl_cluster_shares_its_cable_and_its_ports() {
    let across = [[0, 8], [1, 9], [2, 10], [3, 11]];
    let into_one = [[1, 0], [2, 0], [3, 0], [4, 0]];
    let close = |found: [f64; 2], expected: f64| found.iter().all(|s| (s - expected).abs() < 1e-6 * expected);
    let two = platform("hcl-two-clusters");
    assert!(close(seconds(&two, &across), 3.2), "{:?}", seconds(&two, &across));
    let hybrid = platform("hcl-hybrid");
    let outside = [[2, 9], [3, 10], [4, 11], [5, 12]];
    assert!(close(seconds(&hybrid, &outside), 3.2), "{:?}", seconds(&hybrid, &outside));
    for name in ["hcl", "hcl-two-clusters"] {
        let hcl = platform(name);
        assert!(close(seconds(&hcl, &into_one), 3.2), "{name}: {:?}", seconds(&hcl, &into_one));
    }
    // hcl01 and hcl02 forward 1 Gbit/s each way each.
    let hierarchy = platform("hcl-hierarchy");
    assert!((seconds(&hierarchy, &outside)[0] - 1.6).abs() < 1e-6);
}

/// The index lists every file, and every file that the documentation or the help names exists.
#[test]
fn the_index_and_the_documentation_name_the_files() {
    let index = std::fs::read_to_string(folder().join("README.md")).unwrap();
    let listed = |name: &str| index.contains(&format!("| `{name}` |"));
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let name = if path.is_dir() { format!("{name}/") } else { name };
        assert!(name == "README.md" || listed(&name), "platforms/README.md does not list {name}");
    }
    let root = folder().join("..");
    let mut texts = vec![root.join("README.md"), folder().join("README.md")];
    for (tree, ending) in
        [("docs", "md"), ("crates/apportion-cli/src", "rs"), ("crates/apportion/examples", "rs")]
    {
        texts.extend(under(&root.join(tree), ending));
    }
    let mut named = 0;
    for text in texts {
        let content = std::fs::read_to_string(&text).unwrap();
        for place in content.split("platforms/").skip(1) {
            let end = place.find(|c: char| !(c.is_ascii_alphanumeric() || "-_./*".contains(c)));
            let name = place[..end.unwrap_or(place.len())].trim_end_matches('.');
            if name.ends_with(".toml") || name.ends_with(".json") {
                named += 1;
                assert!(folder().join(name).exists(), "{} names platforms/{name}", text.display());
            }
        }
    }
    assert!(named > 20, "{named}");
}

/// All files of a tree with this ending.
fn under(tree: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(tree).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(under(&path, ending));
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
    found
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
