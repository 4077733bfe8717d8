//! The workcell file. Reading is strict: errors name the field.

mod raw;

use super::{Arrivals, Dispatching, Duration, Job, Nanos, PartSource, Resource, Rule, Scenario, Workcell};
use apportion::error::{Error, Result};
use apportion::input::read_up_to;
use apportion::units::{Dimension, Quantity};
use raw::{RawDuration, RawJob, RawPart, RawRandom, RawResource, RawRule, RawScenario, RawWorkcell};
use std::collections::BTreeMap;
use std::path::Path;

/// The longest duration, about three years.
pub(super) const LONGEST: Nanos = 100_000_000_000_000_000;
/// Bytes of the largest file.
const MOST_BYTES: u64 = 64 << 20;
/// Most jobs, resources, parts, rules and scenarios.
const MOST: usize = 20_000;
/// Most units of a resource, instances of a job at the start, and parts of a kind.
const MOST_UNITS: u64 = 1_000_000;

/// Reads a workcell file.
///
/// # Errors
/// The file cannot be read, is larger than 64 MiB, or [`parse_workcell`] rejects it.
pub fn read_workcell(path: &Path) -> Result<Workcell> {
    parse_workcell(&read_up_to(path, MOST_BYTES)?, &path.display().to_string())
}

/// Reads the text of a workcell file; `place` names it in errors.
///
/// # Errors
/// Malformed TOML or an unknown field (with its line); an unknown name in a rule or scenario, a name used
/// twice, a number or time out of range, a rule without a condition (with its field): exit code 2.
pub fn parse_workcell(text: &str, place: &str) -> Result<Workcell> {
    let raw: RawWorkcell = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        Error::input(format!("{place}:{line}"), e.message(), "see docs/reference/workcell-file.md")
    })?;
    Reader { place }.workcell(raw)
}

struct Reader<'a> {
    place: &'a str,
}

/// Indices by name.
type Names = BTreeMap<String, usize>;

