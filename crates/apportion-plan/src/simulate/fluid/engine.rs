//! The event loop: ranks advance through their actions; messages start, drain and arrive.

use crate::error::{Error, Result};
use crate::geometry::Rank;
use crate::platform::Load;
use crate::simulate::explain::Wait;
use crate::simulate::fluid::fabric::Fabric;
use crate::simulate::fluid::flows::Flows;
use crate::simulate::fluid::messages::{Message, Messages};
use crate::simulate::fluid::queue::{Queue, What};
use crate::simulate::fluid::rules::Fluid;
use crate::simulate::fluid::{Action, Deployment, Then};
use crate::simulate::record::Record;
use crate::trace::Activity;
use std::collections::{BTreeMap, VecDeque};

/// Seconds that `MPI_Test` takes in SimGrid (its option `smpi/test`).
const TEST: f64 = 1e-4;

/// The two ends and the tag of a request.
type Key = (Rank, Rank, u64);

/// The event that a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum On {
    /// One message, as its sender or its receiver.
    Message { id: u32, sending: bool },
    /// All its sends.
    Sends,
    /// All its posted requests.
    All,
    /// Its own computation, or the end of its sleep.
    Work,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) step: usize,
    pub(crate) blocked: Option<(f64, On)>,
    /// Number of incomplete requests: receives, sends.
    pub(super) open: [u32; 2],
    /// Requests that a later action may name: receives, sends.
    requests: [VecDeque<u32>; 2],
    /// The request that it asks for, while that takes time.
    asked: Option<Key>,
    /// Requests that were complete when it asked, and for which it has not waited since.
    caught: Vec<Key>,
    /// The last of the messages that travel with its next message.
    pub(super) riders: Option<u32>,
    pub(crate) ended: bool,
}

/// The state of a simulation.
pub(super) struct Engine<'a, R> {
    pub(super) rules: &'a Fluid,
    pub(super) fabric: Fabric<'a>,
    pub(super) flows: Flows,
    /// By flow: its message.
    pub(super) carried: Vec<u32>,
    /// Flows that end at one event.
    ended: Vec<u32>,
    hosts: Hosts<'a>,
    pub(crate) messages: Messages,
    pub(crate) ranks: Vec<State>,
    pub(super) events: Queue,
    /// Number of obsolete events in the queue.
    pub(super) stale: usize,
    /// Number of tests since the last one that found its request complete.
    failed_tests: u32,
    /// Ranks that can continue, each at most once.
    pub(super) ready: Vec<u32>,
    pub(super) now: f64,
    pub(crate) record: R,
}

impl<'a, R: Record> Engine<'a, R> {
    pub(crate) fn new(on: &Deployment<'a>, rules: &'a Fluid, record: R) -> Self {
        let ranks = on.placement.len();
        Self {
            rules,
            fabric: Fabric::new(on.network, on.placement, rules),
            flows: Flows::new(rules.coarse),
            carried: Vec::new(),
            ended: Vec::new(),
            hosts: Hosts::new(on.hosts, on.placement),
            messages: Messages::new(ranks),
            ranks: (0..ranks).map(|_| State::default()).collect(),
            events: Queue::default(),
            stale: 0,
            failed_tests: 0,
            ready: (0..ranks as u32).collect(),
            now: 0.0,
            record,
        }
    }

    /// Runs all scripts to their ends or to a deadlock, which leaves some ranks blocked.
    pub(crate) fn run<P: Iterator<Item = Action>>(&mut self, scripts: &mut [P]) -> Result<()> {
        loop {
            // An action of a rank never unblocks another rank at the same moment: only events do.
            let mut ready = std::mem::take(&mut self.ready);
            ready.sort_unstable();
            for rank in ready.drain(..) {
                self.advance(rank as usize, &mut scripts[rank as usize])?;
            }
            self.ready = ready;
            let (events, stale) = (&mut self.events, &mut self.stale);
            self.flows.share(&self.fabric, self.now, |next| events.next(next, stale));
            self.forget_stale();
            let Some((now, what)) = self.events.pop() else { return Ok(()) };
            self.now = now;
            self.happen(what);
            while let Some(what) = self.events.pop_at(now) {
                self.happen(what);
            }
        }
    }

