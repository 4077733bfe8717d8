//! The logic step: which conditions are violated, as an and/or product.

use super::EventMatrices;
use apportion::error::Result;
use apportion::geometry::{Rank, Rect};
use apportion::kernels::BitMatrix;
use apportion::matrix::LocalBlocks;
use apportion::product::{MatmulJob, Operands, OwnRects, RunReport, multiply};
use apportion::run::Session;
use apportion::schedule::MatmulSchedule;

/// What computes (7.3): all scenarios at once.
pub trait LogicStep {
    /// The violated conditions of each rule, from what is missing: scenarios x places gives scenarios x
    /// rules.
    ///
    /// # Errors
    /// Those of a run: interrupted, a lost worker, a wrong result.
    fn violated(&mut self, missing: &BitMatrix) -> Result<BitMatrix>;
}

/// The product on one core, by the boolean kernel.
#[derive(Debug)]
pub struct LocalLogic<'a>(&'a EventMatrices);

impl<'a> LocalLogic<'a> {
    /// The logic of these matrices.
    pub fn new(matrices: &'a EventMatrices) -> Self {
        Self(matrices)
    }
}

impl LogicStep for LocalLogic<'_> {
    fn violated(&mut self, missing: &BitMatrix) -> Result<BitMatrix> {
        let mut violated = BitMatrix::zeros(missing.rows(), self.0.conditions.cols());
        violated.or_product(missing, &self.0.conditions);
        Ok(violated)
    }
}

/// The product on the processors of a session, by a plan: rules x places times places x scenarios. Each
/// process computes its part of the product and receives the others'; all then know the same events.
#[derive(Debug)]
pub struct SharedLogic<'a> {
    job: &'a MatmulJob<'a, u8>,
    session: &'a Session<'a>,
    schedule: MatmulSchedule,
    rects: OwnRects,
    conditions: LocalBlocks<u8>,
    report: RunReport,
}

impl<'a> SharedLogic<'a> {
    /// The logic of these matrices by a job whose shape is rules x places x scenarios.
    ///
    /// # Errors
    /// The job's plan has no layout.
    ///
    /// # Panics
    /// If the job is of another shape.
    pub fn new(
        matrices: &EventMatrices,
        job: &'a MatmulJob<'a, u8>,
        session: &'a Session<'a>,
    ) -> Result<Self> {
        let schedule = MatmulSchedule::new(job.plan.layout()?, job.order);
        let (shape, conditions) = (schedule.layout().shape(), &matrices.conditions);
        let sizes = [conditions.cols() as u64, conditions.rows() as u64];
        assert_eq!([shape.m, shape.k], sizes, "the product is of rules x places");
        let rects = OwnRects::of(&schedule, session.world());
        let conditions = blocks(&rects.a, |rule, place| conditions.get(place, rule));
        let report = RunReport::nothing(job, session)?;
        Ok(Self { job, session, schedule, rects, conditions, report })
    }

    /// The totals of all steps so far.
    pub fn report(&self) -> &RunReport {
        &self.report
    }
}

impl LogicStep for SharedLogic<'_> {
    fn violated(&mut self, missing: &BitMatrix) -> Result<BitMatrix> {
        let states = blocks(&self.rects.b, |place, scenario| missing.get(scenario, place));
        let (product, report) = multiply(Operands::new(&self.conditions, &states), self.job, self.session)?;
        self.report.add(report);
        let world = self.session.world();
        let mine: Vec<u8> = product.iter().flat_map(|(_, block)| block.iter().copied()).collect();
        let mut violated = BitMatrix::zeros(missing.rows(), self.job_rules());
        let parts = if world.is_solo() { vec![mine] } else { world.all_gather(&mine)? };
        for (rank, bytes) in parts.iter().enumerate() {
            let rects =
                if world.is_solo() { self.rects.c.clone() } else { self.schedule.rects(Rank(rank)).to_vec() };
            let places = rects.iter().flat_map(|rect| elements(*rect));
            let ones = places.zip(bytes).filter(|(_, byte)| **byte != 0);
            ones.for_each(|((rule, scenario), _)| violated.set(scenario, rule));
        }
        Ok(violated)
    }
}

impl SharedLogic<'_> {
    fn job_rules(&self) -> usize {
        self.schedule.layout().shape().m as usize
    }
}

/// Blocks of a matrix of truth values, as bytes.
fn blocks(rects: &[Rect], truth: impl Fn(usize, usize) -> bool) -> LocalBlocks<u8> {
    let block = |rect: &Rect| (*rect, elements(*rect).map(|(i, j)| u8::from(truth(i, j))).collect());
    rects.iter().map(block).collect()
}

/// Row and column of each element of a rectangle.
fn elements(rect: Rect) -> impl Iterator<Item = (usize, usize)> {
    let (rows, cols) = (rect.rows, rect.cols);
    (rows.start..rows.end).flat_map(move |i| (cols.start..cols.end).map(move |j| (i as usize, j as usize)))
}
