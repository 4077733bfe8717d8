//! The state of one simulation: what is done, free and waiting, and what is going to happen.

use super::{Duration, Nanos, Place, Record, Segment, What, Workcell};
use apportion::error::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The latest time: no duration added to it overflows.
pub(super) const LATEST: Nanos = 9_000_000_000_000_000_000;

/// An instance of a job.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(crate) number: u64,
    pub(crate) start: Nanos,
    pub(crate) done: Nanos,
    /// Units of resources that it holds: (resource, unit).
    pub(crate) held: Vec<(usize, usize)>,
}

/// Something that is going to happen.
#[derive(Debug)]
enum Coming {
    Done(usize, Token),
    Free(usize, usize),
    Arrive(usize),
}

/// One column of the state matrix, with its clock.
pub(super) struct State<'a> {
    pub(crate) workcell: &'a Workcell,
    pub(crate) now: Nanos,
    pub(crate) records: Vec<Record>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) firings: Vec<u64>,
    pub(crate) produced: Vec<u64>,
    /// Instances of each job that are done, the oldest first.
    pub(crate) done: Vec<VecDeque<Token>>,
    /// Units of each resource that are free, with the time since when.
    free: Vec<BinaryHeap<Reverse<usize>>>,
    /// Parts that wait: arrival time and number, the oldest first.
    waiting: Vec<VecDeque<(Nanos, u64)>>,
    /// What comes, by time and order.
    calendar: BTreeMap<(Nanos, u64), Coming>,
    order: u64,
    arrived: Vec<u64>,
    started: Vec<u64>,
    /// Units of each resource in use whose holder has ended without a release.
    orphans: Vec<(usize, usize)>,
    /// Holdings of jobs and units to release, of the rules that fire in this step.
    inherited: BTreeMap<usize, Vec<(usize, usize)>>,
    released: BTreeMap<usize, (usize, usize)>,
    draw: [u64; 2],
}

impl<'a> State<'a> {
    /// The state at time 0, by a workcell, a seed and a replication.
    pub(crate) fn new(workcell: &'a Workcell, seed: u64, replication: u64) -> Self {
        let initial = |job: &super::Job| {
            let token = |number| Token { number, start: 0, done: 0, held: Vec::new() };
            (0..job.done).map(token).collect()
        };
        let mut state = Self {
            workcell,
            now: 0,
            records: Vec::new(),
            segments: Vec::new(),
            firings: vec![0; workcell.rules.len()],
            produced: vec![0; workcell.products.len()],
            done: workcell.jobs.iter().map(initial).collect(),
            free: workcell
                .resources
                .iter()
                .map(|r| (0..r.capacity as usize).map(Reverse).collect())
                .collect(),
            waiting: vec![VecDeque::new(); workcell.parts.len()],
            calendar: BTreeMap::new(),
            order: 0,
            arrived: vec![0; workcell.parts.len()],
            started: workcell.jobs.iter().map(|job| job.done).collect(),
            orphans: Vec::new(),
            inherited: BTreeMap::new(),
            released: BTreeMap::new(),
            draw: [seed, replication],
        };
        for part in 0..workcell.parts.len() {
            state.expect_part(part);
        }
        state
    }

    /// How many units a place has.
    pub(crate) fn available(&self, place: Place) -> u64 {
        match place {
            Place::Job(job) => self.done[job].len() as u64,
            Place::Resource(resource) => self.free[resource].len() as u64,
            Place::Part(part) => match self.waiting[part].front() {
                None => 0,
                // Parts that were all there at time 0 are one entry.
                Some(_) => self.waiting[part].iter().map(|&(_, count)| count).sum(),
            },
        }
    }

    /// True if a place is empty.
    pub(crate) fn is_missing(&self, place: Place) -> bool {
        match place {
            Place::Job(job) => self.done[job].is_empty(),
            Place::Resource(resource) => self.free[resource].is_empty(),
            Place::Part(part) => self.waiting[part].is_empty(),
        }
    }

