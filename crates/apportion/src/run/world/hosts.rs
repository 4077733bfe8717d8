//! On which host each rank runs, and the memory that ranks of one host share.

use super::World;
use crate::error::Result;
use crate::run::shared::{Mine, SharedMemory};
use std::collections::BTreeMap;

/// With more ranks on a host each would have too many files open.
const MOST_RANKS: usize = 256;

/// The hosts of a world's ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    /// The hosts' names, in the order of their first ranks. Where several hosts have one name, the later ones
    /// have a number added.
    pub names: Vec<String>,
    /// The index of each rank's host in `names`.
    pub of_rank: Vec<usize>,
}

impl Hosts {
    /// Groups ranks by host: `identities` are the name and the identity of each rank's host.
    fn of(identities: &[(String, String)]) -> Self {
        let (mut known, mut times) = (Vec::new(), BTreeMap::new());
        let mut hosts = Self { names: Vec::new(), of_rank: Vec::new() };
        for host in identities {
            let place = known.iter().position(|other| *other == host).unwrap_or_else(|| {
                known.push(host);
                let count = times.entry(&host.0).or_insert(0);
                *count += 1;
                hosts.names.push(if *count == 1 { host.0.clone() } else { format!("{}-{count}", host.0) });
                known.len() - 1
            });
            hosts.of_rank.push(place);
        }
        hosts
    }

    /// The first rank of each host.
    pub fn first_ranks(&self) -> Vec<usize> {
        let first = |host| self.of_rank.iter().position(|of| *of == host);
        (0..self.names.len()).filter_map(first).collect()
    }
}

impl World {
    /// The hosts of all ranks, the same on every rank; every rank must call it. Two ranks are on one host if
    /// the names, the boots and the network namespaces of their systems are the same, so that containers
    /// count as hosts.
    ///
    /// # Errors
    /// Interrupted; another rank failed.
    pub fn hosts(&self) -> Result<Hosts> {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let name = super::host_name();
        let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
        let boot = read("/proc/sys/kernel/random/boot_id");
        let all = self.all_gather_texts(&format!("{name}\n{boot}{}", network.display()))?;
        let parsed = |text: &String| {
            text.split_once('\n').map_or_else(Default::default, |(a, b)| (a.to_owned(), b.to_owned()))
        };
        Ok(Hosts::of(&all.iter().map(parsed).collect::<Vec<_>>()))
    }

    /// Lets the ranks share memory if all of them can; every rank must call it, and all are on one host.
    pub(crate) fn share_memory(&self) -> Result<()> {
        if self.size() == 1 || self.size() > MOST_RANKS {
            return Ok(());
        }
        let mine = Mine::new();
        let address = mine.as_ref().map_or([0; 3], Mine::address);
        let addresses: Vec<[u64; 3]> = self.all_gather_numbers(&[address])?.concat();
        let shared = mine.and_then(|mine| mine.with(&addresses));
        // Also until all have opened the files of all.
        let can = self.all_reduce(&[u8::from(shared.is_some())], u8::min)?;
        if let Some(shared) = shared.filter(|_| can == [1]) {
            let _ = self.shared.set(shared);
        }
        Ok(())
    }

    /// The memory that all ranks share, if they do.
    pub(in crate::run) fn shared(&self) -> Option<&SharedMemory> {
        self.shared.get()
    }

    /// True if all ranks share memory.
    pub(crate) fn shares_memory(&self) -> bool {
        self.shared().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Monitor;

    #[test]
    fn hosts_of_one_name_are_told_apart() {
        let identities = [("a", "1"), ("b", "1"), ("a", "1"), ("a", "2"), ("b", "1")];
        let hosts = Hosts::of(&identities.map(|(name, id)| (name.to_owned(), id.to_owned())));
        assert_eq!(hosts.names, ["a", "b", "a-2"]);
        assert_eq!(hosts.of_rank, [0, 1, 0, 2, 1]);
        assert_eq!(hosts.first_ranks(), [0, 1, 3]);
    }

    #[test]
    fn threads_are_on_one_host() {
        let hosts = World::threads(3, &Monitor::new(), World::hosts).unwrap();
        assert!(hosts.iter().all(|hosts| hosts.of_rank == [0, 0, 0] && hosts.names.len() == 1));
    }
}
