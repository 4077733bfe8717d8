//! From flags to the options of jobs.

use crate::args::sizes::SharesName;
use crate::args::{BlasArgs, FlowArgs, MatmulArgs, RunningArgs};
use apportion::error::Result;
use apportion::job::{
    BlockedOptions, FlowOptions, InputFiles, KernelChoice, MatrixOperand, Operation, ProductTask, RunOptions,
    parse_choice,
};
use apportion::kernels::Semiring;
use apportion::product::Adaptive;
use apportion::select::Sizing;
use std::path::{Path, PathBuf};

impl FlowArgs {
    /// What was asked of the flow.
    pub fn options(&self) -> FlowOptions {
        FlowOptions {
            flow: self.flow.0,
            overlap: self.overlap,
            look_ahead: self.look_ahead,
            block: self.block,
            blocks: self.blocks,
            messages: self.messages,
        }
    }
}

impl BlasArgs {
    /// The kernel that was asked for.
    pub fn choice(&self) -> KernelChoice {
        match &self.blas {
            Some(name) => KernelChoice::named(name),
            None if self.reproducible => KernelChoice::BuiltIn,
            None => KernelChoice::Fastest,
        }
    }
}

/// The rule that a name stands for.
pub fn sizing(name: SharesName) -> Sizing {
    match name {
        SharesName::Proportional => Sizing::Proportional,
        SharesName::Forecast => Sizing::ByForecast,
        SharesName::Overlap => Sizing::ForOverlap,
    }
}

impl RunningArgs {
    /// The options of a run.
    ///
    /// # Errors
    /// An unknown method.
    pub fn options(&self) -> Result<RunOptions> {
        Ok(RunOptions {
            method: parse_choice("--method", &self.method)?,
            shares: self.shares.map(sizing),
            keep_all: self.keep_all,
            flow: self.flow.options(),
            remeasure: self.remeasure,
            copy: self.copy,
            kernel: self.blas.choice(),
            seed: self.seed,
        })
    }

    /// The files that are read besides operands.
    pub fn files(&self) -> Vec<&Path> {
        let plan = self.plan.as_deref();
        self.sources.files().into_iter().chain([plan]).flatten().collect()
    }
}

/// A matrix in a file.
fn operand(path: &Path, transposed: bool) -> MatrixOperand<'static> {
    MatrixOperand::File { path: path.to_owned(), transposed }
}

/// An operation on the matrix of a file, run as the flags say.
///
/// # Errors
/// An unknown method; files that cannot be read.
pub fn task(
    operation: Operation,
    semiring: Semiring,
    a: &Path,
    output: Option<&PathBuf>,
    running: &RunningArgs,
) -> Result<ProductTask<'static>> {
    Ok(ProductTask {
        output: output.cloned(),
        explain: running.explain.clone(),
        sources: running.sources.load(running.plan.as_deref())?,
        options: running.options()?,
        ..ProductTask::new(operation, semiring, operand(a, false))
    })
}

impl MatmulArgs {
    /// The product.
    ///
    /// # Errors
    /// As [`task`].
    pub fn task(&self) -> Result<ProductTask<'static>> {
        let scaled = &self.scaled;
        let operation = if self.syrk { Operation::Symmetric } else { Operation::Product };
        let task = task(operation, self.semiring, &self.a, self.output.as_ref(), &self.running)?;
        Ok(ProductTask {
            a: operand(&self.a, scaled.transpose_a),
            b: self.b.as_deref().map(|path| operand(path, scaled.transpose_b)),
            initial: scaled.c_in.as_deref().map(|path| operand(path, false)),
            alpha: scaled.alpha,
            beta: scaled.beta,
            adaptive: self.adaptive.then_some(Adaptive { segments: self.segments }),
            tail: self.tail,
            panels: BlockedOptions {
                memory: self.panels.memory,
                panels: self.panels.panels,
                checkpoint: self.panels.checkpoint.clone(),
                resume: self.panels.resume.clone(),
            },
            ..task
        })
    }

    /// The files that are read.
    pub fn files(&self) -> InputFiles<'_> {
        let operands = [Some(&self.a), self.b.as_ref(), self.scaled.c_in.as_ref()];
        InputFiles {
            files: self.running.files(),
            operands: operands.into_iter().flatten().map(PathBuf::as_path).collect(),
            checkpoint: self.panels.resume.as_deref(),
        }
    }
}
