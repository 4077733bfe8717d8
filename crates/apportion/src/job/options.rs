//! What a caller may ask of a run; everything that is left open is decided.

use super::kernel::KernelChoice;
use crate::error::{Error, Result};
use crate::model::Machine;
use crate::plan::shapes::{Method, MethodOptions};
use crate::platform::{Platform, Topology};
use crate::schedule::{DataPath, Flow, Messages, ScheduleOptions};
use crate::select::{MemoryPolicy, PlanOptions, Sizing, communication_of, orders};
use std::str::FromStr;

/// Default pivot block size: where the gemm kernel is at its best.
pub const DEFAULT_BLOCK: u64 = 256;

/// The choices of a run; those left out are made by forecast.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Layout method.
    pub method: Option<Method>,
    /// Rule for the sizes of the parts; by default by forecast where the method is open, otherwise in
    /// proportion to the speeds.
    pub shares: Option<Sizing>,
    /// Gives every processor a share where the method is open.
    pub keep_all: bool,
    /// Flow of operands.
    pub flow: FlowOptions,
    /// Measures again instead of using remembered speeds.
    pub remeasure: bool,
    /// Copies operands between threads, as between the nodes of a cluster.
    pub copy: bool,
    /// Kernel of plus-times.
    pub kernel: KernelChoice,
    /// Seed of the verification.
    pub seed: u64,
}

/// How operands travel and in which blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowOptions {
    /// Order of messages and updates.
    pub flow: Option<Flow>,
    /// Computes while data travel.
    pub overlap: bool,
    /// Pivot blocks in transit during an update; implies overlap.
    pub look_ahead: Option<u64>,
    /// Pivot block size: inner indices of one update.
    pub block: Option<u64>,
    /// Number of messages in which a processor broadcasts its part, instead of `block`; broadcast flow only.
    pub blocks: Option<u64>,
    /// Messages of the bulk flow.
    pub messages: Option<Messages>,
}

impl RunOptions {
    /// The options of a plan for processors that copy what they receive, for an inner dimension of `k` and elements
    /// of `element` bytes. The layouts leave the inner dimension whole.
    ///
    /// # Errors
    /// Options that the flow does not have; sizes of parts for which the machine's speeds do not suffice.
    pub(crate) fn plan_options(&self, k: u64, element: u64, machine: &Machine) -> Result<PlanOptions> {
        let options = PlanOptions {
            method: self.method,
            method_options: network_options(&machine.platform),
            inner_cuts: false,
            keep_all: self.keep_all,
            ..self.flow.plan_options(k, element, DataPath::Copied)?
        };
        size_parts(options, self.shares, machine.only_ratios())
    }
}

impl FlowOptions {
    /// Pivot block size, as requested or by default: the first that is tried where messages cost time.
    pub fn block_size(&self) -> u64 {
        self.block.unwrap_or(DEFAULT_BLOCK)
    }

    /// True if a pivot block size follows from the request.
    pub fn has_block(&self) -> bool {
        self.block.is_some() || self.blocks.is_some()
    }

    /// The policy if a processor would exceed its memory: requested values are kept.
    pub(crate) fn memory_policy(&self, path: DataPath) -> MemoryPolicy {
        if self.has_block() { MemoryPolicy::AsAsked(path) } else { MemoryPolicy::SmallerBlocks(path) }
    }

    /// Whether to overlap.
    pub(crate) fn overlaps(&self) -> bool {
        self.overlap || self.look_ahead.is_some()
    }

    /// Number of pivot blocks in transit during an update.
    ///
    /// # Errors
    /// Requested with the bulk flow, which has none.
    pub(crate) fn checked_look_ahead(&self) -> Result<u64> {
        match (self.look_ahead, self.flow) {
            (Some(_), Some(Flow::Bulk)) => Err(Error::input(
                "`look_ahead`",
                "the bulk flow sends everything at once and has no pivot blocks to look ahead to",
                "leave it out, or choose another flow",
            )),
            (ahead, _) => Ok(ahead.unwrap_or(1)),
        }
    }

    /// Pivot block size for an inner dimension of `k`.
    ///
    /// # Errors
    /// A block count for a flow other than broadcast.
    pub fn pivot_block(&self, k: u64) -> Result<u64> {
        match (self.blocks, self.flow) {
            (None, _) => Ok(self.block_size()),
            (Some(blocks), Some(Flow::Broadcast)) => Ok(k.div_ceil(blocks)),
            (Some(_), _) => Err(Error::input(
                "`blocks`",
                "applies to the broadcast flow only",
                "add `flow = broadcast`, or give `block = N`, the size of a pivot block",
            )),
        }
    }

