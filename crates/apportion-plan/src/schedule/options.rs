//! The flow of a schedule and its parameters.

use crate::error::{Error, Result};
use crate::plan::Layout;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How the operands travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Flow {
    /// Pivot block by pivot block, the owners of the pivot column of A and the pivot row of B send it to all
    /// processors that need it (heterogeneous SUMMA; Malik 2016, section 3.2.1).
    OneToAll,
    /// Pieces of the pivot block are forwarded from neighbour to neighbour (Malik 2016, section 3.2.1).
    Ring,
    /// All communication first, then all computation (Becker 2010, sections 5.2 and 5.6.1).
    Bulk,
    /// The processors take turns to broadcast their parts. On strips, A and C do not move (Tinetti, chapter
    /// 3, section 3.4).
    Broadcast,
}

impl Flow {
    /// Every flow.
    pub const ALL: [Self; 4] = [Self::OneToAll, Self::Bulk, Self::Ring, Self::Broadcast];
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::OneToAll => "one-to-all",
            Self::Bulk => "bulk",
            Self::Ring => "ring",
            Self::Broadcast => "broadcast",
        })
    }
}

impl FromStr for Flow {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|f| f.to_string() == text)
            .ok_or_else(|| format!("unknown flow \"{text}\" (use one-to-all, ring, bulk or broadcast)"))
    }
}

/// The messages between two processors in the bulk flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Messages {
    /// One for each pair of processors and direction, with everything that the receiver needs.
    #[default]
    Together,
    /// One for each rectangle of A or B, the steps that [`message_steps`](crate::plan::message_steps) counts
    /// (Becker 2010, section 5.5.1): each costs the latency.
    Separate,
}

impl FromStr for Messages {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "together" => Ok(Self::Together),
            "separate" => Ok(Self::Separate),
            _ => Err(format!("unknown messages \"{text}\" (use together or separate)")),
        }
    }
}

/// How the steps of a schedule are ordered: a flow with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScheduleOptions {
    /// How the operands travel.
    pub flow: Flow,
    /// Pivot block size: inner indices per update; at least 1.
    pub block: u64,
    /// Pivot blocks in flight during an update. With 0, communication and computation do not overlap. Each
    /// block in flight takes the memory of one more pivot block. The bulk flow has no pivot blocks in flight:
    /// with any look-ahead above 0, it computes the parts that need no message while the data travel.
    pub look_ahead: u64,
    /// The messages of the bulk flow; the other flows ignore it.
    #[serde(default)]
    pub messages: Messages,
}

/// Written as `ring`, `bulk with overlap` or `bulk in separate messages`.
impl fmt::Display for ScheduleOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let overlap = if self.overlaps() { " with overlap" } else { "" };
        let separate = if self.sends_separately() { " in separate messages" } else { "" };
        write!(f, "{}{overlap}{separate}", self.flow)
    }
}

impl ScheduleOptions {
    /// A flow with pivot blocks of `block` inner indices, without overlap.
    pub const fn new(flow: Flow, block: u64) -> Self {
        Self { flow, block, look_ahead: 0, messages: Messages::Together }
    }

    /// The same options with this many pivot blocks in flight during an update; 0 for no overlap.
    #[must_use]
    pub const fn with_look_ahead(self, look_ahead: u64) -> Self {
        Self { look_ahead, ..self }
    }

    /// The same options with pivot blocks of this size.
    #[must_use]
    pub(crate) const fn with_block(self, block: u64) -> Self {
        Self { block, ..self }
    }

    /// The same options with these messages in the bulk flow.
    #[must_use]
    pub const fn with_messages(self, messages: Messages) -> Self {
        Self { messages, ..self }
    }

    /// Refuses a flow that does not serve a layout: on one that cuts the inner dimension, there are the
    /// one-to-all flow and the bulk flow in messages together.
    ///
    /// # Errors
    /// Exit code 1.
    pub fn check_layout(self, layout: &Layout) -> Result<()> {
        let refuse = |what: String, remedy: &str| Err(Error::infeasible(what, remedy));
        match self.flow {
            _ if layout.boxes().is_none() => Ok(()),
            Flow::Ring | Flow::Broadcast => refuse(
                format!("the {} flow cannot use a layout that cuts the inner dimension", self.flow),
                "use `flow = one-to-all` or `flow = bulk`, or a method other than inner and boxes",
            ),
            Flow::Bulk if self.sends_separately() => refuse(
                "a layout that cuts the inner dimension has no separate messages".into(),
                "use `messages = together`",
            ),
            Flow::OneToAll | Flow::Bulk => Ok(()),
        }
    }

    /// True if every rectangle is a message of its own.
    pub(crate) const fn sends_separately(&self) -> bool {
        matches!((self.flow, self.messages), (Flow::Bulk, Messages::Separate))
    }

    /// True if data travel while processors compute.
    pub const fn overlaps(&self) -> bool {
        self.look_ahead > 0
    }

    /// The look-ahead as a number of blocks in memory.
    pub(crate) fn ahead(self) -> usize {
        usize::try_from(self.look_ahead).unwrap_or(usize::MAX)
    }
}
