//! Where the time of a result went, and what would make it faster, in sentences. Every gain is an upper bound
//! that follows from the numbers of the result.

use super::entry::{Entry, Times, count};
use super::name_text;
use apportion::measure::UNDISTURBED;
use apportion::model::Models;
use apportion::record::{Choice, CriticalPath, Detail, ProductRun, Run};
use apportion::units::{show_bytes, show_seconds};
use serde_json::Value;

/// Part of the time below which a gain is not worth a sentence.
const WORTH: f64 = 0.02;

fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    if percent >= 9.95 || percent == 0.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// What happened in a run.
pub(super) fn of_run(run: &Run, entry: &Entry) -> Vec<String> {
    let mut all = Vec::new();
    let seconds = run.seconds;
    if let Some(forecast) = run.forecast_seconds.filter(|forecast| *forecast > 0.0 && seconds > 0.0) {
        all.push(match run.forecast_range() {
            Some([low, high]) if (low..=high).contains(&seconds) => format!(
                "The run took {}, within the forecast of {} to {}.",
                show_seconds(seconds),
                show_seconds(low),
                show_seconds(high)
            ),
            _ => {
                let (ratio, more) = if seconds > forecast {
                    (seconds / forecast - 1.0, "more")
                } else {
                    (1.0 - seconds / forecast, "less")
                };
                let forecast = show_seconds(forecast);
                format!(
                    "The run took {}, {} {more} than the forecast of {forecast}.",
                    show_seconds(seconds),
                    percent(ratio)
                )
            }
        });
    }
    all.extend(shares_of_time(&entry.times));
    all.extend(last_of(entry));
    all.extend(run.critical_path.as_ref().map(critical_path));
    let beside =
        [(run.io_seconds, "reading and writing files"), (run.verify_seconds.unwrap_or(0.0), "verification")];
    let beside: Vec<String> = beside
        .iter()
        .filter(|(time, _)| *time > 0.05 * seconds)
        .map(|(time, what)| format!("{what} took {}", show_seconds(*time)))
        .collect();
    if !beside.is_empty() {
        all.push(sentence(&format!("{}; that is not part of the time above", beside.join(" and "))));
    }
    if let Detail::Product(ProductRun { adaptive: Some(adaptive), .. }) = &run.detail {
        let times = match adaptive.repartitions.len() {
            1 => "once".into(),
            times => format!("{times} times"),
        };
        all.push(format!("While it ran, the work was divided again {times}."));
    }
    all
}

