//! What messages between the hosts of a world cost, measured in under half a second before a run that knows
//! nothing else about its network.

use crate::error::Result;
use crate::measure::repetition::{Sampler, StoppingRule};
use crate::model::median;
use crate::platform::{HostLink, HostNetwork, Network, Platform, Topology};
use crate::run::{Hosts, World};
use std::time::Instant;

/// Seconds of sending in one direction, at most.
const SECONDS: f64 = 0.1;
/// Seconds of sending in all directions that follow one another.
const TOTAL_SECONDS: f64 = 0.4;
/// Number of empty messages, after one that does not count.
const EMPTY: usize = 5;
/// Words of a large message: 128 KiB, a hundredth of a second at 100 Mbit/s.
const WORDS: usize = 16 << 10;

/// Gives the platform of a world the network between its hosts, where nothing says what messages cost: the
/// platform's network is free, and the ranks are on several hosts. Every rank must call it; rank 0's platform
/// decides, and all get the same numbers. Messages within a host remain free.
///
/// `recall` returns what [`HostNetwork::to_value`] wrote in an earlier run on the hosts of the given key, if
/// it is known; it is called on rank 0. If it returns nothing, or what it returns does not fit, each pair of
/// hosts exchanges messages, in both directions one after the other, while other pairs do the same: empty
/// ones for the latency, then large ones, of which those of the second half of the time count, so that a
/// burst is not taken for bandwidth. It takes under half a second for a few hosts, unless a link needs longer
/// for two messages of 128 KiB.
///
/// # Errors
/// Interrupted; another rank failed.
///
/// # Panics
/// If the sizes of the world and the platform differ.
pub(crate) fn measure_host_network(
    platform: &mut Platform,
    world: &World,
    recall: impl FnOnce(&str) -> Option<String>,
) -> Result<()> {
    if world.size() == 1 || world.is_solo() {
        return Ok(());
    }
    let Platform { network, .. } = &*platform;
    let unknown = network.is_free() && !network.emulate && network.topology == Topology::Full;
    if world.broadcast(&[u8::from(unknown)])? != [1] {
        return Ok(());
    }
    assert_eq!(world.size(), platform.len(), "one rank for each processor");
    let hosts = world.hosts()?;
    if hosts.names.len() < 2 {
        return Ok(());
    }
    let known =
        if world.rank() == 0 { recall(&HostNetwork::key(&hosts.names, &hosts.of_rank)) } else { None };
    let known = world.broadcast(known.unwrap_or_default().as_bytes())?;
    let known = HostNetwork::parse(&String::from_utf8_lossy(&known)).ok();
    let fits = |known: &HostNetwork| known.hosts == hosts.names && known.of_rank == hosts.of_rank;
    let found = match known.filter(fits) {
        Some(known) => known,
        None => measure(&hosts, world)?,
    };
    platform.network = Network::between_hosts(found);
    Ok(())
}

/// Measures all pairs of hosts, by the first rank of each.
fn measure(hosts: &Hosts, world: &World) -> Result<HostNetwork> {
    let ranks = hosts.first_ranks();
    let rounds = rounds(ranks.len());
    let seconds = (TOTAL_SECONDS / (2 * rounds.len()) as f64).min(SECONDS);
    let mut mine: Vec<f64> = Vec::new();
    world.barrier()?;
    for (from, to) in rounds.iter().flatten().flat_map(|&(a, b)| [(a, b), (b, a)]) {
        if world.rank() == ranks[from] {
            let (latency, bandwidth) = send(world, ranks[to], seconds)?;
            mine.extend([from as f64, to as f64, latency, bandwidth]);
        } else if world.rank() == ranks[to] {
            receive(world, ranks[from])?;
        }
    }
    let numbers = world.all_gather_numbers(&mine)?.concat();
    let link = |link: &[f64]| HostLink {
        from: link[0] as usize,
        to: link[1] as usize,
        latency: link[2],
        bandwidth: link[3],
    };
    let mut links: Vec<HostLink> = numbers.chunks_exact(4).map(link).collect();
    links.sort_by_key(|link| (link.from, link.to));
    Ok(HostNetwork { hosts: hosts.names.clone(), of_rank: hosts.of_rank.clone(), links, remembered: false })
}

/// Every pair of `count` hosts once, in rounds of pairs that have no host in common: the circle method of
/// round-robin tournaments.
fn rounds(count: usize) -> Vec<Vec<(usize, usize)>> {
    let seats = count.next_multiple_of(2);
    let at = |round: usize, seat: usize| if seat == 0 { 0 } else { 1 + (round + seat - 1) % (seats - 1) };
    let pairs = |round: usize| {
        let pair = |seat: usize| (at(round, seat), at(round, seats - 1 - seat));
        // With an odd count, one seat is empty.
        (0..seats / 2).map(pair).filter(|&(a, b)| a < count && b < count).collect()
    };
    (0..seats - 1).map(pairs).collect()
}