impl Reader<'_> {
    fn error(&self, field: &str, what: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error::input(format!("{}: {field}", self.place), what, remedy)
    }

    fn workcell(&self, raw: RawWorkcell) -> Result<Workcell> {
        let names = |kind, names: Vec<&String>| self.names(kind, &names);
        let jobs = names("job", raw.job.iter().map(|x| &x.name).collect())?;
        let resources = names("resource", raw.resource.iter().map(|x| &x.name).collect())?;
        let parts = names("part", raw.part.iter().map(|x| &x.name).collect())?;
        names("rule", raw.rule.iter().map(|x| &x.name).collect())?;
        names("scenario", raw.scenario.iter().map(|x| &x.name).collect())?;
        if raw.rule.is_empty() {
            return Err(self.error("rule", "the workcell has no rule", "add at least one [[rule]]"));
        }
        let dispatching = self.dispatching("dispatching", raw.dispatching.as_deref())?.unwrap_or_default();
        let mut workcell = Workcell {
            name: raw.name.unwrap_or_else(|| self.place.to_owned()),
            dispatching,
            jobs: raw.job.iter().map(|job| self.job(job)).collect::<Result<_>>()?,
            resources: raw.resource.iter().map(|r| self.resource(r)).collect::<Result<_>>()?,
            parts: raw.part.iter().map(|part| self.part(part)).collect::<Result<_>>()?,
            ..Workcell::default()
        };
        let mut products = Names::new();
        for rule in &raw.rule {
            let rule = self.rule(rule, [&jobs, &resources, &parts], &mut products)?;
            workcell.rules.push(rule);
        }
        workcell.products = vec![String::new(); products.len()];
        products.into_iter().for_each(|(name, at)| workcell.products[at] = name);
        let scenario = |raw| self.scenario(raw, [&jobs, &resources, &parts]);
        workcell.scenarios = raw.scenario.iter().map(scenario).collect::<Result<_>>()?;
        Ok(workcell)
    }

    fn names(&self, kind: &str, all: &[&String]) -> Result<Names> {
        if all.len() > MOST {
            let what = format!("{} are more than {MOST}", all.len());
            return Err(self.error(kind, what, "divide the workcell"));
        }
        let mut names = Names::new();
        for (at, name) in all.iter().enumerate() {
            if name.trim().is_empty() || names.insert((*name).clone(), at).is_some() {
                let what = format!("\"{name}\" is empty or used twice");
                return Err(self.error(
                    &format!("{kind}.name"),
                    what,
                    format!("give every {kind} a name of its own"),
                ));
            }
        }
        Ok(names)
    }

    fn dispatching(&self, field: &str, text: Option<&str>) -> Result<Option<Dispatching>> {
        let names = || Dispatching::NAMES.map(|(name, _)| name).join(", ");
        let parsed = text.map(str::parse).transpose();
        parsed.map_err(|what: String| self.error(field, what, format!("choose one of {}", names())))
    }

    fn time(&self, field: &str, quantity: &Quantity) -> Result<Nanos> {
        let remedy = "give seconds, or text such as \"90 s\", \"2 min\" or \"1 h\"";
        let seconds = quantity.value(Dimension::Time).map_err(|what| self.error(field, what, remedy))?;
        let nanos = (seconds * super::workcell::SECOND).round();
        if nanos > LONGEST as f64 {
            return Err(self.error(field, format!("{seconds} s is longer than three years"), remedy));
        }
        Ok(nanos as Nanos)
    }

    fn count(&self, field: &str, count: u64) -> Result<u64> {
        if count > MOST_UNITS {
            return Err(self.error(
                field,
                format!("{count} is more than {MOST_UNITS}"),
                "give a smaller number",
            ));
        }
        Ok(count)
    }

    fn duration(&self, field: &str, raw: &RawDuration) -> Result<Duration> {
        let random = match raw {
            RawDuration::Fixed(time) => return Ok(Duration::Fixed(self.time(field, time)?)),
            RawDuration::Random(random) => random,
        };
        let times = |name: &str, times: &[Quantity]| -> Result<Vec<Nanos>> {
            let field = format!("{field}.{name}");
            let times: Vec<Nanos> =
                times.iter().map(|time| self.time(&field, time)).collect::<Result<_>>()?;
            match times.is_sorted() {
                true => Ok(times),
                false => Err(self.error(&field, "the times do not ascend", "write the smallest first")),
            }
        };
        match random {
            RawRandom { uniform: Some(range), triangular: None, exponential: None } => {
                let times = times("uniform", range)?;
                Ok(Duration::Uniform(times[0], times[1]))
            }
            RawRandom { uniform: None, triangular: Some(range), exponential: None } => {
                let times = times("triangular", range)?;
                Ok(Duration::Triangular(times[0], times[1], times[2]))
            }
            RawRandom { uniform: None, triangular: None, exponential: Some(mean) } => {
                Ok(Duration::Exponential(self.time(&format!("{field}.exponential"), mean)?))
            }
            _ => Err(self.error(
                field,
                "is not one distribution",
                "give uniform = [from, to], triangular = [least, most likely, most] or exponential = mean",
            )),
        }
    }

    fn job(&self, raw: &RawJob) -> Result<Job> {
        let field = |name: &str| format!("job \"{}\": {name}", raw.name);
        Ok(Job {
            name: raw.name.clone(),
            duration: self.duration(&field("duration"), &raw.duration)?,
            done: self.count(&field("done"), raw.done)?,
        })
    }

    fn resource(&self, raw: &RawResource) -> Result<Resource> {
        let field = |name: &str| format!("resource \"{}\": {name}", raw.name);
        Ok(Resource {
            name: raw.name.clone(),
            capacity: self.capacity(&field("capacity"), raw.capacity)?,
            reset: raw.reset.as_ref().map_or(Ok(0), |time| self.time(&field("reset"), time))?,
            dispatching: self.dispatching(&field("dispatching"), raw.dispatching.as_deref())?,
        })
    }

    fn capacity(&self, field: &str, capacity: u64) -> Result<u64> {
        if capacity == 0 {
            return Err(self.error(field, "is 0", "give at least one unit"));
        }
        self.count(field, capacity)
    }

    fn part(&self, raw: &RawPart) -> Result<PartSource> {
        let field = |name: &str| format!("part \"{}\": {name}", raw.name);
        let count = raw.count.map(|count| self.count(&field("count"), count)).transpose()?;
        let first = raw.first.as_ref().map(|time| self.time(&field("first"), time)).transpose()?;
        let arrivals = match (&raw.at, &raw.every) {
            (Some(_), Some(_)) => {
                return Err(self.error(&field("at"), "cannot be combined with every", "give one of them"));
            }
            (Some(_), None) if count.is_some() || first.is_some() => {
                return Err(self.error(
                    &field("at"),
                    "cannot be combined with count or first",
                    "remove them",
                ));
            }
            (Some(times), None) => {
                self.count(&field("at"), times.len() as u64)?;
                let times: Vec<Nanos> =
                    times.iter().map(|time| self.time(&field("at"), time)).collect::<Result<_>>()?;
                if !times.is_sorted() {
                    return Err(self.error(&field("at"), "the times do not ascend", "sort them"));
                }
                Arrivals::At(times)
            }
            (None, Some(every)) => {
                let every = self.time(&field("every"), every)?;
                if every == 0 {
                    return Err(self.error(&field("every"), "is 0", "give a time, or only count"));
                }
                Arrivals::Every { first: first.unwrap_or(0), every, count }
            }
            (None, None) if first.is_some() => {
                return Err(self.error(&field("first"), "needs every", "add every, or use at = [time]"));
            }
            (None, None) => Arrivals::AtStart(count.ok_or_else(|| {
                self.error(&field("count"), "it is not given when parts enter", "add count, every or at")
            })?),
        };
        Ok(PartSource { name: raw.name.clone(), arrivals })
    }

    fn rule(
        &self,
        raw: &RawRule,
        [jobs, resources, parts]: [&Names; 3],
        products: &mut Names,
    ) -> Result<Rule> {
        let field = |name: &str| format!("rule \"{}\": {name}", raw.name);
        let known = |name: &str, kind: &str, list: &[String], names: &Names| {
            let field = field(name);
            let mut found: Vec<usize> = Vec::with_capacity(list.len());
            for entry in list {
                let at = self.index_of(&field, kind, entry, names)?;
                if found.contains(&at) {
                    let remedy = "list it once; let several units travel through several jobs";
                    return Err(self.error(&field, format!("{kind} \"{entry}\" is listed twice"), remedy));
                }
                found.push(at);
            }
            Ok(found)
        };
        let produce = raw.produce.iter().map(|name| {
            let next = products.len();
            *products.entry(name.clone()).or_insert(next)
        });
        let produce: Vec<usize> = produce.collect();
        let rule = Rule {
            name: raw.name.clone(),
            done: known("done", "job", &raw.done, jobs)?,
            free: known("free", "resource", &raw.free, resources)?,
            parts: known("parts", "part", &raw.parts, parts)?,
            start: known("start", "job", &raw.start, jobs)?,
            release: known("release", "resource", &raw.release, resources)?,
            produce,
            priority: raw.priority,
        };
        if rule.done.is_empty() && rule.free.is_empty() && rule.parts.is_empty() {
            let what = "has no condition, so it would fire forever";
            return Err(self.error(&field("done"), what, "add done, free or parts"));
        }
        let mut once = rule.produce.clone();
        once.sort_unstable();
        once.dedup();
        if once.len() < rule.produce.len() || raw.produce.iter().any(|name| name.trim().is_empty()) {
            let what = "a product is empty or listed twice";
            return Err(self.error(&field("produce"), what, "name every product once"));
        }
        Ok(rule)
    }

    fn index_of(&self, field: &str, kind: &str, name: &str, names: &Names) -> Result<usize> {
        names.get(name).copied().ok_or_else(|| {
            let known = match names.len() {
                0 => format!("there is no [[{kind}]]"),
                1..=8 => format!("known are {}", names.keys().cloned().collect::<Vec<_>>().join(", ")),
                many => format!("{many} are known"),
            };
            let what = format!("unknown {kind} \"{name}\"");
            self.error(field, what, format!("{known}; add [[{kind}]] with this name, or correct it"))
        })
    }

    fn scenario(&self, raw: &RawScenario, [jobs, resources, parts]: [&Names; 3]) -> Result<Scenario> {
        let field = |name: &str| format!("scenario \"{}\": {name}", raw.name);
        let mut scenario = Scenario {
            name: raw.name.clone(),
            dispatching: self.dispatching(&field("dispatching"), raw.dispatching.as_deref())?,
            ..Scenario::default()
        };
        for (name, duration) in &raw.duration {
            let at = self.index_of(&field("duration"), "job", name, jobs)?;
            scenario.durations.push((at, self.duration(&field(&format!("duration.{name}")), duration)?));
        }
        for (name, &capacity) in &raw.capacity {
            let at = self.index_of(&field("capacity"), "resource", name, resources)?;
            scenario.capacities.push((at, self.capacity(&field(&format!("capacity.{name}")), capacity)?));
        }
        for (name, &count) in &raw.count {
            let at = self.index_of(&field("count"), "part", name, parts)?;
            scenario.counts.push((at, self.count(&field(&format!("count.{name}")), count)?));
        }
        Ok(scenario)
    }
}
