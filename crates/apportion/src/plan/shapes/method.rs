//! The methods by name.

use super::{Communication, columns, hybrid, rows, square_corner, straight_line};
use crate::error::Result;
use crate::plan::{Layout, Shape};
use std::fmt;
use std::str::FromStr;

/// A way to lay out a matrix among processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// Horizontal strips.
    Rows,
    /// One straight cut (two processors) or a strip and two halves (three).
    StraightLine,
    /// Optimal columns of rectangles.
    Columns,
    /// The slower of two in a corner square.
    SquareCorner,
    /// Square corner or straight line, whichever moves less.
    Hybrid,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 5] =
        [Self::Columns, Self::SquareCorner, Self::StraightLine, Self::Rows, Self::Hybrid];

    /// The layout by this method; `communication` matters to [`Method::Hybrid`] only.
    ///
    /// # Errors
    /// The method cannot serve the number of processors or the shape: exit code 1.
    pub fn layout(self, shape: Shape, weights: &[f64], communication: Communication) -> Result<Layout> {
        match self {
            Self::Rows => rows(shape, weights),
            Self::StraightLine => straight_line(shape, weights),
            Self::Columns => columns(shape, weights),
            Self::SquareCorner => square_corner(shape, weights),
            Self::Hybrid => hybrid(shape, weights, communication),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rows => "rows",
            Self::StraightLine => "straight-line",
            Self::Columns => "columns",
            Self::SquareCorner => "square-corner",
            Self::Hybrid => "hybrid",
        })
    }
}

impl FromStr for Method {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::ALL.into_iter().find(|m| m.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("unknown method \"{text}\" (use auto, {})", names.join(", "))
        })
    }
}
