//! How a field larger than memory is cut into slabs.

use super::advect::{AdvectMachine, ArrayFile, CourantInput, Inputs, Prepared, choose, find_machine};
use crate::args::{AdvectArgs, EngineName, ExchangeName};
use crate::console::Console;
use apportion::error::{Error, Result};
use apportion::kernels::mpdata::{Advectable, Exchange};
use apportion::matrix::NpyFile;
use apportion::process_memory::{MemoryLeft, memory_budget, require_memory};
use apportion::run::World;
use apportion::units::show_bytes;
use apportion_advect::{
    AdvectChoice, AdvectProblem, AdvectSchedule, CourantFile, SlabCosts, Slabs, slab_bytes, tallest_slab,
};

/// Seconds for a cell and a step where no speed is known.
const CELL_SECONDS: f64 = 1e-8;

/// Slabs that fit, and the plan of one.
pub struct Cut {
    pub known: AdvectMachine,
    pub slabs: Slabs,
    /// The candidates for a slab, the best first.
    pub choices: Vec<AdvectChoice>,
    /// Predicted bytes of the process.
    pub predicted: u64,
}

/// Candidates for a slab, and the bytes that the best needs.
type SlabCandidates = (u64, Vec<AdvectChoice>);

/// The highest slabs with which the process stays within the limit. `aside` are bytes for other things.
///
/// # Errors
/// Not even the lowest slab fits (exit code 1).
pub fn cut<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    memory: u64,
    aside: u64,
    world: &World,
    console: &Console,
) -> Result<Cut> {
    let problem = &inputs.problem;
    let known = find_machine::<T>(args, inputs, Some(memory), world, console)?;
    let (slabs, made) = tallest_slab(problem, memory, &mut |slabs| {
        let made = make::<T>(args, problem, &known, aside, slabs, world)?;
        Ok((made.0, made))
    })?;
    Ok(Cut { known, slabs, choices: made.1, predicted: made.0 })
}

impl Cut {
    /// Takes no more memory than slabs of which a sweep of `steps` steps has as many.
    ///
    /// # Errors
    /// No feasible plan.
    pub fn lower<T: Advectable>(
        &mut self,
        args: &AdvectArgs,
        problem: &AdvectProblem,
        steps: u64,
        aside: u64,
        world: &World,
    ) -> Result<()> {
        let lowered = self.slabs.lowered(steps.min(self.slabs.most_steps()));
        if lowered != self.slabs {
            let made = make::<T>(args, problem, &self.known, aside, lowered, world)?;
            if made.0 <= self.predicted {
                (self.slabs, self.predicted, self.choices) = (lowered, made.0, made.1);
            }
        }
        Ok(())
    }

    /// The costs of sweeps; `byte` is the number of seconds to read or write a byte.
    pub fn costs<T: Advectable>(&self, inputs: &Inputs, byte: f64) -> SlabCosts {
        let files = inputs.courant.iter().filter(|input| matches!(input, CourantInput::File(_))).count();
        let element = size_of::<T>() as f64;
        let rate = self.known.rate(&inputs.problem, &self.choices[0]);
        let cell = if self.known.timed { 1.0 / rate } else { CELL_SECONDS };
        SlabCosts { cell, byte, read: element * (1 + files) as f64, written: element }
    }
}

fn make<T: Advectable>(
    args: &AdvectArgs,
    problem: &AdvectProblem,
    known: &AdvectMachine,
    aside: u64,
    slabs: Slabs,
    world: &World,
) -> Result<SlabCandidates> {
    let slab = slabs.problem(problem);
    // Halos between threads cost little; a narrow exchange holds more arrays.
    let narrow = args.scheme.exchange == Some(ExchangeName::Narrow);
    let mut orders = args.scheme.orders(args.overlap);
    orders.retain(|order| narrow || order.exchange == Exchange::Wide);
    let choices = choose::<T>(args, &slab, known, &orders, world)?;
    let layout = choices[0].plan.rectangles().expect("an advection's plan is of a grid");
    let schedule = AdvectSchedule::new(&slab, layout, choices[0].order, 1)?;
    Ok((slab_bytes::<T>(&schedule, &known.platform) + aside, choices))
}

/// Opens the files of the Courant numbers.
///
/// # Errors
/// One cannot be read.
pub fn courant_files(inputs: &Inputs) -> Result<Vec<CourantFile>> {
    let one = |input: &CourantInput| match input {
        CourantInput::Constant(value) => Ok(CourantFile::Constant(*value)),
        CourantInput::File(file) => NpyFile::open_array(&file.path).map(CourantFile::Faces),
    };
    inputs.courant.iter().map(one).collect()
}

/// The limit within which a field is advected by slabs, as it does not fit the free memory of a process alone at once;
/// `None` if it fits.
///
/// # Errors
/// It does not fit, and cannot be streamed: exit code 2.
pub fn limit_by_free_memory<T: Advectable>(
    args: &AdvectArgs,
    inputs: &Inputs,
    schedule: &AdvectSchedule,
    prepared: &Prepared,
    console: &Console,
) -> Result<Option<u64>> {
    let budget = memory_budget().filter(|_| args.engine.name() == EngineName::Threads);
    let cells = |file: &ArrayFile| file.header.rows as u128 * file.header.cols as u128;
    let faces = inputs.courant.iter().map(|input| match input {
        CourantInput::File(file) => cells(file),
        CourantInput::Constant(_) => 0,
    });
    // The field as it is read and as it comes out, the faces, and what the steps hold.
    let arrays = (2 * cells(&inputs.field) + faces.sum::<u128>()) * size_of::<T>() as u128;
    let bytes = arrays + u128::from(slab_bytes::<T>(schedule, &prepared.platform));
    let Some((most, left)) = budget.zip(MemoryLeft::now()).filter(|(_, left)| !left.fits(bytes)) else {
        return Ok(None);
    };
    let what = "an advection in memory";
    if args.output.is_some() || args.checkpoint.is_some() || args.resume.is_some() {
        let (needs, most) = (left.beside(bytes), show_bytes(most as f64));
        console.note(format!("apportion: {what} needs {needs}: advected by slabs, within {most}"));
        return Ok(budget);
    }
    let remedy = "add -o or --checkpoint, beside which slabs are kept, or use a machine with more memory";
    require_memory(&inputs.field.path.display().to_string(), what, bytes, remedy).map(|()| None)
}

/// Refuses a limit where nothing can be streamed.
///
/// # Errors
/// Several processes, or no place for the states between sweeps.
pub fn refuse(args: &AdvectArgs) -> Result<()> {
    if args.memory.is_none() {
        return Ok(());
    }
    if args.engine.name() == EngineName::Mpi {
        return Err(Error::input(
            "--memory",
            "streams the field through one process; under MPI each process holds its part in memory",
            "leave it out and start more processes, or run it without mpirun",
        ));
    }
    if args.output.is_none() && args.checkpoint.is_none() && args.resume.is_none() {
        let what = "the states between two sweeps need a place on a disk";
        return Err(Error::input("--memory", what, "add -o or --checkpoint: they are kept beside it"));
    }
    Ok(())
}
