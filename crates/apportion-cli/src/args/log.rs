//! Which axes of a picture are logarithmic.

use clap::{Args, ValueEnum};

/// Logarithmic axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogName {
    /// Those whose values have a wide range.
    Auto,
    /// The horizontal axis.
    X,
    /// The vertical axis.
    Y,
    /// Both axes.
    Xy,
    /// Neither.
    None,
}

#[derive(Debug, Args)]
pub struct LogArgs {
    /// Logarithmic axes of the picture: auto (where values have a wide range), x, y, xy or none.
    #[arg(
        long,
        value_name = "AXES",
        value_enum,
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "For experts"
    )]
    pub log: LogName,
}

impl LogName {
    /// The axes, given those that suit the values.
    pub fn axes(self, suitable: [bool; 2]) -> [bool; 2] {
        match self {
            Self::Auto => suitable,
            Self::X => [true, false],
            Self::Y => [false, true],
            Self::Xy => [true, true],
            Self::None => [false, false],
        }
    }
}
