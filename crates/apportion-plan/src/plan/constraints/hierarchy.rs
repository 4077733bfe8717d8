//! The tree of sites, clusters and processors that a hierarchical layout follows.

use std::collections::BTreeMap;

/// The members of one level: processors and clusters, in the order of their first processor in the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    pub(crate) members: Vec<Member>,
}

/// A member of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Member {
    /// A processor, by rank.
    Processor(usize),
    /// A cluster, whose part is divided among its own members.
    Cluster(String, Hierarchy),
}

impl Hierarchy {
    /// The tree of paths such as `"site/node"`, one for each processor by rank.
    ///
    /// Processors with equal paths are members of one cluster. A cluster of one processor is that processor.
    pub fn of_paths(paths: &[String]) -> Self {
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
        Self::below(&(0..paths.len()).collect::<Vec<_>>(), &paths, 0)
    }

    fn below(ranks: &[usize], paths: &[Vec<&str>], depth: usize) -> Self {
        let mut order: Vec<&str> = Vec::new();
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut members: Vec<(usize, Member)> = Vec::new();
        for &rank in ranks {
            match paths[rank].get(depth) {
                None => members.push((rank, Member::Processor(rank))),
                Some(&name) => {
                    let group = groups.entry(name).or_default();
                    if group.is_empty() {
                        order.push(name);
                    }
                    group.push(rank);
                }
            }
        }
        for name in order {
            let group = &groups[name];
            let member = match group[..] {
                [alone] => Member::Processor(alone),
                _ => Member::Cluster(name.to_owned(), Self::below(group, paths, depth + 1)),
            };
            members.push((group[0], member));
        }
        members.sort_by_key(|(first, _)| *first);
        Self { members: members.into_iter().map(|(_, member)| member).collect() }
    }

    /// The number of levels: 1 if no two processors share a cluster.
    pub fn levels(&self) -> usize {
        let below = self.members.iter().map(|member| match member {
            Member::Processor(_) => 0,
            Member::Cluster(_, inner) => inner.levels(),
        });
        1 + below.max().unwrap_or(0)
    }
}

impl Member {
    /// The ranks of its processors.
    pub(crate) fn ranks(&self) -> Vec<usize> {
        match self {
            Self::Processor(rank) => vec![*rank],
            Self::Cluster(_, inner) => inner.members.iter().flat_map(Self::ranks).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Hierarchy {
        Hierarchy::of_paths(&paths.iter().map(|&p| p.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn sites_clusters_and_processors() {
        let grid = tree(&["grenoble/edel", "nancy", "grenoble/genepi", "grenoble/edel", "nancy", "alone"]);
        let ranks: Vec<Vec<usize>> = grid.members.iter().map(Member::ranks).collect();
        assert_eq!(ranks, [vec![0, 3, 2], vec![1, 4], vec![5]]);
        assert_eq!(grid.levels(), 3);
        assert_eq!(grid.members[2], Member::Processor(5));
        let Member::Cluster(name, inner) = &grid.members[0] else { panic!("a site of three") };
        assert_eq!((name.as_str(), inner.members.len()), ("grenoble", 2));
    }

    #[test]
    fn no_cluster_is_one_level() {
        assert_eq!(tree(&["p0", "p1"]).levels(), 1);
        assert_eq!(tree(&["a", "a"]).levels(), 2);
        assert_eq!(tree(&["a", "a/b", "a/b"]).levels(), 3);
    }
}
