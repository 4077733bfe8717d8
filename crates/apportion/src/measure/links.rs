//! Measures the cost of a message between each pair of processors: latency, and bandwidth of contiguous and
//! of strided data.
//!
//! Independent of the transport, which is passed in as a closure: messages travel between the ranks of a
//! world (`links/ranks.rs`) or between threads of this machine (`links/threads.rs`).

mod ranks;
mod threads;

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::measure::repetition::StoppingRule;
use crate::model::{Hockney, MessageTime, fit_hockney, summarise};
use crate::platform::{Direction, Link, Platform};
use crate::run::Monitor;
pub use ranks::measure_links;

/// A message that is sent and answered by an empty one, several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probe {
    /// The sender of the data.
    from: Rank,
    /// The processor that answers.
    to: Rank,
    /// Bytes of data; at least 1.
    bytes: u64,
    /// Layout of the data in the sender's memory: vertical is one contiguous stretch (rows of B, halo rows);
    /// horizontal is a set of short stretches far apart (columns of A, halo columns).
    direction: Direction,
    /// Number of repetitions; at least 1.
    times: usize,
}

/// Sends a probe's messages. Returns the seconds from each message to its answer, in the order of sending.
type SendProbe<'a> = dyn FnMut(&Probe) -> Result<Vec<f64>> + 'a;

/// Options of the measurement: message sizes and repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkOptions {
    /// Message sizes in bytes, ascending. Sizes that would take too long are skipped, but never the first
    /// three.
    pub sizes: Vec<u64>,
    /// A size is repeated until the 95 % interval is within this fraction of its mean.
    pub tolerance: f64,
    /// Maximum number of messages per size and direction.
    pub most_repetitions: usize,
    /// Approximate maximum of seconds per size and direction.
    pub seconds_per_size: f64,
}

impl Default for LinkOptions {
    /// 1 byte to 2 MiB by factors of eight; 2.5 %, at most 30 messages and one second.
    fn default() -> Self {
        let sizes = [0, 6, 9, 12, 15, 18, 21].map(|power| 1 << power).to_vec();
        Self { sizes, tolerance: 0.025, most_repetitions: 30, seconds_per_size: 1.0 }
    }
}

/// Measured cost of messages between two processors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredLink {
    /// One end; the sender if the directions differ.
    pub from: Rank,
    /// The other end.
    pub to: Rank,
    /// True if it applies to both directions, because they did not differ clearly.
    pub both_ways: bool,
    /// True if it is the link between two hosts, which all their ranks share.
    pub shared: bool,
    /// The fit of strided messages, along rows of processors.
    pub horizontal: Hockney,
    /// The fit of contiguous messages, along columns of processors.
    pub vertical: Hockney,
}

/// The latency of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latency {
    /// Seconds.
    pub seconds: f64,
    /// Half-width of the 95 % interval, in seconds.
    pub ci: f64,
}

impl MeasuredLink {
    /// The latency: the mean of both fits, weighted by precision.
    pub fn latency(&self) -> Latency {
        let weight = |fit: &Hockney| 1.0 / (fit.latency_ci * fit.latency_ci).max(1e-30);
        let (h, v) = (weight(&self.horizontal), weight(&self.vertical));
        let seconds = (h * self.horizontal.latency + v * self.vertical.latency) / (h + v);
        Latency { seconds, ci: (1.0 / (h + v)).sqrt() }
    }

    /// The same values as a link of a platform.
    pub fn link(&self) -> Link {
        Link {
            latency: self.latency().seconds,
            horizontal: self.horizontal.bandwidth,
            vertical: self.vertical.bandwidth,
        }
    }
}

/// If the bandwidths of the two directions differ by less than this factor, they count as equal. One line for
/// both then misses neither by a tenth.
const ALIKE: f64 = 1.1;
/// Seconds of sending the largest messages before those that count. A link may pass a burst at once, such as
/// one with a token bucket; only what goes on is its bandwidth.
const BURST_SECONDS: f64 = 0.1;
/// The least half-width of a bandwidth's interval, as a fraction: messages of another moment or program
/// differ by about as much, however well those of one series agree.
const REPRODUCIBLE: f64 = 0.03;
/// Minimum number of messages per size, after one that is not counted.
const FEWEST: usize = 4;
/// Minimum number of sizes: two parameters and one degree of freedom.
const FEWEST_SIZES: usize = 3;

