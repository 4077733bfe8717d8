//! A matrix, or a tile of one, that lies row by row in somebody else's memory.

/// A read-only tile: `rows` x `cols` elements, row `i` starting at `data[i * stride]`.
#[derive(Debug, Clone, Copy)]
pub struct View<'a, T> {
    data: &'a [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// A tile to write to: `rows` x `cols` elements, row `i` starting at `data[i * stride]`.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    rows: usize,
    cols: usize,
    stride: usize,
}

/// The elements from the first to one past the last of a tile.
fn extent(rows: usize, cols: usize, stride: usize) -> usize {
    if rows == 0 || cols == 0 {
        return 0;
    }
    (rows - 1).checked_mul(stride).and_then(|start| start.checked_add(cols)).expect("the tile is addressable")
}

impl<'a, T> View<'a, T> {
    /// The tile of `rows` x `cols` elements whose rows start `stride` elements apart.
    ///
    /// # Panics
    /// If a row is longer than the stride, or the tile reaches past the end of `data`.
    pub fn new(data: &'a [T], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(rows <= 1 || cols <= stride, "rows of {cols} elements do not overlap at stride {stride}");
        assert!(extent(rows, cols, stride) <= data.len(), "a tile of {rows} x {cols} lies within its data");
        Self { data, rows, cols, stride }
    }

    /// A whole matrix, its rows one after the other.
    ///
    /// # Panics
    /// If `data` is shorter than `rows * cols`.
    pub fn dense(data: &'a [T], rows: usize, cols: usize) -> Self {
        Self::new(data, rows, cols, cols)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &'a [T] {
        assert!(i < self.rows, "row {i} is one of {}", self.rows);
        if self.cols == 0 { &[] } else { &self.data[i * self.stride..][..self.cols] }
    }
}

impl<'a, T> ViewMut<'a, T> {
    /// The tile of `rows` x `cols` elements whose rows start `stride` elements apart.
    ///
    /// # Panics
    /// If a row is longer than the stride, or the tile reaches past the end of `data`.
    pub fn new(data: &'a mut [T], rows: usize, cols: usize, stride: usize) -> Self {
        let View { rows, cols, stride, .. } = View::new(data, rows, cols, stride);
        Self { data, rows, cols, stride }
    }

    /// A whole matrix, its rows one after the other.
    ///
    /// # Panics
    /// If `data` is shorter than `rows * cols`.
    pub fn dense(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        Self::new(data, rows, cols, cols)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Elements between the starts of two rows.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Row `i`.
    pub fn row(&mut self, i: usize) -> &mut [T] {
        assert!(i < self.rows, "row {i} is one of {}", self.rows);
        if self.cols == 0 { &mut [] } else { &mut self.data[i * self.stride..][..self.cols] }
    }

    /// The tile of `rows` x `cols` elements whose upper left corner is element (`i`, `j`).
    ///
    /// # Panics
    /// If it reaches outside this tile.
    pub fn tile(&mut self, i: usize, j: usize, rows: usize, cols: usize) -> ViewMut<'_, T> {
        assert!(i + rows <= self.rows && j + cols <= self.cols, "a tile lies within its matrix");
        let start = if rows == 0 || cols == 0 { 0 } else { i * self.stride + j };
        ViewMut { data: &mut self.data[start..], rows, cols, stride: self.stride }
    }

    /// The address of the first element.
    pub(super) fn as_mut_ptr(&mut self) -> *mut T {
        self.data.as_mut_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_start_a_stride_apart() {
        let data: Vec<u32> = (0..11).collect();
        let view = View::new(&data, 3, 3, 4);
        assert_eq!(view.row(0), [0, 1, 2]);
        assert_eq!(view.row(2), [8, 9, 10]);
        assert_eq!(View::new(&data, 0, 9, 4).rows(), 0);
        assert!(View::new(&data[..0], 5, 0, 7).row(4).is_empty());
    }

    #[test]
    fn tiles_nest() {
        let mut data: Vec<u32> = (0..12).collect();
        let mut view = ViewMut::dense(&mut data, 3, 4);
        view.tile(1, 1, 2, 2).row(1)[1] = 99;
        assert_eq!(data[2 * 4 + 2], 99);
    }

    #[test]
    #[should_panic(expected = "lies within its data")]
    fn a_tile_past_the_end_is_refused() {
        View::new(&[0.0; 10], 3, 3, 4);
    }
}
