//! Options of the fluid model.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How flows share a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Equal rates on a common bottleneck: plain max-min fairness.
    #[default]
    Equal,
    /// Rates in inverse proportion to the latency of each flow's route, as in TCP and always in SimGrid. A
    /// route without latency counts as one second.
    Latency,
}

/// Deviations of a network from the ideal fluid. [`Tcp::default`] has none.
#[derive(Debug, Clone, PartialEq)]
pub struct Tcp {
    /// Pairs (bytes, factor), ascending: for a message of more bytes, the latency of its route is multiplied
    /// by the factor.
    pub latency: Vec<(f64, f64)>,
    /// The same for its rate: the message drains faster or slower by the factor than its share of the links.
    pub rate: Vec<(f64, f64)>,
    /// Added to a flow's weight for each link of its route, divided by the link's bandwidth.
    pub per_link: f64,
    /// Maximum number of unacknowledged bytes: a rate never exceeds this over twice the latency.
    pub window: f64,
    /// True if acknowledgements take 5 % of a flow's rate on the way back.
    pub cross_traffic: bool,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            latency: Vec::new(),
            rate: Vec::new(),
            per_link: 0.0,
            window: f64::INFINITY,
            cross_traffic: false,
        }
    }
}

impl Tcp {
    /// SimGrid's default window, in bytes.
    const WINDOW: f64 = 4_194_304.0;

    /// A window and acknowledgements only (Casanova and Marchal 2002).
    pub fn cm02() -> Self {
        Self { window: Self::WINDOW, cross_traffic: true, ..Self::default() }
    }

    /// The factors that Velho and Legrand (2009) fitted to packet-level simulations.
    pub fn lv08() -> Self {
        Self { latency: vec![(-1.0, 13.01)], rate: vec![(-1.0, 0.97)], per_link: 20_537.0, ..Self::cm02() }
    }

    /// Factors by message size, fitted to MPI over Gigabit Ethernet (Clauss et al., IPDPS 2011).
    pub fn smpi() -> Self {
        let from = [0.0, 257.0, 732.0, 1426.0, 3484.0, 5776.0, 9376.0, 15_424.0, 65_472.0];
        let latency = [2.01467, 1.95341, 1.9503, 1.61075, 1.88101, 2.18796, 2.59299, 3.48845, 11.6436];
        let rate = [0.812084, 0.338112, 0.341987, 0.608902, 0.77493, 1.08739, 0.58729, 0.697866, 0.940694];
        Self {
            latency: from.into_iter().zip(latency).collect(),
            rate: from.into_iter().zip(rate).collect(),
            per_link: 8775.0,
            ..Self::cm02()
        }
    }

    /// The factor of a message: that of the largest size which it exceeds; 1 if it exceeds none.
    pub(super) fn factor(steps: &[(f64, f64)], bytes: f64) -> f64 {
        steps.iter().rev().find(|s| bytes > s.0).map_or(1.0, |s| s.1)
    }
}

impl FromStr for Tcp {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "ideal" => Ok(Self::default()),
            "cm02" => Ok(Self::cm02()),
            "lv08" => Ok(Self::lv08()),
            "smpi" => Ok(Self::smpi()),
            other => Err(format!("unknown correction \"{other}\" (use ideal, cm02, lv08 or smpi)")),
        }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("ideal", Self::default()),
            ("cm02", Self::cm02()),
            ("lv08", Self::lv08()),
            ("smpi", Self::smpi()),
        ];
        f.pad(named.iter().find(|(_, tcp)| tcp == self).map_or("custom", |(name, _)| name))
    }
}

/// Rules for sharing links and for starting messages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fluid {
    /// How flows share a link.
    pub weights: Weights,
    /// A message of fewer bytes travels as soon as it is sent; a larger one waits until its receive is
    /// posted.
    pub eager: u64,
    /// The sender of a message of fewer bytes continues at once; of a larger one, it waits until the message
    /// has arrived.
    pub detached: u64,
    /// Bytes that travel with each message in addition to its own.
    pub envelope: u64,
    /// True if a schedule's broadcast on a bus is one message for all receivers (Ethernet; Tinetti, section
    /// 3.2.2), at the speed of the slowest receiver's link. Otherwise it is one message per receiver, as on
    /// every network that is not a bus.
    pub broadcasts: bool,
    /// With 0, rates are recomputed at every change. Otherwise they are recomputed once this fraction of the
    /// flows in progress has started or ended: an approximation for many flows in one connected component.
    pub coarse: f64,
    /// Deviations from the ideal fluid.
    pub tcp: Tcp,
}

impl Fluid {
    /// Equal sharing. Every message travels as soon as it is sent, and occupies its sender until it has
    /// arrived if the schedule waits for that, as in the engines.
    pub fn fair() -> Self {
        Self { eager: u64::MAX, broadcasts: true, ..Self::default() }
    }

    /// The rules of `smpirun -replay` under its fluid settings: weights by latency, an envelope of 16 bytes,
    /// messages travel once their receive is posted, senders of fewer than 65,536 bytes do not wait, and a
    /// broadcast is one message per receiver.
    pub fn simgrid() -> Self {
        Self { weights: Weights::Latency, eager: 0, detached: 65_536, envelope: 16, ..Self::default() }
    }

    /// The same rules with eager messages below `bytes` bytes: they travel at once and never block their
    /// sender.
    ///
    /// # Errors
    /// More than 2^53 bytes, since such sizes are no longer exact.
    pub fn with_eager(self, bytes: u64) -> Result<Self> {
        if bytes > 1 << 53 {
            return Err(Error::input(
                "`eager`",
                format!("{bytes} bytes are too many"),
                "give at most 2^53 bytes",
            ));
        }
        Ok(Self { eager: bytes, detached: bytes, ..self })
    }
}
