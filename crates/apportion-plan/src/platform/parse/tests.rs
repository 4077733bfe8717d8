use super::*;
use crate::geometry::Rank;
use crate::platform::Topology;

const TWO: &str = "name = \"two\"\n[[processor]]\nname = \"a\"\n[[processor]]\nname = \"b\"\n";

fn refused(text: &str) -> String {
    let error = parse_platform(text, "p.toml").unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

#[test]
fn the_contract_example_is_read() {
    let text = r#"
name = "three-clusters"
[[processor]]
name = "orsay"
cluster = "orsay"
speed = 90.0
memory = "16 GiB"
cores = [0]
slowdown = 1.0
[[processor]]
name = "rennes"
speed = "2.5 Gflop/s"
[network]
latency = "50 us"
bandwidth = "1 Gbit/s"
duplex = true
topology = "star"
centre = "orsay"
[[network.link]]
between = ["orsay", "rennes"]
bandwidth = { horizontal = "56.39 MB/s", vertical = "10 MB/s" }
"#;
    let platform = parse_platform(text, "p.toml").unwrap();
    assert_eq!(platform.processors[0].memory, Some(16 << 30));
    assert_eq!(platform.processors[1].speed, Some(Speed::Flops(2.5e9)));
    let link = platform.network.link(Rank(1), Rank(0));
    assert_eq!((link.horizontal, link.vertical), (56.39e6, 10e6));
    assert_eq!(link.latency, 50.0 * 1e-6);
    assert_eq!(platform.network.topology, Topology::Star { centre: Rank(0) });
}

#[test]
fn a_table_is_directed() {
    let text = format!(
        "{TWO}[network.matrix]\nclusters = [\"a\", \"b\"]\nbandwidth = [[\"1 MB/s\", \"2 MB/s\"], [\"3 MB/s\", \"4 MB/s\"]]\n"
    );
    let network = parse_platform(&text, "p.toml").unwrap().network;
    assert_eq!(network.link(Rank(0), Rank(1)).horizontal, 2e6);
    assert_eq!(network.link(Rank(1), Rank(0)).horizontal, 3e6);
}

#[test]
fn defects_are_refused_by_place() {
    assert!(refused("[[processor]]\nname = \"a\"\nspede = 3\n").contains("p.toml:3"));
    assert!(refused("[[processor]]\nname = \"a\"\nspeed = nan\n").contains("speed"));
    assert!(refused("[[processor]]\nname = \"a\"\nspeed = -1\n").contains("speed"));
    assert!(refused("[[processor]]\nname = \"a\"\nspeed = -1\n").contains("negative"));
    assert!(refused("[[processor]]\nname = \"a\"\nslowdown = 0.5\n").contains("slowdown"));
    assert!(
        refused("[[processor]]\nname = \"a\"\nemulated = \"peek 3\"\n").contains("p.toml:3: cannot make out")
    );
    for (turn, word) in [
        ("work = 1, slowdown = 2", "work"),
        ("work = 0.5, slowdown = 0.5", "slowdown_after.slowdown"),
        ("work = 0.5", "missing"),
    ] {
        let text = format!("[[processor]]\nname = \"a\"\nslowdown_after = {{ {turn} }}\n");
        assert!(refused(&text).contains(word), "{turn}");
    }
    assert!(refused("name = \"none\"\n").contains("no processor"));
    assert!(refused("[[processor]]\nname = \"a\"\n[[processor]]\nname = \"a\"\n").contains("twice"));
    assert!(refused(&format!("{TWO}[network]\ntopology = \"ring\"\n")).contains("ring"));
    assert!(refused(&format!("{TWO}[network]\ntopology = \"star\"\n")).contains("centre"));
    assert!(refused(&format!("{TWO}[network]\nbandwidth = \"0 MB/s\"\n")).contains("zero"));
    assert!(refused(&format!("{TWO}[[network.link]]\nbetween = [\"a\", \"z\"]\n")).contains("\"z\""));
    assert!(refused("not toml at all").contains("p.toml:1"));
}

/// A device has a link to its host, which is no link between processors, and survives being written.
#[test]
fn a_device_has_a_memory_behind_a_link() {
    let text = format!(
        "{TWO}device = \"opencl:3\"\nmemory = \"1 kB\"\n[network]\nbandwidth = 7\n[[network.link]]\n\
         between = [\"a\", \"b\"]\nlatency = 2\nbandwidth = {{ to = 5, from = 4 }}\n"
    );
    let platform = parse_platform(&text, "p.toml").unwrap();
    assert_eq!(platform.processors[1].device.as_deref(), Some("opencl:3"));
    let memory = &platform.network.devices[&Rank(1)];
    assert_eq!((memory.host.as_deref(), memory.bytes), (Some("a"), Some(1000)));
    assert_eq!([memory.latency, memory.up, memory.down], [2.0, 5.0, 4.0]);
    assert_eq!((memory.seconds_up(3, 10.0), memory.seconds_down(1, 8.0)), (8.0, 4.0));
    assert_eq!(platform.network.link(Rank(0), Rank(1)).horizontal, 7.0, "that of all pairs");
    let again = parse_platform(&platform.to_toml(), "again").unwrap();
    assert_eq!((&again.processors, &again.network), (&platform.processors, &platform.network));
    let kinds = [0, 1].map(|rank| platform.processors[rank].kind().to_string());
    assert_eq!((kinds, platform.processors[1].memory_cap()), (["core", "device"].map(Into::into), None));
    let other = platform.select(&["b".into()]);
    assert_eq!(other.network.devices.keys().collect::<Vec<_>>(), [&Rank(0)]);
    let unknown = parse_platform(&format!("{TWO}device = \"opencl:0\"\n"), "p.toml").unwrap();
    assert!(!unknown.network.devices[&Rank(1)].has_known_link() && !unknown.has_memories_of_its_own());
    assert!(parse_platform(&unknown.to_toml(), "again").unwrap().network == unknown.network);
    for (id, known) in
        [("cuda:12", true), ("cuda:", false), ("cuda:-1", false), ("cuda0", false), ("hip:0", false)]
    {
        let parsed = parse_platform(&format!("{TWO}device = \"{id}\"\n"), "p.toml");
        assert_eq!(parsed.is_ok(), known, "{id}");
    }
}

#[test]
fn what_no_machine_has_is_refused_at_once() {
    let many = |count: usize| -> String {
        (0..count).map(|i| format!("[[processor]]\nname = \"p{i}\"\n")).collect()
    };
    assert!(parse_platform(&many(10_000), "p.toml").is_ok());
    assert!(refused(&many(10_001)).contains("10001 processors are more than 10000"));
    let named = |name: &str| format!("[[processor]]\nname = \"{name}\"\n");
    assert!(refused(&named(&"x".repeat(3_000_000))).contains("has 3000000 bytes, more than 255"));
    assert!(refused(&named("a\\u2028b")).contains("u{2028}"));
    let cores = (0..70_000).map(|core| core.to_string()).collect::<Vec<_>>().join(",");
    assert!(refused(&format!("{}cores = [{cores}]\n", named("a"))).contains("70000 cores"));
}