    /// Since when a rule's jobs and parts have all been there.
    pub(crate) fn waiting_since(&self, rule: usize) -> Nanos {
        let rule = &self.workcell.rules[rule];
        let jobs = rule.done.iter().filter_map(|&job| Some(self.done[job].front()?.done));
        let parts = rule.parts.iter().filter_map(|&part| Some(self.waiting[part].front()?.0));
        jobs.chain(parts).max().unwrap_or(0)
    }

    fn later(&mut self, time: Nanos, coming: Coming) {
        self.calendar.insert((time, self.order), coming);
        self.order += 1;
    }

    /// Puts the next part of a kind into the calendar; all parts that are there at time 0 are one entry.
    fn expect_part(&mut self, part: usize) {
        if let Some(time) = self.workcell.parts[part].arrivals.time(self.arrived[part]) {
            self.later(time, Coming::Arrive(part));
        }
    }

    fn record(&mut self, what: What, index: usize, number: u64) {
        self.records.push(Record { time: self.now, what, index, number });
    }

    /// The time of what comes next.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.calendar.first_key_value().map(|((time, _), _)| *time)
    }

    /// True if a job is running, a resource is being reset or a part is still to arrive that ends in `place`.
    pub(crate) fn coming(&self) -> impl Iterator<Item = Place> + '_ {
        self.calendar.values().map(|coming| match *coming {
            Coming::Done(job, _) => Place::Job(job),
            Coming::Free(resource, _) => Place::Resource(resource),
            Coming::Arrive(part) => Place::Part(part),
        })
    }

    /// Lets everything happen that is due at a time.
    pub(crate) fn happen(&mut self, time: Nanos) {
        self.now = time;
        while let Some(entry) = self.calendar.first_entry() {
            if entry.key().0 > time {
                break;
            }
            match entry.remove() {
                Coming::Done(job, token) => {
                    self.record(What::Done, job, token.number);
                    self.done[job].push_back(token);
                }
                Coming::Free(resource, unit) => {
                    self.record(What::Free, resource, unit as u64);
                    self.free[resource].push(Reverse(unit));
                }
                Coming::Arrive(part) => {
                    self.record(What::Arrive, part, self.arrived[part]);
                    match self.waiting[part].back_mut() {
                        Some((since, count)) if *since == time => *count += 1,
                        _ => self.waiting[part].push_back((time, 1)),
                    }
                    self.arrived[part] += 1;
                    self.expect_part(part);
                }
            }
        }
    }

    /// Takes what a rule needs, and decides what the jobs it starts hold and which units it releases.
    pub(crate) fn take(&mut self, number: usize) -> Result<()> {
        let rule = &self.workcell.rules[number];
        self.record(What::Fire, number, self.firings[number]);
        self.firings[number] += 1;
        let mut pool = Vec::new();
        for &job in &rule.done {
            let token = self.done[job].pop_front().expect("the rule's conditions hold");
            self.leave(job, &token);
            pool.extend(token.held);
        }
        for &resource in &rule.free {
            let Reverse(unit) = self.free[resource].pop().expect("the rule's conditions hold");
            pool.push((resource, unit));
        }
        for &part in &rule.parts {
            let (_, count) = self.waiting[part].front_mut().expect("the rule's conditions hold");
            *count -= 1;
            if *count == 0 {
                self.waiting[part].pop_front();
            }
        }
        for &resource in &rule.release {
            let held = match pool.iter().position(|held| held.0 == resource) {
                Some(at) => pool.remove(at),
                None => self.held_elsewhere(resource).ok_or_else(|| {
                    Error::input(
                        format!("rule \"{}\": release", rule.name),
                        format!(
                            "resource \"{}\" is released at {} s, but all its units are free",
                            self.workcell.resources[resource].name,
                            super::seconds(self.now)
                        ),
                        "let a rule take a unit (free = […]) for every unit that is released",
                    )
                })?,
            };
            self.released.insert(resource, held);
        }
        for held in pool {
            match self.heir(rule, held.0) {
                Some(job) => self.inherited.entry(job).or_default().push(held),
                None => self.orphans.push(held),
            }
        }
        Ok(())
    }

    /// The job started by a rule that goes on holding a resource: the one after which it is released, or the
    /// first.
    fn heir(&self, rule: &super::Rule, resource: usize) -> Option<usize> {
        let releases = |job: &usize| {
            self.workcell.rules.iter().any(|r| r.done.contains(job) && r.release.contains(&resource))
        };
        match &rule.start[..] {
            [] => None,
            [only] => Some(*only),
            several => several.iter().copied().find(|job| releases(job)).or(Some(several[0])),
        }
    }

    /// A unit of a resource that is held by something that the releasing rule does not follow: by nothing any
    /// more, by a job that is done, or by one that runs.
    fn held_elsewhere(&mut self, resource: usize) -> Option<(usize, usize)> {
        if let Some(at) = self.orphans.iter().position(|held| held.0 == resource) {
            return Some(self.orphans.remove(at));
        }
        let running = self.calendar.values_mut().filter_map(|coming| match coming {
            Coming::Done(_, token) => Some(token),
            _ => None,
        });
        let started = self.inherited.values_mut();
        let tokens = self.done.iter_mut().flatten().chain(running).map(|token| &mut token.held);
        tokens.chain(started).find_map(|held| {
            let at = held.iter().position(|held| held.0 == resource)?;
            Some(held.remove(at))
        })
    }

    /// Keeps the time of an instance that is followed by a rule, or by the end.
    fn leave(&mut self, job: usize, token: &Token) {
        let Token { number, start, done, ref held } = *token;
        let segment = |on| Segment { on, job, number, start, done: done.min(self.now), left: self.now };
        match &held[..] {
            [] => self.segments.push(segment(None)),
            units => self.segments.extend(units.iter().map(|unit| segment(Some(*unit)))),
        }
    }

    /// Releases a unit of a resource, by (7.5).
    pub(crate) fn release(&mut self, resource: usize) {
        let (_, unit) = self.released.remove(&resource).expect("a rule that fires releases it");
        self.record(What::Release, resource, unit as u64);
        match self.workcell.resources[resource].reset {
            0 => self.free[resource].push(Reverse(unit)),
            reset => self.later(self.now + reset, Coming::Free(resource, unit)),
        }
    }

    /// Starts a job, by (7.4).
    pub(crate) fn start(&mut self, job: usize) {
        let held = self.inherited.remove(&job).unwrap_or_default();
        let number = self.started[job];
        self.started[job] += 1;
        self.record(What::Start, job, number);
        let [seed, replication] = self.draw;
        let duration: &Duration = &self.workcell.jobs[job].duration;
        let done =
            self.now + duration.draw(seed, [replication, job as u64, number]).min(super::file::LONGEST);
        self.later(done, Coming::Done(job, Token { number, start: self.now, done, held }));
    }

    /// Finishes a product, by (7.6).
    pub(crate) fn produce(&mut self, product: usize) {
        self.record(What::Produce, product, self.produced[product]);
        self.produced[product] += 1;
    }

    /// Keeps the times of what is still there at the end.
    pub(crate) fn close(&mut self, ended: Nanos) {
        self.now = ended;
        let mut left: Vec<(usize, Token)> = Vec::new();
        for (job, tokens) in self.done.iter().enumerate() {
            left.extend(tokens.iter().map(|token| (job, token.clone())));
        }
        for coming in self.calendar.values() {
            if let Coming::Done(job, token) = coming {
                left.push((*job, token.clone()));
            }
        }
        for (job, token) in &left {
            // Instances that were done at time 0 and never used took no time.
            if token.done > 0 || !token.held.is_empty() {
                self.leave(*job, token);
            }
        }
    }
}
