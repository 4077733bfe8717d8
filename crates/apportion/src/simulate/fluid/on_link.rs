//! What is on a link: the bundles that use it.

/// A link's bundles, each with its birth number, and the number of flows in them. Bundles that ended stay in
/// the list until they make up half of it; their birth numbers no longer match.
///
/// Many links carry one bundle at a time: it is kept without memory of its own, and the list of others is one
/// pointer.
#[derive(Debug, Default)]
pub(super) struct OnLink {
    /// The oldest; its birth number is 0 if there is none.
    first: (u32, u32),
    #[expect(clippy::box_collection, reason = "a list in place is three words, and many links have none")]
    more: Option<Box<Vec<(u32, u32)>>>,
    ended: u32,
    /// Flows in progress.
    pub flows: u32,
    pub mark: u32,
}

impl OnLink {
    /// Number of bundles in the list.
    pub fn len(&self) -> usize {
        usize::from(self.first.1 != 0) + self.more.as_ref().map_or(0, |more| more.len())
    }

    /// The bundle at a place of the list, in order of their starts.
    pub fn at(&self, place: usize) -> (u32, u32) {
        match (place, &self.more) {
            (0, _) => self.first,
            (_, Some(more)) => more[place - 1],
            (_, None) => unreachable!("the list has one bundle"),
        }
    }

    pub fn push(&mut self, bundle: (u32, u32)) {
        if self.first.1 == 0 {
            self.first = bundle;
        } else {
            self.more.get_or_insert_default().push(bundle);
        }
    }

    /// Notes that a bundle has ended. Those that ended are dropped once they make up half of the list.
    pub fn end(&mut self, lives: impl Fn((u32, u32)) -> bool) {
        self.ended += 1;
        if 2 * self.ended as usize > self.len() {
            self.retain(lives);
        }
    }

    /// Keeps the bundles in progress, in their order.
    fn retain(&mut self, lives: impl Fn((u32, u32)) -> bool) {
        if self.first.1 != 0 && !lives(self.first) {
            self.first = (0, 0);
        }
        if let Some(more) = &mut self.more {
            more.retain(|&bundle| lives(bundle));
            if self.first.1 == 0 && !more.is_empty() {
                self.first = more.remove(0);
            }
        }
        self.ended = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn listed(on: &OnLink) -> Vec<(u32, u32)> {
        (0..on.len()).map(|place| on.at(place)).collect()
    }

    proptest! {
        /// The same bundles in the same order as in one plain list, on which rates depend to the last bit.
        #[test]
        fn a_link_lists_its_bundles_in_order(changes in prop::collection::vec((any::<bool>(), 0_usize..8), 0..60)) {
            let (mut on, mut plain) = (OnLink::default(), Vec::new());
            for (birth, (starts, place)) in (1..).zip(changes) {
                if starts || plain.is_empty() {
                    on.push((birth % 5, birth));
                    plain.push((birth % 5, birth));
                } else {
                    let ended = plain.remove(place % plain.len());
                    on.retain(|bundle| bundle != ended);
                }
                prop_assert_eq!(listed(&on), plain.clone());
            }
        }

        /// Ended bundles stay at most until they are half of the list.
        #[test]
        fn a_link_forgets_what_ended(ends in prop::collection::vec(0_usize..20, 0..20)) {
            let (mut on, mut lives) = (OnLink::default(), (1..=20).collect::<std::collections::BTreeSet<u32>>());
            (1..=20).for_each(|birth| on.push((birth, birth)));
            for place in ends {
                if lives.remove(&(place as u32 + 1)) {
                    on.end(|(_, birth)| lives.contains(&birth));
                }
                let known: Vec<u32> = listed(&on).into_iter().map(|b| b.1).filter(|b| lives.contains(b)).collect();
                prop_assert_eq!(&known, &lives.iter().copied().collect::<Vec<_>>());
                prop_assert!(on.len() <= 2 * lives.len() + 1);
            }
        }
    }
}
