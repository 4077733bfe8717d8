//! A product in segments of the inner dimension on a world: the parts of C stay in place between segments.

use super::adaptive::Segments;
use super::application::Product;
use super::multiply::{data_path, empty_blocks};
use super::{OperandViews, OwnRects};
use crate::error::Result;
use crate::geometry::{Rank, Rect, Span};
use crate::kernels::Kernel;
use crate::matrix::{BlockViews, Element, LocalBlocks, views_of};
use crate::run::mailboxes::StopSignal;
use crate::run::{Session, redistribute, redistribute_views, run, trace_of_all};
use crate::schedule::MatmulSchedule;
use crate::trace::Trace;
use std::time::{Duration, Instant};

/// The blocks of this process between segments, and the clock.
pub(super) struct RunSegments<'a, T: Element> {
    kernel: Kernel<T>,
    session: &'a Session<'a>,
    /// The caller's A and B.
    given: [BlockViews<'a, T>; 2],
    /// A and B after the ranks exchanged parts of them.
    moved: Option<[LocalBlocks<T>; 2]>,
    /// `None` before the first segment.
    c: Option<LocalBlocks<T>>,
    /// Start of the first segment's first step.
    origin: Option<Instant>,
}

impl<'a, T: Element> RunSegments<'a, T> {
    /// Creates the state before the first segment.
    pub(crate) fn new(kernel: Kernel<T>, operands: &OperandViews<'a, T>, session: &'a Session<'a>) -> Self {
        let given = [operands.a.clone(), operands.b.clone()];
        Self { kernel, session, given, moved: None, c: None, origin: None }
    }

    /// This process's blocks of A and B at present.
    fn sides(&self) -> [BlockViews<'_, T>; 2] {
        match &self.moved {
            None => self.given.clone(),
            Some(moved) => moved.each_ref().map(views_of),
        }
    }

    /// Returns this process's blocks of C in the layout of `home`.
    pub(crate) fn product(self, home: MatmulSchedule) -> Result<LocalBlocks<T>> {
        let wanted = OwnRects::of(&home, self.session.world()).c;
        let (c, world) = (self.c.unwrap_or_default(), self.session.world());
        let moved = !c.iter().map(|(rect, _)| *rect).eq(wanted.iter().copied());
        if world.all_reduce(&[u8::from(moved)], u8::max)?[0] == 0 {
            return Ok(c);
        }
        redistribute(world, &c, &wanted)
    }

    /// Waits for the data that the emulated network brings to each processor of this process. Returns seconds
    /// by processor.
    fn wait_for(&self, arrivals: &[f64], begin: Instant) -> Result<Vec<f64>> {
        let stop = StopSignal::new(self.session.monitor());
        let mut seconds = vec![0.0; arrivals.len()];
        let mut order: Vec<usize> = (0..arrivals.len()).collect();
        order.sort_by(|&x, &y| arrivals[x].total_cmp(&arrivals[y]));
        for rank in order {
            stop.sleep_until(begin, arrivals[rank])?;
            seconds[rank] = begin.elapsed().as_secs_f64();
        }
        Ok(seconds)
    }
}

impl<T: Element> Segments for RunSegments<'_, T> {
    fn run(&mut self, schedule: &MatmulSchedule) -> Result<Trace> {
        let (world, session) = (self.session.world(), self.session);
        let here = world.processors_here(session.platform().len());
        let begun = self.c.is_some();
        let mut c = self.c.take().unwrap_or_else(|| empty_blocks(&OwnRects::of(schedule, world).c));
        let product = Product::new(self.kernel, schedule, self.sides(), &mut c, here, data_path(session));
        let product = product.on(session.platform());
        let product = if begun { product.adding() } else { product };
        let lanes = run(&product, session)?.lanes;
        drop(product);
        self.c = Some(c);
        let trace = trace_of_all(lanes, world)?;
        let length = Duration::from_secs_f64(trace.seconds());
        self.origin.get_or_insert_with(|| Instant::now().checked_sub(length).unwrap_or_else(Instant::now));
        Ok(trace)
    }

    /// A single process has all parts in one memory: nothing is copied, but an emulated network takes its
    /// time. Ranks exchange C, A and B.
    fn relocate(&mut self, to: &MatmulSchedule, rest: Span, arrivals: &[f64]) -> Result<Vec<f64>> {
        let (world, begin) = (self.session.world(), Instant::now());
        if world.is_solo() {
            return self.wait_for(arrivals, begin);
        }
        let rank = Rank(world.rank());
        let (a, b) = to.own(rank);
        let a: Vec<Rect> = a.iter().map(|part| Rect::new(part.rows, part.cols.intersect(rest))).collect();
        let b: Vec<Rect> = b.iter().map(|part| Rect::new(part.rows.intersect(rest), part.cols)).collect();
        self.c = Some(redistribute(world, &self.c.take().unwrap_or_default(), to.rects(rank))?);
        let [now_a, now_b] = self.sides();
        self.moved = Some([redistribute_views(world, &now_a, &a)?, redistribute_views(world, &now_b, &b)?]);
        let mine = begin.elapsed().as_secs_f64();
        let all = world.all_gather(&mine.to_ne_bytes())?;
        Ok(all.iter().map(|bytes| bytemuck::pod_read_unaligned(&bytes[..])).collect())
    }

    fn now(&self) -> f64 {
        self.origin.map_or(0.0, |origin| origin.elapsed().as_secs_f64())
    }
}
