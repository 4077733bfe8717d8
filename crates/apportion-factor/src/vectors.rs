//! Products of block columns with groups of vectors, in double precision and by loops of their own: what verifies
//! factors shares nothing with what computes them.

use crate::LocalColumns;
use apportion::error::Result;
use apportion::kernels::{Loop, Real, widest};
use apportion::run::{World, parallel};

/// Vectors that are multiplied together.
pub(crate) const TOGETHER: usize = 16;

/// Vectors, the elements of one row after the other.
pub(crate) type Vectors = Vec<[f64; TOGETHER]>;

/// What the matrix, of which a symmetric one's lower triangle stands for all, does to vectors. Its elements are
/// multiplied by `scale`.
///
/// # Errors
/// A thread is refused; a lost rank.
pub(crate) fn multiply<T: Real>(
    columns: &[LocalColumns<T>],
    (symmetric, scale): (bool, f64),
    x: &Vectors,
    world: &World,
) -> Result<Vectors> {
    let n = x.len();
    let part = if symmetric { Part::Lower } else { Part::All };
    let one = |local: &LocalColumns<T>| {
        let own = local.columns().map(|j| x[j as usize]).collect::<Vectors>();
        let mut image = vec![[0.0; TOGETHER]; n];
        Rows { local, part, scale, x: &own, y: &mut image }.compute();
        if symmetric {
            let mut turned = vec![[0.0; TOGETHER]; local.width()];
            Columns { local, part: Part::StrictLower, scale, x, y: &mut turned }.compute();
            for (j, turned) in local.columns().zip(&turned) {
                add(&mut image[j as usize], turned);
            }
        }
        image
    };
    sum(columns, one, world)
}

/// The factor, a power of four, with which elements of at most this magnitude are multiplied so that none is large or
/// small.
pub(crate) fn scale_for(largest: f64) -> f64 {
    let finite = largest > 0.0 && largest.is_finite();
    let exponent = if finite { largest.log2().floor().clamp(-1000.0, 1000.0) as i32 } else { 0 };
    2_f64.powi(-(exponent / 2 * 2))
}

pub(crate) fn add_all(sums: &mut Vectors, others: &Vectors) {
    sums.iter_mut().zip(others).for_each(|(sum, other)| add(sum, other));
}

pub(crate) fn add(sum: &mut [f64; TOGETHER], other: &[f64; TOGETHER]) {
    sum.iter_mut().zip(other).for_each(|(x, y)| *x += y);
}

/// The sum of what each processor contributes, in the order of ranks, on every process.
pub(crate) fn sum<T: Real>(
    columns: &[LocalColumns<T>],
    one: impl Fn(&LocalColumns<T>) -> Vectors + Sync,
    world: &World,
) -> Result<Vectors> {
    let mut parts: Vec<Vectors> = vec![Vec::new(); columns.len()];
    parallel::all(columns.iter().zip(&mut parts).collect(), |(local, part)| *part = one(local))?;
    let parts = parts.into_iter().map(|part| part.as_flattened().to_vec()).collect();
    let numbers = ordered_sum(by_rank(columns, parts), world)?;
    Ok(numbers.as_chunks::<TOGETHER>().0.to_vec())
}

/// The sums of what the parts of each processor contribute.
pub(crate) fn by_rank<T: Real>(columns: &[LocalColumns<T>], parts: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let mut sums: Vec<Vec<f64>> = Vec::new();
    let mut last = None;
    for (local, part) in columns.iter().zip(parts) {
        match sums.last_mut().filter(|_| last == Some(local.rank())) {
            Some(sum) => sum.iter_mut().zip(&part).for_each(|(x, y)| *x += y),
            None => sums.push(part),
        }
        last = Some(local.rank());
    }
    sums
}

