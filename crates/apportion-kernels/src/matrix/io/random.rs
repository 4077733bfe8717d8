//! Matrices of random numbers, written piece by piece.

use crate::error::Result;
use crate::matrix::Element;
use crate::matrix::io::npy::{npy_header, write_npy_rows};
use crate::output::OutputFile;
use crate::random::Random;
use std::str::FromStr;

/// Elements written at a time.
const PIECE: u64 = 1 << 16;
/// Integers are below this.
const INTEGERS: usize = 100;
/// Fraction of true values, as in the measurements of boolean kernels.
const TRUE: f64 = 0.3;

/// The element types of random matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RandomKind {
    /// Double precision, uniform in [0, 1).
    F64,
    /// Single precision, uniform in [0, 1).
    F32,
    /// 32-bit integers from 0 to 99.
    I32,
    /// 64-bit integers from 0 to 99.
    I64,
    /// Truth values, 30 % true.
    Bool,
}

impl RandomKind {
    /// All kinds.
    const ALL: [Self; 5] = [Self::F64, Self::F32, Self::I32, Self::I64, Self::Bool];

    /// Its name, as in the reports on matrices.
    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Bool => "bool",
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F64 | Self::I64 => 8,
            Self::F32 | Self::I32 => 4,
            Self::Bool => 1,
        }
    }
}

impl FromStr for RandomKind {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(())
    }
}

/// Writes a random matrix as `.npy`. The same sizes, kind and seed give the same bytes on every machine.
/// Memory: half a megabyte. `each` is called with the number of elements written since its last call; its
/// error ends the writing.
///
/// # Errors
/// The file cannot be written, or `each` fails.
pub fn write_random(
    out: &mut OutputFile,
    rows: usize,
    cols: usize,
    kind: RandomKind,
    seed: u64,
    each: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let (mut random, size) = (Random::new(seed), (rows, cols));
    match kind {
        RandomKind::F64 => numbers::<f64>(out, size, || random.unit(), each),
        // The 24 bits that a single-precision number holds.
        RandomKind::F32 => {
            numbers::<f32>(out, size, || (random.word() >> 40) as f32 / (1u32 << 24) as f32, each)
        }
        RandomKind::I32 => numbers::<i32>(out, size, || random.below(INTEGERS) as i32, each),
        RandomKind::I64 => numbers::<i64>(out, size, || random.below(INTEGERS) as i64, each),
        RandomKind::Bool => {
            out.put(&npy_header::<u8>(&[rows, cols], true))?;
            pieces(size, || u8::from(random.unit() < TRUE), &mut |some| out.put(some), each)
        }
    }
}

fn numbers<T: Element>(
    out: &mut OutputFile,
    (rows, cols): (usize, usize),
    next: impl FnMut() -> T,
    each: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    out.put(&npy_header::<T>(&[rows, cols], false))?;
    pieces((rows, cols), next, &mut |some| write_npy_rows(out, some), each)
}

/// All elements, some at a time.
fn pieces<T>(
    (rows, cols): (usize, usize),
    mut next: impl FnMut() -> T,
    put: &mut dyn FnMut(&[T]) -> Result<()>,
    each: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<()> {
    let mut left = rows as u64 * cols as u64;
    while left > 0 {
        let count = left.min(PIECE);
        let some: Vec<T> = (0..count).map(|_| next()).collect();
        put(&some)?;
        each(count)?;
        left -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::matrix::{AnyMatrix, read_matrix};

    fn written(kind: RandomKind, size: (usize, usize), seed: u64) -> (Vec<u8>, AnyMatrix) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.npy");
        let mut file = OutputFile::create(&path).unwrap();
        let mut count = 0;
        let mut each = |some| {
            count += some;
            Ok(())
        };
        write_random(&mut file, size.0, size.1, kind, seed, &mut each).unwrap();
        file.commit().unwrap();
        assert_eq!(count, (size.0 * size.1) as u64);
        (std::fs::read(&path).unwrap(), read_matrix(&path).unwrap())
    }

    #[test]
    fn every_kind_is_read_again_and_depends_on_the_seed_alone() {
        for kind in RandomKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            // More than one piece.
            let (bytes, matrix) = written(kind, (300, 401), 5);
            assert_eq!(bytes.len() as u64, 128 + 300 * 401 * kind.bytes());
            assert_eq!(written(kind, (300, 401), 5).0, bytes);
            assert_ne!(written(kind, (300, 401), 6).0, bytes);
            let mean = match matrix {
                AnyMatrix::F64(m) => 100.0 * m.as_slice().iter().sum::<f64>(),
                AnyMatrix::F32(m) => 100.0 * m.as_slice().iter().map(|&x| f64::from(x)).sum::<f64>(),
                AnyMatrix::I32(m) => m.as_slice().iter().map(|&x| f64::from(x)).sum(),
                AnyMatrix::I64(m) => m.as_slice().iter().map(|&x| x as f64).sum(),
                AnyMatrix::Bool(m) => 100.0 * m.as_slice().iter().map(|&x| f64::from(x)).sum::<f64>(),
                AnyMatrix::U8(_) => unreachable!("no kind is written so"),
            } / (300.0 * 401.0);
            let wanted = if kind == RandomKind::Bool { 30.0 } else { 50.0 };
            assert!((mean - wanted).abs() < 0.6, "{kind:?}: {mean}");
        }
    }

    /// The stream is that of the published generator: the first words of seed 1234567.
    #[test]
    fn the_elements_are_the_streams() {
        let AnyMatrix::F64(matrix) = written(RandomKind::F64, (1, 2), 1_234_567).1 else { panic!() };
        let unit = |word: u64| (word >> 11) as f64 / (1u64 << 53) as f64;
        assert_eq!(matrix.as_slice(), [unit(6_457_827_717_110_365_317), unit(3_203_168_211_198_807_973)]);
    }

    #[test]
    fn it_can_be_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let mut file = OutputFile::create(directory.path().join("r.npy")).unwrap();
        let outcome =
            write_random(&mut file, 1 << 20, 1 << 20, RandomKind::Bool, 1, &mut |_| Err(Error::Interrupted));
        assert!(matches!(outcome, Err(Error::Interrupted)));
    }
}
