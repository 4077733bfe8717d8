//! How far apart two processors are, in the unit of an objective, for data that travel along rows and
//! columns.

use super::{CostFunction, costs};
use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::{Link, Place, Platform, Topology};
use std::collections::BTreeMap;

/// Bytes of one element of a pivot row or column: a double.
const BYTES: f64 = 8.0;

/// Above this number of kinds of processors, distances are computed on demand instead of tabulated.
const LARGEST_TABLE: usize = 2048;

/// Distances between the processors of a plan: hops, or seconds per element.
#[derive(Debug, Clone)]
pub(super) struct Distances<'a> {
    platform: &'a Platform,
    hops: bool,
    /// The platform's rank of each of the plan's processors.
    ranks: Vec<Rank>,
    /// Processors of one kind have the same distance to every other processor.
    kind: Vec<usize>,
    kinds: usize,
    table: Option<Vec<[f64; 2]>>,
    /// Processors of one leaf of the platform's tree have the same number.
    cluster: Vec<usize>,
}

impl<'a> Distances<'a> {
    /// Distances between the named processors. O(p log p + kinds^2) look-ups where few kinds of processors
    /// are distinguished.
    ///
    /// # Errors
    /// A name that the platform does not have.
    pub(super) fn new(names: &[String], platform: &'a Platform, objective: CostFunction) -> Result<Self> {
        let by_name: BTreeMap<&str, Rank> =
            platform.processors.iter().enumerate().map(|(i, p)| (p.name.as_str(), Rank(i))).collect();
        let ranks = names
            .iter()
            .map(|name| {
                by_name.get(name.as_str()).copied().ok_or_else(|| {
                    Error::input(
                        format!("plan: processor \"{name}\""),
                        format!("is not in the platform \"{}\"", platform.name),
                        "arrange a plan on the platform that it was made for",
                    )
                })
            })
            .collect::<Result<Vec<_>>>()?;
        let mut clusters: BTreeMap<&str, usize> = BTreeMap::new();
        let cluster = ranks
            .iter()
            .map(|r| {
                let next = clusters.len();
                *clusters.entry(&platform.processors[r.0].cluster).or_insert(next)
            })
            .collect();
        let hops = matches!(objective, CostFunction::Hops(_));
        let mut distances = Self { platform, hops, ranks, kind: Vec::new(), kinds: 0, table: None, cluster };
        distances.sort_into_kinds();
        Ok(distances)
    }

    /// `[along rows, along columns]` from one of the plan's processors to another; zero to itself.
    pub(super) fn between(&self, from: usize, to: usize) -> [f64; 2] {
        if from == to {
            return [0.0; 2];
        }
        match &self.table {
            Some(table) => table[self.kind[from] * self.kinds + self.kind[to]],
            None => self.measure(from, to),
        }
    }

    /// Number of processors.
    pub(super) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// The kind of a processor: two of a kind can be exchanged without changing the cost.
    pub(super) fn kind(&self, owner: usize) -> usize {
        self.kind[owner]
    }

    /// The cluster of a processor, numbered from 0.
    pub(super) fn cluster(&self, owner: usize) -> usize {
        self.cluster[owner]
    }

    fn measure(&self, from: usize, to: usize) -> [f64; 2] {
        let (a, b) = (self.ranks[from], self.ranks[to]);
        if self.hops {
            let path = |r: Rank| self.platform.processors[r.0].cluster.as_str();
            return [costs::tree_hops(path(a), path(b)) as f64; 2];
        }
        let network = &self.platform.network;
        let price = |link: Link| [BYTES / link.horizontal, BYTES / link.vertical];
        match network.topology {
            Topology::Star { .. } => network.route(a, b).iter().fold([0.0; 2], |sum, hop| {
                let hop = price(hop.link);
                [sum[0] + hop[0], sum[1] + hop[1]]
            }),
            Topology::Full | Topology::Bus => price(network.link(a, b)),
        }
    }

