//! Cost of messages between the processes of a world, measured as the engine sends them: packed, sent,
//! received, unpacked.

use super::threads::threads_probe;
use super::{LinkOptions, LinkSampler, MeasuredLink, PairKind, Probe};
use crate::error::Result;
use crate::geometry::Rank;
use crate::platform::{Direction, Platform, Processor};
use crate::run::{Hosts, Monitor, World};
use std::hint::black_box;
use std::time::Instant;

/// Words of one stretch of a horizontal message: one cache line.
const STRETCH: usize = 8;
/// Distance between the starts of stretches, in words.
const STRIDE: usize = 128;

/// Latency and bandwidth of every pair of processors that has its own link, pair by pair in each direction,
/// with no other traffic: between the ranks of a world, or between threads of a single process. Where the clusters of a
/// platform are the hosts of the world, the ranks of two hosts share the link between them, and one pair is measured
/// for all. Rank 0
/// decides which messages to send and gets the links; the others get none. Every rank must call it.
///
/// Each size is repeated as the options say. A line through the seconds of all messages gives the result
/// (Hockney 1994, least squares of relative errors, robust: [`fit_hockney`](crate::model::fit_hockney)), if
/// it meets the largest of them; between hosts these count only once they have been sent for a tenth of a
/// second, so that no burst is taken for bandwidth. Pairs whose messages the platform's topology relays are
/// skipped: their messages use the links of other pairs. So are devices, whose links are those to their hosts
/// ([`measure_device_links`](crate::measure::measure_device_links)). The monitor advances by one per pair.
///
/// # Errors
/// Fewer than three sizes, or sizes that are not ascending and positive; times that determine no bandwidth
/// (exit code 1); messages that need more memory than is free; interrupted. On all ranks.
///
/// # Panics
/// If the sizes of the world and the platform differ.
pub fn measure_links(
    platform: &Platform,
    options: &LinkOptions,
    world: &World,
    monitor: &Monitor,
) -> Result<Vec<MeasuredLink>> {
    if world.is_solo() {
        let send = &mut threads_probe(platform, monitor);
        return LinkSampler { options, send, monitor }.measure(platform, &|_, _| PairKind::Near);
    }
    assert_eq!(world.size(), platform.len(), "one rank for each processor");
    let hosts = world.hosts()?;
    let kinds = HostPairs::of(platform, &hosts);
    let mut measured = Ok(Vec::new());
    if world.rank() == 0 {
        let send = &mut |probe: &Probe| announce(world, Some(probe));
        measured = LinkSampler { options, send, monitor }.measure(platform, &|a, b| kinds.kind(a, b));
        announce(world, None)?;
    } else {
        while !announce(world, None)?.is_empty() {}
    }
    world.all_ok(measured)
}

/// The pairs of ranks of several hosts.
struct HostPairs<'a> {
    hosts: &'a Hosts,
    /// By host, the rank whose messages give the links to other hosts.
    first: Vec<Option<usize>>,
    /// True if the platform's clusters are the hosts, so that it can name a link that their processors share.
    clustered: bool,
}

impl<'a> HostPairs<'a> {
    fn of(platform: &Platform, hosts: &'a Hosts) -> Self {
        let on_host = |rank: usize, host: usize| {
            hosts.of_rank[rank] == host && platform.processors[rank].device.is_none()
        };
        let first = |host: usize| (0..platform.len()).find(|rank| on_host(*rank, host));
        let is_host =
            |(processor, host): (&Processor, &usize)| processor.outermost_cluster() == hosts.names[*host];
        let clustered = platform.processors.iter().zip(&hosts.of_rank).all(is_host);
        Self { hosts, first: (0..hosts.names.len()).map(first).collect(), clustered }
    }

    fn kind(&self, a: Rank, b: Rank) -> PairKind {
        let [from, to] = [a, b].map(|rank| self.hosts.of_rank[rank.0]);
        let alone = |host: usize| self.hosts.of_rank.iter().filter(|of| **of == host).count() == 1;
        if from == to {
            PairKind::Near
        } else if !self.clustered || (alone(from) && alone(to)) {
            PairKind::Far
        } else if self.first[from] == Some(a.0) && self.first[to] == Some(b.0) {
            PairKind::Shared
        } else {
            PairKind::Represented
        }
    }
}

