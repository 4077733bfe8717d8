//! `apportion arrange`: only the mapping changes, for every plan; the figures of Malik's thesis from files.

use super::bench::Bench;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

const OBJECTIVES: [&str; 6] = [
    "--objective hops --flow ring",
    "--objective hops --flow one-to-all",
    "--objective bandwidth --flow ring",
    "--objective bandwidth --flow one-to-all",
    "--objective asymmetric --edges periodic",
    "--objective asymmetric --edges open",
];

const SEARCHES: [[&str; 2]; 2] =
    [["", "--search exhaustive"], ["--search heuristic", "--search local --seed 3"]];

/// Six processors on a tree of depth three, with slow links out of a site and of a rack.
const TREE: [(&str, &str, f64); 6] = [
    ("a1", "s/r1/n1", 4.0),
    ("b1", "s/r2/n1", 3.0),
    ("a2", "s/r1/n1", 2.0),
    ("c1", "t/r1/n1", 2.0),
    ("b2", "s/r2/n2", 1.0),
    ("c2", "t/r1/n1", 1.0),
];

fn write_tree(directory: &Bench) {
    let mut text = String::new();
    for (name, cluster, speed) in TREE {
        let _ = writeln!(text, "[[processor]]\nname = \"{name}\"\ncluster = \"{cluster}\"\nspeed = {speed}");
    }
    text += "[network]\nbandwidth = \"100 MB/s\"\n";
    for (of, bandwidth) in [("s", 10), ("s/r1", 50), ("t", 20)] {
        let _ = writeln!(text, "[[network.uplink]]\nof = \"{of}\"\nbandwidth = \"{bandwidth} MB/s\"");
    }
    directory.write("tree.toml", text);
}

fn total(report: &Value, which: &str) -> f64 {
    let cost = &report[which];
    let (a, b) = (cost["a"].as_f64().unwrap(), cost["b"].as_f64().unwrap());
    let total = cost["total"].as_f64().unwrap();
    assert!((a + b - total).abs() <= 1e-12 * total, "{cost}");
    total
}

/// Columns as (width, [(height, cluster)]): a plan with one processor per rectangle, and its platform.
fn write_figure(directory: &Bench, columns: &[(u64, &[(u64, usize)])]) {
    let (mut platform, mut layout, mut left) = (String::new(), Vec::new(), 0);
    for (width, blocks) in columns {
        let mut top = 0;
        for (height, cluster) in *blocks {
            let owner = layout.len();
            let _ = writeln!(platform, "[[processor]]\nname = \"p{owner}\"\ncluster = \"c{cluster}\"");
            layout.push(json!({"owner": owner, "rows": [top, top + height], "cols": [left, left + width]}));
            top += height;
        }
        left += width;
    }
    let side =
        |i: usize, axis: &str| layout[i][axis][1].as_u64().unwrap() - layout[i][axis][0].as_u64().unwrap();
    let shares: Vec<u64> = (0..layout.len()).map(|i| side(i, "rows") * side(i, "cols")).collect();
    let names: Vec<String> = (0..layout.len()).map(|i| format!("p{i}")).collect();
    let plan = json!({"format": "apportion-plan", "version": 1, "method": "columns",
        "problem": {"kind": "matmul", "m": 32, "k": 33, "n": 33}, "processors": names, "shares": shares,
        "layout": layout, "metrics": {"imbalance": 1.0}});
    directory.write("plan.json", plan.to_string());
    directory.write("clusters.toml", platform);
}

