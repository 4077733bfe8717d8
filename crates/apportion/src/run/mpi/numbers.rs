//! MPI tags that number the messages of each pair of ranks: a message that is lost, or that arrives twice, is not
//! taken for another one. Who waits for a lost message goes on waiting, and is told by a stall timeout.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, PoisonError};

/// Tags of a schedule are distinguished modulo this number; messages of one such tag are numbered modulo the other.
/// Many kinds: both ends of a pair must handle messages of one kind in the same order, and partial sums may overtake
/// operands whose tags are far away.
const KINDS: u16 = 7168;
const NUMBERS: u64 = 4;

/// All other messages are numbered modulo this; tags of MPI may be as small as 2^15 - 1, which is the tag of no
/// message.
const OTHERS: u64 = 0xfff;
const FIRST_OTHER: u64 = 0x7000;

/// The next numbers, by the rank at the other end, the direction and the tag.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    next: Mutex<BTreeMap<(usize, bool, u16), u64>>,
}

impl Numbers {
    /// The tag of the next part of a message from or to a rank. `tag` is a schedule's if it is below `schedule`.
    pub fn tag(&self, (peer, sends): (usize, bool), tag: u16, schedule: u64) -> c_int {
        let is_other = u64::from(tag) >= schedule;
        let kind = if is_other { tag } else { tag % KINDS };
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let count = next.entry((peer, sends, kind)).or_default();
        let number = *count;
        *count += 1;
        if is_other {
            (FIRST_OTHER + number % OTHERS) as c_int
        } else {
            (u64::from(kind) * NUMBERS + number % NUMBERS) as c_int
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_may_meet_have_tags_of_their_own() {
        let (sender, receiver) = (Numbers::default(), Numbers::default());
        let mut seen = std::collections::BTreeSet::new();
        for tag in [0, 1, 511, 0x7ffe] {
            for _ in 0..NUMBERS {
                let sent = sender.tag((1, true), tag, 0x7ff0);
                assert_eq!(sent, receiver.tag((1, true), tag, 0x7ff0));
                assert!((0..0x7fff).contains(&sent) && seen.insert(sent), "{sent}");
            }
        }
        // Other ranks and the other direction count for themselves.
        assert_eq!(sender.tag((2, true), 0, 0x7ff0), 0);
        assert_eq!(sender.tag((1, false), 0, 0x7ff0), 0);
        // The largest one.
        let last = (0..OTHERS).map(|_| receiver.tag((3, true), 0x7ffe, 0x7ff0)).max();
        assert_eq!(last, Some(0x7ffe));
    }
}
