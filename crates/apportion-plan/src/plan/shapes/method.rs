//! The registry of layout methods by name.

use super::{
    BlockRectangle, Boxes, Cartesian, ColumnGroups, Columns, Communication, Grid, Hybrid, Inner,
    LayoutMethod, Mesh, NagamochiAbe, Objective, Recursive, Rows, SquareCorner, SquareEdge, SquareMiddle,
    SquareRectangle, StraightLine,
};
use crate::error::{Error, Result};
use crate::plan::shares::LeftOver;
use crate::plan::{Layout, Shape};
use std::fmt;
use std::str::FromStr;

/// A method that lays out a matrix among processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// Optimal columns of rectangles.
    Columns,
    /// The slower processors in squares on the diagonal, the fastest around them.
    SquareCorner,
    /// Rectangles and L-shapes, recursively; any number of processors.
    Recursive,
    /// One straight cut (two processors) or a strip and two halves (three).
    StraightLine,
    /// Up to three processors: a strip, a corner square, the rest.
    SquareRectangle,
    /// Up to three processors: the fastest in a strip, the others side by side.
    BlockRectangle,
    /// A grid of columns with equally many processors each.
    Grid,
    /// Recursive cuts: at most 1.25 times the lower bound.
    NagamochiAbe,
    /// Straight cuts through the whole matrix in both directions.
    Cartesian,
    /// Horizontal strips.
    Rows,
    /// Columns of given processors.
    ColumnGroups,
    /// Square corner or straight line, whichever communicates less; two or three processors.
    Hybrid,
    /// Slabs across the inner dimension.
    Inner,
    /// Boxes: rows, columns and the inner dimension are cut.
    Boxes,
    /// For comparison: the slower of two processors in a square on an edge.
    SquareEdge,
    /// For comparison: the slower of two processors in a square in the middle.
    SquareMiddle,
}

/// Options of the methods that need more than a shape and weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodOptions {
    /// Whether the two directions of a link work one after the other or at the same time; used by
    /// [`Method::Hybrid`].
    pub communication: Communication,
    /// The rank at the centre of a star, which relays messages; used by [`Method::Hybrid`] for three
    /// processors.
    pub centre: Option<usize>,
    /// The ranks of each column, from left to right and from top to bottom; used by [`Method::ColumnGroups`].
    pub groups: Option<Vec<Vec<usize>>>,
    /// What the methods with a choice minimise (see [`Method::minimises`]).
    pub objective: Objective,
    /// The matrix to which half-perimeters are relative, if only a part of it is laid out.
    pub whole: Option<Shape>,
    /// Rows and columns of processors, used by [`Method::Grid`] and [`Method::Cartesian`]; `None` for the
    /// cheapest.
    pub mesh: Option<Mesh>,
    /// Who gets left-over rows; used by [`Method::Rows`].
    pub left_over: LeftOver,
    /// True if [`Method::Recursive`] looks ahead as little as possible: a fiftieth of the time, and 0.5 %
    /// more half-perimeters on the mean for eight processors, less for more. Beyond 64 processors,
    /// [`Method::Cartesian`] then starts from fewer arrangements: 0.1 % more time on the mean.
    pub quick: bool,
}

impl Default for MethodOptions {
    fn default() -> Self {
        Self {
            communication: Communication::Parallel,
            centre: None,
            groups: None,
            objective: Objective::default(),
            whole: None,
            mesh: None,
            left_over: LeftOver::default(),
            quick: false,
        }
    }
}

impl Method {
    /// Every method with its name.
    const NAMES: [(Self, &'static str); 16] = [
        (Self::Columns, "columns"),
        (Self::SquareCorner, "square-corner"),
        (Self::Recursive, "recursive"),
        (Self::StraightLine, "straight-line"),
        (Self::SquareRectangle, "square-rectangle"),
        (Self::BlockRectangle, "block-rectangle"),
        (Self::Grid, "grid"),
        (Self::NagamochiAbe, "nagamochi-abe"),
        (Self::Cartesian, "cartesian"),
        (Self::Rows, "rows"),
        (Self::ColumnGroups, "column-groups"),
        (Self::Hybrid, "hybrid"),
        (Self::Inner, "inner"),
        (Self::Boxes, "boxes"),
        (Self::SquareEdge, "square-edge"),
        (Self::SquareMiddle, "square-middle"),
    ];

    /// Every method, in the order of preference among equals.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(method, _)| method)
    }

