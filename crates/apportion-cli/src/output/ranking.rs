//! The choice, its competitors and the difference: a line for readers, a field for programs.

use super::plan::certificate;
use apportion::job::{Decision, SpeedSource};
use apportion::platform::Platform;
use apportion::record::{self, MemoryFit, Run, SharesGain};
use apportion::select::{Choice, DecidedBy, MemoryOverrun, Minimise};
use apportion::units;
use apportion_report::pairs;
use serde_json::json;

/// Candidates, the best first, and the measure by which they were ranked.
pub struct Ranking<'a> {
    pub choices: Vec<&'a Choice>,
    pub minimise: Minimise,
    /// True if speeds are ratios only: the times were those of communication alone.
    pub relative: bool,
}

impl<'a> Ranking<'a> {
    /// Of a decision.
    pub fn of(decision: &'a Decision) -> Self {
        let choices = decision.choices.iter().collect();
        Self { choices, minimise: Minimise::Time, relative: decision.relative }
    }
}

impl Ranking<'_> {
    /// The lines for readers about the choice and the adaptations to memory, for the report of a run.
    pub fn text(&self, platform: &Platform, source: SpeedSource, run: &Run) -> String {
        let chosen = self.line().map(|line| ("chosen  ", line));
        let left_out = self.left_out_line().map(|line| ("left out", line));
        let shares = self.shares_line().map(|line| ("shares", line));
        let fitted = self.memory_fit(platform).map(|fit| ("fitted  ", fit_text(&fit)));
        let certificate = self.choices.first().and_then(|choice| run_certificate(choice, source, run));
        let certificate = certificate.map(|line| ("certificate", line));
        let lines = [chosen, left_out, shares, fitted, certificate];
        pairs(&lines.into_iter().flatten().collect::<Vec<_>>())
    }

    /// The processors that stay out and the blocks that were made smaller, if there are any.
    pub fn exceptions(&self, platform: &Platform) -> String {
        let left_out = self.left_out_line().map(|line| ("left out", line));
        let fitted = self.memory_fit(platform).map(|fit| ("fitted", fit_text(&fit)));
        pairs(&left_out.into_iter().chain(fitted).collect::<Vec<_>>())
    }

    /// The names of the processors that stay out, what they would do, and the seconds that they would add.
    fn left_out(&self) -> Option<(Vec<&str>, String, f64)> {
        let best = *self.choices.first()?;
        let out = best.left_out.as_ref()?;
        let names = out.ranks.iter().map(|rank| best.plan.processors[rank.0].as_str()).collect();
        Some((names, why_left_out(out.seconds, best.rank?), out.seconds))
    }

    /// `old1 and old2 stay out: they would add 1,215 s of communication`.
    pub fn left_out_line(&self) -> Option<String> {
        let (names, why, _) = self.left_out()?;
        Some(match &names[..] {
            [one] => format!("{one} stays out: it {why}"),
            _ => format!("{} stay out: they {why}", listed(&names)),
        })
    }

    /// What shares that consider communication gain.
    pub fn shares_line(&self) -> Option<String> {
        let best = self.choices.first()?;
        let (gain, seconds) = (best.sizing_gain?, best.rank?);
        let percent = 100.0 * gain / (seconds + gain);
        Some(format!("by forecast: {percent:.1} % less time than in proportion to the speeds"))
    }

    /// The blocks into which the operands were cut so that no processor exceeds its memory.
    pub fn memory_fit(&self, platform: &Platform) -> Option<MemoryFit> {
        let choice = self.choices.first()?;
        let k = choice.plan.layout().ok()?.shape().k;
        Some(memory_fit(choice.memory_overrun?, choice.order.block, k, platform))
    }

    fn by(&self) -> &'static str {
        match self.minimise {
            _ if self.choices[0].rank.is_none() || self.is_free() => "volume",
            Minimise::Time if self.relative => "communication alone",
            Minimise::Time => "forecast",
            Minimise::Sum => "half-perimeters",
            Minimise::Largest => "largest half-perimeter",
            Minimise::Volume => "volume",
        }
    }

    /// True if communication, by which candidates are ranked, costs none of them anything. The volume then
    /// decided.
    fn is_free(&self) -> bool {
        let nothing = |c: &&Choice| c.rank.is_some_and(|seconds| seconds < f64::MIN_POSITIVE * 1e100);
        self.relative && self.minimise == Minimise::Time && self.choices.iter().all(nothing)
    }

    fn value_of(&self, choice: &Choice) -> Option<f64> {
        if self.is_free() { choice.plan.metrics.volume.map(|v| v as f64) } else { choice.rank }
    }

    /// A value of the criterion, with its unit.
    fn criterion_text(&self, value: f64) -> String {
        match self.minimise {
            _ if self.is_free() => format!("{} elements", units::show_count(value as u128)),
            Minimise::Time => units::show_seconds(value),
            Minimise::Volume => format!("{} elements", units::show_count(value as u128)),
            _ => format!("{value:.4}"),
        }
    }

    /// The heading of a column with the value that decided; `None` if the table has it anyway (the volume,
    /// the forecast).
    pub fn column(&self) -> Option<&'static str> {
        match self.minimise {
            _ if self.is_free() || self.choices[0].rank.is_none() => None,
            Minimise::Time if self.relative => Some("communication"),
            Minimise::Sum => Some("half-perimeters"),
            Minimise::Largest => Some("largest half-perimeter"),
            Minimise::Time | Minimise::Volume => None,
        }
    }

    /// A candidate's value in that column.
    pub fn cell(&self, choice: &Choice) -> String {
        self.value_of(choice).map_or_else(|| "-".into(), |value| self.criterion_text(value))
    }

    /// The best candidate with another method or, if there is only one method, with another order of steps.
    fn rival(&self) -> Option<&Choice> {
        let others = || self.choices.iter().skip(1).copied();
        let method = &self.choices[0].plan.method;
        others().find(|c| c.plan.method != *method).or_else(|| others().next())
    }

    /// `square-corner, bulk: 1.2 s by forecast, 8.1 % less than straight-line, bulk (of 9 methods x 6
    /// flows)`; nothing if there was no choice.
    pub fn line(&self) -> Option<String> {
        let (best, rival) = (*self.choices.first()?, self.rival()?);
        let count = |key: &dyn Fn(&Choice) -> String| {
            self.choices.iter().map(|c| key(c)).collect::<std::collections::BTreeSet<_>>().len()
        };
        let (methods, orders) = (count(&|c| c.plan.method.clone()), count(&|c| c.order.to_string()));
        let timed = self.minimise == Minimise::Time && !self.is_free();
        // Candidates of one method differ by their flows only.
        let by_flow = timed || methods == 1;
        let name = |c: &Choice| if by_flow { named(c) } else { c.plan.method.clone() };
        let mut compared = Vec::new();
        if methods > 1 {
            compared.push(format!("{methods} methods"));
        }
        if by_flow && orders > 1 && self.choices.len() > methods {
            compared.push(format!("{orders} flows"));
        }
        let compared = match compared.is_empty() {
            true => String::new(),
            false => format!(" (of {})", compared.join(" x ")),
        };
        let against = self.against(best, rival, &name(rival));
        Some(format!("{}: {against}{compared}", name(best)))
    }

    /// The value of the best candidate, and what put it before the other.
    fn against(&self, best: &Choice, rival: &Choice, name: &str) -> String {
        let Some(least) = self.value_of(best) else {
            return "least volume, too many processors to simulate all".to_owned();
        };
        let Some(other) = self.value_of(rival) else {
            let value = format!("{} by {}", self.criterion_text(least), self.by());
            return format!("{value}, less than {name}, which a bound ruled out");
        };
        let value = format!("{} by {}", self.criterion_text(least), self.by());
        let (less, more) = (best.volume() as f64, rival.volume() as f64);
        let percent = |part: f64| match 100.0 * part {
            p if p >= 0.05 => format!("{p:.1} %"),
            _ => "under 0.1 %".to_owned(),
        };
        let decided = if self.is_free() && less < more {
            DecidedBy::Criterion
        } else {
            DecidedBy::between(best, rival)
        };
        match decided {
            DecidedBy::Criterion => format!("{value}, {} less than {name}", percent(1.0 - least / other)),
            DecidedBy::Volume if less == 0.0 => format!("{value}, the same as {name}, which moves elements"),
            DecidedBy::Volume => {
                format!(
                    "{value}, the same as {name}, which moves {} more elements",
                    percent(more / less - 1.0)
                )
            }
            DecidedBy::Order => {
                format!("{value}, the same as {name}, which comes later in the order of preference")
            }
        }
    }

    /// The choice for programs, if there was one.
    pub fn record(&self) -> Option<record::Choice> {
        let best = self.choices.first()?;
        let decided = match DecidedBy::between(best, self.rival()?) {
            DecidedBy::Criterion => self.by(),
            DecidedBy::Volume => "volume",
            DecidedBy::Order => "order",
        };
        let each = |c: &Choice| record::Candidate {
            method: c.plan.method.clone(),
            flow: c.order.flow.to_string(),
            overlap: c.order.overlaps(),
            value: self.value_of(c),
            ..record::Candidate::default()
        };
        let against = self.choices[1..].iter().map(|c| {
            let both = self.value_of(best).zip(self.value_of(c)).filter(|(least, _)| *least > 0.0);
            let excess = Some(json!(both.map(|(least, other)| other / least - 1.0)));
            record::Candidate { excess, at_least: c.lower_bound, ..each(c) }
        });
        let left_out = self.left_out().map(|(names, why, seconds)| {
            let each = |name: &str| record::LeftOut { processor: name.into(), why: why.clone(), seconds };
            names.into_iter().map(each).collect()
        });
        Some(record::Choice {
            by: self.by().into(),
            decided_by: decided.into(),
            chosen: each(best),
            against: against.collect(),
            left_out,
            shares: best.sizing_gain.map(|gain| SharesGain { by: "forecast".into(), saved_seconds: gain }),
        })
    }
}

