//! What happened in a simulation: events, times on resources, counts.

use super::{Conflict, Deadlock, Nanos, Workcell};

/// What an event is; its index is that of the job, resource, part, rule or product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A part enters.
    Arrive,
    /// A job is done.
    Done,
    /// A resource is free again after its reset time.
    Free,
    /// A rule fires.
    Fire,
    /// A resource is released.
    Release,
    /// A job starts.
    Start,
    /// A product is finished.
    Produce,
}

impl What {
    /// The word in event lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Arrive => "arrive",
            Self::Done => "done",
            Self::Free => "free",
            Self::Fire => "fire",
            Self::Release => "release",
            Self::Start => "start",
            Self::Produce => "produce",
        }
    }
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// When it happened.
    pub time: Nanos,
    /// What it was.
    pub what: What,
    /// The job, resource, part, rule or product.
    pub(crate) index: usize,
    /// The how manieth of its kind it was, from 0; for a resource its unit.
    pub number: u64,
}

impl Record {
    /// The name of what it is about.
    pub fn name<'a>(&self, workcell: &'a Workcell) -> &'a str {
        match self.what {
            What::Arrive => &workcell.parts[self.index].name,
            What::Done | What::Start => &workcell.jobs[self.index].name,
            What::Free | What::Release => &workcell.resources[self.index].name,
            What::Fire => &workcell.rules[self.index].name,
            What::Produce => &workcell.products[self.index],
        }
    }
}

/// An instance of a job on a unit of a resource, or on none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The resource and its unit; `None` for a job that holds no resource.
    pub on: Option<(usize, usize)>,
    /// The job.
    pub job: usize,
    /// The instance.
    pub(crate) number: u64,
    /// When the job started.
    pub start: Nanos,
    /// When it was done, or the end of the simulation.
    pub done: Nanos,
    /// When the rule that followed fired, or the end: until then the resource waited.
    pub left: Nanos,
}

/// How a simulation ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All parts are through: no job waits, all resources are free.
    Finished,
    /// The time limit was reached.
    Until,
    /// The limit of firings was reached.
    Limit,
    /// Work remains that waits for something that can never come, without a circle: for a part of a kind that
    /// is used up, say. The sentence says what waits for what.
    Starved(String),
    /// Work waits in a circle.
    Deadlocked(Deadlock),
}

impl End {
    /// The word in reports.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Until => "until",
            Self::Limit => "limit",
            Self::Starved(_) => "starved",
            Self::Deadlocked(_) => "deadlock",
        }
    }
}

/// The use of a resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Time during which units worked, summed over units.
    pub working: Nanos,
    /// Time during which units were held by jobs that were done and waited.
    pub waiting: Nanos,
    /// The part of the time of all units in which they worked, from 0 to 1.
    pub utilisation: f64,
}

/// One simulation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventRun {
    /// The variant: 0 for the workcell as written, then its scenarios.
    pub variant: usize,
    /// The replication.
    pub replication: u64,
    /// How it ended.
    pub end: End,
    /// The time of the last event.
    pub makespan: Nanos,
    /// The end of the simulated time: the makespan, or the time limit.
    pub ended: Nanos,
    /// All events in their order.
    pub records: Vec<Record>,
    /// All instances of jobs.
    pub(crate) segments: Vec<Segment>,
    /// Number of firings of each rule.
    pub firings: Vec<u64>,
    /// Number of each product.
    pub products: Vec<u64>,
    /// Conflicts that came up.
    pub conflicts: Vec<Conflict>,
}

impl EventRun {
    /// The use of each resource until the end.
    pub fn usage(&self, workcell: &Workcell) -> Vec<Usage> {
        let mut times = vec![[0; 2]; workcell.resources.len()];
        for segment in &self.segments {
            if let Some((resource, _)) = segment.on {
                times[resource][0] += segment.done - segment.start;
                times[resource][1] += segment.left - segment.done;
            }
        }
        let usage = |(resource, [working, waiting]): (usize, [Nanos; 2])| {
            let all = self.ended as f64 * workcell.resources[resource].capacity as f64;
            let utilisation = if all > 0.0 { working as f64 / all } else { 0.0 };
            Usage { working, waiting, utilisation }
        };
        times.into_iter().enumerate().map(usage).collect()
    }

    /// The times at which each rule fired.
    pub fn fired(&self) -> Vec<Vec<Nanos>> {
        let mut times = vec![Vec::new(); self.firings.len()];
        for record in self.records.iter().filter(|record| record.what == What::Fire) {
            times[record.index].push(record.time);
        }
        times
    }
}
