//! From the flags of `arrange` to an objective and a search.

use crate::args::ArrangeArgs;
use crate::args::arrange::{EdgesName, ObjectiveName, SearchName, SpreadName};
use crate::args::numbers::sides;
use apportion::error::{Error, Result};
use apportion::plan::arrange::{Edges, GridDomain, Objective, Pivots, Search};

impl ArrangeArgs {
    /// The search.
    pub fn search(&self) -> Search {
        match self.search {
            SearchName::Exhaustive => Search::Exhaustive,
            SearchName::Published => Search::Published,
            SearchName::Heuristic => Search::Heuristic,
            SearchName::Local => Search::Local,
            SearchName::Auto => Search::Auto,
        }
    }

    /// The objective for a plan, or for a stencil's domain.
    ///
    /// # Errors
    /// A flag that the objective would ignore, or an objective that is not for domains.
    pub fn objective(&self, domain: bool) -> Result<Objective> {
        let pivots = match self.flow.unwrap_or(SpreadName::Ring) {
            SpreadName::Ring => Pivots::Ring,
            SpreadName::OneToAll => Pivots::OneToAll,
        };
        let edges = match self.edges.unwrap_or(EdgesName::Periodic) {
            EdgesName::Periodic => Edges::Periodic,
            EdgesName::Open => Edges::Open,
        };
        let default = if domain { ObjectiveName::Asymmetric } else { ObjectiveName::Bandwidth };
        let objective = match self.objective.unwrap_or(default) {
            ObjectiveName::Hops => Objective::Hops(pivots),
            ObjectiveName::Bandwidth => Objective::Bandwidth(pivots),
            ObjectiveName::Asymmetric => Objective::Asymmetric(edges),
        };
        let (halo, name) = (matches!(objective, Objective::Asymmetric(_)), name(objective));
        if domain && !halo {
            return Err(Error::input(
                format!("--objective {name}"),
                "is for matrix products, and a grid has the cost of its halo exchange",
                "use --objective asymmetric, or remove the flag",
            ));
        }
        let refuse = |flag: &str, with: String| {
            Err(Error::input(flag, format!("does not apply to {with}"), "remove the flag"))
        };
        if halo && self.flow.is_some() {
            return refuse("--flow", format!("--objective {name}"));
        }
        if !halo && self.edges.is_some() {
            return refuse("--edges", format!("--objective {name}"));
        }
        match self.search {
            SearchName::Local | SearchName::Auto => Ok(objective),
            _ if self.seed.is_some() => refuse("--seed", "any search but local and auto".into()),
            _ => Ok(objective),
        }
    }

    /// The domain that --grid and --grid-shape describe.
    ///
    /// # Errors
    /// Text that is not two whole numbers.
    pub fn domain(&self, text: &str, objective: Objective) -> Result<GridDomain> {
        let two = |text: &str, flag: &str, example: &str| match sides(text).as_deref() {
            Ok(&[m, n]) => Ok([m, n]),
            _ => {
                let what = format!("\"{text}\" is not two whole numbers");
                Err(Error::input(flag, what, format!("use two numbers, such as {example}")))
            }
        };
        let Objective::Asymmetric(edges) = objective else { unreachable!("a domain has this objective") };
        let [m, n] = two(text, "--grid", "512x512")?;
        let start = self.grid_shape.as_deref().map(|text| two(text, "--grid-shape", "2x6")).transpose()?;
        let whole = |side: u64| usize::try_from(side).unwrap_or(usize::MAX);
        Ok(GridDomain { start: start.map(|[r, c]| [whole(r), whole(c)]), ..GridDomain::new(m, n, edges) })
    }
}

/// The name of an objective.
pub fn name(objective: Objective) -> &'static str {
    match objective {
        Objective::Hops(_) => "hops",
        Objective::Bandwidth(_) => "bandwidth",
        Objective::Asymmetric(_) => "asymmetric",
    }
}
