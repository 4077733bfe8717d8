//! Advections as records.

use crate::AdvectReport;
use apportion::record::{AdvectRun, Change, Detail, Run};

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
