//! How messages share the network, from flags.

use apportion::error::{Error, Result};
use apportion::simulate::{Fluid, Tcp, Weights};
use apportion::units::{Dimension, parse};
use clap::{Args, ValueEnum};
use std::fmt;

#[derive(Debug, Args)]
pub struct NetworkArgs {
    /// What happens when several messages use a link; default: fifo, or weighted with --traces and --export-simgrid.
    #[arg(long, value_name = "RULE")]
    pub sharing: Option<Sharing>,
    /// Messages of fewer bytes travel as soon as they are sent and never hold their sender up; larger ones wait until they are
    /// received, too. Default: all travel at once; with --traces and --export-simgrid none does. Not for fifo.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub eager: Option<u64>,
    /// Renew the rates of messages that share links only as often as this part of them has come or gone, say 0.02; default 0, at
    /// every change, which is exact. For many thousands of messages that all hang together through shared uplinks. Not for fifo.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub coarse: Option<f64>,
    /// Departures of real networks from the ideal fluid: ideal, or cm02, lv08, smpi as SimGrid has them. Not for fifo.
    #[arg(long, value_name = "MODEL")]
    pub tcp: Option<Tcp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sharing {
    /// One message after the other, as emulated networks do.
    Fifo,
    /// All at once, with equal (max-min fair) rates.
    Fair,
    /// All at once, at rates in inverse proportion to the latencies of their routes, as SimGrid has it.
    Weighted,
}

/// The rule that flags add up to.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// One message after the other.
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
                if rules.coarse > 0.0 { write!(f, ", coarse {}", rules.coarse) } else { Ok(()) }
            }
        }
    }
}

impl NetworkArgs {
    /// The rule; `referee` if it is SimGrid's unless flags say otherwise.
    pub fn rule(&self, referee: bool) -> Result<Rule> {
        let refuse =
            |flag: &str, what: &str| Err(Error::input(flag, what, "choose --sharing fair or weighted"));
        let weights = match (self.sharing, referee) {
            (Some(Sharing::Fifo), true) => {
                return refuse("--sharing", "fifo is not how traces are replayed");
            }
            (Some(Sharing::Fifo) | None, false) => {
                if self.coarse.is_some() {
                    return refuse("--coarse", "one message after the other has no rates to renew");
                }
                return match (self.eager, &self.tcp) {
                    (Some(_), _) => refuse("--eager", "one message after the other, all are eager"),
                    (_, Some(_)) => refuse("--tcp", "fifo knows no departures from its rule"),
                    (None, None) => Ok(Rule::Fifo),
                };
            }
            (Some(Sharing::Weighted), _) | (None, true) => Weights::Latency,
            (Some(Sharing::Fair), _) => Weights::Equal,
        };
        let base = if referee { Fluid::simgrid() } else { Fluid::fair() };
        let coarse = self.coarse.unwrap_or(0.0);
        let rules = Fluid { weights, coarse, tcp: self.tcp.clone().unwrap_or_default(), ..base };
        Ok(Rule::Fluid(self.eager.map_or(Ok(rules.clone()), |bytes| rules.with_eager(bytes))?))
    }
}

fn part(text: &str) -> std::result::Result<f64, String> {
    let part = text.parse().ok().filter(|part| (0.0..=0.5).contains(part));
    part.ok_or_else(|| format!("\"{text}\" is no part: give a number from 0 to 0.5"))
}

fn bytes(text: &str) -> std::result::Result<u64, String> {
    parse(text, Dimension::Bytes).map(|bytes| bytes as u64)
}
