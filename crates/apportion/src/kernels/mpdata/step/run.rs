//! A stretch of elements in a plane.

use crate::kernels::mpdata::frame::{Cells, Frame};

/// Elements of a plane that are computed together: from the first of a range to its last, with what is
/// between its rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub at: [isize; 3],
    pub length: usize,
}

impl Run {
    /// The run of a range in plane `i`, in arrays with rows of this length.
    pub fn of(range: &Cells, i: isize, row: usize) -> Option<Self> {
        let [_, rows, along] = range.lengths();
        let there = (range.lo[0]..range.hi[0]).contains(&i) && rows > 0 && along > 0;
        there.then(|| Self { at: [i, range.lo[1], range.lo[2]], length: (rows - 1) * row + along })
    }

    #[inline(always)]
    pub fn at<'s, T>(&self, (frame, elements): (&Frame, &'s [T])) -> &'s [T] {
        &elements[frame.at(self.at)..]
    }

    #[inline(always)]
    pub fn shifted<'s, T>(&self, (frame, elements): (&Frame, &'s [T]), by: &[(usize, isize)]) -> &'s [T] {
        let mut at = self.at;
        by.iter().for_each(|(axis, steps)| at[*axis] += steps);
        &elements[frame.at(at)..]
    }
}
