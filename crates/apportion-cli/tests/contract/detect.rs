//! `detect`: kinds of cores, pools, quotas and limits of recorded machines and of this one.

use super::Bench;
use apportion_testing::{recorded_machine, recorded_machines};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What is right for a recorded machine: the file beside it.
#[derive(Deserialize)]
struct Expected {
    model: String,
    online_cores: usize,
    quota_cores: Option<f64>,
    memory_limit_bytes: Option<u64>,
    kinds: Vec<Kind>,
    /// The processors `--by kind`.
    pools: Vec<Pool>,
    /// The number of NUMA nodes.
    nodes: usize,
    /// The CPUs of the first.
    first_node: String,
}

#[derive(Deserialize)]
struct Kind {
    name: String,
    cores: usize,
}

#[derive(Deserialize)]
struct Pool {
    name: String,
    kind: String,
    cpus: String,
}

/// A list of CPUs as the kernel writes it.
fn listed(text: &str) -> Vec<u64> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        first.parse::<u64>().unwrap()..=last.parse().unwrap()
    };
    text.split(',').flat_map(range).collect()
}

fn detect(bench: &Bench, root: &Path, by: &str) -> Value {
    bench.json(&["detect", "--by", by, "--root", root.to_str().unwrap()])
}

fn texts<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    value.as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[test]
fn recorded_machines_are_described() {
    let bench = Bench::new();
    for name in recorded_machines() {
        let file = format!("{}/../testing/machines/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let expected: Expected = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let machine = recorded_machine(&name);
        let by_kind = detect(&bench, machine.path(), "kind");
        assert_eq!(by_kind["model"], expected.model, "{name}");
        assert_eq!(by_kind["quota_cores"], json!(expected.quota_cores), "{name}");
        assert_eq!(by_kind["memory_limit_bytes"], json!(expected.memory_limit_bytes), "{name}");
        assert!(by_kind["memory"].as_u64() > Some(1 << 30), "{name}: {by_kind}");
        assert_eq!(by_kind["instructions"], Value::Null, "{name}: the kernels are those of this machine");
        assert_eq!(by_kind["devices"], json!([]), "{name}: the devices are those of this machine");
        assert_eq!(by_kind["online_cores"], expected.online_cores, "{name}");
        let kinds = by_kind["kinds"].as_array().unwrap();
        assert_eq!(kinds.len(), expected.kinds.len(), "{name}");
        for (kind, known) in kinds.iter().zip(&expected.kinds) {
            assert_eq!((&kind["name"], &kind["cores"]), (&json!(known.name), &json!(known.cores)), "{name}");
        }
        let pools = by_kind["processors"].as_array().unwrap();
        assert_eq!(pools.len(), expected.pools.len(), "{name}");
        for (pool, known) in pools.iter().zip(&expected.pools) {
            assert_eq!((&pool["name"], &pool["kind"]), (&json!(known.name), &json!(known.kind)), "{name}");
            assert_eq!(pool["cores"], json!(listed(&known.cpus)), "{name}");
        }
        // The same cores in other groups.
        let mut all: Vec<u64> = expected.pools.iter().flat_map(|pool| listed(&pool.cpus)).collect();
        all.sort_unstable();
        let by_core = detect(&bench, machine.path(), "core");
        let cores = by_core["processors"].as_array().unwrap();
        let single: Vec<Value> = all.iter().map(|cpu| json!([cpu])).collect();
        assert_eq!(cores.iter().map(|core| core["cores"].clone()).collect::<Vec<_>>(), single, "{name}");
        for kind in &expected.kinds {
            assert_eq!(cores.iter().filter(|core| core["kind"] == kind.name).count(), kind.cores, "{name}");
        }
        let machine_alone = detect(&bench, machine.path(), "machine");
        let whole = machine_alone["processors"].as_array().unwrap();
        assert_eq!((whole.len(), &whole[0]["cores"]), (1, &json!(all)), "{name}");
        let kind = if expected.kinds.len() == 1 { &expected.kinds[0].name } else { "mixed" };
        assert_eq!(whole[0]["kind"], kind, "{name}");
        let nodes = &detect(&bench, machine.path(), "node")["processors"];
        assert_eq!(nodes.as_array().unwrap().len(), expected.nodes, "{name}");
        assert_eq!(nodes[0]["cores"], json!(listed(&expected.first_node)), "{name}");
        assert_eq!((&nodes[0]["name"], &nodes[0]["numa_node"]), (&json!("node0"), &json!(0)), "{name}");
    }
}

/// Clusters, packages, hardware threads, caches and clocks.
#[test]
fn the_place_of_each_core_is_known() {
    let bench = Bench::new();
    let epyc = detect(&bench, recorded_machine("epyc-two-sockets").path(), "core");
    assert_eq!(epyc["processors"][40]["threads"], json!([40, 104]));
    assert_eq!(epyc["processors"][40]["cluster"], "machine/node5");
    assert_eq!(
        (&epyc["processors"][31]["package"], &epyc["processors"][32]["package"]),
        (&json!(0), &json!(1))
    );
    let epyc = detect(&bench, recorded_machine("epyc-two-sockets").path(), "machine");
    assert_eq!(
        (&epyc["processors"][0]["package"], &epyc["processors"][0]["numa_node"]),
        (&Value::Null, &Value::Null)
    );
    let hybrid = detect(&bench, recorded_machine("intel-hybrid").path(), "core");
    assert_eq!(texts(&hybrid["processors"], "cluster")[7..9], ["machine/performance", "machine/efficient"]);
    let [performance, efficient] = [&hybrid["kinds"][0], &hybrid["kinds"][1]];
    assert_eq!((&performance["max_khz"], &efficient["max_khz"]), (&json!(5_200_000), &json!(3_900_000)));
    assert_eq!((&performance["l2_cores"], &efficient["l2_cores"]), (&json!(1), &json!(4)));
    assert_eq!((&performance["l2_bytes"], &efficient["l2_bytes"]), (&json!(1280 << 10), &json!(2 << 20)));
    assert_eq!(performance["capacity"], Value::Null);
    let board = detect(&bench, recorded_machine("rk3588").path(), "kind");
    assert_eq!((&board["kinds"][0]["capacity"], &board["kinds"][1]["capacity"]), (&json!(1003), &json!(405)));
    let off = detect(&bench, recorded_machine("smt-off").path(), "core");
    assert_eq!(off["processors"][3]["threads"], json!([3]));
}

/// A pool is one processor of the platform file, which other commands read.
#[test]
fn pools_are_written_and_read_back() {
    let bench = Bench::new();
    let machine = recorded_machine("intel-hybrid");
    let root = machine.path().to_str().unwrap();
    let text = bench.done(&["detect", "--root", root, "-o", "hybrid.toml"]);
    for words in
        ["12th Gen Intel", "67.2 GB of memory", "performance", "0,2,4,6,8,10,12,14", "16-23", "3900 MHz"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let platform = apportion::platform::read_platform(&bench.path("hybrid.toml")).unwrap();
    assert_eq!(platform.names(), ["performance", "efficient"]);
    assert_eq!(platform.processors[0].cores, [0, 2, 4, 6, 8, 10, 12, 14]);
    let plan = bench.json("partition --units 90 --platform hybrid.toml --speeds 2,1");
    assert_eq!(
        (&plan["processors"], &plan["shares"]),
        (&json!(["performance", "efficient"]), &json!([60, 30]))
    );
    let text = bench.done(&["detect", "--root", recorded_machine("cpuset").path().to_str().unwrap()]);
    assert!(text.contains("the process may use 3 of 8 cores"), "{text}");
    let text = bench.done(&["detect", "--root", recorded_machine("container-v2").path().to_str().unwrap()]);
    assert!(
        text.contains("the control group allows 1.5 of 8 cores\nthe control group allows 4.3 GB of memory"),
        "{text}"
    );
}

/// This machine is one processor for each of its kinds.
#[test]
fn this_machine_has_a_pool_for_each_kind() {
    let bench = Bench::new();
    let here = bench.json("detect");
    let cores = |value: &Value| -> Vec<u64> {
        let lists =
            value["processors"].as_array().unwrap().iter().flat_map(|p| p["cores"].as_array().unwrap());
        let mut all: Vec<u64> = lists.map(|cpu| cpu.as_u64().unwrap()).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(texts(&here["processors"], "kind"), texts(&here["kinds"], "name"));
    // Devices are those of `doctor`.
    let devices = bench.json("doctor")["devices"].as_array().cloned().unwrap_or_default();
    assert_eq!(here["devices"], json!(devices));
    let text = bench.done("detect");
    for device in devices {
        let [id, name] = ["id", "name"].map(|field| device[field].as_str().unwrap());
        assert!(text.contains(&format!("device {id}: {name}")), "{text}");
    }
    for by in ["core", "node", "machine"] {
        assert_eq!(cores(&bench.json(&["detect", "--by", by])), cores(&here), "{by}");
    }
    bench.fails(2, "detect --by thread");
    bench.write("file", "");
    for root in ["nowhere", "file"] {
        let said = bench.fails(2, &["detect", "--root", root]);
        assert!(said.contains("--root") && said.contains("no directory"), "{said}");
    }
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Whatever is in a file, or is not: the machine has at least one core, each core is in one group, and nothing
/// fails or waits.
#[test]
fn damaged_recordings_are_described() {
    let huge = format!("{}\n", ["0-65535"; 20_000].join(","));
    let check = |root: &Path, what: &str| {
        let host = apportion::platform::Host::read(root);
        assert!(!host.cores.is_empty() && !host.kinds.is_empty(), "{what}");
        for by in [apportion::platform::Grouping::Kind, apportion::platform::Grouping::Node] {
            let platform = host.platform(by);
            let cores: usize = platform.processors.iter().map(|p| p.cores.len()).sum();
            assert_eq!(cores, host.cores.len(), "{what}");
            apportion::platform::parse_platform(&platform.to_toml(), "damaged").unwrap();
        }
    };
    for name in ["intel-hybrid", "container-v1", "rk3588"] {
        let machine = recorded_machine(name);
        // The files of one CPU stand for those of all.
        let is_of_another = |file: &Path| {
            let cpu = file.iter().find_map(|part| part.to_str()?.strip_prefix("cpu")?.parse::<usize>().ok());
            cpu.is_some_and(|cpu| cpu != 5)
        };
        for file in files(machine.path()).into_iter().filter(|file| !is_of_another(file)) {
            let whole = std::fs::read(&file).unwrap();
            let texts: [&[u8]; 7] = [
                b"",
                b"\xff\xfe\0garbage\n",
                b"-1\n",
                b"18446744073709551616\n",
                b"9-3,,\n",
                b"max",
                huge.as_bytes(),
            ];
            for text in texts {
                std::fs::write(&file, text).unwrap();
                check(machine.path(), &format!("{}: {:?}", file.display(), &text[..text.len().min(20)]));
            }
            std::fs::remove_file(&file).unwrap();
            check(machine.path(), &format!("without {}", file.display()));
            // A directory in place of the file.
            std::fs::create_dir(&file).unwrap();
            check(machine.path(), &format!("{} is a directory", file.display()));
            std::fs::remove_dir(&file).unwrap();
            std::fs::write(&file, whole).unwrap();
        }
    }
    for missing in
        ["proc", "sys", "sys/devices", "sys/devices/system/cpu", "sys/devices/system/node", "proc/self"]
    {
        let machine = recorded_machine("intel-hybrid");
        std::fs::remove_dir_all(machine.path().join(missing)).unwrap();
        check(machine.path(), missing);
    }
    // Lists that name more than there is.
    let machine = recorded_machine("no-cpufreq");
    for file in ["proc/self/status", "sys/devices/system/cpu/online", "sys/devices/system/node/node0/cpulist"]
    {
        std::fs::write(machine.path().join(file), "Cpus_allowed_list:\t0-65535\n").unwrap();
    }
    check(machine.path(), "lists of all numbers");
    #[cfg(unix)]
    {
        let machine = recorded_machine("no-cpufreq");
        let pipe = machine.path().join("proc/meminfo");
        std::fs::remove_file(&pipe).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        check(machine.path(), "a pipe");
    }
    let bench = Bench::new();
    let empty = detect(&bench, &bench.path("."), "kind");
    assert_eq!(
        (&empty["model"], &empty["processors"][0]["cores"]),
        (&json!("unknown processor"), &json!([0]))
    );
}
