//! The max-plus system of a workcell beside its simulation.

use crate::output::mdem::time_text;
use apportion::error::{Error, Result};
use apportion::matrix::Matrix;
use apportion_events::{End, EventGraph, EventOptions, EventRun, GraphCycle, Nanos, Workcell, seconds};
use serde_json::{Value, json};

/// Whether the workcell is linear over max-plus, and how the recursion compares with the simulation.
pub struct Linear {
    graph: std::result::Result<EventGraph, String>,
    cycle: Option<GraphCycle>,
    /// Seconds between firings on the critical circuit, as simulated.
    simulated: Option<f64>,
    /// Firings compared, and the largest difference of their times.
    compared: Option<(usize, Nanos)>,
}

impl Linear {
    pub fn of(workcell: &Workcell, run: &EventRun, options: &EventOptions) -> Self {
        let graph = EventGraph::of(workcell);
        let Ok(found) = &graph else {
            return Self { graph, cycle: None, simulated: None, compared: None };
        };
        let (cycle, fired) = (found.cycle(), run.fired());
        let most = run.firings.iter().copied().max().unwrap_or(0) + 1;
        let times = found.firing_times(options.until, most).ok();
        let compared = times.map(|times| compared(&times, &fired, run.end == End::Limit));
        let simulated = cycle.as_ref().and_then(|cycle| pace(cycle, &fired));
        Self { graph, cycle, simulated, compared }
    }

    /// The matrix A.
    ///
    /// # Errors
    /// The workcell is not linear, or the matrix is too large.
    pub fn matrix(&self) -> Result<Matrix<f64>> {
        match &self.graph {
            Ok(graph) => graph.matrix(),
            Err(why) => Err(Error::infeasible(
                format!("the workcell has no max-plus matrix: {why}"),
                "remove --max-plus, or the conflict",
            )),
        }
    }

    fn seconds(&self) -> Option<f64> {
        let cycle = &self.cycle.as_ref()?.cycle;
        (cycle.tokens > 0).then(|| cycle.mean() / 1e9)
    }

    pub fn to_value(&self, workcell: &Workcell) -> Value {
        if let Err(why) = &self.graph {
            return json!({"linear": false, "why": why});
        }
        let circuit = self.cycle.as_ref().map(|cycle| {
            let rules: Vec<&str> =
                cycle.rules.iter().map(|&rule| workcell.rules[rule].name.as_str()).collect();
            let places: Vec<String> = cycle.places.iter().map(|&place| workcell.name_of(place)).collect();
            json!({"rules": rules, "places": places, "tokens": cycle.tokens})
        });
        json!({
            "linear": true, "cycle_seconds": self.seconds(), "circuit": circuit,
            "simulated_cycle_seconds": self.simulated, "firings_compared": self.compared.map(|c| c.0),
            "largest_difference_seconds": self.compared.map(|c| seconds(c.1)),
        })
    }

    /// The lines of the summary.
    pub fn lines(&self, workcell: &Workcell) -> Vec<(&'static str, String)> {
        if let Err(why) = &self.graph {
            return vec![("max-plus", format!("not linear: {why}"))];
        }
        let Some(cycle) = &self.cycle else {
            return vec![("max-plus", "linear; no circuit limits the rate".into())];
        };
        let through: Vec<String> = cycle.places.iter().map(|&place| workcell.name_of(place)).collect();
        let through = match &through[..] {
            [] => format!("arrivals at rule \"{}\"", workcell.rules[cycle.rules[0]].name),
            places => places.join(", "),
        };
        let Some(mean) = self.seconds() else {
            return vec![("max-plus", format!("linear; a circuit never starts: {through}"))];
        };
        let simulated = self.simulated.map_or_else(String::new, |s| format!(", simulated {}", time_text(s)));
        let mut lines =
            vec![("cycle time", format!("{} by the max-plus eigenvalue{simulated}", time_text(mean)))];
        lines.push(("slowest", through));
        if let Some((count, difference)) = self.compared {
            lines.push((
                "max-plus",
                format!("{count} firings by x(k) = A x(k - 1), at most {} s off", seconds(difference)),
            ));
        }
        lines
    }
}

/// Firings that both have, and their largest difference; a firing that only one has differs by all its time.
/// A simulation that was cut off has a beginning only.
fn compared(times: &[Vec<Nanos>], fired: &[Vec<Nanos>], cut_off: bool) -> (usize, Nanos) {
    let (mut count, mut difference) = (0, 0);
    for (linear, simulated) in times.iter().zip(fired) {
        let both = linear.iter().zip(simulated);
        count += both.clone().count();
        difference = both.map(|(x, y)| x.abs_diff(*y)).fold(difference, Nanos::max);
        if linear.len() < simulated.len() || (!cut_off && linear.len() > simulated.len()) {
            let longer = if linear.len() > simulated.len() { linear } else { simulated };
            difference = difference.max(longer[longer.len() - 1]);
        }
    }
    (count, difference)
}

/// Seconds between firings in the second half, over whole rounds of the circuit.
fn pace(cycle: &GraphCycle, fired: &[Vec<Nanos>]) -> Option<f64> {
    let fires = &fired[*cycle.rules.first()?];
    let round = usize::try_from(cycle.tokens).ok().filter(|&tokens| tokens > 0)?;
    let last = fires.len().checked_sub(1)?;
    let back = last / 2 / round * round;
    (back > 0).then(|| seconds(fires[last] - fires[last - back]) / back as f64)
}
