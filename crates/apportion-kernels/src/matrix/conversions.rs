//! Matrices from and to slices, `ndarray` and `faer`. The last two are features of these names.

use super::{Element, Matrix};

/// Rows of equal length.
///
/// ```
/// use apportion_kernels::matrix::Matrix;
///
/// let a = Matrix::from([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
/// assert_eq!((a.rows(), a.cols(), a.row(1)), (2, 3, &[4.0, 5.0, 6.0][..]));
/// ```
impl<T: Element, const ROWS: usize, const COLS: usize> From<[[T; COLS]; ROWS]> for Matrix<T> {
    fn from(rows: [[T; COLS]; ROWS]) -> Self {
        Self::new(ROWS, COLS, rows.into_iter().flatten().collect())
    }
}

/// Copies the elements, in any memory order of the array.
#[cfg(feature = "ndarray")]
impl<T: Element> From<ndarray::ArrayView2<'_, T>> for Matrix<T> {
    fn from(array: ndarray::ArrayView2<'_, T>) -> Self {
        Self::new(array.nrows(), array.ncols(), array.iter().copied().collect())
    }
}

/// Takes the elements over without a copy.
#[cfg(feature = "ndarray")]
impl<T: Element> From<Matrix<T>> for ndarray::Array2<T> {
    fn from(matrix: Matrix<T>) -> Self {
        let shape = (matrix.rows(), matrix.cols());
        Self::from_shape_vec(shape, matrix.into_elements()).expect("a matrix has all of its elements")
    }
}

/// Copies the elements: `faer` stores columns.
#[cfg(feature = "faer")]
impl<T: Element> From<faer::MatRef<'_, T>> for Matrix<T> {
    fn from(matrix: faer::MatRef<'_, T>) -> Self {
        let (rows, cols) = (matrix.nrows(), matrix.ncols());
        let row = |i| (0..cols).map(move |j| matrix[(i, j)]);
        Self::new(rows, cols, (0..rows).flat_map(row).collect())
    }
}

/// Copies the elements: `faer` stores columns.
#[cfg(feature = "faer")]
impl<T: Element> From<&Matrix<T>> for faer::Mat<T> {
    fn from(matrix: &Matrix<T>) -> Self {
        Self::from_fn(matrix.rows(), matrix.cols(), |i, j| matrix.row(i)[j])
    }
}

#[cfg(test)]
#[allow(unused_imports)] // Each feature has tests of its own.
mod tests {
    use super::*;

    #[cfg(feature = "ndarray")]
    #[test]
    fn ndarray_there_and_back() {
        let array = ndarray::array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let matrix = Matrix::from(array.view());
        assert_eq!(matrix.as_slice(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        // A transposed view has another order in memory.
        assert_eq!(Matrix::from(array.t()), matrix.transposed());
        assert_eq!(ndarray::Array2::from(matrix), array);
        let none = ndarray::Array2::<f64>::zeros((0, 3));
        assert_eq!((Matrix::from(none.view()).rows(), Matrix::from(none.view()).cols()), (0, 3));
    }

    #[cfg(feature = "faer")]
    #[test]
    fn faer_there_and_back() {
        let columns = faer::Mat::from_fn(2, 3, |i, j| (3 * i + j) as f64);
        let matrix = Matrix::from(columns.as_ref());
        assert_eq!(matrix.as_slice(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(Matrix::from(columns.as_ref().transpose()), matrix.transposed());
        assert_eq!(faer::Mat::from(&matrix), columns);
    }
}