/// What would have made a run faster.
pub(super) fn remedies_of_run(run: &Run, entry: &Entry) -> Vec<String> {
    let seconds = run.seconds;
    let mut all = Vec::new();
    // Shares by the speeds of the run itself.
    let rates: Vec<(f64, f64)> = run
        .processors
        .iter()
        .map(|processor| (processor.done() as f64, processor.compute))
        .filter(|(share, compute)| *share > 0.0 && *compute > 0.0)
        .collect();
    let longest = rates.iter().map(|rate| rate.1).fold(0.0, f64::max);
    let even =
        rates.iter().map(|rate| rate.0).sum::<f64>() / rates.iter().map(|rate| rate.0 / rate.1).sum::<f64>();
    if rates.len() > 1 && longest - even > WORTH * seconds {
        let again = match &run.detail {
            Detail::Product(_) => {
                "measure the speeds again with `--remeasure`, or let the run follow them with `--adaptive`"
            }
            Detail::Factorisation(_) => "measure the speeds again with `--remeasure`",
            Detail::Advection(_) | Detail::Sparse(_) => "measure the speeds again",
        };
        all.push(format!(
            "Shares in proportion to the speeds of this run would cut the longest computation from {} to {}, at \
             most {} of the run: {again}.",
            show_seconds(longest),
            show_seconds(even),
            percent((longest - even) / seconds)
        ));
    }
    let (overlap, bound) = match &run.detail {
        Detail::Product(product) => (product.overlap, product.volume_lower_bound),
        Detail::Factorisation(_) | Detail::Sparse(_) => (None, None),
        Detail::Advection(advection) => (advection.overlap, None),
    };
    let communication =
        Communication { path: run.critical_path.as_ref(), overlap, volume: run.volume.zip(bound) };
    all.extend(communication.less(entry, seconds));
    all.extend(run.choice.as_ref().and_then(left_out));
    if let Some(ideal) = entry.ideal.filter(|ideal| *ideal > 0.0 && seconds > 0.0) {
        let gain = 1.0 - ideal / seconds;
        let (ideal, over) = (show_seconds(ideal), percent((seconds / ideal - 1.0).max(0.0)));
        all.push(if gain > WORTH {
            format!(
                "Other shares and a network that costs nothing gain at most {} together: with every processor busy at \
                 its planned speed all the time, the work takes {ideal}.",
                percent(gain)
            )
        } else if gain > -WORTH {
            format!(
                "Nothing is left to gain from dividing the work otherwise: the run took {over} over the ideal time. \
                 Only faster or more processors help."
            )
        } else {
            format!(
                "The processors were faster than the plan knew: at those speeds the work takes {ideal} at best. \
                 Measure them again for better shares and forecasts."
            )
        });
    }
    let slow = run.processors.iter().filter(|p| p.compute > WORTH * seconds && p.cpu_seconds > 0.0);
    let slow = slow.map(|p| (&p.name, p.cpu_seconds / p.compute)).filter(|(_, part)| *part < UNDISTURBED);
    if let Some((name, part)) = slow.min_by(|a, b| a.1.total_cmp(&b.1)) {
        all.push(format!(
            "While it computed, {} had {} of a core: other programs, a CPU quota or an emulated slowdown took the \
             rest. `apportion doctor` shows the first two.",
            name_text(name),
            percent(part)
        ));
    }
    all
}

/// What a plan promises.
pub(super) fn of_plan(value: &Value, entry: &Entry) -> Vec<String> {
    let mut all: Vec<String> = shares_of_time(&entry.times).into_iter().collect();
    let Some(plan) = &entry.plan else { return all };
    let idle = plan.idle_processors();
    if !idle.is_empty() {
        all.push(format!("{} no share.", listed(&idle, "has", "have")));
    }
    if plan.forecast.is_none() {
        all.push("Only ratios of speeds are known, so there is no forecast in seconds.".into());
    }
    if let Some(reason) = value["method_reason"].as_str() {
        all.push(sentence(&format!("the method {} was taken: {reason}", plan.method)));
    }
    all
}

pub(super) fn remedies_of_plan(value: &Value, entry: &Entry) -> Vec<String> {
    let choice: Option<Choice> = serde_json::from_value(value["choice"].clone()).ok();
    let mut all: Vec<String> = choice.as_ref().and_then(left_out).into_iter().collect();
    let Some(plan) = &entry.plan else { return all };
    let metrics = &plan.metrics;
    if let (Some(bound), Some(forecast)) = (metrics.time_bound, &plan.forecast) {
        let gain = 1.0 - bound / forecast.seconds;
        all.push(if gain > WORTH {
            format!(
                "No plan for these processors takes less than {}: another one can gain at most {}.",
                show_seconds(bound),
                percent(gain)
            )
        } else {
            "No plan for these processors could be noticeably faster: only faster or more processors, or a faster \
             network, help."
                .into()
        });
    }
    if metrics.imbalance > 1.0 + WORTH {
        all.push(format!(
            "The longest computation is {} over the ideal time: caps, granularity or the method keep the shares \
             from the speeds.",
            percent(metrics.imbalance - 1.0)
        ));
    }
    for (field, what) in [("alone", "The fastest processor alone"), ("even", "An even split")] {
        if let (Some(seconds), Some(forecast)) = (value[field]["seconds"].as_f64(), entry.forecast) {
            all.push(format!(
                "{what} would take {} by forecast; this plan takes {}.",
                show_seconds(seconds),
                show_seconds(forecast)
            ));
        }
    }
    all
}

pub(super) fn of_simulation(value: &Value, entry: &Entry) -> Vec<String> {
    let mut all: Vec<String> = shares_of_time(&entry.times).into_iter().collect();
    all.extend(last_of(entry));
    all.extend(path_of(value).as_ref().map(critical_path));
    all
}