    /// Finds the kinds: first the processors that the platform's description does not tell apart, then those
    /// of these groups that have equal distances to some members of every group. O(p log p + groups^3), where
    /// most comparisons end at once.
    fn sort_into_kinds(&mut self) {
        let p = self.ranks.len();
        let mut groups: BTreeMap<(Option<Place>, usize), usize> = BTreeMap::new();
        let mut samples: Vec<usize> = Vec::new();
        let mut sampled: Vec<usize> = Vec::new();
        let mut group = Vec::with_capacity(p);
        let places = self.platform.network.places(self.platform.len());
        for i in 0..p {
            let key = match self.hops {
                true => (None, self.cluster[i]),
                false => (Some(places[self.ranks[i].0].clone()), 0),
            };
            let next = groups.len();
            let number = *groups.entry(key).or_insert(next);
            if number == next {
                sampled.push(0);
            }
            // Three members: one differs from any two processors.
            if sampled[number] < 3 {
                sampled[number] += 1;
                samples.push(i);
            }
            group.push(number);
        }
        let mut kind_of: Vec<usize> = Vec::new();
        let mut firsts: Vec<usize> = Vec::new();
        for (i, &number) in group.iter().enumerate() {
            if number == kind_of.len() {
                let same = match self.hops {
                    true => None,
                    false => firsts.iter().position(|&f| self.alike(f, i, &samples)),
                };
                kind_of.push(same.unwrap_or(firsts.len()));
                if same.is_none() {
                    firsts.push(i);
                }
            }
            self.kind.push(kind_of[number]);
        }
        self.kinds = firsts.len();
        if self.kinds > LARGEST_TABLE {
            return;
        }
        // Inside a kind the distance is that of any two different members.
        let mut second = vec![None; self.kinds];
        for i in 0..p {
            let kind = self.kind[i];
            if firsts[kind] != i && second[kind].is_none() {
                second[kind] = Some(i);
            }
        }
        let table = (0..self.kinds * self.kinds)
            .map(|x| match (x / self.kinds, x % self.kinds) {
                (a, b) if a != b => self.measure(firsts[a], firsts[b]),
                (a, _) => second[a].map_or([0.0; 2], |s| self.measure(firsts[a], s)),
            })
            .collect();
        self.table = Some(table);
    }

    /// True if exchanging the two changes no distance to these processors.
    fn alike(&self, x: usize, y: usize, others: &[usize]) -> bool {
        self.measure(x, y) == self.measure(y, x)
            && (others.iter().copied())
                .filter(|&k| k != x && k != y)
                .all(|k| self.measure(x, k) == self.measure(y, k) && self.measure(k, x) == self.measure(k, y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrange::{Edges, Pivots};
    use crate::platform::parse_platform;
    use crate::random::Random;

    #[test]
    fn the_table_agrees_with_the_network() {
        let text = r#"
[[processor]]
name = "a1"
cluster = "s/a"
[[processor]]
name = "a2"
cluster = "s/a"
[[processor]]
name = "a3"
cluster = "s/a"
[[processor]]
name = "b"
cluster = "s/b"
[network]
bandwidth = "1 MB/s"
[[network.link]]
between = ["s/a", "s/a"]
bandwidth = "8 MB/s"
[[network.link]]
between = ["a3", "b"]
bandwidth = { horizontal = "2 MB/s", vertical = "4 MB/s" }
"#;
        let platform = parse_platform(text, "p.toml").unwrap();
        let names = platform.names();
        for objective in [CostFunction::Hops(Pivots::Ring), CostFunction::Asymmetric(Edges::Open)] {
            let d = Distances::new(&names, &platform, objective).unwrap();
            for (i, j) in (0..16).map(|x| (x / 4, x % 4)).filter(|(i, j)| i != j) {
                assert_eq!(d.between(i, j), d.measure(i, j), "{objective:?} {i} {j}");
            }
        }
        let d = Distances::new(&names, &platform, CostFunction::Asymmetric(Edges::Open)).unwrap();
        assert_eq!(d.between(0, 1), [1e-6, 1e-6]);
        assert_eq!(d.between(2, 3), [4e-6, 2e-6]);
        assert_eq!((d.kind(0), d.kind(1), d.kind(2)), (0, 0, 1));
    }

    /// On random networks, kinds are those by comparing every pair with every other processor.
    #[test]
    fn kinds_are_those_by_all_distances() {
        let mut random = Random::new(11);
        for round in 0..60 {
            let p = 3 + random.below(9);
            let mut text = String::from("[network]\nbandwidth = 8\n");
            if round % 5 == 4 {
                text += "topology = \"star\"\ncentre = \"n1\"\n";
            }
            for i in 0..p {
                let cluster = random.below(3);
                text += &format!("[[processor]]\nname = \"n{i}\"\ncluster = \"c{cluster}\"\n");
            }
            for _ in 0..random.below(4) {
                let (a, b) = (random.below(p), random.below(p));
                if a != b {
                    let bandwidth = 1 + random.below(3);
                    let between = format!("between = [\"n{a}\", \"n{b}\"]");
                    text += &format!("[[network.link]]\n{between}\nbandwidth = {bandwidth}\n");
                }
            }
            if random.below(2) == 0 {
                text += "[[network.uplink]]\nof = \"n0\"\nbandwidth = 4\n";
            }
            let platform = parse_platform(&text, "p.toml").unwrap();
            let d =
                Distances::new(&platform.names(), &platform, CostFunction::Asymmetric(Edges::Open)).unwrap();
            let everyone: Vec<usize> = (0..p).collect();
            let mut firsts: Vec<usize> = Vec::new();
            for i in 0..p {
                let same = firsts.iter().position(|&f| d.alike(f, i, &everyone));
                assert_eq!(d.kind(i), same.unwrap_or(firsts.len()), "{text}");
                if same.is_none() {
                    firsts.push(i);
                }
            }
        }
    }

    #[test]
    fn a_stranger_is_refused() {
        let platform = Platform::from_speeds(&[1.0]).unwrap();
        let error = Distances::new(&["q".into()], &platform, CostFunction::Hops(Pivots::Ring)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("\"q\""));
    }
}
