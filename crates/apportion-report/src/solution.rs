//! The report of a linear system's solution: what `run.json` has besides the factorisation, and the text.

use super::{Report, pairs};
use apportion::units::{show_count, show_seconds};
use apportion_factor::{MOST_SCALED, SolveReport};
use serde_json::{Value, json};

/// Adds a solution to the `run.json` object of the factorisation that it used: `residual` is then the solution's.
pub fn add_solution(value: &mut Value, solution: &SolveReport) {
    value["factors_residual"] = value["residual"].take();
    value["solution"] = solution.to_value();
    value["residual"] = value["solution"]["residual"].clone();
}

impl Report for SolveReport {
    /// The object `solution` of `run.json`.
    fn to_value(&self) -> Value {
        let [before, after] = self.residuals;
        json!({
            "right_hand_sides": self.sides,
            "residual": after,
            "residual_before_refinement": before,
            "condition": self.condition,
            "seconds": self.seconds,
        })
    }

    fn to_text(&self) -> String {
        let sides = match self.sides {
            1 => "1 right-hand side".to_owned(),
            sides => format!("{} right-hand sides", show_count(u128::from(sides))),
        };
        let [before, after] = self.residuals;
        pairs(&[
            ("solution", format!("of {sides} in {}", show_seconds(self.seconds))),
            (
                "error",
                format!(
                    "||A x - b|| is {after:.3} of at most {MOST_SCALED} n ||A|| ||x|| eps, {before:.3} before refinement"
                ),
            ),
            ("condition", format!("about {:.1e} in the norm of column sums", self.condition)),
        ])
    }
}
