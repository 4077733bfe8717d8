//! Graphs from files: their formats, and what is unusual in them.

pub(crate) mod lines;
mod market;
mod mesh;
mod metis;
mod scotch;
#[cfg(test)]
mod tests;

pub use market::read_sparse;

use crate::graph::{Graph, MOST, RawGraph};
use crate::sparse::Weights;
use apportion::error::{Error, Result};
use lines::Lines;
use std::path::Path;

/// The format of a graph's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// The adjacency lists of METIS.
    Metis,
    /// The adjacency lists of Scotch.
    Scotch,
    /// A sparse matrix.
    MatrixMarket,
    /// The elements of a mesh, as METIS has them.
    Mesh,
}

impl GraphFormat {
    /// The format by a file's name: `.graph` or `.metis`, `.grf` or `.scotch`, `.mtx`, `.mesh`; `.gz` may
    /// follow.
    ///
    /// # Errors
    /// Another name.
    pub fn of_name(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("graph" | "metis" | "info") => Ok(Self::Metis),
            Some("grf" | "scotch") => Ok(Self::Scotch),
            Some("mtx") => Ok(Self::MatrixMarket),
            Some("mesh") => Ok(Self::Mesh),
            _ => Err(Error::input(
                path.display().to_string(),
                "is not named as a graph",
                "name it .graph (METIS), .grf (Scotch), .mtx (Matrix Market) or .mesh (METIS); .gz may follow",
            )),
        }
    }
}

/// How a graph is made of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// What the graph of a matrix has as weights.
    pub weights: Weights,
    /// Whether vertices are the nodes of a mesh rather than its elements.
    pub nodal: bool,
    /// Number of nodes that two elements share at least to be neighbours (`ncommon` of METIS).
    pub common: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { weights: Weights::default(), nodal: false, common: 1 }
    }
}

/// A graph, and what is unusual about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphFile {
    /// The graph.
    pub graph: Graph,
    /// Short statements: what was not used, vertices without neighbours or work, several components.
    pub notes: Vec<String>,
}

/// Reads a graph in the format of the file's name; packed by gzip or not. O(entries log degree).
///
/// # Errors
/// The file cannot be read, or is damaged or no sound graph: exit code 2, with the line where there is one.
pub fn read_graph(path: &Path, options: ReadOptions) -> Result<GraphFile> {
    let mut file = match GraphFormat::of_name(path)? {
        GraphFormat::Metis => read_lists(path, b"%", metis::parse)?,
        GraphFormat::Scotch => read_lists(path, b"", scotch::parse)?,
        GraphFormat::Mesh => mesh::read(path, options)?,
        GraphFormat::MatrixMarket => {
            let graph = read_sparse(path)?.graph(options.weights);
            let graph = graph.map_err(|defect| defect.at_place(path.display().to_string()))?;
            GraphFile { graph, notes: Vec::new() }
        }
    };
    let graph = &file.graph;
    let count = |is: &dyn Fn(usize) -> bool| (0..graph.vertices()).filter(|vertex| is(*vertex)).count();
    let idle = |vertex| (0..graph.constraints()).all(|constraint| graph.weight(vertex, constraint) == 0);
    for (what, number, usual) in [
        ("vertices of weight 0", count(&idle), 0),
        ("vertices without neighbours", count(&|vertex| graph.neighbours(vertex).is_empty()), 0),
        ("components that no edge connects", graph.components(), 1),
    ] {
        if number != usual {
            file.notes.push(format!("{what}: {number}"));
        }
    }
    Ok(file)
}

/// Adjacency lists as a file has them.
struct Lists {
    raw: RawGraph,
    /// The number of the first vertex.
    base: usize,
    /// The names by which lists have their neighbours, if those are not numbers.
    labels: Vec<u32>,
    /// The place of the header, and the number of entries by it.
    entries: Option<(String, u64)>,
    notes: Vec<String>,
}

/// Reads a file of adjacency lists. `parse` reads them up to that of a vertex: only the second time, to find the line of
/// what is wrong, up to a real one.
fn read_lists(
    path: &Path,
    comments: &'static [u8],
    parse: fn(&mut Lines, usize) -> Result<Lists>,
) -> Result<GraphFile> {
    let mut lists = parse(&mut Lines::open(path, comments)?, usize::MAX)?;
    let resolved = match lists.labels.is_empty() {
        true => Ok(()),
        false => scotch::resolve(&mut lists.raw.neighbours, &lists.raw.offsets, &lists.labels),
    };
    let graph = match resolved.and_then(|()| Graph::new(lists.raw, lists.base)) {
        Ok(graph) => graph,
        Err(defect) => {
            let Some(vertex) = defect.vertex else {
                return Err(defect.at_place(path.display().to_string()));
            };
            let mut lines = Lines::open(path, comments)?;
            parse(&mut lines, vertex)?;
            return Err(defect.at_place(lines.place()));
        }
    };
    match lists.entries {
        Some((header, entries)) if entries != 2 * graph.edges() => {
            let what = format!("the header says {} edges, the lists have {}", entries / 2, graph.edges());
            Err(Error::input(header, what, "count every edge once"))
        }
        _ => Ok(GraphFile { graph, notes: lists.notes }),
    }
}

/// Ends the list of a vertex.
fn end_list(lines: &Lines, raw: &mut RawGraph) -> Result<()> {
    if raw.neighbours.len() as u64 > MOST {
        return Err(lines.refuse("the vertices have more than 2^31 neighbours", "divide a coarser graph"));
    }
    raw.offsets.push(raw.neighbours.len() as u32);
    Ok(())
}

/// Reads the processor of each vertex, one a line, from 0.
///
/// # Errors
/// The file cannot be read, or has another number of lines, or names a processor that there is not: exit code 2.
pub(crate) fn read_parts(path: &Path, vertices: usize, processors: usize) -> Result<Vec<u32>> {
    let mut lines = Lines::open(path, b"%#")?;
    let last = u32::try_from(processors.saturating_sub(1)).unwrap_or(u32::MAX);
    let mut parts = Vec::with_capacity(vertices);
    while lines.advance_to_data()? {
        if parts.len() == vertices {
            return Err(lines.refuse(format!("is a line after those of {vertices} vertices"), "remove it"));
        }
        parts.push(lines.need(0..=last, &format!("one of {processors} processors"))?);
        lines.end()?;
    }
    match parts.len() == vertices {
        true => Ok(parts),
        false => {
            let what = format!("ends after {} of {vertices} vertices", parts.len());
            Err(lines.refuse(what, "give the processor of each vertex on a line of its own"))
        }
    }
}
