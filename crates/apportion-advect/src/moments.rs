//! The content of a field and its extremes.

use apportion::error::Result;
use apportion::kernels::mpdata::Advectable;
use apportion::matrix::LocalBlocks;
use apportion::run::World;

/// The content of a field and its extremes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Moments {
    /// The sum of all values.
    pub mass: f64,
    /// The smallest value.
    pub least: f64,
    /// The largest value.
    pub most: f64,
}

/// The content and the extremes of the values seen so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MomentsSoFar {
    sum: f64,
    rest: f64,
    least: f64,
    most: f64,
}

impl Default for MomentsSoFar {
    fn default() -> Self {
        Self { sum: 0.0, rest: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY }
    }
}

impl MomentsSoFar {
    /// Adds some values.
    pub(crate) fn add<T: Advectable>(&mut self, values: &[T]) {
        for x in values.iter().map(|x| x.to_f64()) {
            // Neumaier's sum: its rounding does not grow with the number of cells.
            let next = self.sum + x;
            self.rest +=
                if self.sum.abs() >= x.abs() { (self.sum - next) + x } else { (x - next) + self.sum };
            self.sum = next;
            self.least = self.least.min(x);
            self.most = self.most.max(x);
        }
    }

    /// Those of all values.
    pub(crate) fn all(self) -> Moments {
        Moments { mass: self.sum + self.rest, least: self.least, most: self.most }
    }
}

/// The content and the extremes of a field of which each process has blocks. Every rank must call it.
///
/// # Errors
/// Interrupted, or another rank failed.
pub(crate) fn moments<T: Advectable>(field: &LocalBlocks<T>, world: &World) -> Result<Moments> {
    let mut mine = MomentsSoFar::default();
    field.iter().for_each(|(_, elements)| mine.add(elements));
    let Moments { mass, least, most } = mine.all();
    let add = |x: u64, y: u64| (f64::from_bits(x) + f64::from_bits(y)).to_bits();
    let less = |x: u64, y: u64| f64::from_bits(x).min(f64::from_bits(y)).to_bits();
    let mass = world.all_reduce(&[mass.to_bits()], add)?[0];
    let ends = world.all_reduce(&[least.to_bits(), (-most).to_bits()], less)?;
    let [mass, least, most] = [mass, ends[0], ends[1]].map(f64::from_bits);
    Ok(Moments { mass, least, most: -most })
}
