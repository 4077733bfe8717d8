//! A graph in parts: what each processor has of it, and what they send to each other.

use crate::geometry::Rank;
use serde::{Deserialize, Serialize};

/// What a processor sends to another one in a step: the values of its vertices that the other one's see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Rank, Rank, u64)", into = "(Rank, Rank, u64)")]
pub struct Border {
    /// The sender.
    pub from: Rank,
    /// The receiver.
    pub to: Rank,
    /// Vertices of the sender that have a neighbour there; each counts once.
    pub vertices: u64,
}

impl From<(Rank, Rank, u64)> for Border {
    fn from((from, to, vertices): (Rank, Rank, u64)) -> Self {
        Self { from, to, vertices }
    }
}

impl From<Border> for (Rank, Rank, u64) {
    fn from(Border { from, to, vertices }: Border) -> Self {
        (from, to, vertices)
    }
}

/// A graph in parts, by rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphParts {
    /// Number of edges of the graph.
    pub edges: u64,
    /// The weights of the edges between parts, if they are known.
    pub edge_cut: Option<u64>,
    /// Vertices of each processor.
    pub vertices: Vec<u64>,
    /// The weight of these.
    pub weights: Vec<f64>,
    /// What processors send to each other in a step.
    pub borders: Vec<Border>,
}
