//! Kinds of cores, told apart by what the system says of them. Kinds only group cores: how fast they are is
//! measured.

use super::Core;
use super::files::{classes_of_cpus, designs_of_cpus, list_of_cpu, number_of_cpu, read_of_cpu};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Capacities and clocks that differ by a factor of up to this are of one kind: the best cores of a chip may
/// run a little faster than their like.
const ALIKE: f64 = 1.2;
/// Caches of a core that are looked at.
const MOST_CACHES: usize = 8;

/// Cores that the system describes alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreKind {
    /// `performance`, `efficient`, `low-power`, or the model of Arm's cores (`cortex-a76`), where the system
    /// tells; otherwise `core`, and `kind0`, `kind1`, … if there are several.
    pub name: String,
    /// Relative capacity of its first core, where the system tells; 1024 is the fastest kind.
    pub(crate) capacity: Option<u64>,
    /// The highest clock of its cores in kHz, if known.
    pub max_khz: Option<u64>,
    /// Bytes of the second cache, if known.
    pub(crate) l2_bytes: Option<u64>,
    /// The number of cores that share a second cache, if known.
    pub(crate) l2_cores: Option<usize>,
    /// Bytes of the third cache, if there is one.
    pub(crate) l3_bytes: Option<u64>,
}

/// What the system says of one core.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Traits {
    pub(super) capacity: Option<u64>,
    pub(super) class: Option<String>,
    pub(super) l2_bytes: Option<u64>,
    pub(super) l2_cores: Option<usize>,
    pub(super) l3_bytes: Option<u64>,
    pub(super) max_khz: Option<u64>,
}

impl Traits {
    /// Those of these cores. `threads` has the hardware threads of the core of each CPU that is online: cores
    /// that this process may not use share caches, too.
    pub(super) fn of_cores(root: &Path, cores: &[Core], threads: &BTreeMap<usize, Vec<usize>>) -> Vec<Self> {
        let mut classes = classes_of_cpus(root);
        // What no device tells apart, the designs of cores may.
        let designs = designs_of_cpus(root);
        if classes.is_empty() && designs.values().collect::<BTreeSet<_>>().len() > 1 {
            let class =
                |design: &str| design.split_once(' ').map_or(design, |(_, name)| name).replace(' ', "-");
            classes = designs.into_iter().map(|(cpu, design)| (cpu, class(&design).to_lowercase())).collect();
        }
        let first_thread = |cpu: usize| threads.get(&cpu).map_or(cpu, |threads| threads[0]);
        let of_core = |core: &Core| {
            let cpu = core.cpu;
            let mut traits = Self {
                capacity: number_of_cpu(root, cpu, "cpu_capacity"),
                class: classes.get(&cpu).cloned(),
                max_khz: number_of_cpu(root, cpu, "cpufreq/cpuinfo_max_freq"),
                ..Self::default()
            };
            for index in 0..MOST_CACHES {
                let file = |name: &str| format!("cache/index{index}/{name}");
                let Some(level) = read_of_cpu(root, cpu, &file("level")) else { break };
                let bytes = || parse_size(&read_of_cpu(root, cpu, &file("size"))?);
                match level.as_str() {
                    "2" => {
                        traits.l2_bytes = bytes();
                        let sharers = list_of_cpu(root, cpu, &file("shared_cpu_list"));
                        let cores =
                            |cpus: Vec<usize>| cpus.into_iter().map(first_thread).collect::<BTreeSet<_>>();
                        traits.l2_cores = sharers.map(|cpus| cores(cpus).len());
                    }
                    "3" => traits.l3_bytes = bytes(),
                    _ => {}
                }
            }
            traits
        };
        cores.iter().map(of_core).collect()
    }
}

/// Parses a cache's size: `1280K`.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The kinds of cores, and the kind of each core.
#[derive(Debug, PartialEq)]
pub(super) struct Kinds {
    pub(super) kinds: Vec<CoreKind>,
    pub(super) of_core: Vec<usize>,
}

/// What tells kinds apart, in the order of weight. The number of cores that share the third cache does not
/// count: a virtual machine often has more cores of one chiplet than of another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    capacity: Option<usize>,
    class: Option<&'a str>,
    l2_bytes: Option<u64>,
    l2_cores: Option<usize>,
    l3_bytes: Option<u64>,
    clock: Option<usize>,
}

