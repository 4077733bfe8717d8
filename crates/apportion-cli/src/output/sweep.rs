//! A parameter sweep as text, JSON, CSV and picture.

use super::forecast::COMMUNICATION_ALONE;
use crate::prepare::sharing::Rule;
use apportion::explore::{Candidate, Parameter, ParameterSweep, SweepResult};
use apportion::report::{Plot, Series, pairs, plot_svg_on, table};
use apportion::units;
use serde_json::{Value, json};

/// A sweep as text, JSON, CSV and picture.
pub struct Table<'a> {
    pub wanted: ParameterSweep,
    pub candidates: &'a [Candidate],
    pub swept: &'a SweepResult,
    pub rule: &'a Rule,
    /// True if speeds are ratios: the times are of communication alone.
    pub alone: bool,
}

impl Table<'_> {
    pub fn value(&self) -> Value {
        let points = self.swept.points.iter().map(|point| {
            let seconds: Vec<Option<f64>> = point.forecasts.iter().map(|f| f.map(|f| f.seconds)).collect();
            let flows: Vec<Option<String>> =
                point.forecasts.iter().map(|f| f.map(|f| f.order.to_string())).collect();
            let winner = point.winner.map(|w| &self.candidates[w].name);
            json!({"value": point.value, "seconds": seconds, "flows": flows, "winner": winner})
        });
        let crossovers = self.swept.crossovers.iter().map(|c| {
            json!({"at": c.at, "from": self.candidates[c.from].name, "to": self.candidates[c.to].name,
                   "seconds": c.seconds})
        });
        json!({
            "parameter": self.wanted.parameter.to_string(),
            "from": self.wanted.from,
            "to": self.wanted.to,
            "sharing": self.rule.to_string(),
            "communication_only": self.alone,
            "contenders": self.candidates.iter().map(|c| &c.name).collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(),
            "crossovers": crossovers.collect::<Vec<_>>(),
        })
    }

    pub fn csv(&self) -> String {
        let mut out = self.wanted.parameter.to_string();
        self.candidates.iter().for_each(|c| out += &format!(",{}", c.name));
        out += ",winner\n";
        for point in &self.swept.points {
            out += &point.value.to_string();
            for forecast in &point.forecasts {
                out += &forecast.map_or_else(|| ",".into(), |f| format!(",{}", f.seconds));
            }
            out += &format!(",{}\n", point.winner.map_or("", |w| &self.candidates[w].name));
        }
        out
    }

    pub fn text(&self) -> String {
        let parameter = self.wanted.parameter;
        let name = parameter.to_string();
        let mut header = vec![name.as_str()];
        header.extend(self.candidates.iter().map(|c| c.name.as_str()));
        header.push("winner");
        let rows = self.swept.points.iter().map(|point| {
            let mut row = vec![parameter.show(point.value)];
            row.extend(
                point
                    .forecasts
                    .iter()
                    .map(|f| f.map_or_else(|| "-".into(), |f| units::show_seconds(f.seconds))),
            );
            row.push(point.winner.map_or_else(String::new, |w| self.candidates[w].name.clone()));
            row
        });
        let mut out = table(&header, rows);
        out.push('\n');
        let mut facts: Vec<(&str, String)> = self
            .swept
            .crossovers
            .iter()
            .map(|c| {
                let (from, to) = (&self.candidates[c.from].name, &self.candidates[c.to].name);
                let at = parameter.show(c.at);
                ("crossover", format!("{at}: {to} instead of {from}, at {}", units::show_seconds(c.seconds)))
            })
            .collect();
        if facts.is_empty() {
            facts.push(("crossover", "none".into()));
        }
        if self.alone {
            facts.push(("times", COMMUNICATION_ALONE.to_owned()));
        }
        if *self.rule != Rule::Fifo {
            facts.insert(0, ("sharing", self.rule.to_string()));
        }
        out + &pairs(&facts)
    }

    /// Curves, and for each crossover a dashed line up to it.
    pub fn picture(&self, title: &str) -> String {
        let parameter = self.wanted.parameter;
        let (axis, unit) = match parameter {
            Parameter::Bandwidth => ("bandwidth of the slowest link in Mbit/s", 8e-6),
            Parameter::Latency => ("longest latency in microseconds", 1e6),
            Parameter::Ratio => ("speed of the first processor relative to the others' average", 1.0),
            Parameter::Processors => ("processors", 1.0),
        };
        let all = || self.swept.points.iter().flat_map(|p| &p.forecasts).flatten().map(|f| f.seconds);
        let (least, most) = all().fold((f64::INFINITY, 0.0f64), |(a, b), s| (a.min(s), b.max(s)));
        let scales = [("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6)];
        let (name, scale) = scales.into_iter().find(|(_, f)| most * f >= 1.0).unwrap_or(scales[2]);
        let mut series: Vec<Series> = (0..self.candidates.len())
            .map(|i| Series {
                name: self.candidates[i].name.clone(),
                points: self
                    .swept
                    .points
                    .iter()
                    .map(|p| [p.value * unit, p.forecasts[i].map_or(f64::NAN, |f| f.seconds * scale)])
                    .collect(),
                dashed: false,
                colour: i,
            })
            .collect();
        for c in &self.swept.crossovers {
            series.push(Series {
                name: format!("{} wins from {}", self.candidates[c.to].name, parameter.show(c.at)),
                points: vec![[c.at * unit, c.seconds * scale]],
                dashed: true,
                colour: c.to,
            });
        }
        let what = if self.alone { "communication alone" } else { "forecast" };
        let plot = Plot {
            title: [format!("Forecast as a function of {parameter}"), title.to_owned()],
            axes: [axis.into(), format!("{what} in {name}")],
            series,
            references: Vec::new(),
        };
        let wide = self.wanted.to / self.wanted.from > 30.0;
        plot_svg_on(&plot, [wide, least > 0.0 && most / least > 20.0])
    }
}
