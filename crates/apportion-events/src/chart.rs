//! The Gantt chart of a simulation: one lane per unit of a resource.

use crate::{EventRun, Nanos, Segment, Workcell, seconds};
use apportion::input::shortened;
use apportion::record::{EventBar, EventChart, EventLane};
use std::collections::BTreeMap;

/// Most lanes; the rest is counted.
const MOST_LANES: usize = 200;
/// Most characters of a name.
const LONGEST_NAME: usize = 24;

/// A bar: from and to, the job, and whether it waits.
type Bar = ([Nanos; 2], usize, bool);

impl EventRun {
    /// Its chart. Each unit of a resource has a lane with the jobs that hold it; jobs that hold no resource have lanes of
    /// their own. At most 200 lanes. O(segments log segments).
    pub fn chart(&self, workcell: &Workcell) -> EventChart {
        let mut lanes = lanes(workcell, self);
        let left_out = lanes.len().saturating_sub(MOST_LANES);
        lanes.truncate(MOST_LANES);
        EventChart {
            title: titled(workcell, self, left_out),
            seconds: seconds(self.ended),
            jobs: workcell.jobs.iter().map(|job| job.name.clone()).collect(),
            lanes,
            left_out,
        }
    }
}

fn titled(workcell: &Workcell, run: &EventRun, hidden: usize) -> String {
    let products: u64 = run.products.iter().sum();
    let count = match products {
        0 => String::new(),
        1 => ", 1 product".into(),
        _ => format!(", {products} products"),
    };
    let more = if hidden > 0 { format!(" ({hidden} lanes not shown)") } else { String::new() };
    format!("{}: {} s{count}, {}{more}", workcell.name, seconds(run.makespan), run.end.word())
}

/// The lanes with their names, in the order of the file; units that nothing held have none.
fn lanes(workcell: &Workcell, run: &EventRun) -> Vec<EventLane> {
    let mut held: BTreeMap<(usize, usize), Vec<&Segment>> = BTreeMap::new();
    let mut free: BTreeMap<usize, Vec<&Segment>> = BTreeMap::new();
    for segment in run.segments.iter().filter(|segment| segment.left > segment.start) {
        match segment.on {
            Some(unit) => held.entry(unit).or_default().push(segment),
            None => free.entry(segment.job).or_default().push(segment),
        }
    }
    let bars = |segments: &[&Segment]| -> Vec<EventBar> {
        let mut bars: Vec<Bar> = segments
            .iter()
            .flat_map(|s| [([s.start, s.done], s.job, false), ([s.done, s.left], s.job, true)])
            .filter(|([from, to], ..)| to > from)
            .collect();
        bars.sort_unstable();
        let bar =
            |([from, to], job, waits): Bar| EventBar { from: seconds(from), to: seconds(to), job, waits };
        bars.into_iter().map(bar).collect()
    };
    let mut lanes = Vec::new();
    for ((resource, unit), segments) in held {
        let resource = &workcell.resources[resource];
        let name = shortened(&resource.name, LONGEST_NAME);
        let name = if resource.capacity > 1 { format!("{name} #{}", unit + 1) } else { name };
        lanes.push(EventLane { name, bars: bars(&segments) });
    }
    for (job, mut segments) in free {
        segments.sort_by_key(|segment| segment.start);
        // Instances that overlap are drawn beneath each other.
        let mut rows: Vec<Vec<&Segment>> = Vec::new();
        for segment in segments {
            match rows.iter_mut().find(|row| row.last().is_some_and(|last| last.left <= segment.start)) {
                Some(row) => row.push(segment),
                None => rows.push(vec![segment]),
            }
        }
        for (i, row) in rows.iter().enumerate() {
            let name = if i == 0 { shortened(&workcell.jobs[job].name, LONGEST_NAME) } else { String::new() };
            lanes.push(EventLane { name, bars: bars(row) });
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventMatrices, EventOptions, LocalLogic, parse_workcell, simulate_workcell};
    use apportion::run::Monitor;

    fn chart(text: &str) -> EventChart {
        let cell = parse_workcell(text, "cell.toml").unwrap();
        let matrices = EventMatrices::of(&cell);
        let mut logic = LocalLogic::new(&matrices);
        let runs = simulate_workcell(&cell, &EventOptions::default(), &mut logic, &Monitor::new()).unwrap();
        runs[0].chart(&cell)
    }

    /// M1 mills from 8 to 68 s of 68 s; the robot waits with the second part from 16 s.
    #[test]
    fn bars_are_where_the_events_are() {
        let text = include_str!("../../../examples/mdem/deadlock.toml");
        let chart = chart(text);
        let has = |lane: &str, job: &str, from: f64, to: f64, waits: bool| {
            let job = chart.jobs.iter().position(|name| name == job).unwrap();
            let bars = &chart.lanes.iter().find(|found| found.name == lane).unwrap().bars;
            bars.contains(&EventBar { from, to, job, waits })
        };
        assert!(has("M1", "mill", 8.0, 68.0, false) && has("robot", "load", 16.0, 68.0, true), "{chart:?}");
        assert_eq!(chart.seconds, 68.0);
        assert!(
            ["pallet #1", "pallet #2"].iter().all(|name| chart.lanes.iter().any(|lane| lane.name == *name))
        );
        assert!(chart.title.starts_with("greedy robot: 68 s, deadlock"), "{}", chart.title);
        assert_eq!(chart, self::chart(text));
    }

    #[test]
    fn a_job_may_only_wait() {
        let chart = chart(include_str!("../../../examples/mdem/flow-line.toml"));
        let used = chart.used();
        let waiting: Vec<&str> =
            used.iter().filter(|job| chart.only_waits(**job)).map(|&job| chart.jobs[job].as_str()).collect();
        assert!(used.len() == 4 && waiting == ["wait for press"], "{waiting:?}");
    }

    /// Jobs without resources overlap: three lanes.
    #[test]
    fn jobs_without_resources_have_lanes_of_their_own() {
        let text = "name = \"<&>\"\n[[part]]\nname=\"p\"\ncount=0\n[[job]]\nname=\"j\"\nduration=1\n\
            [[rule]]\nname=\"r\"\nparts=[\"p\"]\nstart=[\"j\"]\n";
        let none = chart(text);
        assert!(none.title.starts_with("<&>: 0 s, finished") && none.lanes.is_empty());
        let three = chart(&text.replace("count=0", "count=3"));
        let second = EventBar { from: 0.0, to: 1.0, job: 0, waits: false };
        assert_eq!(three.lanes.iter().filter(|lane| lane.bars.contains(&second)).count(), 3);
    }
}