    /// True if the method has a choice that follows [`MethodOptions::objective`].
    pub fn minimises(self) -> bool {
        matches!(self, Self::Columns | Self::Recursive | Self::Grid)
    }

    /// The methods for rectangles of C that `auto` compares: those that need no options and do not combine
    /// other methods. It compares [`comparisons`](Self::comparisons) too where their layouts are others, and
    /// [`Inner`](Self::Inner) and [`Boxes`](Self::Boxes) where boxes are of use.
    pub fn candidates() -> impl Iterator<Item = Self> {
        Self::all()
            .filter(|&m| m != Self::ColumnGroups && !m.cuts_inner() && Self::comparisons().all(|c| c != m))
    }

    /// The methods for two and three processors that combine others or are there for comparison.
    pub(crate) fn comparisons() -> impl Iterator<Item = Self> {
        [Self::Hybrid, Self::SquareEdge, Self::SquareMiddle].into_iter()
    }

    /// True if the method cuts the inner dimension.
    pub fn cuts_inner(self) -> bool {
        matches!(self, Self::Inner | Self::Boxes)
    }

    /// The method with its options.
    ///
    /// # Errors
    /// An option that it needs is missing: exit code 2.
    pub(crate) fn with(self, options: &MethodOptions) -> Result<Box<dyn LayoutMethod + '_>> {
        let &MethodOptions { communication, centre, objective, whole, mesh, left_over, quick, .. } = options;
        Ok(match self {
            Self::Columns => Box::new(Columns { objective, whole }),
            Self::SquareCorner => Box::new(SquareCorner),
            Self::Recursive => Box::new(Recursive { objective, whole, quick }),
            Self::StraightLine => Box::new(StraightLine),
            Self::SquareRectangle => Box::new(SquareRectangle),
            Self::BlockRectangle => Box::new(BlockRectangle),
            Self::Grid => Box::new(Grid { mesh, objective, whole }),
            Self::NagamochiAbe => Box::new(NagamochiAbe),
            Self::Cartesian => Box::new(Cartesian { mesh, quick }),
            Self::Rows => Box::new(Rows { left_over }),
            Self::ColumnGroups => match &options.groups {
                Some(groups) => Box::new(ColumnGroups { groups }),
                None => {
                    return Err(Error::input(
                        "`groups`",
                        "column-groups needs the processors of each column",
                        "give the columns from the left, such as `groups = p0,p1;p2,p3`",
                    ));
                }
            },
            Self::Hybrid => Box::new(Hybrid { communication, centre }),
            Self::Inner => Box::new(Inner),
            Self::Boxes => Box::new(Boxes),
            Self::SquareEdge => Box::new(SquareEdge),
            Self::SquareMiddle => Box::new(SquareMiddle),
        })
    }

    /// The layout that this method makes.
    ///
    /// # Errors
    /// The method does not support the number of processors or the shape (exit code 1), or an option that it
    /// needs is missing or wrong (exit code 2).
    pub fn layout(self, shape: Shape, weights: &[f64], options: &MethodOptions) -> Result<Layout> {
        self.with(options)?.layout(shape, weights)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Self::NAMES[Self::NAMES.iter().position(|(m, _)| m == self).unwrap_or(0)];
        f.pad(name)
    }
}

impl FromStr for Method {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::NAMES.into_iter().find(|(_, name)| *name == text).map(|(m, _)| m).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(_, name)| *name).collect();
            format!("unknown method \"{text}\" (use auto, {})", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for method in Method::all() {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        assert!("circle".parse::<Method>().is_err());
    }

    #[test]
    fn every_candidate_serves_two_or_says_why_not() {
        let shape = Shape::new(60, 50, 70, "test").unwrap();
        for method in Method::candidates() {
            match method.layout(shape, &[5.0, 1.0], &MethodOptions::default()) {
                Ok(layout) => assert_eq!(layout.shares().iter().sum::<u64>(), 60 * 70),
                Err(error) => assert_eq!(error.exit_code(), 1, "{method}: {error}"),
            }
        }
    }
}