fn path_of(value: &Value) -> Option<CriticalPath> {
    serde_json::from_value(value["critical_path"].clone()).ok()
}

pub(super) fn remedies_of_simulation(value: &Value) -> Vec<String> {
    let seconds = value["seconds"].as_f64().unwrap_or_default();
    let path = path_of(value);
    let communication =
        Communication { path: path.as_ref(), overlap: value["overlap"].as_bool(), volume: None };
    let mut all: Vec<String> = communication.less(&Entry::default(), seconds).into_iter().collect();
    let work = path.map(|path| path.work);
    if let Some(work) = work.filter(|work| *work > (1.0 - WORTH) * seconds && seconds > 0.0) {
        all.push(format!(
            "Computation alone decides the end: a faster network would gain less than {}.",
            percent((1.0 - work / seconds).max(0.001))
        ));
    }
    all
}

pub(super) fn of_balance(value: &Value, entry: &Entry) -> Vec<String> {
    let gain = &value["gain"];
    let mut all = Vec::new();
    if let (Some(first), Some(kept)) = (gain["seconds"].as_f64(), gain["kept_seconds"].as_f64()) {
        all.push(format!(
            "The {} took {}, the round that was kept {}: {:.2} times as fast.",
            gain["against"].as_str().unwrap_or("first round"),
            show_seconds(first),
            show_seconds(kept),
            first / kept
        ));
    }
    all.extend(shares_of_time(&entry.times));
    for cap in value["caps"].as_array().into_iter().flatten() {
        if let (Some(name), Some(works), Some(fails)) =
            (cap["processor"].as_str(), cap["works"].as_u64(), cap["fails"].as_u64())
        {
            all.push(format!(
                "{} does {} units and fails at {}: {}.",
                name_text(name),
                count(works),
                count(fails),
                cap["reason"].as_str().unwrap_or("no reason given")
            ));
        }
    }
    all
}

pub(super) fn remedies_of_balance(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for (field, what) in [("alone", "The fastest processor alone"), ("even", "An even split")] {
        if let Some(seconds) = value[field]["seconds"].as_f64() {
            all.push(format!("{what} takes {}.", show_seconds(seconds)));
        }
    }
    all.push(match value["balanced"] == true {
        true => "The programs end together within the tolerance: only faster or more processors help, or a \
                 smaller `--tolerance`."
            .into(),
        false => "The programs do not end together yet: more rounds (`--max-rounds`), a machine without other work, \
                  or several repetitions of each round (`--repetitions`) help."
            .to_owned(),
    });
    all
}

pub(super) fn of_models(models: &Models) -> Vec<String> {
    let mut all = Vec::new();
    if models.unit != "units" {
        all.push(format!("A unit of size: {}.", models.unit));
    }
    let speeds: Vec<f64> = models
        .models
        .iter()
        .filter_map(|m| m.points().iter().map(|p| p.speed()).max_by(f64::total_cmp))
        .collect();
    let (least, most) = speeds.iter().fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(*x), b.max(*x)));
    if speeds.len() > 1 && least > 0.0 {
        all.push(format!(
            "At its best size, the fastest processor is {:.2} times as fast as the slowest.",
            most / least
        ));
    }
    for model in &models.models {
        if let (Some(cap), Some(failure)) = (model.max_size(), model.failure()) {
            all.push(format!(
                "{} fails at size {} ({}); its largest size is {cap}.",
                name_text(model.processor()),
                failure.size,
                failure.reason
            ));
        }
    }
    all
}

pub(super) fn remedies_of_models(models: &Models) -> Vec<String> {
    let points = || models.models.iter().flat_map(|model| model.points());
    let mut all = Vec::new();
    let (missed, total) = (points().filter(|p| p.precision_met == Some(false)).count(), points().count());
    if missed > 0 {
        all.push(format!(
            "{missed} of {total} points are less precise than was asked: raise `--max-seconds` or \
             `--max-repetitions`, or leave the machine idle."
        ));
    }
    let disturbed = points().filter(|p| p.cpu_share.is_some_and(|share| share < UNDISTURBED)).count();
    if disturbed > 0 {
        all.push(format!(
            "During {disturbed} of {total} points other programs or a quota took more than {} of the processor's \
             time: these speeds are those beside them.",
            percent(1.0 - UNDISTURBED)
        ));
    }
    if all.is_empty() && points().any(|p| p.repetitions > 0) {
        all.push("The points are as precise as was asked; divide work with `partition --models`.".into());
    }
    all
}

