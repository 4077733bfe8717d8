//! Factorisations and solutions as records.

use crate::vectors::TOGETHER;
use crate::{FactorReport, MOST_SCALED, Residual};
use apportion::record::{Detail, FactorRun, ResidualCheck, Run, SolutionRun};

impl From<&FactorReport> for Run {
    fn from(report: &FactorReport) -> Self {
        let without = report.plan.baselines.as_ref().filter(|_| !report.partial);
        let gain = without.zip(report.forecast_seconds);
        let factors = FactorRun {
            factors: report.problem.factors.to_string(),
            n: report.problem.n,
            block: report.problem.block,
            forecast_range: report.forecast_range,
            flops_per_second: report.flops(),
            gain: gain.and_then(|(without, forecast)| without.gain_of_run(report.seconds(), forecast)),
            verified: Some(true),
            residual: Some(report.residual.scaled),
            verification: Some(ResidualCheck::from(report.residual)),
            ..FactorRun::default()
        };
        Self {
            engine: report.engine.into(),
            element: report.element.into(),
            kernel: report.kernel.clone(),
            forecast_seconds: report.forecast_seconds,
            ideal_seconds: report.ideal_seconds,
            io_seconds: report.io_seconds,
            verify_seconds: Some(report.verify_seconds),
            predicted_memory_bytes: report.predicted_memory.clone(),
            ..Self::new(&report.plan, &report.trace, &report.kinds, Detail::Factorisation(factors))
        }
    }
}

impl FactorReport {
    /// The record of this factorisation and of a solution by it, whose residual is then that of the record.
    pub fn record_with(&self, solution: Option<&SolutionRun>) -> Run {
        let mut run = Run::from(self);
        if let (Detail::Factorisation(factors), Some(solution)) = (&mut run.detail, solution) {
            factors.factors_residual = factors.residual.replace(solution.residual);
            factors.solution = Some(solution.clone());
        }
        run
    }
}

impl From<Residual> for ResidualCheck {
    fn from(residual: Residual) -> Self {
        Self {
            method: if residual.exact { "exact" } else { "random signs" }.into(),
            vectors: (!residual.exact).then_some(TOGETHER),
            norm: "frobenius".into(),
            threshold: MOST_SCALED,
        }
    }
}
