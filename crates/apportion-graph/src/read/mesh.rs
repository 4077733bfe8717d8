//! METIS `.mesh` files: elements by their nodes, and the graphs of them.
//!
//! Source: Karypis, METIS 5.1.0 manual (2013), section 4.1.2.

use crate::graph::{Graph, MOST, RawGraph};
use crate::read::lines::Lines;
use crate::read::{GraphFile, ReadOptions};
use apportion::error::{Error, Result};
use std::path::Path;

/// Lists of numbers, one after the other.
struct Incidence {
    offsets: Vec<u32>,
    members: Vec<u32>,
}

impl Incidence {
    fn lists(&self) -> usize {
        self.offsets.len() - 1
    }

    fn list(&self, index: usize) -> &[u32] {
        &self.members[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// For each of `count` numbers, the lists that it is in.
    fn transposed(&self, count: usize) -> Self {
        let mut offsets = vec![0; count + 1];
        self.members.iter().for_each(|member| offsets[*member as usize + 1] += 1);
        (0..count).for_each(|index| offsets[index + 1] += offsets[index]);
        let (mut next, mut members) = (offsets.clone(), vec![0; self.members.len()]);
        for index in 0..self.lists() {
            for member in self.list(index) {
                let place = &mut next[*member as usize];
                members[*place as usize] = index as u32;
                *place += 1;
            }
        }
        Self { offsets, members }
    }

    /// The graph whose edges join lists that share at least `common` members. O(lists of members of lists).
    fn sharing(&self, transposed: &Self, common: u32, path: &Path) -> Result<RawGraph> {
        let mut raw = RawGraph { offsets: vec![0], ..RawGraph::default() };
        let (mut shared, mut found) = (vec![0u32; self.lists()], Vec::new());
        for index in 0..self.lists() {
            for member in self.list(index) {
                for other in transposed.list(*member as usize) {
                    let count = &mut shared[*other as usize];
                    if *count == 0 {
                        found.push(*other);
                    }
                    *count += 1;
                }
            }
            for other in found.drain(..) {
                let count = std::mem::take(&mut shared[other as usize]);
                if count >= common && other as usize != index {
                    raw.neighbours.push(other);
                }
            }
            if raw.neighbours.len() as u64 > MOST {
                let what = "the graph of this mesh has more than 2^30 edges";
                let remedy = "divide a coarser mesh, or ask that neighbours have more nodes in common";
                return Err(Error::input(path.display().to_string(), what, remedy));
            }
            raw.offsets.push(raw.neighbours.len() as u32);
        }
        Ok(raw)
    }
}

/// Reads a mesh, and makes its dual graph (of elements) or its nodal graph.
pub(super) fn read(path: &Path, options: ReadOptions) -> Result<GraphFile> {
    const LARGEST: u32 = MOST as u32;
    let mut lines = Lines::open(path, b"%")?;
    if !lines.advance_to_data()? {
        return Err(lines.refuse("has no header", "begin with the number of elements"));
    }
    let elements = lines.need(0..=LARGEST, "the number of elements")?;
    let constraints = lines.number(0..=LARGEST)?.unwrap_or(0);
    lines.end()?;
    let (count, words) = (u64::from(elements), u64::from(constraints) + 1);
    lines.require(2 * count * words, 4 * count * (words + 1))?;
    let mut mesh = Incidence { offsets: vec![0], members: Vec::new() };
    let (mut weights, mut of_element, mut nodes) = (Vec::new(), Vec::new(), 0);
    for element in 0..elements {
        if !lines.advance()? {
            let what = format!("ends after {element} of {elements} elements");
            return Err(lines.refuse(what, "copy the file again, or fix the header"));
        }
        for _ in 0..constraints {
            weights.push(lines.need(0..=LARGEST, "the weight of the element")?);
        }
        of_element.clear();
        while let Some(node) = lines.number(1..=LARGEST)? {
            of_element.push(node - 1);
        }
        // An element that lists a node twice is a degenerate one, such as a triangle among quadrangles.
        of_element.sort_unstable();
        of_element.dedup();
        mesh.members.extend(&of_element);
        nodes = nodes.max(of_element.last().map_or(0, |last| last + 1));
        if of_element.is_empty() {
            return Err(lines.refuse("is an element without nodes", "list its nodes, or fix the header"));
        }
        if mesh.members.len() as u64 > MOST {
            return Err(lines.refuse("the elements have more than 2^31 nodes", "divide a coarser mesh"));
        }
        mesh.offsets.push(mesh.members.len() as u32);
    }
    lines.end_of_file("the last element")?;
    lines.require(0, 12 * u64::from(nodes) + 4 * mesh.members.len() as u64)?;
    let mut notes = Vec::new();
    let transposed = mesh.transposed(nodes as usize);
    let raw = if options.nodal {
        if !weights.is_empty() {
            notes.push("weights of elements are not used in the graph of nodes".to_owned());
        }
        transposed.sharing(&mesh, 1, path)?
    } else {
        let common = u32::try_from(options.common).unwrap_or(u32::MAX);
        let constraints = constraints as usize;
        RawGraph { vertex_weights: weights, constraints, ..mesh.sharing(&transposed, common, path)? }
    };
    let graph = Graph::new(raw, 1).map_err(|defect| defect.at_place(path.display().to_string()))?;
    Ok(GraphFile { graph, notes })
}