    /// Keeps the size of the queue within a small multiple of the pending events.
    fn forget_stale(&mut self) {
        if self.stale > 4096 && self.stale > self.events.len() / 2 {
            let (flows, hosts) = (&self.flows, &self.hosts);
            self.events.retain(|what| match what {
                What::Latency(_) | What::Awake(_) => true,
                What::Drained { .. } | What::Reached { .. } => flows.current(what),
                What::Computed { rank, version } => hosts.current(rank, version),
            });
            self.stale = 0;
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Latency(message) => self.drain(message),
            What::Drained { .. } | What::Reached { .. } if self.flows.current(what) => {
                let mut ended = std::mem::take(&mut self.ended);
                let (events, stale) = (&mut self.events, &mut self.stale);
                let next = |next| events.next(next, stale);
                self.flows.finish(&self.fabric, what, self.now, &mut ended, next);
                ended.iter().for_each(|&flow| self.arrive(self.carried[flow as usize]));
                self.ended = ended;
            }
            What::Computed { rank, version } if self.hosts.current(rank, version) => {
                let events = &mut self.events;
                self.hosts.finish(rank as usize, self.now, |rank, time, version| {
                    events.push(time, What::Computed { rank, version });
                });
                let rank = rank as usize;
                if let Some((since, _)) = self.ranks[rank].blocked.take() {
                    self.record.push(Rank(rank), Activity::Compute, since, self.now, None);
                }
                self.ready.push(rank as u32);
            }
            What::Awake(rank) => self.awake(rank as usize),
            _ => self.stale = self.stale.saturating_sub(1),
        }
    }

    fn sleep(&mut self, rank: usize, seconds: f64) -> Option<On> {
        self.events.push(self.now + seconds, What::Awake(rank as u32));
        Some(On::Work)
    }

    /// Ends a sleep, and answers the test that it was part of.
    fn awake(&mut self, rank: usize) {
        if let Some((since, _)) = self.ranks[rank].blocked.take() {
            self.record.push(Rank(rank), Activity::Idle, since, self.now, None);
        }
        self.ready.push(rank as u32);
        let Some(key) = self.ranks[rank].asked.take() else { return };
        let Some((sending, place)) = self.request(rank, key) else { return };
        let id = self.ranks[rank].requests[usize::from(sending)][place];
        if !self.messages.get(id).complete(sending) {
            self.failed_tests += 1;
            return;
        }
        self.failed_tests = 0;
        self.ranks[rank].requests[usize::from(sending)].remove(place);
        self.messages.release(id);
        self.ranks[rank].caught.push(key);
    }

    /// The oldest request of a rank with these ends and this tag: true if it is a send, and its place.
    fn request(&self, rank: usize, (from, to, tag): Key) -> Option<(bool, usize)> {
        let (sending, peer) = if to.0 == rank { (false, from) } else { (true, to) };
        let place = self.ranks[rank].requests[usize::from(sending)].iter().position(|&id| {
            let message = self.messages.get(id);
            message.tag == tag && (if sending { message.to } else { message.from }) == peer.0 as u32
        });
        place.map(|place| (sending, place))
    }

    /// Executes a rank's actions until one blocks it.
    fn advance(&mut self, rank: usize, script: &mut impl Iterator<Item = Action>) -> Result<()> {
        for action in script.by_ref() {
            let on = self.act(rank, action)?;
            self.ranks[rank].step += 1;
            if let Some(on) = on {
                self.ranks[rank].blocked = Some((self.now, on));
                return Ok(());
            }
        }
        self.ranks[rank].ended = true;
        self.record.ends(Rank(rank), self.now);
        Ok(())
    }