    /// The messages of the bulk flow.
    ///
    /// # Errors
    /// Separate ones for another flow, or without a flow.
    pub(crate) fn checked_messages(&self) -> Result<Messages> {
        match (self.messages, self.flow) {
            (Some(Messages::Separate), None)
            | (Some(_), Some(Flow::OneToAll | Flow::Ring | Flow::Broadcast)) => Err(Error::input(
                "`messages`",
                "applies to the bulk flow only",
                "add `flow = bulk`, or remove it",
            )),
            (messages, _) => Ok(messages.unwrap_or_default()),
        }
    }

    /// The orders to choose from, for an inner dimension of `k`.
    ///
    /// # Errors
    /// Options that the flow does not have.
    pub fn orders(&self, k: u64) -> Result<Vec<ScheduleOptions>> {
        let messages = self.checked_messages()?;
        let orders = orders(self.flow, self.pivot_block(k)?, self.overlaps(), self.checked_look_ahead()?);
        Ok(orders.into_iter().map(|order| order.with_messages(messages)).collect())
    }

    /// The options of a plan with this flow, for an inner dimension of `k` and elements of `element` bytes.
    ///
    /// # Errors
    /// Options that the flow does not have.
    pub fn plan_options(&self, k: u64, element: u64, path: DataPath) -> Result<PlanOptions> {
        Ok(PlanOptions {
            flow: self.flow,
            overlap: self.overlaps(),
            look_ahead: self.checked_look_ahead()?,
            memory: self.memory_policy(path),
            messages: self.checked_messages()?,
            open_block: !self.has_block(),
            ..PlanOptions::open(self.pivot_block(k)?, element)
        })
    }
}

/// Parses the name of a method or a flow; `None` for `auto`, which leaves the choice open. `parameter` is what
/// errors call it.
///
/// # Errors
/// The name is unknown.
pub fn parse_choice<T: FromStr<Err = String>>(parameter: &str, name: &str) -> Result<Option<T>> {
    if name == "auto" {
        return Ok(None);
    }
    name.parse().map(Some).map_err(|what: String| match what.split_once(" (") {
        Some((what, remedy)) => Error::input(parameter, what, remedy.trim_end_matches(')')),
        None => Error::input(parameter, what, "choose another one"),
    })
}

/// Options of the methods that follow from a platform's network.
pub fn network_options(platform: &Platform) -> MethodOptions {
    let centre = match platform.network.topology {
        Topology::Star { centre } => Some(centre.0),
        _ => None,
    };
    let communication = communication_of(&platform.network);
    MethodOptions { communication, centre, ..MethodOptions::default() }
}

/// Sizes parts as asked: by default by forecast for auto, and in proportion to the speeds for a named method.
/// For a square corner for overlap alone the flow is then bulk with overlap. `ratios` says that speeds are
/// ratios only.
///
/// # Errors
/// A method or a flow that has no shares for overlap; ratios of speeds, from which auto cannot choose, and
/// which have no forecast.
pub fn size_parts(options: PlanOptions, shares: Option<Sizing>, ratios: bool) -> Result<PlanOptions> {
    let open = options.method.is_none() && options.constraints.levels.is_none();
    let sizing = match shares {
        None if open => Sizing::ByForecast,
        None => Sizing::Proportional,
        Some(Sizing::ByForecast) if ratios => {
            return Err(Error::input(
                "`shares = forecast`",
                "speeds without a unit are only ratios, which have no forecast",
                "give speeds in flop/s, or remove the flag",
            ));
        }
        Some(Sizing::ForOverlap) => return size_for_overlap(options, ratios),
        Some(sizing) => sizing,
    };
    Ok(PlanOptions { sizing, ..options })
}

fn size_for_overlap(options: PlanOptions, ratios: bool) -> Result<PlanOptions> {
    let refuse = |what: &str, remedy: &str| Err(Error::input("`shares = overlap`", what, remedy));
    if options.constraints.levels.is_some() {
        return refuse("is not for the levels of a hierarchy", "remove one of the flags");
    }
    let options = PlanOptions { sizing: Sizing::ForOverlap, ..options };
    match (options.method, options.flow) {
        (Some(Method::SquareCorner), None | Some(Flow::Bulk)) => {
            Ok(PlanOptions { flow: Some(Flow::Bulk), overlap: true, ..options })
        }
        (Some(Method::SquareCorner), _) => {
            refuse("is for the bulk flow with overlap", "use `flow = bulk`, or leave `flow` out")
        }
        (None, _) if ratios => refuse(
            "auto cannot weigh uneven shares where speeds are ratios",
            "add `method = square-corner`, or give speeds in flop/s",
        ),
        (None, _) => Ok(options),
        (Some(_), _) => {
            refuse("only square-corner and auto use it", "add `method = square-corner`, or remove it")
        }
    }
}
