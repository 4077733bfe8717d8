use super::*;
use crate::graph::RawGraph;
use crate::parts::count_parts;

/// A grid of vertices, each with those above, below and beside it; the places of the vertices.
pub(crate) fn grid(rows: u32, cols: u32) -> (Graph, Coordinates) {
    let mut raw = RawGraph { offsets: vec![0], ..RawGraph::default() };
    for (row, col) in (0..rows * cols).map(|vertex| (vertex / cols, vertex % cols)) {
        let vertex = row * cols + col;
        let around = [
            (row > 0).then(|| vertex - cols),
            (col > 0).then(|| vertex - 1),
            (col + 1 < cols).then(|| vertex + 1),
            (row + 1 < rows).then(|| vertex + cols),
        ];
        raw.neighbours.extend(around.into_iter().flatten());
        raw.offsets.push(raw.neighbours.len() as u32);
    }
    let places = (0..rows * cols).flat_map(|vertex| [vertex / cols, vertex % cols].map(f64::from));
    (Graph::new(raw, 0).unwrap(), Coordinates::new(2, places.collect(), "a grid").unwrap())
}

/// Every method that this machine has, on targets of which one is zero.
#[test]
fn parts_have_their_targets() {
    let (graph, coordinates) = grid(60, 50);
    let targets = [4.0, 2.0, 0.0, 1.0, 1.0];
    for method in GraphMethod::ALL {
        let parts = match partition(&graph, Some(&coordinates), method, &targets) {
            Ok(parts) => parts,
            Err(error) => {
                assert!(error.to_string().contains("is not on this machine"), "{error}");
                println!("SKIP {}: {error}", method.name());
                continue;
            }
        };
        let counted = count_parts(&graph, &parts, targets.len());
        for (rank, target) in targets.iter().enumerate() {
            let wanted = target / 8.0 * 3000.0;
            assert!(counted.weights[rank] <= 1.03 * wanted, "{method:?} {rank}: {:?}", counted.weights);
        }
        // A cut straight across has 50 or 60 edges.
        assert!(counted.edge_cut.unwrap() <= 220, "{method:?} {:?}", counted.edge_cut);
        assert_eq!(partition(&graph, Some(&coordinates), method, &targets).unwrap(), parts);
    }
}

#[test]
fn more_processors_than_vertices_and_a_single_one() {
    let (graph, coordinates) = grid(1, 3);
    for method in GraphMethod::ALL {
        let Ok(parts) = partition(&graph, Some(&coordinates), method, &[1.0; 7]) else { continue };
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| *part < 7));
        assert_eq!(partition(&graph, Some(&coordinates), method, &[0.0, 1.0]).unwrap(), [1, 1, 1]);
    }
}

/// By hand: weights 1, 1, 4, 1, 1 in a row, of which two thirds are wanted first: 1 + 1 + 4 = 6 of 8 are nearer than 2.
#[test]
fn a_vertex_across_a_cut_goes_where_more_of_it_is() {
    let (graph, _) = grid(1, 5);
    let graph = graph.with_weights(vec![1, 1, 4, 1, 1]).unwrap();
    assert_eq!(partition(&graph, None, GraphMethod::Contiguous, &[2.0, 1.0]).unwrap(), [0, 0, 0, 1, 1]);
    assert_eq!(partition(&graph, None, GraphMethod::Contiguous, &[1.0, 2.0]).unwrap(), [0, 0, 1, 1, 1]);
}

#[test]
fn what_a_method_cannot_do_is_said() {
    let (graph, _) = grid(2, 2);
    let error = partition(&graph, None, GraphMethod::Coordinates, &[1.0, 1.0]).unwrap_err();
    assert!(error.to_string().contains("needs the places"), "{error}");
    let named = |name: &str, coordinates| GraphMethod::named("m", name, coordinates);
    assert!(named("voronoi", true).unwrap_err().to_string().contains("metis-kway, scotch, coordinates"));
    assert!(named("coordinates", false).is_err());
    assert_eq!(["auto", "scotch", "metis"].map(|name| named(name, true).unwrap().len()), [0, 1, 2]);
}
