//! From the flags of `arrange` to an objective and a search.

use crate::args::ArrangeArgs;
use crate::args::arrange::{EdgesName, ObjectiveName, SearchName, SpreadName};
use apportion::error::{Error, Result};
use apportion::plan::arrange::{Edges, Objective, Pivots, Search};

impl ArrangeArgs {
    /// The search.
    pub fn search(&self) -> Search {
        match self.search {
            SearchName::Exhaustive => Search::Exhaustive,
            SearchName::Published => Search::Published,
            SearchName::Heuristic => Search::Heuristic,
            SearchName::Local => Search::Local,
        }
    }

    /// The objective, and its name.
    pub fn objective(&self) -> (Objective, &'static str) {
        let pivots = match self.flow.unwrap_or(SpreadName::Ring) {
            SpreadName::Ring => Pivots::Ring,
            SpreadName::OneToAll => Pivots::OneToAll,
        };
        let edges = match self.edges.unwrap_or(EdgesName::Periodic) {
            EdgesName::Periodic => Edges::Periodic,
            EdgesName::Open => Edges::Open,
        };
        let default = if self.grid.is_some() { ObjectiveName::Asymmetric } else { ObjectiveName::Bandwidth };
        match self.objective.unwrap_or(default) {
            ObjectiveName::Hops => (Objective::Hops(pivots), "hops"),
            ObjectiveName::Bandwidth => (Objective::Bandwidth(pivots), "bandwidth"),
            ObjectiveName::Asymmetric => (Objective::Asymmetric(edges), "asymmetric"),
        }
    }

    /// Rejects flags that the objective or the search would ignore.
    ///
    /// # Errors
    /// Such a flag.
    pub fn check(&self) -> Result<()> {
        let (objective, name) = self.objective();
        let halo = matches!(objective, Objective::Asymmetric(_));
        let refuse = |flag: &str, with: String| {
            Err(Error::input(flag, format!("does not apply to {with}"), "remove the flag"))
        };
        if halo && self.flow.is_some() {
            return refuse("--flow", format!("--objective {name}"));
        }
        if !halo && self.grid.is_none() && self.edges.is_some() {
            return refuse("--edges", format!("--objective {name}"));
        }
        match self.search {
            SearchName::Local => Ok(()),
            _ if self.seed.is_some() => refuse("--seed", "any search but local".into()),
            _ => Ok(()),
        }
    }
}
