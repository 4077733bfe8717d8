//! Why nothing happens any more: finished, starved, or a circular wait.

use super::state::State;
use super::{End, Place, Rule, Workcell};
use std::collections::BTreeSet;
use std::fmt;

/// One link of a circular wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The rule that cannot fire, by name.
    pub rule: String,
    /// The jobs that are done and wait for it, by name.
    pub jobs: Vec<String>,
    /// What it waits for, as `resource "robot"`.
    pub waits_for: String,
    /// The jobs that hold all units of it, by name; empty for a job that nothing will start.
    pub held_by: Vec<String>,
}

/// Rules that wait for each other in a circle, so that none of them can ever fire again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for something that only the next can give, and the last for something of the first.
    pub circle: Vec<Wait>,
}

/// A rule on a path, what is left to try at it, and the place that leads on.
type Visit = (usize, Vec<(usize, usize)>, usize);

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, wait) in self.circle.iter().enumerate() {
            let lead = if i > 0 { ", " } else { "" };
            match &wait.jobs[..] {
                [] => write!(f, "{lead}rule \"{}\" waits for {}", wait.rule, wait.waits_for)?,
                jobs => write!(f, "{lead}job {} waits for {}", quoted(jobs), wait.waits_for)?,
            }
            if !wait.held_by.is_empty() {
                write!(f, ", held by job {}", quoted(&wait.held_by))?;
            }
        }
        Ok(())
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(" and ")
}

/// Classifies a state in which no rule can fire and nothing is going to happen.
pub(super) fn stuck(state: &State<'_>) -> End {
    let workcell = state.workcell;
    let takers = workcell.takers();
    let used = |place: usize| !takers[place].is_empty();
    let jobs = (0..workcell.jobs.len()).filter(|&job| used(job) && !state.done[job].is_empty());
    let waiting_jobs: Vec<usize> = jobs.collect();
    // Parts that wait, or that will come and wait.
    let coming: BTreeSet<Place> = state.coming().collect();
    let parts = (0..workcell.parts.len()).map(Place::Part);
    let there = |part: &Place| !state.is_missing(*part) || coming.contains(part);
    let waiting_parts: Vec<Place> =
        parts.filter(|part| used(workcell.number(*part)) && there(part)).collect();
    let holds = |job: usize| state.done[job].iter().any(|token| !token.held.is_empty());
    // Jobs whose last rule releases nothing may hold resources without a rule to follow.
    let lost = (0..workcell.jobs.len()).any(|job| !used(job) && holds(job));
    if waiting_jobs.is_empty() && waiting_parts.is_empty() && !lost {
        return never_starting(state).map_or(End::Finished, End::Deadlocked);
    }
    // From rules for which work waits, before those for which only resources are there.
    let mut starts: Vec<usize> = waiting_jobs.iter().flat_map(|&job| takers[job].clone()).collect();
    starts.extend(waiting_parts.iter().flat_map(|&part| takers[workcell.number(part)].clone()));
    starts.extend(0..workcell.rules.len());
    let reachable = reachable(state, &takers);
    let search = Search { state, takers: &takers, givers: workcell.givers(), reachable };
    if let Some(deadlock) = search.from(starts).or_else(|| never_starting(state)) {
        return End::Deadlocked(deadlock);
    }
    let waits = |rule: usize| {
        let lacking = workcell.inputs(rule).find(|&place| !search.reachable[place]);
        let lacking = lacking.map_or_else(String::new, |place| workcell.name_of(workcell.place(place)));
        format!("rule \"{}\" waits for {lacking}, which can never come", workcell.rules[rule].name)
    };
    let first = waiting_jobs.iter().map(|&job| takers[job][0]);
    let first = first.chain(waiting_parts.iter().map(|&part| takers[workcell.number(part)][0])).next();
    End::Starved(first.map_or_else(|| lost_resource(state), waits))
}