/// A transport that is measured, and how.
struct LinkSampler<'a, 'p> {
    options: &'a LinkOptions,
    send: &'a mut SendProbe<'p>,
    monitor: &'a Monitor,
}

/// What is known of a pair before its link is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairKind {
    /// It has a link of its own within a host.
    Near,
    /// It has a link of its own to another host, which may pass bursts.
    Far,
    /// It uses the link between two hosts, as other pairs do.
    Shared,
    /// Another pair is measured for the link that it shares.
    Represented,
}

impl LinkSampler<'_, '_> {
    /// Latency and bandwidth of every pair that has its own link, pair by pair in each direction, with no
    /// other traffic; of pairs that share a link, one. The largest messages of a pair that may pass bursts count only once they have been sent
    /// for a tenth of a second.
    ///
    /// # Errors
    /// As [`measure_links`]; those of the transport.
    fn measure(
        &mut self,
        platform: &Platform,
        kind: &dyn Fn(Rank, Rank) -> PairKind,
    ) -> Result<Vec<MeasuredLink>> {
        check(self.options)?;
        let p = platform.len();
        let is_joined = |a: Rank, b: Rank| platform.network.route(a, b).len() == 1;
        let on_cores = |rank: Rank| platform.processors[rank.0].device.is_none();
        let pairs = (0..p).flat_map(|a| (a + 1..p).map(move |b| (Rank(a), Rank(b))));
        let pairs: Vec<(Rank, Rank)> =
            pairs.filter(|&(a, b)| is_joined(a, b) && on_cores(a) && on_cores(b)).collect();
        let pairs: Vec<_> = pairs.into_iter().filter(|&(a, b)| kind(a, b) != PairKind::Represented).collect();
        self.monitor.begin(pairs.len() as u64);
        let mut links = Vec::new();
        for (a, b) in pairs {
            let name = |rank: Rank| &platform.processors[rank.0].name;
            let burst = if kind(a, b) == PairKind::Near { 0.0 } else { BURST_SECONDS };
            let shared = kind(a, b) == PairKind::Shared;
            let found = self.pair(a, b, burst).map_err(|error| match error {
                Error::Input { what, remedy, .. } => Error::infeasible(
                    format!("cannot determine the bandwidth between {} and {}: {what}", name(a), name(b)),
                    remedy,
                ),
                other => other,
            })?;
            links.extend(found.into_iter().map(|link| MeasuredLink { shared, ..link }));
            self.monitor.advance(1);
        }
        Ok(links)
    }

    /// One link for both directions, or one for each if they clearly differ.
    fn pair(&mut self, a: Rank, b: Rank, burst: f64) -> Result<Vec<MeasuredLink>> {
        let mut samples = |from: Rank, to: Rank, direction: Direction| {
            self.one_way(Probe { from, to, direction, bytes: 1, times: FEWEST + 1 }, burst)
        };
        let there = [samples(a, b, Direction::Horizontal)?, samples(a, b, Direction::Vertical)?];
        let back = [samples(b, a, Direction::Horizontal)?, samples(b, a, Direction::Vertical)?];
        let link = |from, to, both_ways, [horizontal, vertical]: &[Vec<MessageTime>; 2]| {
            Ok(with_one_latency(MeasuredLink {
                from,
                to,
                both_ways,
                shared: false,
                horizontal: fit(horizontal)?,
                vertical: fit(vertical)?,
            }))
        };
        let (forth, home) = (link(a, b, false, &there)?, link(b, a, false, &back)?);
        if differ(&forth.horizontal, &home.horizontal) || differ(&forth.vertical, &home.vertical) {
            return Ok(vec![forth, home]);
        }
        let both = [0, 1].map(|i| [there[i].clone(), back[i].clone()].concat());
        Ok(vec![link(a, b, true, &both)?])
    }

    /// Bytes and seconds of each message in one direction; the largest ones count after `burst` seconds.
    fn one_way(&mut self, probe: Probe, burst: f64) -> Result<Vec<MessageTime>> {
        let options = self.options;
        let mut samples = Vec::new();
        for (i, &bytes) in options.sizes.iter().enumerate() {
            let (probe, mut series) = (Probe { bytes, ..probe }, Series::default());
            let mut times = self.fill(&mut series, &probe, 0.0)?;
            let next = options.sizes.get(i + 1).filter(|next| {
                let ahead = summarise(&times).mean * **next as f64 / bytes as f64 * (FEWEST + 1) as f64;
                i + 1 < FEWEST_SIZES || ahead <= options.seconds_per_size
            });
            if next.is_none() {
                times = self.fill(&mut series, &probe, burst)?;
            }
            samples.extend(times.into_iter().map(|seconds| MessageTime { bytes: bytes as f64, seconds }));
            if next.is_none() {
                break;
            }
        }
        Ok(samples)
    }

