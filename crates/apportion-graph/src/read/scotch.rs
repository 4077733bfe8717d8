//! Scotch `.grf` files.
//!
//! Source: Pellegrini, Scotch and libScotch 6.0 user's guide (2014), section 5.1.

use super::{Lists, end_list};
use crate::graph::{Defect, MOST, RawGraph};
use crate::read::lines::Lines;
use apportion::error::{Error, Result};

/// Reads the header, and the lists up to that of vertex `last`. Numbers may be on any lines.
pub(super) fn parse(lines: &mut Lines, last: usize) -> Result<Lists> {
    const LARGEST: u32 = MOST as u32;
    let version = lines.next(0..=LARGEST, "the version of the format")?;
    if version != 0 {
        let what = format!("version {version} of the format is not read");
        return Err(lines.refuse(what, "write a centralised graph, whose version is 0"));
    }
    let vertices = lines.next(0..=LARGEST, "the number of vertices")?;
    let arcs = lines.next(0..=LARGEST, "the number of arcs")?;
    let header = lines.place();
    lines
        .require(2 * (u64::from(vertices) + u64::from(arcs)), 4 * (u64::from(vertices) + u64::from(arcs)))?;
    let base = lines.next(0..=LARGEST, "the number of the first vertex")?;
    let flags = lines.next(0..=111, "the flags")?;
    let flags = [flags / 100, flags / 10 % 10, flags % 10].map(|flag| flag > 0);
    let [labelled, edges_weighted, weighted] = flags;
    let mut raw = RawGraph { offsets: vec![0], ..RawGraph::default() };
    raw.offsets.reserve(vertices as usize);
    raw.neighbours.reserve(arcs as usize);
    let (mut labels, mut notes) = (Vec::new(), Vec::new());
    let (ends, first) =
        if labelled { (0..=LARGEST, 0) } else { (base..=(base + vertices).saturating_sub(1), base) };
    for vertex in 0..vertices as usize {
        if labelled {
            labels.push(lines.next(0..=LARGEST, "the label of a vertex")?);
        }
        if weighted {
            raw.vertex_weights.push(lines.next(0..=LARGEST, "the weight of a vertex")?);
        }
        let degree = lines.next(0..=LARGEST, "the number of neighbours of a vertex")?;
        if raw.neighbours.len() as u64 + u64::from(degree) > u64::from(arcs) {
            let what = format!("the lists have more than the {arcs} arcs of the header");
            return Err(lines.refuse(what, "count every edge twice, once for each end"));
        }
        for _ in 0..degree {
            if edges_weighted {
                raw.edge_weights.push(lines.next(0..=LARGEST, "the weight of an edge")?);
            }
            raw.neighbours.push(lines.next(ends.clone(), "a neighbour")? - first);
        }
        end_list(lines, &mut raw)?;
        if vertex == last {
            break;
        }
    }
    if last == usize::MAX {
        lines.end()?;
        lines.end_of_file("the last vertex")?;
        if raw.neighbours.len() != arcs as usize {
            let what = format!("the header says {arcs} arcs, the lists have {}", raw.neighbours.len());
            return Err(Error::input(header, what, "count every edge twice, once for each end"));
        }
    }
    if labelled {
        notes.push("vertices have labels: here they are numbered in the order of the file".to_owned());
    }
    Ok(Lists { raw, base: base as usize, labels, entries: None, notes })
}

/// Replaces the labels of neighbours by their numbers. O(entries log vertices).
pub(super) fn resolve(
    neighbours: &mut [u32],
    offsets: &[u32],
    labels: &[u32],
) -> std::result::Result<(), Defect> {
    let at = |vertex: usize, what: String, remedy| Defect { vertex: Some(vertex), what, remedy };
    let mut known: Vec<(u32, u32)> = labels.iter().copied().zip(0..).collect();
    known.sort_unstable();
    if let Some(pair) = known.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = format!("the label {} is that of another vertex too", pair[1].0);
        return Err(at(pair[1].1 as usize, what, "give every vertex its own label"));
    }
    for (vertex, ends) in offsets.windows(2).enumerate() {
        for neighbour in &mut neighbours[ends[0] as usize..ends[1] as usize] {
            let Ok(place) = known.binary_search_by_key(neighbour, |(label, _)| *label) else {
                let what = format!("the neighbour {neighbour} is no vertex's label");
                return Err(at(vertex, what, "name neighbours by their labels"));
            };
            *neighbour = known[place].1;
        }
    }
    Ok(())
}