/// The certificate of the plan that ran: it holds by the speeds that the plan was made for, which the run may
/// have shown to be wrong.
fn run_certificate(choice: &Choice, source: SpeedSource, run: &Run) -> Option<String> {
    let line = certificate(&choice.plan)?;
    let bound = run.forecast_seconds? / choice.plan.metrics.forecast_over_bound?;
    if run.seconds < bound {
        return Some(format!(
            "none: the {source} speeds allow no plan less than {}, and the run took less",
            units::show_seconds(bound)
        ));
    }
    Some(format!("by the {source} speeds, {line}"))
}

/// What processors would do that stay out of a plan that takes `rank` seconds; negative seconds are saved.
fn why_left_out(seconds: f64, rank: f64) -> String {
    match seconds > 0.0 {
        true => format!("would add {} of communication", added(seconds)),
        false => format!("would save only {:.1} % of the time", 100.0 * seconds.abs() / rank),
    }
}

/// Seconds with three digits at least, and whole seconds from a hundred on.
fn added(seconds: f64) -> String {
    if seconds < 100.0 {
        units::show_seconds(seconds)
    } else {
        format!("{} s", units::show_count(seconds.round() as u128))
    }
}

/// Maximum number of names in a sentence.
const MOST_NAMED: usize = 6;