/// A circuit without a token: rules that wait in a circle for jobs of each other, and would wait even if
/// parts of every kind came and every resource were free. They have never fired.
fn never_starting(state: &State<'_>) -> Option<Deadlock> {
    let workcell = state.workcell;
    let takers = workcell.takers();
    let present = (0..workcell.places()).filter(|&place| match workcell.place(place) {
        Place::Job(job) => workcell.jobs[job].done > 0,
        Place::Resource(_) | Place::Part(_) => true,
    });
    let reachable = filled_from(present.collect(), workcell, &takers);
    let dead = |rule: &usize| workcell.inputs(*rule).any(|place| !reachable[place]);
    let starts = (0..workcell.rules.len()).filter(dead).collect();
    Search { state, takers: &takers, givers: workcell.givers(), reachable }.from(starts)
}

/// A circular wait of jobs that can never go on, or never start, although others do.
pub(super) fn partial(state: &State<'_>) -> Option<Deadlock> {
    let workcell = state.workcell;
    let takers = workcell.takers();
    let reachable = reachable(state, &takers);
    let blocked = (0..workcell.jobs.len()).filter(|&job| !state.done[job].is_empty());
    let starts: Vec<usize> = blocked.flat_map(|job| takers[job].clone()).collect();
    let search = Search { state, takers: &takers, givers: workcell.givers(), reachable };
    search.from(starts).or_else(|| never_starting(state))
}

/// True if what still comes cannot make any rule fire.
pub(super) fn nothing_can_fire(state: &State<'_>) -> bool {
    let workcell = state.workcell;
    let mut there: Vec<bool> =
        (0..workcell.places()).map(|place| !state.is_missing(workcell.place(place))).collect();
    state.coming().for_each(|place| there[workcell.number(place)] = true);
    (0..workcell.rules.len()).all(|rule| workcell.inputs(rule).any(|place| !there[place]))
}

/// The places that may be filled now or later, if nothing were ever used up: all others stay empty forever.
/// O(rules' conditions).
fn reachable(state: &State<'_>, takers: &[Vec<usize>]) -> Vec<bool> {
    let workcell = state.workcell;
    let present = (0..workcell.places()).filter(|&place| !state.is_missing(workcell.place(place)));
    let coming = state.coming().map(|place| workcell.number(place));
    filled_from(present.chain(coming).collect(), workcell, takers)
}

/// The places that these can fill by rules, if nothing were ever used up, themselves included.
fn filled_from(mut new: Vec<usize>, workcell: &Workcell, takers: &[Vec<usize>]) -> Vec<bool> {
    let mut lacks: Vec<usize> = (0..workcell.rules.len()).map(|rule| workcell.inputs(rule).count()).collect();
    let mut reachable = vec![false; workcell.places()];
    while let Some(place) = new.pop() {
        if std::mem::replace(&mut reachable[place], true) {
            continue;
        }
        for &rule in &takers[place] {
            lacks[rule] -= 1;
            if lacks[rule] == 0 {
                let Rule { start, release, .. } = &workcell.rules[rule];
                new.extend(start);
                new.extend(release.iter().map(|&resource| workcell.number(Place::Resource(resource))));
            }
        }
    }
    reachable
}

/// The sentence about a resource that nothing will release.
fn lost_resource(state: &State<'_>) -> String {
    let workcell = state.workcell;
    let held = state.done.iter().enumerate().find_map(|(job, tokens)| {
        let token = tokens.iter().find(|token| !token.held.is_empty())?;
        Some((job, token.held[0].0))
    });
    held.map_or_else(String::new, |(job, resource)| {
        format!(
            "job \"{}\" is done and holds resource \"{}\", but no rule follows it",
            workcell.jobs[job].name, workcell.resources[resource].name
        )
    })
}