pub(super) fn of_events(value: &Value) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(text) = value["deadlock"]["text"].as_str() {
        all.push(format!("The workcell is deadlocked: {text}."));
    }
    if let Some(text) = value["starved"].as_str() {
        all.push(format!("Work remains: {text}."));
    }
    for conflict in value["conflicts"].as_array().into_iter().flatten().take(4) {
        let rules = conflict["rules"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let rules: Vec<&str> = rules.collect();
        if let (Some(place), Some(times)) = (conflict["place"].as_str(), conflict["times"].as_u64()) {
            all.push(format!(
                "{} competed for {}: dispatching chose {times} times.",
                listed(&rules, "", "").trim_end(),
                name_text(place)
            ));
        }
    }
    if let Some((name, part, _)) = busiest(value) {
        all.push(format!(
            "{} is the busiest resource: it is held {} of the time.",
            name_text(&name),
            percent(part)
        ));
    }
    all
}

pub(super) fn remedies_of_events(value: &Value) -> Vec<String> {
    let seconds = value["seconds"].as_f64().unwrap_or_default();
    let mut all = Vec::new();
    if let Some((name, _, working)) = busiest(value).filter(|busy| busy.2 > 0.0 && seconds > 0.0) {
        all.push(format!(
            "{} works for {} of {}, a unit of it on average: with the same jobs on it the makespan cannot fall below that, whatever the \
             dispatching. Beyond a gain of {} it needs another unit or shorter jobs.",
            name_text(&name),
            show_seconds(working),
            show_seconds(seconds),
            percent((1.0 - working / seconds).max(0.0))
        ));
    }
    if !value["deadlock"].is_null() {
        all.push("A buffer place more on the circle, or other dispatching, breaks the deadlock.".into());
    }
    all
}

/// The resource with the largest utilisation: its name, that, and its working seconds by unit.
fn busiest(value: &Value) -> Option<(String, f64, f64)> {
    let resources = value["resources"].as_array()?.iter().filter_map(|resource| {
        let capacity = resource["capacity"].as_f64().filter(|n| *n > 0.0)?;
        let working = resource["working_seconds"].as_f64()? / capacity;
        Some((resource["name"].as_str()?.to_owned(), resource["utilisation"].as_f64()?, working))
    });
    resources.max_by(|a, b| a.2.total_cmp(&b.2))
}

/// `The processors compute for 82 % of the time, …`
fn shares_of_time(times: &[Times]) -> Option<String> {
    let sum = |part: fn(&Times) -> f64| times.iter().map(part).sum::<f64>();
    let [compute, communicate, idle] = [sum(|t| t.compute), sum(|t| t.communicate), sum(|t| t.idle)];
    let all = compute + communicate + idle;
    if times.is_empty() || all <= 0.0 {
        return None;
    }
    let who = if times.len() == 1 { "The processor spends" } else { "Together the processors spend" };
    let messages = match communicate > 0.0 {
        true => format!(", {} waiting for data on the way", percent(communicate / all)),
        false => String::new(),
    };
    Some(format!(
        "{who} {} of the time computing{messages}, and {} without work or waiting for data that were not sent yet.",
        percent(compute / all),
        percent(idle / all)
    ))
}

