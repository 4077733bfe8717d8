//! What Linux says of CPUs, nodes and the processor model, in the files under a root.

use crate::input::harmless;
use crate::system_files::read_system_file;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// More CPUs than any machine has: longer lists are damaged.
const MOST_CPUS: usize = 1 << 16;
/// Entries of a directory that are looked at.
const MOST_ENTRIES: usize = 1 << 17;
/// Characters of a model's name.
const LONGEST_MODEL: usize = 200;

/// A file about one CPU, without the blanks around its text.
pub(super) fn read_of_cpu(root: &Path, cpu: usize, file: &str) -> Option<String> {
    let path = root.join(format!("sys/devices/system/cpu/cpu{cpu}/{file}"));
    Some(read_system_file(&path)?.trim().to_owned())
}

/// The same as a number.
pub(super) fn number_of_cpu<N: FromStr>(root: &Path, cpu: usize, file: &str) -> Option<N> {
    read_of_cpu(root, cpu, file)?.parse().ok()
}

/// The same as a list of CPUs.
pub(super) fn list_of_cpu(root: &Path, cpu: usize, file: &str) -> Option<Vec<usize>> {
    parse_list(&read_of_cpu(root, cpu, file)?)
}

/// Parses a list such as `0-3,8`; `None` for an empty one.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut out = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last >= MOST_CPUS || out.len() > MOST_CPUS {
            return None;
        }
        out.extend(first..=last);
    }
    Some(out)
}

/// The names in a directory, sorted.
fn names_in(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).into_iter().flatten().take(MOST_ENTRIES).flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The number at the end of a name: 3 for `cpu3` and `cpu`.
fn number_after(prefix: &str, name: &str) -> Option<usize> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// The CPUs that are online, in ascending order.
pub(super) fn online_cpus(root: &Path) -> BTreeSet<usize> {
    let directory = root.join("sys/devices/system/cpu");
    let online = read_system_file(&directory.join("online")).and_then(|text| parse_list(&text));
    let numbers = || names_in(&directory).into_iter().filter_map(|name| number_after("cpu", &name)).collect();
    let online: Vec<usize> = online.unwrap_or_else(numbers);
    online.into_iter().filter(|cpu| *cpu < MOST_CPUS).collect()
}

/// The CPUs that the process may use and that are online, in ascending order; `count` of them where nothing
/// lists them. What is allowed may contain CPUs that the machine does not have.
pub(super) fn usable_cpus(root: &Path, online: &BTreeSet<usize>, count: usize) -> BTreeSet<usize> {
    let status = read_system_file(&root.join("proc/self/status")).unwrap_or_default();
    let allowed = status.lines().find_map(|line| parse_list(line.strip_prefix("Cpus_allowed_list:")?));
    let allowed: BTreeSet<usize> = allowed.into_iter().flatten().collect();
    let both = allowed.intersection(online).copied().collect();
    let found = [both, allowed, online.clone()].into_iter().find(|cpus: &BTreeSet<usize>| !cpus.is_empty());
    found.unwrap_or_else(|| (0..count).collect())
}