/// Sends messages for these seconds, each of which is answered by an empty one; at least two are large.
/// Returns latency and bandwidth.
fn send(world: &World, to: usize, seconds: f64) -> Result<(f64, f64)> {
    let exchange = |last: bool, words: usize| -> Result<f64> {
        let message = vec![u64::from(last); words];
        let begin = Instant::now();
        world.exchange(message, to, 0, to)?;
        Ok(begin.elapsed().as_secs_f64())
    };
    let empty: Vec<f64> =
        Sampler::new(StoppingRule::times(EMPTY + 1)).run(|_| false, || exchange(false, 1))?;
    let round_trip = median(&empty[1..]);
    // The last message is the one after which another like it would end too late.
    let rule = StoppingRule { seconds, fewest_when_late: 1, ..StoppingRule::times(usize::MAX) };
    let (mut ends, mut last) = (vec![0.0], false);
    while !last {
        let so_far = ends[ends.len() - 1];
        let next = ends.len().checked_sub(2).map_or(0.0, |before| so_far - ends[before]);
        last = rule.is_met(ends.len() - 1, so_far + next, || false);
        ends.push(so_far + exchange(last, WORDS)?);
    }
    Ok((0.5 * round_trip, sustained(&ends, round_trip)))
}

/// Bytes per second of the large messages, without the latency, from the moments at which each of them ended,
/// the first of which is 0: those that began in the second half of the time.
fn sustained(ends: &[f64], round_trip: f64) -> f64 {
    let all = ends[ends.len() - 1];
    let messages = ends.len() - 1;
    let first = ends.partition_point(|end| *end < 0.5 * all).min(messages - 1);
    let count = (messages - first) as f64;
    let seconds = all - ends[first];
    count * (8 * WORDS) as f64 / (seconds - count * round_trip).max(0.1 * seconds).max(1e-9)
}

/// Answers the messages of [`send`].
fn receive(world: &World, from: usize) -> Result<()> {
    let answer = |words: usize| -> Result<bool> {
        let message = world.recv(words, from)?;
        world.send(Vec::new(), from)?;
        Ok(message[0] == 1)
    };
    for _ in 0..=EMPTY {
        answer(1)?;
    }
    while !answer(WORDS)? {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rank;
    use crate::run::Monitor;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_meets_once_and_nobody_twice_in_a_round() {
        for count in 2..20 {
            let all = rounds(count);
            let mut pairs = BTreeSet::new();
            for round in &all {
                let mut met = BTreeSet::new();
                for &(a, b) in round {
                    assert!(a != b && met.insert(a) && met.insert(b), "{count}: {round:?}");
                    assert!(pairs.insert((a.min(b), a.max(b))), "{count}: {a} and {b} meet again");
                }
            }
            assert_eq!(pairs.len(), count * (count - 1) / 2);
            assert!(all.len() <= count, "{count} hosts need {} rounds", all.len());
        }
    }

    /// A burst passes at 1 GB/s, then 12.5 MB/s go on; 128 KiB take 10.5 ms.
    #[test]
    fn the_burst_does_not_count() {
        for burst in [0, 1, 2, 4, 8, 60] {
            let mut ends = vec![0.0];
            let mut bytes = 0;
            while ends.len() < 3 || ends[ends.len() - 1] < SECONDS {
                let seconds = if bytes / WORDS / 8 < burst { 1.4e-4 } else { 1.05e-2 };
                bytes += 8 * WORDS;
                ends.push(ends[ends.len() - 1] + seconds);
            }
            let found = sustained(&ends, 1e-5);
            assert!((found / 12.5e6 - 1.0).abs() < 0.01, "{burst}: {found}");
        }
        assert!((sustained(&[0.0, 1e-4, 1.1e-2], 1e-4) / 12.12e6 - 1.0).abs() < 0.01);
    }

    /// Threads stand for ranks on three hosts, the second of which has two.
    #[test]
    fn all_ranks_get_the_same_links() {
        let hosts = Hosts { names: ["a", "b", "c"].map(String::from).into(), of_rank: vec![0, 1, 1, 2] };
        let all = World::threads(4, &Monitor::new(), |world| measure(&hosts, world)).unwrap();
        assert!(all.iter().all(|one| *one == all[0]));
        let pairs: Vec<_> = all[0].links.iter().map(|link| (link.from, link.to)).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]);
        assert!(all[0].links.iter().all(|link| link.latency > 0.0 && link.bandwidth.is_finite()));
        let network = Network::between_hosts(all[0].clone());
        assert!(
            network.link(Rank(1), Rank(2)).latency == 0.0 && network.link(Rank(0), Rank(3)).latency > 0.0
        );
        // What is written is read again.
        let again = HostNetwork::parse(&all[0].to_value().to_string()).unwrap();
        assert_eq!(again, HostNetwork { remembered: true, ..all[0].clone() });
    }

    /// One host: nothing costs anything, and nobody is asked.
    #[test]
    fn ranks_of_one_host_measure_nothing() {
        World::threads(2, &Monitor::new(), |world| {
            let mut platform = Platform::from_speeds(&[1.0, 1.0])?;
            measure_host_network(&mut platform, world, |_| panic!("nothing to recall"))?;
            assert!(platform.network.is_free());
            platform.network = Network::uniform(1e-4, 1e9);
            measure_host_network(&mut platform, world, |_| panic!("the network is known"))
        })
        .unwrap();
    }
}