/// Malik 2016, figures 3.6 and 3.7: the numbers of its text, on a reconstruction of the drawings.
#[test]
fn the_hops_of_the_thesis_s_figures() {
    let directory = Bench::new();
    let worst: &[(u64, &[(u64, usize)])] = &[
        (12, &[(17, 0), (15, 1)]),
        (12, &[(14, 0), (10, 1), (8, 2)]),
        (9, &[(11, 1), (9, 2), (6, 0), (6, 0)]),
    ];
    let optimal: &[(u64, &[(u64, usize)])] = &[
        (12, &[(15, 1), (17, 0)]),
        (12, &[(14, 1), (10, 2), (8, 2)]),
        (9, &[(6, 0), (9, 0), (11, 2), (6, 2)]),
    ];
    for (figure, a, b) in [(worst, 64.0, 63.0), (optimal, 50.0, 54.0)] {
        write_figure(&directory, figure);
        let report = directory.json("arrange --plan plan.json --platform clusters.toml --objective hops");
        assert_eq!(report["cost_before"], json!({"a": a, "b": b, "total": a + b}));
        assert!(total(&report, "cost_after") <= a + b);
    }
}

/// Every method's plan, every cost, every search: the reported figures of the new plan are right, and shares
/// and volume stay.
#[test]
fn only_places_change() {
    let directory = Bench::new();
    write_tree(&directory);
    for method in
        ["rows", "columns", "grid", "cartesian", "recursive", "nagamochi-abe", "columns --repeat 60x60"]
    {
        directory
            .done(&format!("partition --shape 610x595 --platform tree.toml --method {method} -o plan.json"));
        let plan = directory.value("plan.json");
        for (objective, searches) in OBJECTIVES.iter().zip(SEARCHES.iter().cycle()) {
            for search in searches {
                let line = format!("--platform tree.toml {objective} {search}");
                let report =
                    directory.json(&format!("arrange --plan plan.json {line} -o new.json --svg new.svg"));
                let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
                assert_eq!(keys, ["objective", "cost_before", "cost_after", "evaluations", "milliseconds"]);
                let (before, after) = (total(&report, "cost_before"), total(&report, "cost_after"));
                assert!(after <= before, "{method} {line}: {report}");
                assert!(
                    report["evaluations"].as_u64() > Some(0) && report["milliseconds"].as_f64() > Some(0.0)
                );
                let new = directory.value("new.json");
                for kept in ["shares", "processors", "problem", "repeat"] {
                    assert_eq!(new[kept], plan[kept], "{method} {line}");
                }
                for kept in ["volume", "sum_half_perimeters", "imbalance", "lower_bound"] {
                    let (old, new) = (&plan["metrics"][kept], &new["metrics"][kept]);
                    let gap = (old.as_f64().unwrap() - new.as_f64().unwrap()).abs();
                    assert!(gap <= 1e-9 * old.as_f64().unwrap(), "{method} {line}: {kept} {old} {new}");
                }
                let again = directory.json(&format!("arrange --plan new.json {line}"));
                assert!((total(&again, "cost_before") - after).abs() <= 1e-12 * after, "{method} {line}");
            }
        }
    }
}

/// A block whose repetitions are all whole is arranged like a matrix of its own: its rectangles move.
#[test]
fn a_repeated_block_is_arranged_once() {
    let directory = Bench::new();
    write_tree(&directory);
    let partition =
        "partition --shape 600x480 --platform tree.toml --method columns --repeat 60x60 -o plan.json";
    directory.done(partition);
    let line = "arrange --plan plan.json --platform tree.toml -o new.json";
    let report = directory.json(line);
    assert!(total(&report, "cost_after") < 0.9 * total(&report, "cost_before"), "{report}");
    let (old, new) = (directory.value("plan.json"), directory.value("new.json"));
    assert_eq!(new["repeat"], json!([60, 60]));
    assert_eq!(new["layout"].as_array().unwrap().len(), old["layout"].as_array().unwrap().len());
    assert_ne!(new["layout"], old["layout"]);
    assert_eq!((&new["shares"], &new["metrics"]["volume"]), (&old["shares"], &old["metrics"]["volume"]));
    directory.json("simulate --plan new.json --platform tree.toml --block 60");
}