/// `a`, `a and b`, or `a, b and 3 more`.
fn listed(names: &[&str]) -> String {
    let (shown, more) = names.split_at(names.len().min(MOST_NAMED));
    match (shown, more.len()) {
        (all @ [.., last], 0) if all.len() > 1 => format!("{} and {last}", all[..all.len() - 1].join(", ")),
        (all, 0) => all.concat(),
        (all, more) => format!("{} and {more} more", all.join(", ")),
    }
}

fn named(choice: &Choice) -> String {
    format!("{}, {}", choice.plan.method, choice.order)
}

/// The pivot blocks into which `k` inner indices are cut so that no processor exceeds its memory, and the
/// processor that would exceed it with larger ones.
pub fn memory_fit(excess: MemoryOverrun, block: u64, k: u64, platform: &Platform) -> MemoryFit {
    MemoryFit {
        block,
        blocks: k.div_ceil(block),
        processor: platform.processors[excess.rank.0].name.clone(),
        needed_bytes: excess.need,
        memory_bytes: excess.cap,
    }
}

/// The same as a line for readers.
pub fn fit_text(fit: &MemoryFit) -> String {
    let MemoryFit { block, blocks, processor, .. } = fit;
    let [needed, has] = [fit.needed_bytes, fit.memory_bytes].map(|bytes| units::show_bytes(bytes as f64));
    format!("{blocks} blocks of {block}: with larger ones \"{processor}\" would hold {needed} of its {has}")
}
