//! From the flags of `partition --units` to limits of shares.

use crate::args::UnitsArgs;
use crate::args::numbers::Wholes;
use crate::console::Console;
use apportion::error::{Error, Result};
use apportion::job::{ShareLimit, limits_by_rank};
use apportion::model::{Machine, Model};
use apportion::plan::shares::Limits;
use apportion::platform::Processor;

/// The processors with shares capped by their memory, if the size of a unit is known.
///
/// # Errors
/// A size of a unit, but no processor with a memory.
pub fn with_memory(processors: Machine, args: &UnitsArgs, console: &Console) -> Result<Machine> {
    let limited = processors.platform.processors.iter().any(|p| p.memory.is_some());
    let bytes = match (args.bytes_per_unit, limited) {
        (None, false) => return Ok(processors),
        (None, true) => {
            console
                .note("note: the processors' memory is not considered (--bytes-per-unit B makes it a cap)");
            return Ok(processors);
        }
        (Some(_), false) => {
            let what = "no processor of the platform has a memory";
            return Err(Error::input("--bytes-per-unit", what, "add memory to the platform file"));
        }
        (Some(bytes), true) => bytes,
    };
    if bytes == 0 {
        return Err(Error::input("--bytes-per-unit", "a unit has at least one byte", "use a larger number"));
    }
    let cap = |(model, processor): (Model, &Processor)| match processor.memory {
        Some(memory) => model.with_cap(memory as f64 / bytes as f64),
        None => Ok(model),
    };
    let Machine { platform, models, block } = processors;
    let models = models.into_iter().zip(&platform.processors).map(cap).collect::<Result<_>>()?;
    Ok(Machine { platform, models, block })
}

impl UnitsArgs {
    /// Limits by rank; empty if no flag sets any.
    pub fn limits(&self, p: usize) -> Result<Vec<Limits>> {
        limits_of((self.min.as_ref(), self.max.as_ref(), self.multiple_of.as_ref()), p)
    }
}

/// Limits by rank of p processors, from --min, --max and --multiple-of; empty if none is set.
///
/// # Errors
/// A list that has not one number for each processor.
pub fn limits_of(
    (min, max, multiple_of): (Option<&Wholes>, Option<&Wholes>, Option<&Wholes>),
    p: usize,
) -> Result<Vec<Limits>> {
    let limit = |numbers: Option<&Wholes>| match numbers.map(|Wholes(list)| &list[..]) {
        None => ShareLimit::None,
        Some([number]) => ShareLimit::All(*number),
        Some(list) => ShareLimit::Each(list.iter().copied().map(Some).collect()),
    };
    limits_by_rank(&limit(min), &limit(max), &limit(multiple_of), p)
}
