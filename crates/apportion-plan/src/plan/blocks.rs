//! How a factorisation is divided: by block columns or by tiles.

use super::{BlockColumns, BlockTiles, Factors, GridTiles, Layout};
use crate::error::{Error, Result};
use crate::geometry::{Rank, Span};

/// The parts of the processors of a factorisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocks {
    /// Whole block columns.
    Columns(BlockColumns),
    /// Tiles of the lower triangle.
    Tiles(BlockTiles),
    /// Tiles of the whole matrix, for LU.
    Grid(GridTiles),
}

impl Blocks {
    /// The blocks of a layout of n x n elements.
    ///
    /// # Errors
    /// The layout is not square or not of whole blocks, or for LU in tiles that are in no grid: exit code 2.
    pub fn of_layout(factors: Factors, layout: &Layout, block: u64) -> Result<Self> {
        match BlockColumns::of_layout(layout, block) {
            Ok(columns) => Ok(Self::Columns(columns)),
            Err(_) if factors.is_symmetric() => BlockTiles::of_layout(layout, block).map(Self::Tiles),
            Err(_) => GridTiles::of_layout(layout, block).map(Self::Grid),
        }
    }

    /// The same, whose block columns these processors factor, by block column.
    ///
    /// # Errors
    /// They are tiles, whose panels have their owners; not as many processors as block columns, or one that does not
    /// exist: exit code 2.
    pub fn factored_by(self, panels: Vec<Rank>) -> Result<Self> {
        let refuse = |what: String| {
            let remedy = "give the index of a processor for each block column, or remove the field";
            Err(Error::input("panels", what, remedy))
        };
        let p = self.processors();
        match self {
            Self::Columns(columns) if panels.len() != columns.count() => {
                refuse(format!("has {} processors for {} block columns", panels.len(), columns.count()))
            }
            Self::Columns(_) if panels.iter().any(|rank| rank.0 >= p) => {
                refuse(format!("has an index above {}, that of the last processor", p - 1))
            }
            Self::Columns(columns) => Ok(Self::Columns(columns.factored_by(panels))),
            Self::Tiles(_) | Self::Grid(_) => {
                refuse("is of block columns, and the layout is of tiles".into())
            }
        }
    }

    /// The processors that factor the block columns, by block column, if these are not always their owners.
    pub fn panels(&self) -> Option<&[Rank]> {
        match self {
            Self::Columns(columns) => Some(columns.factorers()).filter(|panels| *panels != columns.owners()),
            Self::Tiles(_) | Self::Grid(_) => None,
        }
    }

    /// The layout of n x n elements.
    pub fn layout(&self) -> Layout {
        match self {
            Self::Columns(columns) => columns.layout(),
            Self::Tiles(tiles) => tiles.layout(),
            Self::Grid(tiles) => tiles.layout(),
        }
    }

    /// Rows and columns of the matrix.
    pub fn n(&self) -> u64 {
        match self {
            Self::Columns(columns) => columns.n(),
            Self::Tiles(tiles) => tiles.n(),
            Self::Grid(tiles) => tiles.n(),
        }
    }

    /// Columns of a block.
    pub fn block(&self) -> u64 {
        match self {
            Self::Columns(columns) => columns.block(),
            Self::Tiles(tiles) => tiles.block(),
            Self::Grid(tiles) => tiles.block(),
        }
    }

    /// Number of processors.
    pub fn processors(&self) -> usize {
        match self {
            Self::Columns(columns) => columns.processors(),
            Self::Tiles(tiles) => tiles.processors(),
            Self::Grid(tiles) => tiles.processors(),
        }
    }

    /// True if they are whole block columns.
    pub fn are_columns(&self) -> bool {
        matches!(self, Self::Columns(_))
    }

    /// Number of block columns; of a slab, with those left of it.
    pub fn count(&self) -> usize {
        match self {
            Self::Columns(columns) => columns.count(),
            Self::Tiles(tiles) => tiles.count(),
            Self::Grid(tiles) => tiles.count(),
        }
    }

    /// The columns of a block column.
    pub fn span(&self, column: usize) -> Span {
        match self {
            Self::Columns(columns) => columns.span(column),
            Self::Tiles(tiles) => tiles.span(column),
            Self::Grid(tiles) => tiles.span(column),
        }
    }

    /// Number of elements that a processor receives, by formula.
    pub fn received(&self, factors: Factors, rank: Rank) -> u64 {
        match self {
            Self::Columns(columns) => columns.received(factors, rank),
            Self::Tiles(tiles) => tiles.received(factors, rank),
            Self::Grid(tiles) => tiles.received(rank),
        }
    }
}

impl From<BlockColumns> for Blocks {
    fn from(columns: BlockColumns) -> Self {
        Self::Columns(columns)
    }
}

impl From<BlockTiles> for Blocks {
    fn from(tiles: BlockTiles) -> Self {
        Self::Tiles(tiles)
    }
}

impl From<GridTiles> for Blocks {
    fn from(tiles: GridTiles) -> Self {
        Self::Grid(tiles)
    }
}
