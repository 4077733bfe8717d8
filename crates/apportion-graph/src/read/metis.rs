//! METIS `.graph` files.
//!
//! Source: Karypis, METIS 5.1.0 manual (2013), section 4.1.1.

use super::{Lists, end_list};
use crate::graph::{MOST, RawGraph};
use crate::read::lines::Lines;
use apportion::error::Result;

/// Reads the header, and the lists up to that of vertex `last`.
pub(super) fn parse(lines: &mut Lines, last: usize) -> Result<Lists> {
    const LARGEST: u32 = MOST as u32;
    if !lines.advance_to_data()? {
        return Err(lines.refuse("has no header", "begin with the numbers of vertices and edges"));
    }
    let vertices = lines.need(0..=LARGEST, "the number of vertices")?;
    let edges = lines.need(0..=LARGEST / 2, "the number of edges")?;
    let format = lines.number(0..=111)?.unwrap_or(0);
    let flags = [format / 100, format / 10 % 10, format % 10];
    if flags.iter().any(|flag| *flag > 1) {
        let what = format!("the format {format} is not of digits 0 and 1");
        return Err(lines.refuse(what, "write 1 for sizes, weights of vertices and weights of edges each"));
    }
    let [sized, weighted, edges_weighted] = flags.map(|flag| flag == 1);
    let constraints = lines.number(0..=LARGEST)?.filter(|constraints| *constraints > 0);
    if constraints.is_some() && !weighted {
        let what =
            format!("vertices have {} weights, but the format {format:03} none", constraints.unwrap_or(0));
        return Err(lines.refuse(what, "write the format 010 or 011"));
    }
    let constraints = constraints.unwrap_or(1);
    lines.end()?;
    let (n, m, weights) =
        (u64::from(vertices), u64::from(edges), u64::from(constraints) * u64::from(weighted));
    // A vertex takes its line, and a word a blank or the end of the line too.
    let bytes = (4 * n).saturating_mul(weights + 2).saturating_add(8 * m);
    lines.require((4 * m + 2 * n * weights).max(n), bytes)?;
    let mut raw = RawGraph { offsets: vec![0], constraints: constraints as usize, ..RawGraph::default() };
    raw.offsets.reserve(vertices as usize);
    raw.neighbours.reserve(2 * edges as usize);
    let entries = Some((lines.place(), 2 * m));
    for vertex in 0..vertices as usize {
        if !lines.advance()? {
            let what = format!("ends after {vertex} of {vertices} vertices");
            return Err(lines.refuse(what, "copy the file again, or fix the header"));
        }
        if sized {
            lines.need(0..=LARGEST, "the size of the vertex")?;
        }
        for _ in 0..weights {
            raw.vertex_weights.push(lines.need(0..=LARGEST, "the weight of the vertex")?);
        }
        while let Some(neighbour) = lines.number(1..=vertices)? {
            raw.neighbours.push(neighbour - 1);
            if edges_weighted {
                raw.edge_weights.push(lines.need(0..=LARGEST, "the weight of the edge")?);
            }
        }
        end_list(lines, &mut raw)?;
        if vertex == last {
            break;
        }
    }
    if last == usize::MAX {
        lines.end_of_file("the last vertex")?;
    }
    let notes = sized.then(|| "sizes of vertices are not used".to_owned()).into_iter().collect();
    Ok(Lists { raw, base: 1, labels: Vec::new(), entries, notes })
}
