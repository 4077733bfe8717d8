//! Flags for the sharing of the network by messages.

use super::numbers::{self, bytes};
use apportion::error::{Error, Result};
use apportion::simulate::{Fluid, Tcp, Weights};
use clap::{Args, ValueEnum};
use std::fmt;

#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// Rule for messages that use the same link [default: fifo, or weighted with --traces and
    /// --export-simgrid].
    #[arg(long, value_name = "RULE", help_heading = "Network")]
    pub sharing: Option<Sharing>,
    /// Size from which a message waits for its receiver and holds up its sender; smaller messages leave at
    /// once [default: no message waits, or all wait with --traces and --export-simgrid]. Not for fifo.
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "For experts")]
    pub eager: Option<u64>,
    /// Update the rates of messages that share links only when this fraction of the messages has started or
    /// ended, such as 0.02 [default: 0, at every change, which is exact]. Useful for many thousands of
    /// messages that share uplinks. Not for fifo.
    #[arg(long, alias = "coarse", value_name = "FRACTION", value_parser = fraction,
        help_heading = "For experts")]
    pub rate_tolerance: Option<f64>,
    /// Model of real networks' deviations from the ideal fluid: ideal, or SimGrid's cm02, lv08 or smpi
    /// [default: ideal]. Not for fifo.
    #[arg(long, value_name = "MODEL", help_heading = "For experts")]
    pub tcp: Option<Tcp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sharing {
    /// One message after another, as on emulated networks.
    Fifo,
    /// All at once, at equal (max-min fair) rates.
    Fair,
    /// All at once, at rates inversely proportional to the latencies of their routes, as in SimGrid.
    Weighted,
}

fn fraction(text: &str) -> std::result::Result<f64, String> {
    let fraction = numbers::number(text).ok().filter(|x| (0.0..=0.5).contains(x));
    fraction.ok_or_else(|| format!("\"{text}\" is not a number from 0 to 0.5"))
}

/// The rule set by the flags.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// One message after another.
    Fifo,
    /// All at once.
    Fluid(Fluid),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo => f.write_str("fifo"),
            Self::Fluid(rules) => {
                let ideal = rules.tcp == Tcp::default();
                f.write_str(if rules.weights == Weights::Equal { "fair" } else { "weighted" })?;
                if !ideal {
                    write!(f, ", {}", rules.tcp)?;
                }
                if rules.coarse > 0.0 { write!(f, ", rate tolerance {}", rules.coarse) } else { Ok(()) }
            }
        }
    }
}

impl NetworkArgs {
    /// The rule; `referee` if SimGrid's is the default.
    pub fn rule(&self, referee: bool) -> Result<Rule> {
        let refuse =
            |flag: &str, what: &str| Err(Error::input(flag, what, "choose --sharing fair or weighted"));
        let weights = match (self.sharing, referee) {
            (Some(Sharing::Fifo), true) => {
                return refuse("--sharing", "traces cannot be replayed with fifo");
            }
            (Some(Sharing::Fifo) | None, false) => {
                if self.rate_tolerance.is_some() {
                    return refuse("--rate-tolerance", "fifo has no rates to update");
                }
                return match (self.eager, &self.tcp) {
                    (Some(_), _) => refuse("--eager", "with fifo no message waits for its receiver"),
                    (_, Some(_)) => refuse("--tcp", "fifo has no model of deviations"),
                    (None, None) => Ok(Rule::Fifo),
                };
            }
            (Some(Sharing::Weighted), _) | (None, true) => Weights::Latency,
            (Some(Sharing::Fair), _) => Weights::Equal,
        };
        let base = if referee { Fluid::simgrid() } else { Fluid::fair() };
        let coarse = self.rate_tolerance.unwrap_or(0.0);
        let rules = Fluid { weights, coarse, tcp: self.tcp.clone().unwrap_or_default(), ..base };
        Ok(Rule::Fluid(self.eager.map_or(Ok(rules.clone()), |bytes| rules.with_eager(bytes))?))
    }
}
