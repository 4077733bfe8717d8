//! Threads that carry out an update together: what a kernel asks of them. Who starts, pins and ends them is no
//! concern of the kernels.

#![allow(unsafe_code)]

use crate::kernels::ViewMut;
use std::marker::PhantomData;
use std::ops::Range;

/// Threads that carry out an update together, as the thread sees them that asks for it.
///
/// # Safety
/// [`Team::share`] passes each number below `count` to `work` in exactly one range, and returns, or unwinds, only
/// when no thread is in `work` any more.
pub unsafe trait Team {
    /// Number of threads, the calling one included.
    fn threads(&self) -> usize;

    /// Does `work` for all numbers below `count`, in ranges that the threads take when they are free. Returns when
    /// all is done.
    ///
    /// # Panics
    /// If `work` panics on any of the threads.
    fn share(&self, count: usize, work: &(dyn Fn(Range<usize>) + Sync));
}

/// The calling thread alone.
#[derive(Debug, Clone, Copy)]
pub struct Alone;

// SAFETY: there is one range, on this thread.
unsafe impl Team for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn share(&self, count: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        if count > 0 {
            work(0..count);
        }
    }
}

/// Writes `value` to every element, by all threads of a team: the thread that first writes to a page chooses where
/// it is.
pub fn fill<T: Copy + Send + Sync>(c: &mut ViewMut<T>, value: T, team: &dyn Team) {
    share_rows(c.reborrow(), team, |_, mut part| (0..part.rows()).for_each(|i| part.row(i).fill(value)));
}

/// Does `work` for rows of C, in ranges that threads take when they are free: with the range, and these rows of C.
pub(super) fn share_rows<T: Send + Sync>(
    c: ViewMut<T>,
    team: &dyn Team,
    work: impl Fn(Range<usize>, ViewMut<T>) + Sync,
) {
    team.share(c.rows(), &|rows| {
        // SAFETY: a team passes each row once, and C is borrowed until all are done.
        let part = unsafe { c.part(rows.start, 0, rows.len(), c.cols()) };
        work(rows, part);
    });
}

/// The same with one range for each thread, of near-equal lengths.
pub(super) fn split_rows<T: Send + Sync>(
    c: ViewMut<T>,
    team: &dyn Team,
    work: impl Fn(Range<usize>, ViewMut<T>) + Sync,
) {
    let (m, parts) = (c.rows(), team.threads().min(c.rows()));
    team.share(parts, &|numbers| {
        for t in numbers {
            let rows = t * m / parts..(t + 1) * m / parts;
            // SAFETY: a team passes each number once, and their rows are disjoint; C is borrowed until all are done.
            let part = unsafe { c.part(rows.start, 0, rows.len(), c.cols()) };
            work(rows, part);
        }
    });
}

/// A slice that several threads use at the same time, each its own parts of it.
#[derive(Clone, Copy)]
pub(super) struct Shared<'a, T> {
    first: *mut T,
    length: usize,
    lives: PhantomData<&'a mut [T]>,
}

// SAFETY: whoever takes a part guarantees that nobody else writes to it.
unsafe impl<T: Send + Sync> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Self { first: slice.as_mut_ptr(), length: slice.len(), lives: PhantomData }
    }

    /// A part to read.
    ///
    /// # Safety
    /// Nobody writes to it meanwhile.
    ///
    /// # Panics
    /// If it reaches outside.
    #[inline(always)]
    pub(super) unsafe fn part(&self, part: Range<usize>) -> &'a [T] {
        assert!(part.start <= part.end && part.end <= self.length, "a part is inside");
        // SAFETY: inside memory that is borrowed for 'a; the rest is guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(self.first.add(part.start), part.len()) }
    }

    /// A part to write to.
    ///
    /// # Safety
    /// Nobody else has any of it meanwhile.
    ///
    /// # Panics
    /// If it reaches outside.
    #[inline(always)]
    pub(super) unsafe fn part_mut(&self, part: Range<usize>) -> &'a mut [T] {
        assert!(part.start <= part.end && part.end <= self.length, "a part is inside");
        // SAFETY: inside memory that is borrowed for 'a, exclusively so; the rest is guaranteed by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.first.add(part.start), part.len()) }
    }
}

/// Teams of threads that end with each call, for the tests of kernels.
#[cfg(test)]
pub(super) struct Threads(pub usize);

#[cfg(test)]
// SAFETY: a number is taken once, and the scope waits for all threads.
unsafe impl Team for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn share(&self, count: usize, work: &(dyn Fn(Range<usize>) + Sync)) {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let take = || {
            loop {
                let at = next.fetch_add(2, std::sync::atomic::Ordering::Relaxed);
                if at >= count {
                    return;
                }
                work(at..count.min(at + 2));
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.0 {
                scope.spawn(take);
            }
            take();
        });
    }
}

#[cfg(test)]
mod tests;
