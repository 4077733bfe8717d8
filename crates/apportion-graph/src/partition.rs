//! Parts of a graph whose weights are in given ratios, by METIS, by Scotch, or by cuts along an order.

mod library;
mod metis;
mod ordered;
mod scotch;

use crate::coordinates::Coordinates;
use crate::graph::Graph;
use apportion::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// Vertices up to which METIS and Scotch are compared.
const SMALL: usize = 100_000;

/// How a graph is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GraphMethod {
    /// METIS, parts cut in two again and again (Karypis and Kumar 1998).
    MetisRecursive,
    /// METIS, all parts at once.
    MetisKway,
    /// Scotch, by dual recursive bipartitioning (Pellegrini and Roman 1996).
    Scotch,
    /// Cuts across the longer side, again and again (Berger and Bokhari 1987); needs coordinates.
    Coordinates,
    /// Consecutive vertices in the order of the file.
    Contiguous,
}

impl GraphMethod {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::MetisRecursive, Self::MetisKway, Self::Scotch, Self::Coordinates, Self::Contiguous];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::MetisRecursive => "metis-recursive",
            Self::MetisKway => "metis-kway",
            Self::Scotch => "scotch",
            Self::Coordinates => "coordinates",
            Self::Contiguous => "contiguous",
        }
    }

    /// The methods of a name: none for `auto`, and for `metis` both, of which the forecast chooses. `place` is what errors
    /// call it; `coordinates` says whether the caller can have these.
    ///
    /// # Errors
    /// Another name.
    pub fn named(place: &str, name: &str, coordinates: bool) -> Result<Vec<Self>> {
        let mut known = Self::ALL.into_iter().filter(|method| coordinates || *method != Self::Coordinates);
        match name {
            "auto" => Ok(Vec::new()),
            "metis" => Ok(vec![Self::MetisRecursive, Self::MetisKway]),
            name => known.find(|method| method.name() == name).map(|method| vec![method]).ok_or_else(|| {
                let what = format!("there is no method \"{name}\" for a graph");
                let more = if coordinates { "coordinates, " } else { "" };
                let remedy =
                    format!("use auto, metis, metis-recursive, metis-kway, scotch, {more}or contiguous");
                Error::input(place, what, remedy)
            }),
        }
    }

    /// The libraries that this machine has: their names.
    pub fn libraries() -> Vec<&'static str> {
        let metis = metis::Metis::get().is_ok().then_some("METIS");
        metis.into_iter().chain(scotch::Scotch::get().is_ok().then_some("Scotch")).collect()
    }

    /// The methods that this machine has for a graph.
    pub(crate) fn available(graph: &Graph, coordinates: Option<&Coordinates>) -> Vec<Self> {
        let has = |method: &Self| match method {
            Self::MetisRecursive | Self::MetisKway => metis::Metis::get().is_ok(),
            // Scotch takes longer: of large graphs it is asked where METIS cannot be.
            Self::Scotch => {
                (graph.vertices() <= SMALL || metis::Metis::get().is_err()) && scotch::Scotch::get().is_ok()
            }
            Self::Coordinates => coordinates.is_some(),
            Self::Contiguous => true,
        };
        let several = |method: &Self| graph.constraints() == 1 || method.takes_constraints();
        Self::ALL.into_iter().filter(|method| several(method) && has(method)).collect()
    }

    fn takes_constraints(self) -> bool {
        matches!(self, Self::MetisRecursive | Self::MetisKway)
    }
}

/// The part of each vertex, from 0. Part i has about `targets[i]` of all weight, as a fraction; a target of 0 gets nothing.
///
/// # Errors
/// A library that is not there or fails; no coordinates; several constraints where the method takes one.
pub(crate) fn partition(
    graph: &Graph,
    coordinates: Option<&Coordinates>,
    method: GraphMethod,
    targets: &[f64],
) -> Result<Vec<u32>> {
    if graph.constraints() > 1 && !method.takes_constraints() {
        let what = format!("divides by one weight, and vertices have {}", graph.constraints());
        return Err(Error::input(method.name(), what, "use metis"));
    }
    // Partitioners want parts that get something.
    let ranks: Vec<u32> = (0..targets.len() as u32).filter(|rank| targets[*rank as usize] > 0.0).collect();
    let wanted: Vec<f64> = ranks.iter().map(|rank| targets[*rank as usize]).collect();
    let mut parts = match (method, coordinates) {
        _ if wanted.len() < 2 => vec![0; graph.vertices()],
        // With hardly a vertex for each, there is nothing to save.
        (GraphMethod::MetisRecursive | GraphMethod::MetisKway | GraphMethod::Scotch, _)
            if graph.vertices() < 2 * wanted.len() =>
        {
            ordered::contiguous(graph, &wanted)
        }
        (GraphMethod::MetisRecursive, _) => metis::Metis::get()?.partition(graph, &wanted, false)?,
        (GraphMethod::MetisKway, _) => metis::Metis::get()?.partition(graph, &wanted, true)?,
        (GraphMethod::Scotch, _) => scotch::Scotch::get()?.partition(graph, &wanted)?,
        (GraphMethod::Coordinates, Some(coordinates)) => ordered::bisected(graph, coordinates, &wanted),
        (GraphMethod::Coordinates, None) => {
            let what = "needs the places of the vertices";
            return Err(Error::input(method.name(), what, "give `coordinates`, or use another method"));
        }
        (GraphMethod::Contiguous, _) => ordered::contiguous(graph, &wanted),
    };
    parts.iter_mut().for_each(|part| *part = ranks[*part as usize]);
    Ok(parts)
}

#[cfg(test)]
mod tests;
