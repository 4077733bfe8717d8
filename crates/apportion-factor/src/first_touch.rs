//! Memory in pages that exist before the clock starts: a page takes longer to come to be than what is first computed in it.

use apportion::kernels::factor::reserve_for_lu_panel;
use apportion::kernels::{Kernel, Real};
use apportion::plan::Factors;
use apportion::run::parallel;

/// Makes room on each thread of the calling worker for what it packs of updates of `rows` x `across` elements by panels
/// of `width` columns; and for its own panels, if the first has so many rows.
pub(crate) fn make_room<T: Real>(
    factors: Factors,
    kernel: Kernel<T>,
    [rows, width, across]: [usize; 3],
    panel: Option<usize>,
) {
    if rows > 0 && across > 0 {
        let rows = rows.div_ceil(parallel::threads());
        // A refusal of threads is the error of the first update.
        let _ = parallel::on_each(|| kernel.reserve([rows, width, across], 1));
    }
    // Others are factored where they are.
    if let Some(rows) = panel.filter(|_| factors == Factors::Lu) {
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use crate::LocalColumns;
    use crate::application::Elimination;
    use apportion::geometry::Rank;
    use apportion::kernels::Kernel;
    use apportion::plan::{Factors, TileMap};
    use apportion::schedule::{Application, Executable, FactorSchedule, Step};

    /// Pages that came to be on this thread.
    fn new_pages() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The fields after the name, which may have spaces.
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(7).unwrap().parse().unwrap()
    }

    /// The first panels and updates take hardly any new pages; what they pack and copy has some hundreds.
    #[test]
    fn the_first_steps_of_a_run_take_no_new_pages() {
        for factors in Factors::ALL {
            let (n, block) = (2000, 96);
            let columns = TileMap::columns(n, block, 1, vec![Rank(0); n.div_ceil(block) as usize]);
            let schedule = FactorSchedule::new(factors, columns);
            // A thread of its own has packed nothing yet.
            let pages = std::thread::spawn(move || {
                let mut local = LocalColumns::zeros(schedule.blocks(), Rank(0)).unwrap();
                let mut view = local.view_mut();
                for i in 0..n as usize {
                    view.row(i).fill(1.0);
                    view.row(i)[i] = 2.0 * n as f64;
                }
                let elimination = Elimination::new(&schedule, Kernel::<f64>::plus_times(), vec![local], true);
                let mut held = elimination.hold(Rank(0));
                let before = new_pages();
                for step in schedule.steps(Rank(0)).take(6) {
                    if let Step::Compute(work) = step {
                        elimination.compute(&mut held, &work, 1).unwrap();
                    }
                }
                assert!(held.failed.is_none(), "{factors}");
                new_pages() - before
            });
            let pages = pages.join().unwrap();
            assert!(pages < 150, "{factors}: {pages} new pages");
        }
    }
}
