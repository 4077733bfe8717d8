//! Advections as records.

use crate::{AdvectOutcome, AdvectReport, SlabOutcome};
use apportion::record::{AdvectCandidate, AdvectRun, AdvectSlabs, Change, Detail, HeldMemory, Run};

impl From<&AdvectReport> for Run {
    fn from(report: &AdvectReport) -> Self {
        let [before, after] = report.moments;
        let advection = AdvectRun {
            sizes: report.problem.sizes.clone(),
            boundary: report.problem.boundary.clone(),
            scheme: Some(report.problem.scheme),
            exchange: Some(report.order.exchange),
            overlap: Some(report.order.overlap),
            steps: report.steps,
            million_cells_per_second: Some(report.speed()),
            mass: Change { before: before.mass, after: after.mass },
            least: Change { before: before.least, after: after.least },
            most: Change { before: before.most, after: after.most },
            ..AdvectRun::default()
        };
        Self {
            engine: report.engine.into(),
            element: report.element.into(),
            forecast_seconds: report.forecast_seconds,
            ideal_seconds: report.ideal_seconds,
            io_seconds: report.io_seconds,
            predicted_memory_bytes: report.predicted_memory.clone(),
            ..Self::new(&report.plan, &report.trace, &[], Detail::Advection(advection))
        }
    }
}

impl AdvectOutcome {
    /// The whole advection: its run, what it was chosen from, and how the field was cut.
    pub fn record(&self) -> Run {
        let mut run = Run::from(&self.report);
        run.network = self.platform.network.hosts().cloned();
        if let Detail::Advection(advection) = &mut run.detail {
            let candidates = self.choices.iter().map(|choice| AdvectCandidate {
                method: choice.plan.method.clone(),
                exchange: choice.order.exchange,
                overlap: choice.order.overlap,
                forecast_seconds: choice.plan.forecast.as_ref().map(|forecast| forecast.seconds),
            });
            advection.candidates = candidates.collect();
            advection.largest_courant_sum = Some(self.largest_courant_sum);
            advection.slabs = self.slabs.as_ref().map(AdvectSlabs::from);
        }
        run
    }
}

impl From<&SlabOutcome> for AdvectSlabs {
    fn from(outcome: &SlabOutcome) -> Self {
        Self {
            count: outcome.count(),
            planes: outcome.slabs.height(),
            steps_per_sweep: outcome.steps,
            sweeps: outcome.sweeps,
            computed_twice: outcome.computed_twice(),
            held: HeldMemory::of_process(Some(outcome.cap), outcome.predicted),
            bytes_read: outcome.disk.read,
            bytes_written: outcome.disk.written,
            disk_seconds: outcome.disk.seconds,
            seconds: outcome.seconds,
            million_cells_per_second: outcome.speed() / 1e6,
        }
    }
}