    /// Sends messages until those after `burst` seconds of sending are enough. Returns their times.
    fn fill(&mut self, series: &mut Series, probe: &Probe, burst: f64) -> Result<Vec<f64>> {
        let rule = StoppingRule {
            fewest: FEWEST,
            most: self.options.most_repetitions.max(FEWEST),
            seconds: burst + self.options.seconds_per_size,
            fewest_when_late: FEWEST,
        };
        loop {
            let times = series.after(burst);
            let agree = || summarise(&times).is_within(self.options.tolerance);
            if rule.is_met(times.len(), series.spent, agree) {
                return Ok(times);
            }
            if self.monitor.is_stopped() {
                return Err(Error::Interrupted);
            }
            // The first message finds buffers cold and threads asleep.
            for (i, seconds) in (self.send)(probe)?.into_iter().enumerate() {
                if i > 0 {
                    series.messages.push((series.spent, seconds));
                }
                series.spent += seconds;
            }
        }
    }
}

fn check(options: &LinkOptions) -> Result<()> {
    let sizes = &options.sizes;
    if sizes.len() < FEWEST_SIZES || sizes[0] == 0 || sizes.windows(2).any(|w| w[0] >= w[1]) {
        return Err(Error::input(
            "message sizes",
            format!("{sizes:?} is not a list of at least {FEWEST_SIZES} ascending numbers of bytes"),
            "use sizes such as 1,4096,65536,1048576",
        ));
    }
    Ok(())
}

/// The counted messages of one size, so far.
#[derive(Default)]
struct Series {
    /// Seconds of sending before each message, and its own seconds.
    messages: Vec<(f64, f64)>,
    /// Seconds of all messages, including those that do not count.
    spent: f64,
}

impl Series {
    /// The times of messages that were sent after these seconds of sending.
    fn after(&self, seconds: f64) -> Vec<f64> {
        self.messages.iter().filter(|(before, _)| *before >= seconds).map(|(_, time)| *time).collect()
    }
}

/// Fits the link from messages that were answered by empty ones. Its latency is half the measured one.
fn fit(samples: &[MessageTime]) -> Result<Hockney> {
    let round = fit_hockney(samples)?;
    let half = 0.5 * round.latency;
    let largest = MessageTime { seconds: round.largest.seconds - half, ..round.largest };
    Ok(Hockney { latency: half, latency_ci: 0.5 * round.latency_ci, largest, ..round })
}

/// Both kinds of messages have the link's one latency. Where that moves a line away from the largest
/// messages, its bandwidth changes.
fn with_one_latency(link: MeasuredLink) -> MeasuredLink {
    let latency = link.latency().seconds;
    let kind = |fit: Hockney| {
        let MessageTime { bytes, seconds } = fit.largest;
        let line = Hockney { latency, ..fit };
        let bandwidth = match (line.seconds(bytes) / seconds - 1.0).abs() > 0.05 && seconds > latency {
            true => bytes / (seconds - latency),
            false => fit.bandwidth,
        };
        Hockney {
            bandwidth,
            bandwidth_low: fit.bandwidth_low.min(bandwidth / (1.0 + REPRODUCIBLE)),
            bandwidth_high: fit.bandwidth_high.max(bandwidth / (1.0 - REPRODUCIBLE)),
            ..fit
        }
    };
    MeasuredLink { horizontal: kind(link.horizontal), vertical: kind(link.vertical), ..link }
}

