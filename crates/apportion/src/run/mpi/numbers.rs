//! MPI tags that number the messages of each pair of ranks, and distinguish their lengths: a message that is
//! lost, that arrives twice, or that a rank out of step sends, is not taken for another one. Who waits for a
//! lost message goes on waiting, and is told by a stall timeout.
//!
//! Lengths matter most: Open MPI 4.1 writes a message of more than a few KiB whole, even where the receive
//! that it matches has less room, before it reports the error.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

/// How tags are divided among messages.
#[derive(Debug, Clone, Copy)]
struct Ranges {
    /// Tags of a schedule are distinguished modulo this number. Many kinds: both ends of a pair must handle
    /// messages of one kind in the same order, and partial sums may overtake operands whose tags are far
    /// away.
    kinds: u64,
    /// Messages of one such tag are numbered modulo this.
    numbers: u64,
    /// The first tag of all other messages, and how many there are.
    others: (u64, u64),
}

/// For tags up to 2^15 - 1, which is the tag of no message. Lengths of one kind may meet here.
const NARROW: Ranges = Ranges { kinds: 7168, numbers: 4, others: (0x7000, 0xfff) };

/// For tags up to 2^27 - 1.
const WIDE: Ranges = Ranges { kinds: 0x7ff0, numbers: 0x1000, others: (0x07ff_0000, 0xffff) };

/// Spreads lengths over numbers.
const SPREAD: u64 = 40503;

/// The next numbers, by the rank at the other end, the direction and the tag.
#[derive(Debug)]
pub(super) struct Numbers {
    ranges: Ranges,
    next: Mutex<BTreeMap<(usize, bool, u16), u64>>,
}

impl Numbers {
    /// For a library with tags up to `largest`, the same on all ranks.
    pub fn up_to(largest: c_int) -> Self {
        let last = (WIDE.others.0 + WIDE.others.1) as c_int;
        Self { ranges: if largest >= last { WIDE } else { NARROW }, next: Mutex::default() }
    }

    /// The tag of the next part of a message of `words` words, from or to a rank. `tag` is a schedule's if it
    /// is below `schedule`.
    pub fn tag(&self, (peer, sends): (usize, bool), tag: u16, words: usize, schedule: u64) -> c_int {
        let Ranges { kinds, numbers, others: (first, others) } = self.ranges;
        let is_other = u64::from(tag) >= schedule;
        let kind = if is_other { tag } else { (u64::from(tag) % kinds) as u16 };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let count = next.entry((peer, sends, kind)).or_default();
        let number = count.wrapping_add((words as u64).wrapping_mul(SPREAD));
        *count += 1;
        if is_other {
            (first + number % others) as c_int
        } else {
            (u64::from(kind) * numbers + number % numbers) as c_int
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_may_meet_have_tags_of_their_own() {
        for (largest, ranges) in [(0x7fff, NARROW), (0x07ff_ffff, WIDE), (c_int::MAX, WIDE)] {
            let (sender, receiver) = (Numbers::up_to(largest), Numbers::up_to(largest));
            let mut seen = std::collections::BTreeSet::new();
            for tag in [0, 1, 511, 0x7ffe] {
                for _ in 0..ranges.numbers {
                    let sent = sender.tag((1, true), tag, 9, 0x7ff0);
                    assert_eq!(sent, receiver.tag((1, true), tag, 9, 0x7ff0));
                    assert!((0..largest).contains(&sent) && seen.insert(sent), "{sent}");
                }
            }
            // Other ranks and the other direction count for themselves.
            assert_eq!(sender.tag((2, true), 0, 0, 0x7ff0), 0);
            assert_eq!(sender.tag((1, false), 0, 0, 0x7ff0), 0);
            // Another length is another message.
            let short = sender.tag((4, true), 0x7ffe, 1, 0x7ff0);
            assert_ne!(receiver.tag((4, true), 0x7ffe, 721, 0x7ff0), short);
            // A schedule's last one, and the largest of all.
            let end = (0..ranges.numbers).map(|_| receiver.tag((3, true), 0x7fef, 9, 0x7ff0)).max();
            assert!(end < Some(ranges.others.0 as c_int), "{end:?}");
            let last = (0..ranges.others.1).map(|_| receiver.tag((3, true), 0x7ffe, 9, 0x7ff0)).max();
            assert_eq!(last, Some((ranges.others.0 + ranges.others.1 - 1) as c_int));
        }
    }
}