/// The hardware threads of the CPU's core that are online, in ascending order; at least itself.
pub(super) fn threads_of_core(root: &Path, cpu: usize) -> Vec<usize> {
    let mut threads = list_of_cpu(root, cpu, "topology/thread_siblings_list").unwrap_or_default();
    if !threads.contains(&cpu) {
        return vec![cpu];
    }
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The NUMA node of each CPU.
pub(super) fn nodes_of_cpus(root: &Path) -> BTreeMap<usize, usize> {
    let directory = root.join("sys/devices/system/node");
    let mut nodes = BTreeMap::new();
    for name in names_in(&directory) {
        let Some(node) = number_after("node", &name) else { continue };
        let list = read_system_file(&directory.join(name).join("cpulist")).and_then(|text| parse_list(&text));
        nodes.extend(list.into_iter().flatten().map(|cpu| (cpu, node)));
    }
    nodes
}

/// The class of each CPU on machines whose cores are of several, by the devices that count their events:
/// `cpu_core` and `cpu_atom` of Intel, `armv8_cortex_a55` of Arm.
pub(super) fn classes_of_cpus(root: &Path) -> BTreeMap<usize, String> {
    let directory = root.join("sys/devices");
    let mut classes = BTreeMap::new();
    for name in names_in(&directory) {
        let class = match name.as_str() {
            "cpu_core" => "performance",
            "cpu_atom" => "efficient",
            "cpu_lowpower" => "low-power",
            other => match (other.strip_prefix("cpu_"), other.find("cortex_")) {
                (Some(class), _) => class,
                (None, Some(at)) => &other[at..],
                (None, None) => continue,
            },
        };
        let list = read_system_file(&directory.join(&name).join("cpus")).and_then(|text| parse_list(&text));
        let class = clean(&class.replace('_', "-"));
        classes.extend(list.into_iter().flatten().map(|cpu| (cpu, class.clone())));
    }
    classes
}

/// The design of each CPU's core, as Arm's tell it in `/proc/cpuinfo` by numbers of an implementer and a part; empty
/// elsewhere.
pub(super) fn designs_of_cpus(root: &Path) -> BTreeMap<usize, String> {
    let cpuinfo = read_system_file(&root.join("proc/cpuinfo")).unwrap_or_default();
    let (mut designs, mut cpu, mut implementer) = (BTreeMap::new(), None, None);
    let hex = |text: &str| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    for (field, value) in cpuinfo.lines().take(MOST_ENTRIES).filter_map(|line| line.split_once(':')) {
        match (field.trim(), value.trim()) {
            ("processor", number) => (cpu, implementer) = (number.parse().ok(), None),
            ("CPU implementer", number) => implementer = hex(number),
            ("CPU part", number) => {
                if let (Some(cpu), Some(implementer), Some(part)) = (cpu, implementer, hex(number)) {
                    designs.insert(cpu, design(implementer, part));
                }
            }
            _ => {}
        }
    }
    designs
}

/// The name of a core's design: its implementer, and its part by name where that is known.
fn design(implementer: u32, part: u32) -> String {
    let vendor = match implementer {
        0x41 => "Arm",
        0x46 => "Fujitsu",
        0x48 => "HiSilicon",
        0x4e => "NVIDIA",
        0x51 => "Qualcomm",
        0x61 => "Apple",
        0xc0 => "Ampere",
        _ => return format!("Arm implementer {implementer:#x} part {part:#x}"),
    };
    let known = PARTS.iter().find(|(of, number, _)| (*of, *number) == (implementer, part));
    known.map_or_else(|| format!("{vendor} part {part:#x}"), |(_, _, name)| format!("{vendor} {name}"))
}

/// Implementers, parts and their names, of cores that are found in pairs of kinds or in servers.
const PARTS: [(u32, u32, &str); 36] = [
    (0x41, 0xd03, "Cortex-A53"),
    (0x41, 0xd05, "Cortex-A55"),
    (0x41, 0xd07, "Cortex-A57"),
    (0x41, 0xd08, "Cortex-A72"),
    (0x41, 0xd09, "Cortex-A73"),
    (0x41, 0xd0a, "Cortex-A75"),
    (0x41, 0xd0b, "Cortex-A76"),
    (0x41, 0xd0c, "Neoverse-N1"),
    (0x41, 0xd0d, "Cortex-A77"),
    (0x41, 0xd40, "Neoverse-V1"),
    (0x41, 0xd41, "Cortex-A78"),
    (0x41, 0xd44, "Cortex-X1"),
    (0x41, 0xd46, "Cortex-A510"),
    (0x41, 0xd47, "Cortex-A710"),
    (0x41, 0xd48, "Cortex-X2"),
    (0x41, 0xd49, "Neoverse-N2"),
    (0x41, 0xd4d, "Cortex-A715"),
    (0x41, 0xd4e, "Cortex-X3"),
    (0x41, 0xd4f, "Neoverse-V2"),
    (0x41, 0xd80, "Cortex-A520"),
    (0x41, 0xd81, "Cortex-A720"),
    (0x41, 0xd82, "Cortex-X4"),
    (0x46, 0x001, "A64FX"),
    (0x48, 0xd01, "TSV110"),
    (0x51, 0x001, "Oryon"),
    (0x61, 0x022, "M1 Icestorm"),
    (0x61, 0x023, "M1 Firestorm"),
    (0x61, 0x024, "M1 Pro Icestorm"),
    (0x61, 0x025, "M1 Pro Firestorm"),
    (0x61, 0x028, "M1 Max Icestorm"),
    (0x61, 0x029, "M1 Max Firestorm"),
    (0x61, 0x032, "M2 Blizzard"),
    (0x61, 0x033, "M2 Avalanche"),
    (0xc0, 0xac3, "Ampere-1"),
    (0xc0, 0xac4, "Ampere-1a"),
    (0x4e, 0x004, "Carmel"),
];

/// The processor's model, or the machine's where the processor has no name, as on Arm, or the designs of its cores;
/// empty if unknown.
pub(super) fn read_model(root: &Path) -> String {
    let cpuinfo = read_system_file(&root.join("proc/cpuinfo")).unwrap_or_default();
    let processor = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let machine = ["sys/firmware/devicetree/base/model", "sys/devices/virtual/dmi/id/product_name"];
    let machine = machine.iter().filter_map(|file| read_system_file(&root.join(file)));
    let designs: BTreeSet<String> = designs_of_cpus(root).into_values().collect();
    let designs = designs.into_iter().collect::<Vec<_>>().join(" and ");
    let mut models = processor.map(|(_, name)| name.to_owned()).into_iter().chain(machine).chain([designs]);
    models.find_map(|name| Some(clean(&name)).filter(|name| !name.is_empty())).unwrap_or_default()
}

/// A name in one line of bounded length.
fn clean(text: &str) -> String {
    let visible = harmless(&text.replace(char::is_control, " "));
    let words: Vec<&str> = visible.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST_MODEL).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(parse_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_list("7"), Some(vec![7]));
        for bad in ["", "3-1", "a", "0-", "-1", "0-99999999999999999999", "0-65536"] {
            assert_eq!(parse_list(bad), None, "{bad:?}");
        }
        assert_eq!(parse_list(&["0-65535"; 100_000].join(",")), None);
    }

    #[test]
    fn names_are_one_line() {
        assert_eq!(clean("Radxa  ROCK 5B\0"), "Radxa ROCK 5B");
        assert_eq!(clean("\0\n"), "");
        assert_eq!(clean(&"x".repeat(999)).len(), LONGEST_MODEL);
    }
}
