//! A parameter sweep as text, JSON, CSV and picture.

use super::forecast::COMMUNICATION_ALONE;
use crate::args::LogName;
use crate::args::sharing::Rule;
use apportion::explore::{Candidate, Parameter, ParameterSweep, SweepResult};
use apportion::units;
use apportion_report::{Plot, Series, pairs, plot_svg_on, table, wide_axes};
use serde_json::{Value, json};

/// A sweep as text, JSON, CSV and picture.
pub struct Table<'a> {
    pub wanted: ParameterSweep,
    pub candidates: &'a [Candidate],
    pub swept: &'a SweepResult,
    pub rule: &'a Rule,
    /// True if speeds are ratios: the times are of communication alone.
    pub alone: bool,
    /// The product and the platform.
    pub subject: String,
}

/// A fraction in percent; nothing is not less than nothing.
fn percent(fraction: f64) -> String {
    let tenths = (1000.0 * fraction).round();
    format!("{:.1} %", if tenths == 0.0 { 0.0 } else { tenths / 10.0 })
}

impl Table<'_> {
    pub fn value(&self) -> Value {
        let points = self.swept.points.iter().map(|point| {
            let seconds: Vec<Option<f64>> = point.forecasts.iter().map(|f| f.map(|f| f.seconds)).collect();
            let flows: Vec<Option<String>> =
                point.forecasts.iter().map(|f| Some(f.as_ref()?.order?.to_string())).collect();
            let blocks: Vec<Option<u64>> = point.forecasts.iter().map(|f| f.map(|f| f.block)).collect();
            let winner = point.winner.map(|w| &self.candidates[w].name);
            json!({"value": point.value, "seconds": seconds, "flows": flows, "blocks": blocks, "winner": winner,
                   "gain": point.gain(), "baselines": point.baselines})
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
            "margin": self.wanted.margin,
            "communication_only": self.alone,
            "contenders": self.candidates.iter().map(|c| &c.name).collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(),
            "crossovers": crossovers.collect::<Vec<_>>(),
        })
    }

    pub fn csv(&self) -> String {
        let mut out = self.wanted.parameter.to_string();
        self.candidates.iter().for_each(|c| out += &format!(",{}", c.name));
        out += ",winner,gain\n";
        for point in &self.swept.points {
            out += &point.value.to_string();
            for forecast in &point.forecasts {
                out += &forecast.map_or_else(|| ",".into(), |f| format!(",{}", f.seconds));
            }
            let gain = point.gain().map_or_else(String::new, |gain| gain.to_string());
            out += &format!(",{},{gain}\n", point.winner.map_or("", |w| &self.candidates[w].name));
        }
        out
    }

    /// Candidates that can lay out some value of the sweep, by index, and the names of the others.
    fn able(&self) -> (Vec<usize>, Vec<&str>) {
        let serves = |i: &usize| self.swept.points.iter().any(|p| p.forecasts[*i].is_some());
        let (able, unable): (Vec<usize>, Vec<usize>) = (0..self.candidates.len()).partition(serves);
        (able, unable.into_iter().map(|i| self.candidates[i].name.as_str()).collect())
    }

    pub fn text(&self) -> String {
        let parameter = self.wanted.parameter;
        let name = parameter.to_string();
        let (able, unable) = self.able();
        let compared = self.swept.points.iter().any(|point| point.baselines.is_some());
        let mut header = vec![name.as_str()];
        header.extend(["fastest alone", "even split"].into_iter().filter(|_| compared));
        header.extend(able.iter().map(|&i| self.candidates[i].name.as_str()));
        header.extend(["winner", "gain"]);
        let rows = self.swept.points.iter().map(|point| {
            let mut row = vec![parameter.show(point.value)];
            let shown = |i: &usize| {
                point.forecasts[*i].map_or_else(|| "-".into(), |f| units::show_seconds(f.seconds))
            };
            if compared {
                let both = point.baselines.as_ref();
                let alone = both.and_then(|both| both.fastest_alone.as_ref()).map(|alone| alone.seconds);
                let even = both.and_then(|both| both.even_split);
                row.extend([alone, even].map(|time| time.map_or_else(|| "-".into(), units::show_seconds)));
            }
            row.extend(able.iter().map(shown));
            row.push(point.winner.map_or_else(String::new, |w| self.candidates[w].name.clone()));
            row.push(point.gain().map_or_else(|| "-".into(), percent));
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
        facts.extend(self.paying().map(|text| ("division pays", text)));
        if self.alone {
            facts.push(("times", COMMUNICATION_ALONE.to_owned()));
        }
        if *self.rule != Rule::Fifo {
            facts.insert(0, ("sharing", self.rule.to_string()));
        }
        if !unable.is_empty() {
            facts.push(("not applicable", unable.join(", ")));
        }
        out + &pairs(&facts)
    }

    /// At which of the values the winner is faster than the fastest processor alone and an even split.
    fn paying(&self) -> Option<String> {
        let show = |value: f64| self.wanted.parameter.show(value);
        let pays: Option<Vec<bool>> = self.swept.points.iter().map(|point| point.pays()).collect();
        let (pays, points) = (pays?, &self.swept.points);
        let changes: Vec<usize> = (1..pays.len()).filter(|&i| pays[i] != pays[i - 1]).collect();
        Some(match (pays[0], &changes[..]) {
            (true, []) => "at every value".into(),
            (false, []) => "at no value: without a plan it is as fast".into(),
            (false, [first]) => format!("from {} on, of these values", show(points[*first].value)),
            (true, [first]) => format!("up to {}, of these values", show(points[first - 1].value)),
            _ => {
                let paying = points.iter().zip(&pays).filter(|(_, pays)| **pays);
                format!("at {}", paying.map(|(point, _)| show(point.value)).collect::<Vec<_>>().join(", "))
            }
        })
    }

    /// Curves, with a ring where the winner changes.
    pub fn picture(&self, log: LogName) -> String {
        let parameter = self.wanted.parameter;
        let (axis, unit) = match parameter {
            Parameter::Bandwidth => ("bandwidth of the slowest link, Mbit/s", 8e-6),
            Parameter::Latency => ("longest latency, us", 1e6),
            Parameter::Ratio => ("speed of the first processor / average of the others", 1.0),
            Parameter::Processors => ("number of processors", 1.0),
        };
        let all = || self.swept.points.iter().flat_map(|p| &p.forecasts).flatten().map(|f| f.seconds);
        let most = all().fold(0.0f64, f64::max);
        let scales = [("s", 1.0), ("ms", 1e3), ("us", 1e6)];
        let (name, scale) = scales.into_iter().find(|(_, f)| most * f >= 1.0).unwrap_or(scales[2]);
        let quantity = if self.alone { "forecast communication time" } else { "forecast time" };
        let (able, unable) = self.able();
        let series = able.iter().enumerate().map(|(colour, &i)| Series {
            name: self.candidates[i].name.clone(),
            points: self
                .swept
                .points
                .iter()
                .map(|p| [p.value * unit, p.forecasts[i].map_or(f64::NAN, |f| f.seconds * scale)])
                .collect(),
            colour,
            ..Series::default()
        });
        let marks = self.swept.crossovers.iter().map(|c| {
            (
                [c.at * unit, c.seconds * scale],
                format!("{} from {}", self.candidates[c.to].name, parameter.show(c.at)),
            )
        });
        let mut notes = Vec::new();
        if !unable.is_empty() {
            notes.push(format!("not applicable here: {}", unable.join(", ")));
        }
        if self.alone {
            notes.push("speeds are ratios without a unit: forecasts cover communication only".into());
        }
        let plot = Plot {
            title: [self.finding(), self.about(quantity)],
            axes: [axis.into(), format!("{quantity}, {name}")],
            series: series.collect(),
            marks: marks.collect(),
            notes,
            ..Plot::default()
        };
        plot_svg_on(&plot, log.axes(wide_axes(&plot)))
    }

    /// What the sweep shows.
    fn finding(&self) -> String {
        let Self { candidates, swept, .. } = self;
        let name = |i: usize| candidates[i].name.as_str();
        let parameter = self.wanted.parameter;
        let at = |value: f64| match parameter {
            Parameter::Ratio => format!("{parameter} {}", parameter.show(value)),
            Parameter::Processors => format!("{} processors", parameter.show(value)),
            _ => parameter.show(value),
        };
        match &swept.crossovers[..] {
            [] => match swept.points.iter().find_map(|p| p.winner) {
                Some(winner) if parameter == Parameter::Processors => {
                    format!("{} is the fastest at every number of processors", name(winner))
                }
                Some(winner) => format!("{} is the fastest at every {parameter}", name(winner)),
                None => format!("Forecasts by {parameter}"),
            },
            [one] => format!("From {} on, {} is faster than {}", at(one.at), name(one.to), name(one.from)),
            several => format!("The fastest changes {} times with the {parameter}", several.len()),
        }
    }

    /// The quantity, the subject and the order of steps, where all candidates share it.
    fn about(&self, quantity: &str) -> String {
        let mut orders: Vec<String> =
            self.candidates.iter().flat_map(|c| &c.orders).map(ToString::to_string).collect();
        orders.dedup();
        let flow = match &orders[..] {
            [one] => format!(", {one} flow"),
            _ => String::new(),
        };
        let shared =
            if *self.rule == Rule::Fifo { String::new() } else { format!(", links shared {}", self.rule) };
        let start = quantity.chars().next().map(|c| c.to_ascii_uppercase()).into_iter();
        let quantity: String = start.chain(quantity.chars().skip(1)).collect();
        format!("{quantity} of {}{flow}{shared}", self.subject)
    }
}
