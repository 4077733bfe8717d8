//! Elements that have arrived, in memory that their receiver may keep.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Elements of a message. Whoever keeps the parcel keeps the memory: its last clone gives it back.
#[derive(Clone)]
pub struct Parcel<T> {
    memory: Arc<dyn AsRef<[T]> + Send + Sync>,
    range: Range<usize>,
}

impl<T> Parcel<T> {
    /// All elements of this memory.
    pub fn new(memory: Arc<dyn AsRef<[T]> + Send + Sync>) -> Self {
        let range = 0..(*memory).as_ref().len();
        Self { memory, range }
    }

    /// The elements.
    pub fn elements(&self) -> &[T] {
        &(*self.memory).as_ref()[self.range.clone()]
    }

    /// Some of its elements, in the same memory.
    ///
    /// # Panics
    /// If the parcel does not have them.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        let range = self.range.start + range.start..self.range.start + range.end;
        assert!(range.start <= range.end && range.end <= self.range.end, "a part of a parcel is in it");
        Self { memory: self.memory.clone(), range }
    }
}

impl<T> fmt::Debug for Parcel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel").field("range", &self.range).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_share_the_memory_of_their_parcel() {
        let memory: Arc<Vec<u32>> = Arc::new((0..10).collect());
        let whole = Parcel::new(memory.clone());
        let part = whole.part(2..9).part(1..3);
        drop(whole);
        assert_eq!(part.elements(), [3, 4]);
        assert!(part.part(2..2).elements().is_empty());
        assert_eq!(Arc::strong_count(&memory), 2);
        drop(part);
        assert_eq!(Arc::strong_count(&memory), 1);
    }
}
