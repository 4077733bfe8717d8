//! Memory in pages that exist before the clock starts: a page takes longer to come to be than what is first computed in it.

use apportion::kernels::factor::reserve_for_lu_panel;
use apportion::kernels::{Kernel, Real};
use apportion::plan::Factors;
use apportion::run::parallel;

/// Makes room on each thread of the calling worker for what it packs of panels of `rows` x `width`, if it factors some,
/// and of updates by these of the part of so many columns.
pub(crate) fn make_room<T: Real>(
    (factors, kernel): (Factors, Kernel<T>),
    [rows, width, across]: [usize; 3],
    factors_panels: bool,
) {
    if rows == 0 || across == 0 {
        return;
    }
    let threads = parallel::threads();
    // A refusal of threads is the error of the first update.
    let _ = parallel::on_each(|| kernel.reserve([rows.div_ceil(threads), width, across], 1));
    if factors_panels && factors == Factors::Lu {
        reserve_for_lu_panel::<T>(rows, width);
    }
}

/// No elements, with room for `length` of them.
pub(crate) fn room_for<T: Real>(length: usize) -> Vec<T> {
    let mut elements = zeros(length);
    elements.clear();
    elements
}

/// Zeros that are written: those of `vec!` are pages of the system that come to be when they are used.
pub(crate) fn zeros<T: Real>(length: usize) -> Vec<T> {
    let mut elements = Vec::with_capacity(length);
    elements.resize(length, T::ZERO);
    elements
}
