//! Collective operations as sends and receives, in the default orders of SimGrid's replay.

use super::fluid::{Action, Then};
use crate::geometry::Rank;
use crate::platform::Load;

/// Tags above those that traces may use.
const BROADCAST: u64 = 1 << 40;
const BARRIER: u64 = (1 << 40) + 1;

/// One rank's part of a broadcast along a binomial tree. Numbers count from the root. The rank receives from
/// the rank whose number is its own without the lowest set bit, then sends to the ranks whose numbers have
/// one of the bits below it added. O(log ranks) actions.
pub(super) fn broadcast(rank: usize, root: usize, ranks: usize, load: Load, script: &mut Vec<Action>) {
    let place = (rank + ranks - root) % ranks;
    let at = |place: usize| Rank((place + root) % ranks);
    let mut bit = 1;
    while bit < ranks && place & bit == 0 {
        bit <<= 1;
    }
    if bit < ranks {
        script.push(Action::Receive { from: at(place - bit), tag: BROADCAST, then: Then::Wait });
    }
    while bit > 1 {
        bit >>= 1;
        if place + bit < ranks {
            script.push(Action::Send { to: at(place + bit), tag: BROADCAST, load, then: Then::Wait });
        }
    }
}

/// One rank's part of a barrier: every rank sends to rank 0, which then answers all. O(ranks) actions at rank
/// 0.
pub(super) fn barrier(rank: usize, ranks: usize, script: &mut Vec<Action>) {
    let (tag, load) = (BARRIER, Load::default());
    if rank > 0 {
        script.push(Action::Send { to: Rank(0), tag, load, then: Then::Wait });
        script.push(Action::Receive { from: Rank(0), tag, then: Then::Wait });
        return;
    }
    let others = || (1..ranks).map(Rank);
    script.extend(others().map(|from| Action::Receive { from, tag, then: Then::Remember }));
    script.extend(others().map(|from| Action::Await { from, to: Rank(0), tag }));
    script.extend(others().map(|to| Action::Send { to, tag, load, then: Then::Remember }));
    script.extend(others().map(|to| Action::Await { from: Rank(0), to, tag }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rank but the root receives once, from a rank that sends to it.
    #[test]
    fn a_tree_reaches_everybody_once() {
        for ranks in 1..20 {
            for root in 0..ranks {
                let mut sent = vec![0; ranks];
                let mut receives = vec![0; ranks];
                for (rank, received) in receives.iter_mut().enumerate() {
                    let mut script = Vec::new();
                    broadcast(rank, root, ranks, Load::default(), &mut script);
                    for action in script {
                        match action {
                            Action::Send { to, .. } => sent[to.0] += 1,
                            _ => *received += 1,
                        }
                    }
                }
                assert_eq!(sent, receives);
                assert!((0..ranks).all(|r| sent[r] == i32::from(r != root)), "{ranks} from {root}");
            }
        }
    }
}
