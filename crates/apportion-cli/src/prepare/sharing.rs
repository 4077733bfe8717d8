//! From flags to the rule by which messages share the network.

use crate::args::NetworkArgs;
use crate::args::sharing::Sharing;
use apportion::error::{Error, Result};
use apportion::simulate::{Fluid, Tcp, Weights};
use std::fmt;

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
