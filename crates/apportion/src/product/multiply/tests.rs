//! A bit flips silently in C while a tile is updated: the run must end with an error, not with a result.

use super::*;
use crate::kernels::{View, ViewMut, gemm, max_plus, min_plus};
use crate::matrix::Matrix;
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Shape, shapes};
use crate::product::Operands;
use crate::product::tests::{PATHS, on, parts};
use crate::run::Monitor;
use crate::schedule::Flow;

/// The type of the function that the fault replaces.
type Update<T> = fn(View<T>, View<T>, ViewMut<T>);

/// Marks the tiles to be corrupted: those whose first element of A is this, or minus this.
const MARK: f64 = 77.0;

/// Numbers up to 13 with the mark in A's first element, which no other sum or difference exceeds.
fn factors<T: Element>(m: usize, k: usize, n: usize, mark: f64) -> [Matrix<T>; 2] {
    let fill = |rows: usize, cols: usize, by: usize| -> Vec<T> {
        (0..rows * cols).map(|i| T::from_f64((i * by % 101) as f64 / 8.0 + 0.125)).collect()
    };
    let mut a = fill(m, k, 37);
    a[0] = T::from_f64(mark);
    [Matrix::new(m, k, a), Matrix::new(k, n, fill(k, n, 59))]
}

/// The product on three processors in columns, by every flow and on every engine, verified.
fn outcomes<T: Element>(kernel: Kernel<T>, [a, b]: &[Matrix<T>; 2], seed: u64) -> Vec<Result<()>> {
    let flows = Flow::ALL.into_iter().flat_map(|flow| [false, true].map(|overlap| (flow, overlap)));
    let each = flows.flat_map(|(flow, overlap)| PATHS.map(|path| (flow, overlap, path)));
    each.map(|how| outcome(kernel, [a, b], how, seed)).collect()
}

fn outcome<T: Element>(
    kernel: Kernel<T>,
    [a, b]: [&Matrix<T>; 2],
    (flow, overlap, path): (Flow, bool, DataPath),
    seed: u64,
) -> Result<()> {
    let shape = Shape::new(a.rows() as u64, a.cols() as u64, b.cols() as u64, "test")?;
    let layout = shapes::Columns::default().layout(shape, &[3.0, 2.0, 1.0])?;
    let platform = Platform::from_speeds(&[3.0, 2.0, 1.0])?;
    let models: Vec<Model> = [3e9, 2e9, 1e9].map(|s| Model::constant("p", s).unwrap()).to_vec();
    let plan = Plan::of_layout("columns", platform.names(), layout, 1.0);
    let order = ScheduleOptions::new(flow, 8).with_look_ahead(u64::from(overlap));
    let job = MatmulJob::new(kernel, &plan, order, &models, 1).with_seed(seed);
    let one = |session: &Session<'_>| {
        let own = OwnRects::of(&MatmulSchedule::new(plan.layout()?, order), session.world());
        multiply(Operands::new(&parts(a, &own.a), &parts(b, &own.b)), &job, session).map(drop)
    };
    on(path, (&platform, &Monitor::new()), job.work(), one).map(drop)
}

/// Computes a tile correctly, then flips a bit of its first element if the tile is marked.
fn spoilt<T: Element>(
    a: View<T>,
    b: View<T>,
    mut c: ViewMut<T>,
    right: impl Fn(View<T>, View<T>, ViewMut<T>),
    flip: impl Fn(T) -> T,
) {
    right(a, b, c.reborrow());
    if a.cols() > 0 && a.row(0)[0].to_f64().abs() == MARK {
        c.row(0)[0] = flip(c.row(0)[0]);
    }
}

fn spoilt_f64<const BIT: u32>(a: View<f64>, b: View<f64>, c: ViewMut<f64>) {
    spoilt(a, b, c, gemm, |x| f64::from_bits(x.to_bits() ^ 1 << BIT));
}

fn spoilt_f32<const BIT: u32>(a: View<f32>, b: View<f32>, c: ViewMut<f32>) {
    spoilt(a, b, c, gemm, |x| f32::from_bits(x.to_bits() ^ 1 << BIT));
}

