//! A product in segments on this machine's threads: the parts of C stay with their processors from one to the next.

use super::blocks::Factors;
use super::mailboxes::StopSignal;
use super::monitor::Monitor;
use super::threads::{assembled, run_part};
use super::worker::empty_tiles;
use crate::error::Result;
use crate::geometry::{Rank, Rect};
use crate::kernels::Kernel;
use crate::matrix::{Element, LocalBlocks, Matrix};
use crate::platform::Platform;
use crate::product::Segments;
use crate::schedule::Schedule;
use crate::trace::Trace;
use std::time::Instant;

/// The parts of C between segments, and the clock.
pub(crate) struct ThreadSegments<'a, T> {
    kernel: Kernel<T>,
    factors: Factors<'a, T>,
    platform: &'a Platform,
    monitor: &'a Monitor,
    tiles: Vec<Option<LocalBlocks<T>>>,
    /// When the first segment's first step began.
    origin: Option<Instant>,
}

impl<'a, T: Element> ThreadSegments<'a, T> {
    /// Nothing computed yet. The monitor must have been told of all segments' work.
    pub fn new(
        kernel: Kernel<T>,
        (a, b): (&'a Matrix<T>, &'a Matrix<T>),
        platform: &'a Platform,
        monitor: &'a Monitor,
    ) -> Self {
        let tiles = vec![None; platform.len()];
        Self { kernel, factors: Factors { a, b }, platform, monitor, tiles, origin: None }
    }

    /// C, whole.
    pub fn product(self) -> Matrix<T> {
        let (m, n) = (self.factors.a.rows(), self.factors.b.cols());
        assembled(m, n, self.tiles.into_iter().flatten().collect())
    }
}

impl<T: Element> Segments for ThreadSegments<'_, T> {
    fn run(&mut self, schedule: &Schedule) -> Result<Trace> {
        let tiles = std::mem::take(&mut self.tiles);
        let (tiles, trace) =
            run_part(self.kernel, self.factors, schedule, self.platform, self.monitor, tiles)?;
        self.tiles = tiles.into_iter().map(Some).collect();
        let length = std::time::Duration::from_secs_f64(trace.seconds());
        self.origin.get_or_insert_with(|| Instant::now().checked_sub(length).unwrap_or_else(Instant::now));
        Ok(trace)
    }

    fn relocate(&mut self, to: &Schedule, arrivals: &[f64]) -> Result<Vec<f64>> {
        let begin = Instant::now();
        let old: Vec<(Rect, Vec<T>)> =
            std::mem::take(&mut self.tiles).into_iter().flatten().flatten().collect();
        let (halt, zero) = (StopSignal::new(self.monitor), self.kernel.zero());
        let receive = |rank: usize| {
            let mut tiles = empty_tiles(to.rects(Rank(rank)), zero);
            tiles.iter_mut().for_each(|(rect, tile)| old.iter().for_each(|from| copy(from, *rect, tile)));
            // What is to come by the network is there when the network has brought it.
            halt.sleep_until(begin, arrivals[rank])?;
            Ok((tiles, begin.elapsed().as_secs_f64()))
        };
        let moved: Vec<Result<(LocalBlocks<T>, f64)>> = std::thread::scope(|scope| {
            let receive = &receive;
            let receivers: Vec<_> =
                (0..arrivals.len()).map(|rank| scope.spawn(move || receive(rank))).collect();
            receivers.into_iter().map(|r| r.join().expect("copying does not panic")).collect()
        });
        let mut seconds = Vec::with_capacity(moved.len());
        for one in moved {
            let (tiles, took) = one?;
            self.tiles.push(Some(tiles));
            seconds.push(took);
        }
        Ok(seconds)
    }

    fn now(&self) -> f64 {
        self.origin.map_or(0.0, |origin| origin.elapsed().as_secs_f64())
    }
}

/// Copies what an old part of C has of a new one.
fn copy<T: Element>((from, source): &(Rect, Vec<T>), to: Rect, tile: &mut [T]) {
    let common = from.intersect(to);
    let (width, out, into) = (common.cols.len() as usize, from.cols.len() as usize, to.cols.len() as usize);
    for row in common.rows.start..common.rows.end {
        let at = |rect: &Rect, stride: usize| {
            (row - rect.rows.start) as usize * stride
                + common.cols.start.saturating_sub(rect.cols.start) as usize
        };
        if width > 0 {
            let (first, place) = (at(from, out), at(&to, into));
            tile[place..place + width].copy_from_slice(&source[first..first + width]);
        }
    }
}
