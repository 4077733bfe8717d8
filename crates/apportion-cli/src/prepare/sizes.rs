//! From `--shares` to the options of a plan.

use crate::args::sizes::SharesName;
use apportion::error::{Error, Result};
use apportion::plan::shapes::Method;
use apportion::schedule::Flow;
use apportion::select::{PlanOptions, Sizing};

/// Sizes square corners for overlap if asked to: for that method alone the flow is then bulk with overlap.
///
/// # Errors
/// A method or a flow that has no shares for overlap; ratios of speeds, from which auto cannot choose.
pub fn sized(options: PlanOptions, shares: Option<SharesName>, ratios: bool) -> Result<PlanOptions> {
    if shares != Some(SharesName::Overlap) {
        return Ok(options);
    }
    let refuse = |what: &str, remedy: &str| Err(Error::input("--shares overlap", what, remedy));
    let options = PlanOptions { sizing: Sizing::ForOverlap, ..options };
    match (options.method, options.flow) {
        (Some(Method::SquareCorner), None | Some(Flow::Bulk)) => {
            Ok(PlanOptions { flow: Some(Flow::Bulk), overlap: true, ..options })
        }
        (Some(Method::SquareCorner), _) => {
            refuse("is for the bulk flow with overlap", "use --flow bulk, or leave --flow out")
        }
        (None, _) if ratios => refuse(
            "auto cannot weigh uneven shares where speeds are ratios",
            "add --method square-corner, or give speeds in flop/s",
        ),
        (None, _) => Ok(options),
        (Some(_), _) => {
            refuse("only square-corner and auto use it", "add --method square-corner, or remove it")
        }
    }
}
