//! Graphs, matrices, points and parts as text.

use crate::coordinates::Coordinates;
use crate::graph::Graph;
use crate::sparse::SparseMatrix;
use apportion::error::{Error, Result};
use apportion::output::OutputFile;
use std::fmt::{Display, Write};

/// Appends a word to a line.
fn add(line: &mut String, word: impl Display) {
    if !line.is_empty() {
        line.push(' ');
    }
    // Writing to a string does not fail.
    let _ = write!(line, "{word}");
}

/// Writes lines one by one.
fn put_lines(file: &mut OutputFile, count: usize, mut fill: impl FnMut(usize, &mut String)) -> Result<()> {
    let mut line = String::new();
    for index in 0..count {
        line.clear();
        fill(index, &mut line);
        line.push('\n');
        file.put(line.as_bytes())?;
    }
    Ok(())
}

/// Writes a graph in the format of METIS.
///
/// # Errors
/// The file cannot be written.
pub fn write_metis(graph: &Graph, file: &mut OutputFile) -> Result<()> {
    let [_, _, vertex_weights, edge_weights] = graph.arrays();
    let (weighted, edges_weighted) = (!vertex_weights.is_empty(), !edge_weights.is_empty());
    let mut header = format!("{} {}", graph.vertices(), graph.edges());
    if weighted || edges_weighted {
        add(&mut header, format!("0{}{}", u8::from(weighted), u8::from(edges_weighted)));
    }
    if graph.constraints() > 1 {
        add(&mut header, graph.constraints());
    }
    file.put(format!("{header}\n").as_bytes())?;
    put_lines(file, graph.vertices(), |vertex, line| {
        if weighted {
            (0..graph.constraints()).for_each(|constraint| add(line, graph.weight(vertex, constraint)));
        }
        for (neighbour, weight) in graph.neighbours(vertex).iter().zip(graph.weights_of_edges(vertex)) {
            add(line, neighbour + 1);
            if edges_weighted {
                add(line, weight);
            }
        }
    })
}

/// Writes a matrix as Matrix Market coordinates; of a symmetric one, the lower triangle.
///
/// # Errors
/// The matrix is said to be symmetric and is not: exit code 2; or the file cannot be written.
pub fn write_market(matrix: &SparseMatrix, symmetric: bool, file: &mut OutputFile) -> Result<()> {
    if symmetric && matrix.transposed() != *matrix {
        let what = "the matrix is not symmetric";
        return Err(Error::input(file.path().display().to_string(), what, "write it as a general one"));
    }
    let written = |row: usize| {
        let (columns, values) = matrix.row(row);
        let entries = columns.iter().copied().zip(values.iter().copied());
        entries.filter(move |(column, _)| !symmetric || *column as usize <= row)
    };
    let entries: usize = (0..matrix.rows()).map(|row| written(row).count()).sum();
    let kind = if symmetric { "symmetric" } else { "general" };
    let header = format!(
        "%%MatrixMarket matrix coordinate real {kind}\n{} {} {entries}\n",
        matrix.rows(),
        matrix.cols()
    );
    file.put(header.as_bytes())?;
    let mut line = String::new();
    for row in 0..matrix.rows() {
        line.clear();
        for (column, value) in written(row) {
            let _ = writeln!(line, "{} {} {value}", row + 1, column + 1);
        }
        file.put(line.as_bytes())?;
    }
    Ok(())
}

/// Writes the coordinates of a point on each line.
///
/// # Errors
/// The file cannot be written.
pub fn write_coordinates(coordinates: &Coordinates, file: &mut OutputFile) -> Result<()> {
    put_lines(file, coordinates.points(), |vertex, line| {
        coordinates.point(vertex).iter().for_each(|value| add(line, value));
    })
}