/// Malik 2016, Tables 4.1 and 4.2: his mapping costs 22424946 elements over GB/s, the one found at least
/// 10.46 times less.
#[test]
fn a_grid_for_a_stencil() {
    let directory = Bench::new();
    let platform = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/grid5000-table-4-1.toml");
    std::fs::copy(platform, directory.join("table.toml")).unwrap();
    let line = "arrange --grid 512x512 --platform table.toml --edges open";
    for (search, ratio) in [("published", 10.45), ("heuristic", 24.0), ("local", 24.0)] {
        let report = directory.json(&format!("{line} --search {search} -o grid.json"));
        assert_eq!(report["objective"], "asymmetric");
        let found = 22_424_946.0 * 8e-9 / total(&report, "cost_after");
        assert!(found >= ratio, "{search}: {found}");
        let shares = directory.value("grid.json")["shares"].clone();
        let shares: Vec<u64> = shares.as_array().unwrap().iter().filter_map(Value::as_u64).collect();
        assert_eq!((shares.len(), shares.iter().sum()), (12, 512 * 512));
    }
}

/// A domain is a plan of its own kind: drawn as one, read back by `arrange`, and refused where products are
/// expected. From the thesis's grid, its algorithm gains its factor.
#[test]
fn a_domain_is_no_product() {
    let here = Bench::new();
    let platform = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../platforms/grid5000-table-4-1.toml");
    std::fs::copy(platform, here.join("table.toml")).unwrap();
    let line =
        "arrange --grid 512x512 --platform table.toml --edges open --grid-shape 2x6 --search published";
    let report = here.json(&format!("{line} -o grid.json --svg grid.svg"));
    let ratio = total(&report, "cost_before") / total(&report, "cost_after");
    assert!((ratio - 10.46).abs() < 0.01, "{ratio}");
    assert!(here.done(line).contains("a factor of 10.46"));
    let plan = here.value("grid.json");
    assert_eq!(plan["problem"], json!({"kind": "grid", "m": 512, "n": 512}));
    assert!(plan["metrics"]["volume"].is_null());
    let picture = here.text("grid.svg");
    assert!(picture.contains("domain of 512 × 512 cells") && !picture.contains("volume"), "{picture}");
    assert!(picture.contains("halo exchange 17.15 ms (before 179.4 ms)"), "{picture}");
    let again = here.json("arrange --plan grid.json --platform table.toml --edges open -o again.json");
    let (before, found) = (total(&again, "cost_before"), total(&report, "cost_after"));
    assert!((before - found).abs() <= 1e-12 * found, "{again}");
    assert_eq!(here.value("again.json")["problem"]["kind"], "grid");
    assert!(here.json("simulate --plan grid.json --platform table.toml")["seconds"].as_f64() > Some(0.0));
    here.fails(2, "arrange --plan grid.json --platform table.toml --objective bandwidth");
    assert!(here.fails(2, &line.replace("2x6", "2x5")).contains("10 cells for 12 processors"));
}

/// What the thorough search finds among few arrangements, the default finds, and the others where that costs
/// less than they do.
#[test]
fn few_arrangements_are_all_tried() {
    let here = Bench::new();
    // One column on four clusters: the published search keeps each cluster's rectangles together.
    write_figure(&here, &[(33, &[(5, 0), (7, 1), (11, 1), (3, 0), (6, 2)])]);
    let platform = here.text("clusters.toml");
    let links = "[network]\nbandwidth = \"10 MB/s\"\n[[network.link]]\nbetween = [\"c0\", \"c1\"]\n\
                 bandwidth = \"90 MB/s\"\n[[network.link]]\nbetween = [\"c1\", \"c1\"]\nbandwidth = \"1 MB/s\"\n";
    here.write("clusters.toml", platform + links);
    let cost = |more: &str| {
        total(&here.json(&format!("arrange --plan plan.json --platform clusters.toml {more}")), "cost_after")
    };
    let best = cost("--search exhaustive");
    for more in ["", "--search auto", "--search heuristic", "--search local"] {
        assert!(cost(more) <= best * (1.0 + 1e-12), "{more}");
    }
    assert!(cost("--search published") > best, "the groups of a cluster are better apart");
}

