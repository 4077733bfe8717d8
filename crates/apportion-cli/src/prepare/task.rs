//! The computation, for every command.

use crate::args::{EngineName, MatmulArgs, RunningArgs};
use crate::prepare::distributed::is_layout;
use apportion::error::{Error, Result};
use apportion::kernels::{Kernel, Semiring};
use apportion::matrix::{Element, Scaling};
use apportion::plan::shapes::Method;
use apportion::product::ClosureMethod;
use std::path::{Path, PathBuf};

/// The result to compute from the factors.
#[derive(Debug, Clone, Copy)]
pub enum Job<'a> {
    /// alpha op(A) op(B) + beta C0.
    Product(&'a MatmulArgs),
    /// A to this power.
    Power(u64),
    /// I + A + A A + …: the destination of predecessors and the method, if requested.
    Closure(Option<&'a PathBuf>, Option<ClosureMethod>),
}

/// The work of all processes.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    pub job: Job<'a>,
    /// A and B; for a power or closure, the same matrix twice.
    pub factors: (&'a Path, &'a Path),
    pub semiring: Semiring,
    pub output: Option<&'a PathBuf>,
    pub running: &'a RunningArgs,
}

impl<'a> Task<'a> {
    /// The files of A, B and the initial C.
    pub fn operands(&self) -> Vec<&'a Path> {
        let initial = match self.job {
            Job::Product(args) => args.scaled.c_in.as_deref(),
            Job::Power(_) | Job::Closure(..) => None,
        };
        [Some(self.factors.0), Some(self.factors.1), initial].into_iter().flatten().collect()
    }

    /// True if C can be cut into panels of `.npy` files, and no requested option forbids it.
    pub fn can_be_cut(&self) -> bool {
        let Job::Product(args) = self.job else { return false };
        let npy = |path: &PathBuf| path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
        let files = [&args.a, &args.b].into_iter().chain(&args.scaled.c_in).all(npy);
        let whole = !self.output.is_some_and(|path| is_layout(path));
        let uncut = self.running.method.parse().is_ok_and(|method: Method| !method.cuts_inner());
        let uncut = uncut || self.running.method == "auto";
        files && whole && uncut && self.running.plan.is_none() && !args.adaptive && args.tail.is_none()
    }

    /// What runs, if it cannot use a layout that cuts the inner dimension.
    pub fn uncut(&self) -> Option<&'static str> {
        match self.job {
            Job::Power(_) => Some("power"),
            Job::Closure(..) => Some("closure"),
            Job::Product(args) if args.adaptive => Some("--adaptive"),
            Job::Product(args) if args.tail.is_some() => Some("--tail"),
            Job::Product(args) if args.panels.asked() => Some("a product in panels"),
            Job::Product(_) => None,
        }
    }

    /// The part of C that is left to the queue, 0 for none.
    ///
    /// # Errors
    /// The engine's processes share no memory.
    pub fn tail(&self) -> Result<f64> {
        let Job::Product(args) = self.job else { return Ok(0.0) };
        if args.tail.is_some() && self.running.engine.name == EngineName::Mpi {
            let what = "the processes of --engine mpi share no memory";
            return Err(Error::input("--tail", what, "leave it out, or use --engine threads"));
        }
        Ok(args.tail.unwrap_or(0.0))
    }

    /// The scalars for a kernel; those not given have no effect.
    ///
    /// # Errors
    /// A scalar that the element type or the semiring does not accept.
    pub fn scaling<T: Element>(&self, kernel: Kernel<T>) -> Result<Scaling<T>> {
        let none = Scaling::none(kernel.one());
        let Job::Product(args) = self.job else { return Ok(none) };
        let scalar = |flag: &str, given: Option<f64>| {
            let Some(given) = given else { return Ok(kernel.one()) };
            let scalar = T::from_f64(given);
            let refuse = |what: String, remedy: &str| Err(Error::input(flag, what, remedy));
            if kernel.semiring() == Semiring::OrAnd && given != 0.0 && given != 1.0 {
                return refuse(format!("{given} is no truth value"), "give 0 or 1 with or-and");
            }
            if scalar.to_f64().is_infinite() && given.is_finite() {
                return refuse(
                    format!("{given} is beyond the range of {}", T::NAME),
                    "give a smaller number",
                );
            }
            kernel.check_scaling(&Scaling { alpha: scalar, beta: kernel.one() }).map_err(
                |error| match error {
                    Error::Input { what, remedy, .. } => Error::input(flag, what, remedy),
                    other => other,
                },
            )?;
            Ok(scalar)
        };
        Ok(Scaling {
            alpha: scalar("--alpha", args.scaled.alpha)?,
            beta: scalar("--beta", args.scaled.beta)?,
        })
    }
}
