//! From `--shares` to the options of a plan.

use crate::args::sizes::SharesName;
use apportion::error::{Error, Result};
use apportion::plan::shapes::Method;
use apportion::schedule::Flow;
use apportion::select::{PlanOptions, Sizing};

/// Sizes parts as asked: by default by forecast for auto, and in proportion to the speeds for a named method.
/// For a square corner for overlap alone the flow is then bulk with overlap.
///
/// # Errors
/// A method or a flow that has no shares for overlap; ratios of speeds, from which auto cannot choose, and
/// which have no forecast.
pub fn sized(options: PlanOptions, shares: Option<SharesName>, ratios: bool) -> Result<PlanOptions> {
    let open = options.method.is_none() && options.constraints.levels.is_none();
    let sizing = match shares {
        None if open => Sizing::ByForecast,
        None | Some(SharesName::Proportional) => Sizing::Proportional,
        Some(SharesName::Forecast) if ratios => {
            return Err(Error::input(
                "--shares forecast",
                "speeds without a unit are only ratios, which have no forecast",
                "give speeds in flop/s, or remove the flag",
            ));
        }
        Some(SharesName::Forecast) => Sizing::ByForecast,
        Some(SharesName::Overlap) => return for_overlap(options, ratios),
    };
    Ok(PlanOptions { sizing, ..options })
}

fn for_overlap(options: PlanOptions, ratios: bool) -> Result<PlanOptions> {
    let refuse = |what: &str, remedy: &str| Err(Error::input("--shares overlap", what, remedy));
    if options.constraints.levels.is_some() {
        return refuse("is not for the levels of a hierarchy", "remove one of the flags");
    }
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