/// The sum, element by element, of the numbers of each processor, in the order of ranks: the same bits on every
/// engine.
///
/// # Errors
/// A lost rank.
pub(crate) fn ordered_sum(parts: Vec<Vec<f64>>, world: &World) -> Result<Vec<f64>> {
    let mut all = parts.into_iter();
    let mut total = all.next().unwrap_or_default();
    let mut put = |part: &[f64]| total.iter_mut().zip(part).for_each(|(x, y)| *x += y);
    all.for_each(|part| put(&part));
    if world.is_solo() {
        return Ok(total);
    }
    let theirs = world.all_gather(bytemuck::cast_slice(&total))?;
    total.fill(0.0);
    for theirs in theirs {
        let part: Vec<f64> = numbers_of(&theirs);
        total.iter_mut().zip(&part).for_each(|(x, y)| *x += y);
    }
    Ok(total)
}

/// The numbers that bytes of another process are.
pub(crate) fn numbers_of<N: bytemuck::Pod>(bytes: &[u8]) -> Vec<N> {
    bytes.chunks_exact(size_of::<N>()).map(bytemuck::pod_read_unaligned).collect()
}

/// A part of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// With the diagonal.
    Lower,
    StrictLower,
    /// With the diagonal.
    Upper,
    /// Below the diagonal blocks.
    Below,
}

impl Part {
    /// The columns, counted here, of which elements of a row of the matrix are in the part.
    pub(crate) fn range<T: Real>(self, local: &LocalColumns<T>, row: usize) -> std::ops::Range<usize> {
        let before = |end: u64| -> usize {
            local.spans().iter().map(|span| (end.clamp(span.start, span.end) - span.start) as usize).sum()
        };
        match self {
            Self::All => 0..local.width(),
            Self::Lower => 0..before(row as u64 + 1),
            Self::StrictLower => 0..before(row as u64),
            Self::Upper => before(row as u64)..local.width(),
            Self::Below => {
                let whole = local.spans().iter().take_while(|span| span.end <= row as u64);
                0..whole.map(|span| span.len() as usize).sum()
            }
        }
    }
}

/// y += A x for a part of the block columns here; x has a row for each column here, y one for each of the matrix.
pub(crate) struct Rows<'a, T> {
    pub local: &'a LocalColumns<T>,
    pub part: Part,
    pub scale: f64,
    pub x: &'a [[f64; TOGETHER]],
    pub y: &'a mut [[f64; TOGETHER]],
}

impl<T: Real> Rows<'_, T> {
    pub(crate) fn compute(self) {
        if self.local.width() > 0 {
            widest(self);
        }
    }
}

impl<T: Real> Loop for Rows<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { local, part, scale, x, y } = self;
        for (i, row) in local.matrix_rows().zip(local.elements().chunks_exact(local.width())) {
            let here = part.range(local, i as usize);
            let y = &mut y[i as usize];
            let mut sums = *y;
            for (a, x) in row[here.clone()].iter().zip(&x[here]) {
                let a = a.to_f64() * scale;
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum += a * x;
                }
            }
            *y = sums;
        }
    }
}

/// y += A^T x for a part of the block columns here; x has a row for each of the matrix, y one for each column here.
pub(crate) struct Columns<'a, T> {
    pub local: &'a LocalColumns<T>,
    pub part: Part,
    pub scale: f64,
    pub x: &'a [[f64; TOGETHER]],
    pub y: &'a mut [[f64; TOGETHER]],
}

impl<T: Real> Columns<'_, T> {
    pub(crate) fn compute(self) {
        if self.local.width() > 0 {
            widest(self);
        }
    }
}

impl<T: Real> Loop for Columns<'_, T> {
    #[inline(always)]
    fn run(self) {
        let Self { local, part, scale, x, y } = self;
        for (i, row) in local.matrix_rows().zip(local.elements().chunks_exact(local.width())) {
            let here = part.range(local, i as usize);
            let x = &x[i as usize];
            for (a, y) in row[here.clone()].iter().zip(&mut y[here]) {
                let a = a.to_f64() * scale;
                for (sum, x) in y.iter_mut().zip(x) {
                    *sum += a * x;
                }
            }
        }
    }
}
