//! The report of a linear system's solution: what `run.json` has besides the factorisation, and the text.

use super::text::three_digits;
use super::{Report, pairs};
use apportion::units::{show_count, show_seconds};
use apportion_factor::{MOST_SCALED, Mixed, SolveReport};
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
            "refinement_steps": self.steps,
            "mixed": self.mixed.as_ref().map(|mixed| json!({
                "steps": mixed.steps,
                "fell_back": mixed.failure.is_some(),
                "why": mixed.failure,
            })),
            "condition": self.condition,
            "seconds": self.seconds,
            "substitution_seconds": self.substitution_seconds,
        })
    }

    fn to_text(&self) -> String {
        let sides = match self.sides {
            1 => "1 right-hand side".to_owned(),
            sides => format!("{} right-hand sides", show_count(u128::from(sides))),
        };
        let [before, after] = self.residuals.map(three_digits);
        let seconds = [self.seconds, self.substitution_seconds].map(show_seconds);
        let refined = match self.steps {
            1 => format!(", {before} before refinement"),
            steps => format!(", {before} before {steps} steps of refinement"),
        };
        let mut lines = vec![
            ("solution", format!("of {sides} in {} (substitution: {})", seconds[0], seconds[1])),
            ("error", format!("||A x - b|| is {after} of at most {MOST_SCALED} n ||A|| ||x|| eps{refined}")),
            ("condition", format!("about {:.1e} in the norm of column sums", self.condition)),
        ];
        if let Some(Mixed { steps, failure }) = &self.mixed {
            let plural = if *steps == 1 { "" } else { "s" };
            let text = match failure {
                None => format!("factors in f32, refined to f64 by {steps} step{plural}"),
                Some(why) => format!("fell back to f64: {why}"),
            };
            lines.insert(1, ("precision", text));
        }
        pairs(&lines)
    }
}
