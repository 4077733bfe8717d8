//! What there is to choose in the fluid model.

use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// How flows divide a link among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weights {
    /// Equal rates on a common bottleneck: plain max-min fairness.
    #[default]
    Equal,
    /// Rates in inverse proportion to the latency of each flow's route, as TCP shares and as SimGrid always
    /// does; a route without latency counts as one second.
    Latency,
}

/// How a network departs from the ideal fluid; [`Tcp::default`] does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Tcp {
    /// A message of more bytes than the first number has its route's latency multiplied by the second;
    /// increasing.
    pub latency: Vec<(f64, f64)>,
    /// The same for its rate, which then drains it that much faster or slower than the share of the links it
    /// takes.
    pub rate: Vec<(f64, f64)>,
    /// Added to a flow's weight for each link of its route, divided by the link's bandwidth.
    pub per_link: f64,
    /// Most bytes under way and unacknowledged: a rate never exceeds this over twice the latency.
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

    /// A window and acknowledgements, nothing else (Casanova and Marchal 2002).
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

    /// The factor of a message: that of the last size which it exceeds, 1 if it exceeds none.
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

/// How messages share links, and when they travel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fluid {
    /// How flows divide a link.
    pub weights: Weights,
    /// A message of fewer bytes travels as soon as it is sent; a larger one once it is also received.
    pub eager: u64,
    /// The sender of fewer bytes than this goes on at once; of more, it waits until they have arrived.
    pub detached: u64,
    /// Bytes that travel with each message besides its own.
    pub envelope: u64,
    /// True if a schedule's broadcast on a bus is one message that all hear (Ethernet; Tinetti, section
    /// 3.2.2), at the pace of the slowest receiver's link; else one for each receiver, as everywhere off a
    /// bus.
    pub broadcasts: bool,
    /// Rates are worked out anew at every change (0), or once this part of the flows under way has come or
    /// gone: an approximation for many flows that all hang together.
    pub coarse: f64,
    /// Departures from the ideal fluid.
    pub tcp: Tcp,
}

impl Fluid {
    /// Equal sharing, every message travels as soon as it is sent and occupies its sender until it has
    /// arrived if the schedule waits for that: what the engines do.
    pub fn fair() -> Self {
        Self { eager: u64::MAX, broadcasts: true, ..Self::default() }
    }

    /// What `smpirun -replay` does under its fluid settings: weights by latency, 16 bytes of envelope,
    /// messages travel once they are received too, senders of fewer than 65,536 bytes do not wait, a
    /// broadcast is a message for each.
    pub fn simgrid() -> Self {
        Self { weights: Weights::Latency, eager: 0, detached: 65_536, envelope: 16, ..Self::default() }
    }

    /// The same with messages of fewer than `bytes` sent eagerly: they travel at once and never hold their
    /// sender up.
    ///
    /// # Errors
    /// None here; sizes of more than 2^53 bytes are refused, since they are no longer exact.
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
