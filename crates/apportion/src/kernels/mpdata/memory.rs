//! The memory of a step beside the arrays of its box.

use super::frame::{Cells, Domain, Frame};
use super::number::Advectable;
use super::options::Scheme;
use super::step::Passes;
use super::subdomain::{Exchange, Subdomain};

impl<T: Advectable> Subdomain<T> {
    /// Bytes that each thread that computes a part of a box holds between the passes: an upper bound.
    pub fn between_bytes(
        domain: &Domain,
        (scheme, exchange): (Scheme, Exchange),
        cells: &Cells,
        undivided: [bool; 3],
    ) -> u64 {
        if cells.is_empty() {
            return 0;
        }
        let room = Self::room(domain, (scheme, exchange), cells, undivided);
        let passes = Passes::<T> {
            domain,
            scheme,
            signed: true,
            passes: (1, scheme.passes),
            wrapped: Self::wraps(domain, undivided),
            frame: Frame::of(&room),
            start: &[],
            psi: &[],
            courant: [&[]; 3],
            uniform: true,
        };
        passes.between_bytes(cells) as u64
    }
}