/// Who ends last, and what it did.
fn last_of(entry: &Entry) -> Option<String> {
    let lanes = entry
        .lanes
        .as_ref()
        .or(entry.forecast_lanes.as_ref())
        .filter(|lanes| lanes.lanes.len() == entry.times.len())?;
    let end = |i: usize| lanes.lanes[i].events.iter().rfind(|e| e.kind() == 0).map_or(0.0, |e| e.end);
    let last = (0..entry.times.len()).max_by(|&a, &b| end(a).total_cmp(&end(b)))?;
    let Times { name, compute, communicate, .. } = &entry.times[last];
    (entry.times.len() > 1 && *compute > 0.0).then(|| {
        let waits = match *communicate > 0.0 {
            true => format!(", and had waited {} for data on the way", show_seconds(*communicate)),
            false => String::new(),
        };
        format!("{} computed last: {} in all{waits}.", name_text(name), show_seconds(*compute))
    })
}

/// The chain that decides the end, by forecast.
fn critical_path(path: &CriticalPath) -> String {
    let CriticalPath { work, transfer, queue, bytes, .. } = *path;
    let ends = name_text(&path.ends);
    if transfer + queue <= 0.0 {
        return format!("By the forecast nothing but the computation of {ends} decides the end.");
    }
    let queue = match queue > 0.0 {
        true => format!(" and {} in which they wait for their link", show_seconds(queue)),
        false => String::new(),
    };
    format!(
        "By the forecast, the end is decided by a chain of {} of computation and {} of messages ({}){queue}; it ends \
         at {ends}. Only what shortens this chain shortens the whole.",
        show_seconds(work),
        show_seconds(transfer),
        show_bytes(bytes)
    )
}

/// What is known of the communication of a run or a simulation.
struct Communication<'a> {
    path: Option<&'a CriticalPath>,
    overlap: Option<bool>,
    /// Elements that it moves, and those that any layout of these shares moves at least.
    volume: Option<(u64, u64)>,
}

impl Communication<'_> {
    /// What less or earlier communication gains at most.
    fn less(&self, entry: &Entry, seconds: f64) -> Option<String> {
        let on_path = self.path.map(|path| path.transfer + path.queue);
        let waited = entry.times.iter().map(|times| times.communicate).fold(0.0, f64::max);
        let of = entry.forecast.filter(|_| on_path.is_some()).unwrap_or(seconds);
        let gain = on_path.unwrap_or(waited);
        if gain <= WORTH * of || of <= 0.0 {
            return None;
        }
        let mut how = Vec::new();
        if self.overlap == Some(false) {
            how.push("`--overlap` lets processors compute while data travel".to_owned());
        }
        if let Some((volume, bound)) = self.volume {
            let least = volume as f64 <= bound as f64 * (1.0 + WORTH);
            how.push(match least {
                true => {
                    format!("no layout with these shares moves fewer than these {} elements", count(volume))
                }
                false => format!(
                    "the layout moves {} elements, and none with these shares fewer than {}",
                    count(volume),
                    count(bound)
                ),
            });
        }
        let how = if how.is_empty() { String::new() } else { format!(": {}", how.join("; ")) };
        Some(format!(
            "A network that costs nothing would gain at most {} of {}{how}.",
            show_seconds(gain),
            show_seconds(of)
        ))
    }
}

/// The processors that stay out.
fn left_out(choice: &Choice) -> Option<String> {
    let out = choice.left_out.as_ref()?;
    let names: Vec<&str> = out.iter().map(|one| one.processor.as_str()).collect();
    let seconds = out.first()?.seconds;
    let with = if names.len() == 1 { "It" } else { "They" };
    let out = listed(&names, "stays", "stay");
    Some(match seconds > 0.0 {
        true => format!(
            "{out} out. {with} would add {} of communication, more than the work that they take over.",
            show_seconds(seconds)
        ),
        false => format!("{out} out. {with} would save no more than {} in all.", show_seconds(-seconds)),
    })
}

/// Names, the number of others, and the verb.
fn listed(names: &[&str], one: &str, many: &str) -> String {
    let shown: Vec<String> = names.iter().take(6).map(|name| name_text(name)).collect();
    let verb = if names.len() == 1 { one } else { many };
    match (&shown[..], names.len() - shown.len()) {
        ([], _) => String::new(),
        ([only], 0) => format!("{only} {verb}"),
        ([first @ .., last], 0) => format!("{} and {last} {verb}", first.join(", ")),
        (all, more) => format!("{} and {more} more {verb}", all.join(", ")),
    }
}

/// A sentence of these words.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