fn caught(outcome: Result<()>, what: &str) {
    let error = outcome.expect_err(what);
    // With several ranks, each reports the result of the lowest one.
    assert!(matches!(error, Error::WrongResult { .. } | Error::Agreed { .. }), "{what}: {error}");
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().starts_with("the result is wrong"), "{what}: {error}");
    assert!(error.to_string().contains("element (0, 0)"), "{what}: {error}");
}

/// Plus-times: sign, exponent, and fraction down to the rounding errors: (k + 1) epsilon of |A| |B|, here
/// below bit 12.
#[test]
fn freivalds_sees_one_flipped_bit() {
    let factors_64 = factors::<f64>(31, 23, 29, MARK);
    let right = Kernel::<f64>::plus_times();
    assert!(outcomes(right, &factors_64, 1).iter().all(Result::is_ok));
    let defects: [(u32, Update<f64>); 7] = [
        (63, spoilt_f64::<63>),
        (62, spoilt_f64::<62>),
        (54, spoilt_f64::<54>),
        (51, spoilt_f64::<51>),
        (40, spoilt_f64::<40>),
        (28, spoilt_f64::<28>),
        (16, spoilt_f64::<16>),
    ];
    for (bit, defect) in defects {
        for outcome in outcomes(right.with_update(defect), &factors_64, u64::from(bit)) {
            caught(outcome, &format!("f64, bit {bit}"));
        }
    }
    let factors_32 = factors::<f32>(31, 23, 29, MARK);
    let defects: [(u32, Update<f32>); 4] =
        [(31, spoilt_f32::<31>), (30, spoilt_f32::<30>), (22, spoilt_f32::<22>), (14, spoilt_f32::<14>)];
    for (bit, defect) in defects {
        for outcome in outcomes(Kernel::plus_times().with_update(defect), &factors_32, 3) {
            caught(outcome, &format!("f32, bit {bit}"));
        }
    }
}

fn last_bit<const GREATEST: bool>(a: View<f64>, b: View<f64>, c: ViewMut<f64>) {
    let right = if GREATEST { max_plus } else { min_plus };
    spoilt(a, b, c, right, |x| f64::from_bits(x.to_bits() ^ 1));
}

fn truth(a: View<u8>, b: View<u8>, c: ViewMut<u8>) {
    spoilt(a, b, c, |a, b, c| Kernel::or_and().update(a, b, c), |x| x ^ 1);
}

/// A C of at most [`DRAWS`] elements is recomputed completely: even the last bit of one element is detected
/// with certainty.
#[test]
fn samples_see_one_flipped_bit_of_a_small_product() {
    for (right, defect, mark) in [
        (Kernel::max_plus(), last_bit::<true> as Update<f64>, MARK),
        (Kernel::min_plus(), last_bit::<false>, -MARK),
    ] {
        let factors = factors::<f64>(31, 23, 29, mark);
        assert!(outcomes(right, &factors, 1).iter().all(Result::is_ok));
        for outcome in outcomes(right.with_update(defect), &factors, 1) {
            caught(outcome, right.semiring().name());
        }
    }
    let mut bits = vec![0; 31 * 23];
    bits[0] = MARK as u8;
    let bits = [Matrix::new(31, 23, bits), Matrix::new(23, 29, vec![0; 23 * 29])];
    assert!(outcomes(Kernel::or_and(), &bits, 1).iter().all(Result::is_ok));
    for outcome in outcomes(Kernel::or_and().with_update(truth), &bits, 1) {
        caught(outcome, "or-and");
    }
}

/// Two wrong elements of one row (two processors begin with it) among 160 x 160, of which 11,085 are drawn
/// and one of each row and column: missed with probability (1 - 2 / 25,600)^11,085 (1 - 2 / 160) (1 - 1 /
/// 160)^2 = 0.410. Of 200 seeds 82 should miss, give or take four standard deviations of 7.0.
#[test]
fn samples_miss_as_often_as_stated() {
    let [a, b] = factors::<f64>(160, 2, 160, MARK);
    let defect = Kernel::max_plus().with_update(last_bit::<true>);
    let one = |seed| outcome(defect, [&a, &b], (Flow::Bulk, false, DataPath::InPlace), seed);
    let missed = (0..200).filter(|&seed| one(seed).is_ok()).count();
    assert!((54..=110).contains(&missed), "{missed} of 200");
}
