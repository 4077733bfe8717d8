//! Conflicts: rules that compete for the same resource, job or part.

use super::{Nanos, Place, Workcell};

/// A place from which several rules take: a shared resource, or a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPlace {
    /// The place.
    pub place: Place,
    /// The rules, ascending.
    pub rules: Vec<usize>,
}

/// The places from which several rules take. A workcell without any has no conflicts.
pub fn shared_places(workcell: &Workcell) -> Vec<SharedPlace> {
    let takers = workcell.takers().into_iter().enumerate().filter(|(_, rules)| rules.len() > 1);
    takers.map(|(number, rules)| SharedPlace { place: workcell.place(number), rules }).collect()
}

/// A conflict that came up: more rules could fire than the place had units, and dispatching chose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The place.
    pub place: Place,
    /// The rules that competed, ascending.
    pub rules: Vec<usize>,
    /// How often it came up.
    pub times: u64,
    /// When it first came up.
    pub first: Nanos,
}
