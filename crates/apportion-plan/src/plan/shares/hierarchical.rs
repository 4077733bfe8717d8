//! Shares in two levels: among clusters, then among the nodes of each cluster.
//!
//! Source: Becker 2010, section 1.2 (a top-level partition, any method below); Lastovetsky and Reddy 2007 for
//! either level. To the top level, a cluster is one processor with an aggregate speed function.

use super::fpm;
use super::fpm::{fill, together_seconds};
use super::proportional::Seconds;
use crate::error::{Error, Result};
use crate::model::Model;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Shares of `n` units: among the groups by their aggregate speed functions, then inside each group. By rank.
///
/// The top level sees a group as two functions: the number of whole units that it completes within T, summed
/// over its members, and the time at which it would complete one more. The longest time is that of the flat
/// [`fpm()`]. O(p log n log points).
///
/// # Errors
/// Groups that omit a rank, name one twice, or name one that does not exist; and those of [`fpm()`].
pub fn hierarchical(groups: &[Vec<usize>], models: &[Model], n: u64) -> Result<Vec<u64>> {
    check(groups, models.len())?;
    let members: Vec<Vec<Model>> =
        groups.iter().map(|g| g.iter().map(|&rank| models[rank].clone()).collect()).collect();
    // Divisible units would all finish together now; whole ones leave fewer than one per processor.
    let together = together_seconds(models, n)?;
    let mut tops: Vec<Group> = members.iter().map(|m| Group::at(m, together * (1.0 - 1e-12), n)).collect();
    let later = members.iter().flat_map(|m| Group::at(m, together * (1.0 + 1e-12), n).shares);
    let mut flat: Vec<u64> = tops.iter().flat_map(|top| top.shares.iter().copied()).collect();
    fill(&mut flat, &later.collect::<Vec<_>>(), 1, n);
    let mut filled = flat.into_iter();
    tops.iter_mut().for_each(|top| top.shares = filled.by_ref().take(top.members.len()).collect());
    let mut left = n.saturating_sub(tops.iter().map(Group::units).sum());
    let offer = |g: usize, top: &Group| top.next().map(|(seconds, _)| Reverse((Seconds(seconds), g)));
    let mut heap: BinaryHeap<_> = tops.iter().enumerate().filter_map(|(g, top)| offer(g, top)).collect();
    while left > 0 {
        let Some(Reverse((_, g))) = heap.pop() else {
            unreachable!("the caps were checked to hold all units");
        };
        tops[g].take_one();
        left -= 1;
        heap.extend(offer(g, &tops[g]));
    }
    let mut shares = vec![0; models.len()];
    for ((group, members), top) in groups.iter().zip(&members).zip(&tops) {
        for (&rank, share) in group.iter().zip(fpm(members, top.units())?) {
            shares[rank] = share;
        }
    }
    Ok(shares)
}

/// A group of processors, as the level above sees it.
struct Group<'a> {
    members: &'a [Model],
    shares: Vec<u64>,
}

impl<'a> Group<'a> {
    /// With all the whole units that it completes within `seconds`.
    fn at(members: &'a [Model], seconds: f64, n: u64) -> Self {
        Self { members, shares: members.iter().map(|m| m.units_within(seconds, n as f64) as u64).collect() }
    }

    fn units(&self) -> u64 {
        self.shares.iter().sum()
    }

    /// The time at which it would complete one unit more, and the member that does; `None` if its memory is
    /// full.
    fn next(&self) -> Option<(f64, usize)> {
        let times = self.members.iter().zip(&self.shares).map(|(m, &share)| m.seconds((share + 1) as f64));
        let soonest = times.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        soonest.filter(|(_, seconds)| seconds.is_finite()).map(|(i, seconds)| (seconds, i))
    }

    fn take_one(&mut self) {
        if let Some((_, i)) = self.next() {
            self.shares[i] += 1;
        }
    }
}

/// Checks that every rank is in exactly one group.
fn check(groups: &[Vec<usize>], processors: usize) -> Result<()> {
    let mut seen = vec![0_u32; processors];
    for &rank in groups.iter().flatten() {
        match seen.get_mut(rank) {
            Some(count) => *count += 1,
            None => return Err(wrong_group(rank, "is in a group but has no model")),
        }
    }
    match seen.iter().position(|&count| count != 1) {
        Some(rank) => Err(wrong_group(rank, &format!("is in {} groups", seen[rank]))),
        None => Ok(()),
    }
}

fn wrong_group(rank: usize, what: &str) -> Error {
    Error::input("groups", format!("processor {rank} {what}"), "put every processor into exactly one group")
}

#[cfg(test)]
mod tests {
    use super::super::makespan;
    use super::*;
    use crate::model::Point;
    use proptest::prelude::*;

    fn processor() -> impl Strategy<Value = Model> {
        (1.0f64..50.0, prop::collection::vec((1u32..300, 0.2f64..1.0), 1..5), prop::option::of(50u32..900))
            .prop_map(|(peak, knots, cap)| {
                let (mut size, mut speed) = (0.0, peak);
                let points = knots.iter().map(|&(step, factor)| {
                    size += f64::from(step);
                    speed *= factor;
                    Point::new(size, size / speed)
                });
                Model::piecewise("p", points.collect(), cap.map(f64::from)).unwrap()
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn two_levels_end_when_one_does(
            models in prop::collection::vec(processor(), 1..9),
            n in 0u64..2000,
            deal in 1usize..4,
        ) {
            let mut groups = vec![Vec::new(); deal];
            (0..models.len()).for_each(|rank| groups[rank % deal].push(rank));
            groups.retain(|g: &Vec<usize>| !g.is_empty());
            match (fpm(&models, n), hierarchical(&groups, &models, n)) {
                (Ok(flat), Ok(ours)) => {
                    prop_assert_eq!(ours.iter().sum::<u64>(), n);
                    let (flat, ours) = (makespan(&models, &flat), makespan(&models, &ours));
                    prop_assert!((ours - flat).abs() <= 1e-9 * flat, "{ours} against {flat}");
                }
                (flat, ours) => prop_assert!(flat.is_err() && ours.is_err()),
            }
        }
    }

    #[test]
    fn groups_are_checked() {
        let models = [1.0, 2.0].map(|s| Model::constant("p", s).unwrap());
        for groups in [vec![vec![0]], vec![vec![0, 1], vec![1]], vec![vec![0, 2], vec![1]]] {
            assert_eq!(hierarchical(&groups, &models, 5).unwrap_err().exit_code(), 2);
        }
        assert_eq!(hierarchical(&[vec![1], vec![0]], &models, 6).unwrap(), [2, 4]);
    }
}