/// True if two bandwidths differ so much that one line cannot stand for both.
fn differ(x: &Hockney, y: &Hockney) -> bool {
    x.bandwidth.max(y.bandwidth) > ALIKE * x.bandwidth.min(y.bandwidth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{Network, Topology};

    /// A transport by formula: every message takes latency + bytes / bandwidth, horizontal ones twice as long
    /// per byte, and messages from a higher rank to a lower one four times as long.
    fn by_formula(probe: &Probe) -> Result<Vec<f64>> {
        let slow = if probe.direction == Direction::Horizontal { 2.0 } else { 1.0 }
            * if probe.from > probe.to && probe.from.0 == 2 { 4.0 } else { 1.0 };
        let latency = 1e-5 * (1 + probe.from.0 + probe.to.0) as f64;
        Ok(vec![2.0 * latency + probe.bytes as f64 * slow / 1e9; probe.times])
    }

    fn measure(
        platform: &Platform,
        options: &LinkOptions,
        send: &mut SendProbe<'_>,
        monitor: &Monitor,
    ) -> Result<Vec<MeasuredLink>> {
        LinkSampler { options, send, monitor }.measure(platform, &|_, _| PairKind::Far)
    }

    #[test]
    fn figures_come_back_as_they_went_in() {
        let platform = Platform::from_speeds(&[1.0; 3]).unwrap();
        let monitor = Monitor::new();
        let links = measure(&platform, &LinkOptions::default(), &mut by_formula, &monitor).unwrap();
        assert_eq!((monitor.progress().done, monitor.progress().total), (3, 3));
        let ends: Vec<_> = links.iter().map(|l| (l.from.0, l.to.0, l.both_ways)).collect();
        assert_eq!(ends, [(0, 1, true), (0, 2, false), (2, 0, false), (1, 2, false), (2, 1, false)]);
        for link in &links {
            let latency = 1e-5 * (1 + link.from.0 + link.to.0) as f64;
            let slow = if link.from.0 == 2 { 4.0 } else { 1.0 };
            let found = link.link();
            assert!((found.latency / latency - 1.0).abs() < 1e-6, "{link:?}");
            assert!((found.vertical * slow / 1e9 - 1.0).abs() < 1e-6, "{link:?}");
            assert!((found.horizontal * slow / 5e8 - 1.0).abs() < 1e-6, "{link:?}");
        }
    }

    #[test]
    fn relayed_pairs_have_no_link_and_slow_ones_no_large_messages() {
        let mut platform = Platform::from_speeds(&[1.0; 4]).unwrap();
        platform.network = Network::uniform(0.0, 1.0);
        platform.network.topology = Topology::Star { centre: Rank(1) };
        let mut largest = 0;
        // 1 kB/s: 512 bytes take half a second, 4 KiB would take four seconds.
        let mut crawl = |probe: &Probe| {
            largest = largest.max(probe.bytes);
            Ok(vec![0.1 + probe.bytes as f64 / 1e3; probe.times])
        };
        let links = measure(&platform, &LinkOptions::default(), &mut crawl, &Monitor::new()).unwrap();
        assert_eq!(links.iter().map(|l| (l.from.0, l.to.0)).collect::<Vec<_>>(), [(0, 1), (1, 2), (1, 3)]);
        assert_eq!(largest, 512);
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let platform = Platform::from_speeds(&[1.0; 2]).unwrap();
        for sizes in [vec![], vec![1, 2], vec![0, 1, 2], vec![1, 3, 3]] {
            let options = LinkOptions { sizes, ..LinkOptions::default() };
            let error = measure(&platform, &options, &mut by_formula, &Monitor::new()).unwrap_err();
            assert_eq!(error.exit_code(), 2);
        }
        let options = LinkOptions::default();
        let mut flat = |probe: &Probe| Ok(vec![1e-5; probe.times]);
        let error = measure(&platform, &options, &mut flat, &Monitor::new()).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("p0 and p1"), "{error}");
        let monitor = Monitor::new();
        monitor.stop();
        let error = measure(&platform, &options, &mut by_formula, &monitor).unwrap_err();
        assert!(matches!(error, Error::Interrupted));
    }

    /// Every byte arrives in every pattern. This tests only the transport by threads, not its speed.
    #[test]
    fn threads_carry_every_pattern() {
        let platform = Platform::from_speeds(&[1.0; 2]).unwrap();
        let monitor = Monitor::new();
        let mut carry = threads::threads_probe(&platform, &monitor);
        for (bytes, direction) in [1, 63, 64, 65, 5000]
            .into_iter()
            .flat_map(|b| [(b, Direction::Horizontal), (b, Direction::Vertical)])
        {
            let probe = Probe { from: Rank(1), to: Rank(0), bytes, direction, times: 3 };
            let times = carry(&probe).unwrap();
            assert!(times.len() == 3 && times.iter().all(|t| *t > 0.0));
        }
        let huge =
            Probe { from: Rank(0), to: Rank(1), bytes: 1 << 50, direction: Direction::Horizontal, times: 1 };
        assert_eq!(carry(&huge).unwrap_err().exit_code(), 2);
    }
}