/// Units, and a reason where nothing can be gained.
#[test]
fn costs_have_units() {
    let here = Bench::new();
    write_figure(&here, &[(12, &[(15, 1), (17, 0)]), (21, &[(14, 1), (18, 0)])]);
    let hops = here.done("arrange --plan plan.json --platform clusters.toml --objective hops");
    assert!(hops.contains("elements x levels") && hops.contains(" hops (A "), "{hops}");
    let out = here.run("arrange --plan plan.json --platform clusters.toml");
    assert!(out.status.success());
    let note = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(note.contains("limits no bandwidth"), "{note}");
    let text = here.text("clusters.toml");
    here.write("slow.toml", text + "[network]\nbandwidth = 5e-324\n");
    let error = here.fails(2, "arrange --plan plan.json --platform slow.toml");
    assert!(error.contains("network.bandwidth") && !error.contains("NaN"), "{error}");
}

/// One processor, and processors without a share, have nothing to gain and lose nothing.
#[test]
fn one_processor_and_idle_ones() {
    let directory = Bench::new();
    directory.write("one.toml", "[[processor]]\nname = \"a\"\nspeed = 1\n");
    directory.done("partition --shape 30x30 --platform one.toml -o one.json");
    for objective in OBJECTIVES {
        let report = directory.json(&format!("arrange --plan one.json --platform one.toml {objective}"));
        assert_eq!(report["cost_after"], json!({"a": 0.0, "b": 0.0, "total": 0.0}));
    }
    write_figure(&directory, &[(12, &[(15, 1), (17, 0)]), (21, &[(14, 1), (18, 0)])]);
    let mut plan = directory.value("plan.json");
    plan["processors"].as_array_mut().unwrap().push(json!("idle"));
    plan["shares"].as_array_mut().unwrap().push(json!(0));
    directory.write("plan.json", plan.to_string());
    let mut platform = directory.text("clusters.toml");
    platform += "[[processor]]\nname = \"idle\"\ncluster = \"c0\"\n[network]\nbandwidth = \"1 MB/s\"\n";
    directory.write("clusters.toml", platform);
    for search in ["published", "heuristic", "local", "exhaustive"] {
        let line = format!("arrange --plan plan.json --platform clusters.toml --search {search} -o new.json");
        directory.json(&line);
        assert_eq!(directory.value("new.json")["shares"][4], 0);
        let line = format!("{line} --export rankfile --export-to order");
        directory.done(&line);
        let order = directory.text("order");
        assert_eq!(order.lines().count(), 5, "{order}");
        assert!(order.lines().last().unwrap().contains("=idle "), "{order}");
    }
}

/// No two clusters share a colour in the picture, and the legend of many processors lists clusters.
#[test]
fn the_picture_is_coloured_by_cluster() {
    let directory = Bench::new();
    let mut platform = String::new();
    for i in 0..70 {
        let cluster = format!("cluster = \"c{}\"", i % 5);
        let _ = writeln!(platform, "[[processor]]\nname = \"n{i}\"\n{cluster}\nspeed = {}", 1 + i % 7);
    }
    directory.write("many.toml", platform);
    directory.done("partition --shape 900x900 --platform many.toml --method columns -o plan.json");
    directory.done("arrange --plan plan.json --platform many.toml --objective hops --svg many.svg");
    let svg = directory.text("many.svg");
    let mut owner = std::collections::BTreeMap::new();
    let mut drawn = 0;
    for path in svg.split("<path fill=\"#").skip(1) {
        let name = path.split("<title>n").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let cluster = name.parse::<usize>().unwrap() % 5;
        assert_eq!(*owner.entry(&path[..6]).or_insert(cluster), cluster, "{name}");
        drawn += 1;
    }
    assert_eq!(drawn, 70);
    assert!(svg.contains("cluster (processors)") && svg.contains("c4 (14)"));
}