    /// Starts an action. Returns the event that the rank then waits for, if any.
    fn act(&mut self, rank: usize, action: Action) -> Result<Option<On>> {
        Ok(match action {
            Action::Compute(amount) => self.compute(rank, amount)?.then_some(On::Work),
            Action::Sleep(seconds) => self.sleep(rank, seconds),
            Action::Send { to, tag, load, then } => {
                let id = self.send((rank, to.0, tag), load);
                self.hold(rank, id, true, then)
            }
            Action::Along { to, tag, load } => {
                self.ride((rank, to.0, tag), load);
                None
            }
            Action::Receive { from, tag, then } => {
                let id = self.receive((from.0, rank, tag));
                self.hold(rank, id, false, then)
            }
            Action::Await { from, to, tag } => {
                let key = (from, to, tag);
                let state = &mut self.ranks[rank];
                if let Some(place) = state.caught.iter().position(|caught| *caught == key) {
                    state.caught.swap_remove(place);
                    return Ok(None);
                }
                let Some((sending, place)) = self.request(rank, key) else {
                    return Err(Error::infeasible(
                        format!(
                            "processor {rank} waits for a message from {} to {} with tag {tag} that it did not post",
                            from.0, to.0
                        ),
                        "post it with isend or irecv first, and wait for it once",
                    ));
                };
                let id = self.ranks[rank].requests[usize::from(sending)].remove(place);
                let id = id.expect("the place of a request");
                if self.messages.get(id).complete(sending) {
                    self.messages.release(id);
                    None
                } else {
                    Some(On::Message { id, sending })
                }
            }
            Action::Test { from, to, tag } => {
                let key = (from, to, tag);
                if self.request(rank, key).is_none() {
                    return Ok(None);
                }
                self.ranks[rank].asked = Some(key);
                self.sleep(rank, TEST * f64::from(1 + self.failed_tests))
            }
            Action::Flush => (self.ranks[rank].open[1] > 0).then_some(On::Sends),
            Action::AwaitAll => {
                self.ranks[rank].caught.clear();
                for ids in &mut self.ranks[rank].requests {
                    ids.drain(..).for_each(|id| self.messages.release(id));
                }
                (self.ranks[rank].open != [0, 0]).then_some(On::All)
            }
        })
    }

    /// Returns true if the computation takes time.
    fn compute(&mut self, rank: usize, amount: f64) -> Result<bool> {
        if amount <= 0.0 {
            return Ok(false);
        }
        let speed = self.hosts.speed(rank);
        if !(speed.is_finite() && speed > 0.0) {
            return Err(Error::infeasible(
                format!("processor {rank} has work but its speed is {speed}"),
                "give it a positive speed or no share",
            ));
        }
        let events = &mut self.events;
        self.hosts.start(rank, amount, self.now, |rank, time, version| {
            events.push(time, What::Computed { rank, version });
        });
        Ok(true)
    }

    /// Handles a request that was just posted, as `then` says.
    fn hold(&mut self, rank: usize, id: u32, sending: bool, then: Then) -> Option<On> {
        let message = self.messages.get_mut(id);
        let complete = message.complete(sending);
        match then {
            Then::Remember => {
                message.holders += 1;
                self.ranks[rank].requests[usize::from(sending)].push_back(id);
                None
            }
            Then::Wait if !complete => {
                message.holders += 1;
                Some(On::Message { id, sending })
            }
            Then::Wait | Then::Forget => {
                self.messages.retire(id);
                None
            }
        }
    }
}

// The states of a message: posted, in flight, arrived.