/// Rank 0 announces a probe, or the end of the measurement; the ranks that the probe names execute it.
/// Returns its seconds on rank 0; on the others, a non-empty vector until the end.
fn announce(world: &World, probe: Option<&Probe>) -> Result<Vec<f64>> {
    let words = probe.map_or(Vec::new(), |p| {
        vec![p.from.0, p.to.0, p.bytes as usize, usize::from(p.direction == Direction::Vertical), p.times]
    });
    let words: Vec<usize> = world.broadcast_numbers(&words)?;
    let &[from, to, bytes, vertical, times] = &words[..] else { return Ok(Vec::new()) };
    let direction = if vertical == 1 { Direction::Vertical } else { Direction::Horizontal };
    let probe = Probe { from: Rank(from), to: Rank(to), bytes: bytes as u64, direction, times };
    let mut seconds = vec![0.0; times];
    if world.rank() == from {
        seconds = send(world, &probe)?;
        if from > 0 {
            world.send(seconds.iter().map(|s| s.to_bits()).collect(), 0)?;
        }
    } else if world.rank() == to {
        answer(world, &probe)?;
    }
    if world.rank() == 0 && from > 0 {
        seconds = world.recv(times, from)?.into_iter().map(f64::from_bits).collect();
    }
    Ok(seconds)
}

/// Number of words of a probe's message.
fn words(probe: &Probe) -> usize {
    (probe.bytes as usize).div_ceil(8)
}

/// Offsets of a message's stretches in memory with their lengths, and the extent of all stretches.
fn stretches(probe: &Probe) -> (Vec<(usize, usize)>, usize) {
    let words = words(probe);
    match probe.direction {
        Direction::Vertical => (vec![(0, words)], words),
        Direction::Horizontal => {
            let length = |i: usize| STRETCH.min(words - i * STRETCH);
            let count = words.div_ceil(STRETCH);
            ((0..count).map(|i| (i * STRIDE, length(i))).collect(), count * STRIDE)
        }
    }
}

/// Sends data that this rank has written, and waits for each answer. Nothing comes between an answer and the
/// next message, or a token bucket on the way would fill meanwhile.
fn send(world: &World, probe: &Probe) -> Result<Vec<f64>> {
    let (places, extent) = stretches(probe);
    let mut memory = vec![0u64; extent];
    places.iter().for_each(|&(at, length)| memory[at..at + length].fill(1));
    let mut seconds = Vec::with_capacity(probe.times);
    for _ in 0..probe.times {
        let begin = Instant::now();
        let mut message = Vec::with_capacity(words(probe));
        places.iter().for_each(|&(at, length)| message.extend_from_slice(&memory[at..at + length]));
        world.exchange(message, probe.to.0, 0, probe.to.0)?;
        seconds.push(begin.elapsed().as_secs_f64());
    }
    Ok(seconds)
}

/// Stores each message in its place and answers.
fn answer(world: &World, probe: &Probe) -> Result<()> {
    let (places, extent) = stretches(probe);
    let mut memory = vec![0u64; extent];
    for _ in 0..probe.times {
        let message = world.recv(words(probe), probe.from.0)?;
        let mut rest = &message[..];
        for &(at, length) in &places {
            let (here, others) = rest.split_at(length);
            memory[at..at + length].copy_from_slice(here);
            rest = others;
        }
        black_box(&mut memory);
        world.send(Vec::new(), probe.from.0)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_two_hosts_share_their_link() {
        let mut platform = Platform::from_speeds(&[1.0; 4]).unwrap();
        let clusters = ["a/node0", "a", "b", "c"];
        for (processor, cluster) in platform.processors.iter_mut().zip(clusters) {
            processor.cluster = cluster.into();
        }
        let hosts = Hosts { names: ["a", "b", "c"].map(String::from).into(), of_rank: vec![0, 0, 1, 2] };
        let kinds = |platform: &Platform| {
            let pairs = HostPairs::of(platform, &hosts);
            [(0, 1), (0, 2), (1, 2), (0, 3), (2, 3)].map(|(a, b)| pairs.kind(Rank(a), Rank(b)))
        };
        use PairKind::{Far, Near, Represented, Shared};
        assert_eq!(kinds(&platform), [Near, Shared, Represented, Shared, Far]);
        platform.processors[0].device = Some("opencl:0".into());
        assert_eq!(kinds(&platform), [Near, Represented, Shared, Represented, Far]);
        platform.processors[3].cluster = "elsewhere".into();
        assert_eq!(kinds(&platform), [Near, Far, Far, Far, Far]);
    }

    /// Every word once, for every length; strided stretches are one kilobyte apart.
    #[test]
    fn stretches_hold_the_whole_message() {
        for bytes in [1, 8, 63, 64, 65, 4096, 100_000] {
            for direction in [Direction::Vertical, Direction::Horizontal] {
                let probe = Probe { from: Rank(0), to: Rank(1), bytes, direction, times: 1 };
                let (places, extent) = stretches(&probe);
                assert_eq!(places.iter().map(|p| p.1).sum::<usize>(), words(&probe));
                assert!(places.iter().all(|(at, length)| at + length <= extent && *length > 0));
                assert!(places.windows(2).all(|w| w[1].0 - w[0].0 == STRIDE));
            }
        }
    }
}