/// The processor of each vertex on a line of its own, from 0.
pub fn parts_text(parts: &[u32]) -> String {
    let mut text = String::with_capacity(2 * parts.len());
    for part in parts {
        let _ = writeln!(text, "{part}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_parts;
    use crate::{RawGraph, ReadOptions, read_coordinates, read_graph, read_sparse};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    fn written(
        name: &str,
        write: impl FnOnce(&mut OutputFile) -> Result<()>,
    ) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        let mut file = OutputFile::create(&path).unwrap();
        write(&mut file).unwrap();
        file.commit().unwrap();
        (directory, path)
    }

    /// A graph of edges with weights; the weights of vertices, side by side.
    fn graph(n: usize, edges: &BTreeMap<(u32, u32), u32>, weights: Vec<u32>, edges_weighted: bool) -> Graph {
        let mut raw = RawGraph { offsets: vec![0], constraints: weights.len() / n, ..RawGraph::default() };
        for vertex in 0..n as u32 {
            for (&(from, to), weight) in edges {
                if from == vertex || to == vertex {
                    raw.neighbours.push(from + to - vertex);
                    raw.edge_weights.extend(edges_weighted.then_some(*weight));
                }
            }
            raw.offsets.push(raw.neighbours.len() as u32);
        }
        Graph::new(RawGraph { vertex_weights: weights, ..raw }, 0).unwrap()
    }

    proptest! {
        #[test]
        fn a_graph_is_read_as_it_was_written(
            n in 1usize..9,
            pairs in prop::collection::btree_map((0u32..9, 0u32..9), 1u32..5, 0..20),
            constraints in 0usize..3,
            first in 1u32..4,
            edges_weighted: bool,
        ) {
            let mut edges = pairs;
            edges.retain(|(from, to), _| from < to && (*to as usize) < n);
            let weights = (0..n * constraints).map(|place| first + place as u32 % 3).collect();
            let graph = graph(n, &edges, weights, edges_weighted);
            let (_directory, path) = written("a.graph", |file| write_metis(&graph, file));
            prop_assert_eq!(read_graph(&path, ReadOptions::default()).unwrap().graph, graph);
        }

        #[test]
        fn a_matrix_is_read_as_it_was_written(
            (rows, cols) in (1usize..6, 1usize..6),
            entries in prop::collection::btree_map((0u32..6, 0u32..6), -1e9..1e9f64, 0..20),
        ) {
            let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..rows as u32 {
                for (&(_, column), value) in entries.range((row, 0)..(row, cols as u32)) {
                    columns.push(column);
                    values.push(*value);
                }
                offsets.push(columns.len() as u32);
            }
            let matrix = SparseMatrix::new(cols, offsets, columns, values, "a").unwrap();
            let (_directory, path) = written("a.mtx", |file| write_market(&matrix, false, file));
            prop_assert_eq!(read_sparse(&path).unwrap(), matrix);
        }
    }

    #[test]
    fn a_symmetric_matrix_is_written_by_its_lower_triangle() {
        let matrix =
            |above| SparseMatrix::new(2, vec![0, 2, 3], vec![0, 1, 0], vec![2.0, above, -1.5], "a").unwrap();
        let (_directory, path) = written("a.mtx", |file| write_market(&matrix(-1.5), true, file));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 2\n2 1 -1.5\n");
        assert_eq!(read_sparse(&path).unwrap(), matrix(-1.5));
        let mut file = OutputFile::create(&path).unwrap();
        assert!(
            write_market(&matrix(1.5), true, &mut file).unwrap_err().to_string().contains("not symmetric")
        );
    }

    #[test]
    fn points_and_parts_are_read_as_they_were_written() {
        let coordinates = Coordinates::new(2, vec![0.1, -2.0, 1e-300, 3.0], "a").unwrap();
        let (_directory, path) = written("a.xyz", |file| write_coordinates(&coordinates, file));
        assert_eq!(read_coordinates(&path, 2).unwrap(), coordinates);
        let (_directory, path) = written("a.parts", |file| file.put(parts_text(&[0, 2, 1]).as_bytes()));
        assert_eq!(read_parts(&path, 3, 3).unwrap(), [0, 2, 1]);
        for (vertices, processors, word) in [
            (3, 2, ":2: \"2\" is not a whole number from 0 to 1"),
            (4, 3, ":3: ends after 3 of 4 vertices"),
            (2, 3, ":3: is a line after those of 2 vertices"),
        ] {
            let error = read_parts(&path, vertices, processors).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