/// Groups cores by capacity, class, caches and clock. Kinds of the highest capacity come first, then of the
/// highest clock, then in the order of their first cores. O(n log n).
pub(super) fn kinds_of(cores: &[Traits]) -> Kinds {
    let capacities = levels(cores.iter().filter_map(|core| core.capacity));
    let clocks = levels(cores.iter().filter_map(|core| core.max_khz));
    let mut groups: BTreeMap<Key<'_>, Vec<usize>> = BTreeMap::new();
    for (number, core) in cores.iter().enumerate() {
        let key = Key {
            capacity: core.capacity.map(|capacity| capacities[&capacity]),
            class: core.class.as_deref(),
            l2_bytes: core.l2_bytes,
            l2_cores: core.l2_cores,
            l3_bytes: core.l3_bytes,
            clock: core.max_khz.map(|clock| clocks[&clock]),
        };
        groups.entry(key).or_default().push(number);
    }
    let mut groups: Vec<(Key<'_>, Vec<usize>)> = groups.into_iter().collect();
    let level = |level: Option<usize>| level.unwrap_or(usize::MAX);
    groups.sort_by_key(|(key, cores)| (level(key.capacity), level(key.clock), cores[0]));
    let mut kinds = Kinds { kinds: Vec::new(), of_core: vec![0; cores.len()] };
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    let several = groups.len() > 1;
    for (number, (key, members)) in groups.iter().enumerate() {
        let name = match key.class {
            Some(class) => {
                let times = times.entry(class).or_default();
                *times += 1;
                if *times == 1 { class.to_owned() } else { format!("{class}-{times}") }
            }
            None if several => format!("kind{number}"),
            None => "core".to_owned(),
        };
        let first = &cores[members[0]];
        kinds.kinds.push(CoreKind {
            name,
            capacity: first.capacity,
            max_khz: members.iter().filter_map(|core| cores[*core].max_khz).max(),
            l2_bytes: first.l2_bytes,
            l2_cores: first.l2_cores,
            l3_bytes: first.l3_bytes,
        });
        for core in members {
            kinds.of_core[*core] = number;
        }
    }
    kinds
}

/// A level for each value, 0 for the highest: a value has the level of the next higher one, unless that is
/// more than a fifth higher.
fn levels(values: impl Iterator<Item = u64>) -> BTreeMap<u64, usize> {
    let values: BTreeSet<u64> = values.collect();
    let (mut level, mut higher) = (0, u64::MAX);
    let mut of_value = |value: u64| {
        if higher != u64::MAX && higher as f64 > ALIKE * value as f64 {
            level += 1;
        }
        higher = value;
        (value, level)
    };
    values.into_iter().rev().map(&mut of_value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_within_a_fifth_of_the_next_are_alike() {
        let levels = levels([5100, 5300, 1000, 3300, 5300, 4500].into_iter());
        assert_eq!(levels, BTreeMap::from([(5300, 0), (5100, 0), (4500, 0), (3300, 1), (1000, 2)]));
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("1280K"), Some(1280 << 10));
        assert_eq!(parse_size("512"), Some(512));
        for bad in ["", "K", "12Q", "-1K", "99999999999999999999K", "99999999999999999G"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    /// Each line of what the system says tells cores apart where the lines before it do not.
    #[test]
    fn every_trait_tells_cores_apart() {
        let plain = Traits {
            capacity: Some(1024),
            class: Some("performance".into()),
            l2_bytes: Some(1 << 20),
            l2_cores: Some(1),
            l3_bytes: Some(1 << 25),
            max_khz: Some(5_000_000),
        };
        let others = [
            Traits { capacity: Some(500), ..plain.clone() },
            Traits { class: Some("efficient".into()), ..plain.clone() },
            Traits { l2_bytes: Some(1 << 21), ..plain.clone() },
            Traits { l2_cores: Some(4), ..plain.clone() },
            Traits { l3_bytes: None, ..plain.clone() },
            Traits { max_khz: Some(3_000_000), ..plain.clone() },
        ];
        for other in others {
            let kinds = kinds_of(&[other.clone(), plain.clone(), other.clone()]);
            assert_eq!(kinds.kinds.len(), 2, "{other:?}");
            assert!(kinds.of_core == [0, 1, 0] || kinds.of_core == [1, 0, 1], "{kinds:?}");
        }
        let favoured = Traits { capacity: Some(1000), max_khz: Some(5_300_000), ..plain.clone() };
        let kinds = kinds_of(&[plain, favoured]);
        assert_eq!((kinds.kinds.len(), kinds.of_core), (1, vec![0, 0]));
        assert_eq!(kinds.kinds[0].max_khz, Some(5_300_000));
    }

    #[test]
    fn kinds_have_distinct_names_and_the_most_capable_comes_first() {
        let core = |class: Option<&str>, capacity, khz| Traits {
            class: class.map(str::to_owned),
            capacity,
            max_khz: khz,
            ..Traits::default()
        };
        let names = |cores: &[Traits]| -> Vec<String> {
            kinds_of(cores).kinds.into_iter().map(|kind| kind.name).collect()
        };
        let efficient = core(Some("efficient"), None, Some(3_900));
        let low_power = core(Some("efficient"), None, Some(2_500));
        let performance = core(Some("performance"), None, Some(5_100));
        assert_eq!(names(&[low_power, efficient, performance]), ["performance", "efficient", "efficient-2"]);
        assert_eq!(names(&[core(None, Some(400), None), core(None, Some(1024), None)]), ["kind0", "kind1"]);
        assert_eq!(names(&[core(None, None, None)]), ["core"]);
        let slow_first = kinds_of(&[core(None, Some(400), None), core(None, Some(1024), None)]);
        assert_eq!((slow_first.of_core, slow_first.kinds[0].capacity), (vec![1, 0], Some(1024)));
    }
}
