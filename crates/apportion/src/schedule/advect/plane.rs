//! The horizontal plane of a grid, which layouts divide, and the matrix as which files hold a grid.

use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::kernels::mpdata::{Cells, Place};
use crate::plan::{Layout, Shape};

/// The plane of a grid that is divided: of three axes the first two, of fewer all. In a file, a grid is a
/// matrix with the plane's rows; one column of the plane is as many of its columns as the third axis is long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    sizes: [usize; 3],
    dimensions: usize,
}

impl Plane {
    /// The plane of a grid of one to three sizes.
    ///
    /// # Panics
    /// If there are other numbers of sizes.
    pub fn of(sizes: &[usize]) -> Self {
        let sizes3 = match *sizes {
            [n] => [1, n, 1],
            [m, n] => [m, n, 1],
            [m, n, l] => [m, n, l],
            _ => panic!("a grid has one to three dimensions, not {}", sizes.len()),
        };
        Self { sizes: sizes3, dimensions: sizes.len() }
    }

    /// The plane's rows and columns as the shape of a layout.
    ///
    /// # Errors
    /// Too many cells: exit code 2.
    pub fn shape(&self) -> Result<Shape> {
        let [rows, cols, _] = self.sizes.map(|n| n as u64);
        Shape::new(rows, 1, cols, "grid")
    }

    /// The number of cells above each cell of the plane.
    pub fn levels(&self) -> u64 {
        self.sizes[2] as u64
    }

    /// Checks that a layout is of this plane.
    ///
    /// # Errors
    /// It is not: exit code 2.
    pub fn check(&self, layout: &Layout) -> Result<()> {
        let ([rows, cols, _], shape) = (self.sizes.map(|n| n as u64), layout.shape());
        if (shape.m, shape.n) == (rows, cols) {
            return Ok(());
        }
        Err(Error::input(
            "plan",
            format!(
                "divides {} x {}, but the horizontal plane of the field is {rows} x {cols}",
                shape.m, shape.n
            ),
            format!("make a plan with `--shape {rows}x{cols}`"),
        ))
    }

    /// The axis of the scheme that the plane's columns are along.
    fn across(&self) -> usize {
        if self.dimensions == 3 { 1 } else { 2 }
    }

    /// The cells of a rectangle of the plane.
    pub fn cells(&self, rect: Rect) -> Cells {
        let mut cells = Cells { lo: [0; 3], hi: [1; 3] };
        cells.hi[2] = self.sizes[2] as isize;
        (cells.lo[0], cells.hi[0]) = (rect.rows.start as isize, rect.rows.end as isize);
        let across = self.across();
        (cells.lo[across], cells.hi[across]) = (rect.cols.start as isize, rect.cols.end as isize);
        cells
    }

    /// The number of columns of the matrix per column of the plane, for an array of cells or faces.
    fn deep(&self, place: Place) -> u64 {
        let faces = self.dimensions == 3 && place == Place::Face(2);
        self.levels() + u64::from(faces)
    }

    /// Rows and columns of the matrix that a file holds for an array of cells or faces.
    pub fn matrix(&self, place: Place) -> (u64, u64) {
        let rows = self.sizes[0] as u64 + u64::from(place == Place::Face(0));
        let cols = self.sizes[1] as u64 + u64::from(place == Place::Face(self.across()));
        (rows, cols * self.deep(place))
    }

    /// The rectangle of that matrix with some elements and, in three dimensions, all above and below them.
    pub fn rect(&self, place: Place, cells: &Cells) -> Rect {
        let (across, deep) = (self.across(), self.deep(place));
        let cols = Span::new(cells.lo[across] as u64 * deep, cells.hi[across] as u64 * deep);
        Rect::new(Span::new(cells.lo[0] as u64, cells.hi[0] as u64), cols)
    }

    /// The row and the first column of the matrix for the elements of one row of cells.
    pub fn position(&self, place: Place, [i, j, k]: [isize; 3]) -> (u64, u64) {
        let col = if self.dimensions == 3 { j as u64 * self.deep(place) + k as u64 } else { k as u64 };
        (i as u64, col)
    }
}
