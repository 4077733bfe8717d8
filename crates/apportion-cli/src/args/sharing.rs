//! Flags for the sharing of the network by messages.

use super::numbers::{self, bytes};
use apportion::simulate::Tcp;
use clap::{Args, ValueEnum};

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

fn fraction(text: &str) -> Result<f64, String> {
    let fraction = numbers::number(text).ok().filter(|x| (0.0..=0.5).contains(x));
    fraction.ok_or_else(|| format!("\"{text}\" is not a number from 0 to 0.5"))
}