impl<R: Record> Engine<'_, R> {
    /// Posts a send.
    fn send(&mut self, key: (usize, usize, u64), load: Load) -> u32 {
        let id = self.messages.post(key, true);
        let message = self.messages.get_mut(id);
        let path = self.fabric.between(key.0, key.1);
        let (path, amount) = self.fabric.loaded(path, load);
        message.bytes = load.bytes();
        message.amount = amount;
        message.path = path;
        message.sent = self.now;
        message.detached = amount < self.rules.detached as f64;
        message.take_along(self.ranks[key.0].riders.take());
        if !message.detached {
            self.ranks[key.0].open[1] += 1;
        }
        if !message.received.is_nan() || amount < self.rules.eager as f64 {
            self.depart(id);
        }
        id
    }

    /// Posts a message that travels with its sender's next one.
    fn ride(&mut self, key: (usize, usize, u64), load: Load) {
        let id = self.messages.post(key, true);
        let message = self.messages.get_mut(id);
        message.bytes = load.bytes();
        message.sent = self.now;
        message.detached = true;
        message.rides = true;
        message.take_along(self.ranks[key.0].riders.replace(id));
    }

    /// Posts a receive.
    fn receive(&mut self, key: (usize, usize, u64)) -> u32 {
        let id = self.messages.post(key, false);
        let message = self.messages.get_mut(id);
        message.received = self.now;
        let (sent, started, done) = (!message.sent.is_nan(), !message.started.is_nan(), message.done);
        let rides = message.rides;
        if !done {
            self.ranks[key.1].open[0] += 1;
        }
        if sent && !started && !rides {
            self.depart(id);
        }
        id
    }

    /// Starts a message.
    fn depart(&mut self, id: u32) {
        let mut along = Some(id);
        while let Some(each) = along {
            let message = self.messages.get_mut(each);
            message.started = self.now;
            along = message.rider();
        }
        let message = self.messages.get(id);
        let (path, amount) = (message.path, message.amount + self.rules.envelope as f64);
        let latency = self.fabric.kind(self.fabric.kind_of(path)).latency * self.fabric.factors(amount).0;
        if latency > 0.0 {
            self.events.push(self.now + latency, What::Latency(id));
        } else {
            self.drain(id);
        }
    }

    /// Ends the latency of a message: it begins to drain.
    fn drain(&mut self, id: u32) {
        let message = self.messages.get(id);
        let (path, amount) = (message.path, message.amount + self.rules.envelope as f64);
        let factor = self.fabric.factors(amount).1;
        let (events, stale) = (&mut self.events, &mut self.stale);
        let next = |next| events.next(next, stale);
        let flow = self.flows.start(&self.fabric, path, amount, factor, self.now, next);
        if flow as usize >= self.carried.len() {
            self.carried.resize(flow as usize + 1, 0);
        }
        self.carried[flow as usize] = id;
    }

    /// Handles the arrival of the last byte of a message and of those that travel with it.
    fn arrive(&mut self, id: u32) {
        let mut along = Some(id);
        while let Some(each) = along {
            along = self.messages.get(each).rider();
            self.conclude(each);
        }
    }

    fn conclude(&mut self, id: u32) {
        let message = self.messages.get_mut(id);
        message.done = true;
        let (from, to) = (message.from as usize, message.to as usize);
        let (sends, receives) = (!message.detached, !message.received.is_nan());
        message.holders += 1; // until both ends know
        self.record.fly(Rank(from), Rank(to), message.started, self.now);
        if sends {
            self.complete(from, id, true);
        }
        if receives {
            self.complete(to, id, false);
        }
        self.messages.release(id);
    }

    /// Completes the request of one end: the rank continues if it was waiting for it.
    fn complete(&mut self, rank: usize, id: u32, sending: bool) {
        let state = &mut self.ranks[rank];
        state.open[usize::from(sending)] -= 1;
        let Some((since, on)) = state.blocked else { return };
        let over = match on {
            On::Message { .. } => on == On::Message { id, sending },
            On::Sends => sending && state.open[1] == 0,
            On::All => state.open == [0, 0],
            On::Work => false,
        };
        if !over {
            return;
        }
        state.blocked = None;
        self.ready.push(rank as u32);
        let m = self.messages.get(id);
        let peer = Some(Rank(if sending { m.to } else { m.from } as usize));
        let (now, step) = (self.now, self.ranks[rank].step - 1);
        self.record.push(Rank(rank), Activity::Idle, since, m.started, peer);
        self.record.push(Rank(rank), Activity::Communicate, since.max(m.started), now, peer);
        self.record.waits(Rank(rank), R::detail(m.bytes, m.sent), |bytes, sent| Wait {
            step,
            from: Rank(m.from as usize),
            to: Rank(m.to as usize),
            tag: m.tag,
            bytes,
            since,
            until: now,
            sent,
            received: m.received,
            started: m.started,
        });
        if let On::Message { .. } = on {
            self.messages.release(id);
        }
    }
}

// Hosts: k computations on a host of c cores run at speed x min(1, c / k) each.

/// A host: speed of one core, and the number of cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// Units of work per second and core.
    pub speed: f64,
    /// At least 1.
    pub cores: u32,
}

#[derive(Debug, Clone, Default)]
struct Job {
    rest: f64,
    rate: f64,
    since: f64,
    version: u32,
}

/// Hosts, and the computation of each rank, at most one at a time.
#[derive(Debug)]
struct Hosts<'a> {
    hosts: &'a [Host],
    of: &'a [usize],
    running: Vec<Vec<u32>>,
    jobs: Vec<Job>,
}

impl<'a> Hosts<'a> {
    /// Creates the state; `of` maps each rank to its host.
    pub(crate) fn new(hosts: &'a [Host], of: &'a [usize]) -> Self {
        Self { hosts, of, running: vec![Vec::new(); hosts.len()], jobs: vec![Job::default(); of.len()] }
    }

    /// Speed of a rank's host.
    pub(crate) fn speed(&self, rank: usize) -> f64 {
        self.hosts[self.of[rank]].speed
    }

