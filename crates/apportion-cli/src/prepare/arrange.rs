//! From the flags of `arrange` to an objective and a search.

use crate::args::ArrangeArgs;
use crate::args::arrange::{EdgesName, ObjectiveName, SearchName, SpreadName};
use crate::args::numbers::sides;
use apportion::error::{Error, Result};
use apportion::plan::arrange::{CostFunction, Edges, GridDomain, Pivots, SearchMethod};
use apportion::plan::shapes::Mesh;

impl ArrangeArgs {
    /// The search.
    pub fn search(&self) -> SearchMethod {
        match self.search {
            SearchName::Exhaustive => SearchMethod::Exhaustive,
            SearchName::Published => SearchMethod::Published,
            SearchName::Heuristic => SearchMethod::Heuristic,
            SearchName::Local => SearchMethod::Local,
            SearchName::Auto => SearchMethod::Auto,
        }
    }

    /// The objective for a plan, or for a stencil's domain.
    ///
    /// # Errors
    /// A flag that the objective would ignore, or an objective that is not for domains.
    pub fn objective(&self, domain: bool) -> Result<CostFunction> {
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
            ObjectiveName::Hops => CostFunction::Hops(pivots),
            ObjectiveName::Bandwidth => CostFunction::Bandwidth(pivots),
            ObjectiveName::Asymmetric => CostFunction::Asymmetric(edges),
        };
        let (halo, name) = (matches!(objective, CostFunction::Asymmetric(_)), name(objective));
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
    pub fn domain(&self, text: &str, objective: CostFunction) -> Result<GridDomain> {
        let two = |text: &str, flag: &str, example: &str| match sides(text).as_deref() {
            Ok(&[m, n]) => Ok([m, n]),
            _ => {
                let what = format!("\"{text}\" is not two whole numbers");
                Err(Error::input(flag, what, format!("use two numbers, such as {example}")))
            }
        };
        let CostFunction::Asymmetric(edges) = objective else { unreachable!("a domain has this objective") };
        let [m, n] = two(text, "--grid", "512x512")?;
        let start = self.grid_shape.as_deref().map(|text| two(text, "--grid-shape", "2x6")).transpose()?;
        let whole = |side: u64| usize::try_from(side).unwrap_or(usize::MAX);
        Ok(GridDomain {
            start: start.map(|[r, c]| Mesh::new(whole(r), whole(c))),
            ..GridDomain::new(m, n, edges)
        })
    }
}

/// The name of an objective.
pub fn name(objective: CostFunction) -> &'static str {
    match objective {
        CostFunction::Hops(_) => "hops",
        CostFunction::Bandwidth(_) => "bandwidth",
        CostFunction::Asymmetric(_) => "asymmetric",
    }
}
