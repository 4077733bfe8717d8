//! The Gantt chart of a simulated workcell.

use serde::{Deserialize, Serialize};

/// What the chart of a simulated workcell shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventChart {
    /// The workcell, its makespan, products and end.
    pub title: String,
    /// The end of the time axis, in seconds.
    pub seconds: f64,
    /// The names of the jobs.
    pub jobs: Vec<String>,
    /// One lane for each unit of a resource, and those of jobs that hold none.
    pub lanes: Vec<EventLane>,
    /// The number of lanes that are left out.
    pub left_out: usize,
}

/// A lane of an [`EventChart`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventLane {
    /// The resource, or the job that holds none.
    pub name: String,
    /// The jobs, ordered by time.
    pub bars: Vec<EventBar>,
}

/// A job in a lane of an [`EventChart`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct EventBar {
    /// Its start, in seconds.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Its index in [`EventChart::jobs`].
    pub job: usize,
    /// It is done, and waits for the rule that follows.
    pub waits: bool,
}

impl EventChart {
    /// True if a job is drawn only where it is done and waits.
    pub fn only_waits(&self, job: usize) -> bool {
        self.lanes.iter().flat_map(|lane| &lane.bars).filter(|bar| bar.job == job).all(|bar| bar.waits)
    }

    /// The jobs that are drawn.
    pub fn used(&self) -> Vec<usize> {
        let mut used: Vec<usize> =
            self.lanes.iter().flat_map(|lane| lane.bars.iter().map(|bar| bar.job)).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Whether all bars are of its jobs.
    pub fn is_sound(&self) -> bool {
        self.lanes.iter().flat_map(|lane| &lane.bars).all(|bar| bar.job < self.jobs.len())
    }
}