    /// Starts a computation; `changed` receives the new end and version of every computation that it affects.
    pub(crate) fn start(
        &mut self,
        rank: usize,
        amount: f64,
        now: f64,
        mut changed: impl FnMut(u32, f64, u32),
    ) {
        let version = self.jobs[rank].version;
        let (number, running) = (self.of[rank], &mut self.running[self.of[rank]]);
        running.push(rank as u32);
        let Host { speed, cores } = self.hosts[number];
        if running.len() <= cores as usize {
            // A core is free: no other computation is affected.
            self.jobs[rank] = Job { rest: amount, rate: speed, since: now, version };
            changed(rank as u32, now + amount / speed, version);
            return;
        }
        self.jobs[rank] = Job { rest: amount, rate: 0.0, since: now, version };
        self.share(number, now, changed);
    }

    /// Ends a rank's computation.
    pub(crate) fn finish(&mut self, rank: usize, now: f64, changed: impl FnMut(u32, f64, u32)) {
        self.jobs[rank].version = self.jobs[rank].version.wrapping_add(1);
        let running = &mut self.running[self.of[rank]];
        running.retain(|&r| r != rank as u32);
        if running.len() >= self.hosts[self.of[rank]].cores as usize {
            self.share(self.of[rank], now, changed);
        }
    }

    /// True if an event with this version is not obsolete.
    pub(crate) fn current(&self, rank: u32, version: u32) -> bool {
        self.jobs[rank as usize].version == version
    }

    fn share(&mut self, host: usize, now: f64, mut changed: impl FnMut(u32, f64, u32)) {
        let Host { speed, cores } = self.hosts[host];
        let rate = speed * f64::min(1.0, f64::from(cores) / self.running[host].len().max(1) as f64);
        for &rank in &self.running[host] {
            let job = &mut self.jobs[rank as usize];
            if job.rate == rate {
                continue;
            }
            job.rest = (job.rest - (now - job.since) * job.rate).max(0.0);
            job.rate = rate;
            job.since = now;
            job.version = job.version.wrapping_add(1);
            changed(rank, now + job.rest / rate, job.version);
        }
    }
}

// Deadlocks: the cycle of ranks that wait for each other.

/// Maximum number of links of a cycle in the error text.
const SHOWN: usize = 12;

/// The error of a simulation in which some ranks are blocked forever. It shows the cycle in which they wait,
/// or the chain that leads to a rank that has ended. O(ranks + messages).
pub(super) fn deadlock_error<R>(engine: &Engine<'_, R>, names: &[String]) -> Option<Error> {
    let mut rank = engine.ranks.iter().position(|r| !r.ended)?;
    let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
    let mut chain: Vec<(usize, String)> = Vec::new();
    let (from, end) = loop {
        if engine.ranks[rank].ended {
            break (0, ", which has ended");
        }
        if let Some(&place) = seen.get(&rank) {
            break (place, "");
        }
        seen.insert(rank, chain.len());
        let (peer, what) = cause(engine, rank);
        chain.push((rank, format!("{what} {}", names[peer])));
        rank = peer;
    };
    let links = &chain[from..];
    let mut parts: Vec<&str> = links.iter().map(|(_, what)| what.as_str()).collect();
    let skipped = format!("waits for … ({} more) …", parts.len().saturating_sub(SHOWN));
    if parts.len() > SHOWN {
        parts.splice(SHOWN / 2..parts.len() - SHOWN / 2, [skipped.as_str()]);
    }
    Some(Error::infeasible(
        format!("deadlock: {} {}{end}", names[links[0].0], parts.join(", which ")),
        "change the order of sends and receives, or let small sends be eager (`eager`)",
    ))
}

/// The rank that a blocked rank waits for, and the reason. A receiver waits for its sender, and a sender for
/// its receiver.
fn cause<R>(engine: &Engine<'_, R>, rank: usize) -> (usize, String) {
    let (_, on) = engine.ranks[rank].blocked.expect("a rank that has not ended is blocked");
    let message = match on {
        On::Message { id, .. } => engine.messages.get(id),
        On::Sends | On::All | On::Work => {
            let sends = |from: u32| from as usize == rank;
            let mine = |m: &&Message| {
                (sends(m.from) && !m.sent.is_nan() && !m.detached)
                    || (on == On::All && m.to as usize == rank && !m.received.is_nan())
            };
            engine.messages.unfinished().find(mine).expect("it waits for something that it has posted")
        }
    };
    let (bytes, tag) = (message.bytes, message.tag);
    if message.from as usize == rank {
        (message.to as usize, format!("waits to send {bytes} bytes with tag {tag} to"))
    } else {
        (message.from as usize, format!("waits for tag {tag} from"))
    }
}