/// The search for a circle of waits, from rule to rule.
struct Search<'a> {
    state: &'a State<'a>,
    takers: &'a [Vec<usize>],
    givers: Vec<Vec<usize>>,
    /// The places that are not lacking forever.
    reachable: Vec<bool>,
}

impl Search<'_> {
    fn workcell(&self) -> &Workcell {
        self.state.workcell
    }

    /// The first circle that is found from one of these rules.
    fn from(&self, starts: Vec<usize>) -> Option<Deadlock> {
        let mut seen = BTreeSet::new();
        starts.into_iter().find_map(|start| self.circle(start, &mut seen)).map(|circle| Deadlock { circle })
    }

    /// The rules that a rule waits for, each with the place that it would fill.
    fn waits_for(&self, rule: usize) -> Vec<(usize, usize)> {
        let workcell = self.workcell();
        let missing = workcell.inputs(rule).filter(|&place| !self.reachable[place]);
        missing.flat_map(|place| self.fillers(place).into_iter().map(move |filler| (place, filler))).collect()
    }

    /// The rules that could fill a place: for a resource those that follow its holders, if there are any.
    fn fillers(&self, place: usize) -> Vec<usize> {
        let workcell = self.workcell();
        let givers = &self.givers[place];
        let Place::Resource(resource) = workcell.place(place) else { return givers.clone() };
        let holders = self.holders(resource);
        let mut followers: Vec<usize> = holders.iter().flat_map(|&job| self.takers[job].clone()).collect();
        followers.sort_unstable();
        followers.dedup();
        if followers.is_empty() { givers.clone() } else { followers }
    }

    /// The jobs that are done and hold units of a resource.
    fn holders(&self, resource: usize) -> Vec<usize> {
        let tokens = self.state.done.iter().enumerate();
        let holding = tokens.filter(|(_, tokens)| {
            tokens.iter().any(|token| token.held.iter().any(|held| held.0 == resource))
        });
        holding.map(|(job, _)| job).collect()
    }

    /// A circle that can be reached from a rule; rules in `seen` lead to none.
    fn circle(&self, start: usize, seen: &mut BTreeSet<usize>) -> Option<Vec<Wait>> {
        // The path, with what is left to try at each rule; the place is that which leads on.
        let mut path: Vec<Visit> = Vec::new();
        let mut next = Some((start, 0));
        loop {
            if let Some((rule, _)) = next.take() {
                if let Some(at) = path.iter().position(|(on, ..)| *on == rule) {
                    return Some(
                        path[at..].iter().map(|(rule, _, place)| self.wait(*rule, *place)).collect(),
                    );
                }
                if seen.insert(rule) {
                    let mut ways = self.waits_for(rule);
                    ways.reverse();
                    path.push((rule, ways, 0));
                }
            }
            let (_, ways, place) = path.last_mut()?;
            match ways.pop() {
                Some((through, rule)) => {
                    *place = through;
                    next = Some((rule, through));
                }
                None => drop(path.pop()),
            }
        }
    }

    fn wait(&self, rule: usize, place: usize) -> Wait {
        let workcell = self.workcell();
        let named = |jobs: &[usize]| jobs.iter().map(|&job| workcell.jobs[job].name.clone()).collect();
        let Place::Resource(resource) = workcell.place(place) else {
            return Wait {
                rule: workcell.rules[rule].name.clone(),
                jobs: named(&self.ready(rule)),
                waits_for: workcell.name_of(workcell.place(place)),
                held_by: Vec::new(),
            };
        };
        Wait {
            rule: workcell.rules[rule].name.clone(),
            jobs: named(&self.ready(rule)),
            waits_for: workcell.name_of(workcell.place(place)),
            held_by: named(&self.holders(resource)),
        }
    }

    /// The jobs of a rule that are done.
    fn ready(&self, rule: usize) -> Vec<usize> {
        let jobs = self.workcell().rules[rule].done.iter().copied();
        jobs.filter(|&job| !self.state.done[job].is_empty()).collect()
    }
}
