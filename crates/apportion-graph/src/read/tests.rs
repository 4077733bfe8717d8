use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

fn read_bytes(name: &str, bytes: &[u8], options: ReadOptions) -> Result<GraphFile> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    read_graph(&path, options)
}

fn read(name: &str, text: &str) -> Result<GraphFile> {
    read_bytes(name, text.as_bytes(), ReadOptions::default())
}

fn refused(name: &str, cases: &[(&str, &str)]) {
    for (text, word) in cases {
        let error = read(name, text).unwrap_err();
        assert!(error.exit_code() == 2 && !error.to_string().contains('\n'));
        assert!(error.to_string().contains(word), "{error}: {word}");
    }
}

fn lists(graph: &Graph) -> Vec<Vec<u32>> {
    (0..graph.vertices()).map(|vertex| graph.neighbours(vertex).to_vec()).collect()
}

fn packed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// The example of the METIS manual, figure 2.
const METIS: &str = "% seven vertices\n7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n";

#[test]
fn metis_examples_of_the_manual() {
    let plain = read("a.graph", METIS).unwrap();
    let expected: [&[u32]; 7] =
        [&[1, 2, 4], &[0, 2, 3], &[0, 1, 3, 4], &[1, 2, 5, 6], &[0, 2, 5], &[3, 4, 6], &[3, 5]];
    assert_eq!(lists(&plain.graph), expected);
    assert!(plain.notes.is_empty());
    let edges = "7 11 001\n5 1 3 2 2 1\n1 1 3 2 4 1\n5 3 4 2 2 2 1 2\n2 1 3 2 6 2 7 5\n1 1 3 3 6 2\n5 2 4 2 7 6\n6 6 4 5\n";
    let graph = read("a.metis", edges).unwrap().graph;
    assert_eq!(graph.weights_of_edges(0).collect::<Vec<_>>(), [1, 2, 1]);
    let both = "7 11 011\n4 5 1 3 2 2 1\n2 1 1 3 2 4 1\n5 5 3 4 2 2 2 1 2\n3 2 1 3 2 6 2 7 5\n1 1 1 3 3 6 2\n6 5 2 4 2 7 6\n2 6 6 4 5\n";
    let graph = read("a.graph", both).unwrap().graph;
    assert_eq!((graph.total(0), graph.weights_of_edges(6).collect()), (23, vec![5, 6]));
    let three = "2 1 110 3\n9 1 2 5 2\n9 3 4 0 1\n";
    let file = read("a.graph", three).unwrap();
    assert_eq!((file.graph.constraints(), file.graph.total(1), file.graph.total(0)), (3, 6, 4));
}

#[test]
fn what_is_unusual_is_noted() {
    let notes = read("a.graph", "4 1 110\n7 0 2\n7 3 1\n7 1\n7 1\n").unwrap().notes;
    assert_eq!(
        notes,
        [
            "sizes of vertices are not used",
            "vertices of weight 0: 1",
            "vertices without neighbours: 2",
            "components that no edge connects: 3"
        ]
    );
    let notes = read("a.graph", "3 1\n2\n1\n\n").unwrap().notes;
    assert_eq!(notes, ["vertices without neighbours: 1", "components that no edge connects: 2"]);
}

#[test]
fn metis_defects_are_refused_with_their_line() {
    refused(
        "a.graph",
        &[
            ("", ":1: has no header"),
            ("% only\n", ":1: has no header"),
            ("3\n", ":1: the number of edges is missing"),
            ("x 3\n", ":1: \"x\" is not a whole number from 0 to 2147483647"),
            ("0 0\n", "there is no vertex"),
            ("2 1 002\n2\n1\n", ":1: the format 2 is not of digits 0 and 1"),
            ("2 1 001 2\n2 1\n1 1\n", ":1: vertices have 2 weights, but the format 001 none"),
            ("2 1 011 1 5\n", ":1: \"5\" is one entry too many"),
            ("2 900\n2\n1\n", ":1: declares more than the file can hold, which is 10 bytes at most"),
            ("9999999 0\n\n", ":1: declares more"),
            ("3 2\n2\n1 3\n", ":3: ends after 2 of 3 vertices"),
            ("2 1\n2\n1\n\n2\n", ":5: is a line after the last vertex"),
            ("3 2\n1\n0 2\n1\n", ":3: \"0\" is not a whole number from 1 to 3 (count from 1"),
            ("3 2\n2\n1 4\n2\n", ":3: \"4\" is not a whole number from 1 to 3 (fix"),
            ("3 2\n2\n1 -3\n2\n", ":3: \"-3\""),
            ("3 2\n2\n1 nan\n2\n", ":3: \"nan\""),
            ("3 2\n2\n1 99999999999999999999999\n2\n", ":3: \"99999999999999999999999\""),
            ("2 1 001\n2 1\n1\n", ":3: the weight of the edge is missing"),
            ("2 1 001\n2 0\n1 0\n", ":2: the edge from 1 to 2 has weight 0"),
            ("2 1 010\n9999999999 2\n1 1\n", ":2: \"9999999999\""),
            ("2 1 010\n0 2\n0 1\n", "weights of all vertices are 0"),
            ("%\n3 2\n2\n%\n1\n2\n", ":5: vertex 3 has the neighbour 2, but 2 lacks 3"),
            ("%\n3 2\n2\n%\n1 2\n2\n", ":5: vertex 2 is its own neighbour"),
            ("%\n3 1\n2\n1 3\n2\n", ":2: the header says 1 edges, the lists have 2 (count every edge once)"),
            ("%\n3 4\n2  \n1 3\n2   \n", ":2: the header says 4 edges, the lists have 2"),
        ],
    );
    for name in ["a.txt", "a", "graph", "a.gz"] {
        let error = read(name, METIS).unwrap_err().to_string();
        assert!([".graph", ".grf", ".mtx", ".mesh"].iter().all(|format| error.contains(format)), "{error}");
    }
}

#[test]
fn packed_files_are_known_by_their_bytes() {
    let plain = read("a.graph", METIS).unwrap();
    let bytes = packed(METIS);
    for name in ["a.graph.gz", "a.graph", "a.METIS"] {
        assert_eq!(read_bytes(name, &bytes, ReadOptions::default()).unwrap(), plain);
    }
    assert_eq!(read("a.graph.gz", METIS).unwrap(), plain);
    let cut = read_bytes("a.graph.gz", &bytes[..bytes.len() - 12], ReadOptions::default()).unwrap_err();
    assert!(cut.exit_code() == 2 && cut.to_string().contains("a.graph.gz: cannot be unpacked"), "{cut}");
    let mut damaged = bytes;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    assert!(read_bytes("a.graph.gz", &damaged, ReadOptions::default()).is_err());
}

/// A path of three vertices, with all that the format has.
const SCOTCH: &str = "0\n3\t4\n1\t111\n10 5 1 7 20\n20 6 2 7 10 8\n30\n30 0 1 8 20\n";

#[test]
fn scotch_by_hand() {
    let plain = read("a.grf", "0\n3 4\n0 000\n1\t1\n2 0 2\n1 1\n").unwrap();
    assert_eq!(lists(&plain.graph), [vec![1], vec![0, 2], vec![1]]);
    assert_eq!(read("a.scotch", "0 3 4 1 0 1 2 2 1 3 1 2").unwrap(), plain);
    let GraphFile { graph, notes } = read("a.grf", SCOTCH).unwrap();
    assert_eq!(lists(&graph), lists(&plain.graph));
    assert_eq!((graph.weight(1, 0), graph.weights_of_edges(1).collect()), (6, vec![7, 8]));
    let labels = "vertices have labels: here they are numbered in the order of the file";
    assert_eq!(notes, [labels, "vertices of weight 0: 1"]);
}

#[test]
fn scotch_defects_are_refused_with_their_line() {
    refused(
        "a.grf",
        &[
            ("", "ends before the version"),
            ("2\n3 4\n", ":1: version 2 of the format is not read"),
            ("0\n3 400\n0 000\n", ":2: declares more"),
            ("0\n3 4\n0 200\n1 1\n2 0 2\n1 1\n", ":3: \"200\" is not a whole number from 0 to 111"),
            ("0\n3 4\n0 0\n1 1\n2 0 3\n1 1\n", ":5: \"3\" is not a whole number from 0 to 2"),
            ("0\n3 4\n1 0\n1 1\n2 0 2\n1 1\n", ":5: \"0\" is not a whole number from 1 to 3"),
            ("0\n3 4\n0 0\n1 1\n2 0 2\n", ":5: ends before the number of neighbours of a vertex"),
            ("0\n3 4\n0 0\n1 1\n2 0 2\n1\n", ":6: ends before a neighbour"),
            ("0\n3 2\n0 0\n1 1\n2 0 2\n1 1\n", ":5: the lists have more than the 2 arcs"),
            ("0\n3 5\n0 0\n1 1\n2 0 2\n1 1\n", ":2: the header says 5 arcs, the lists have 4"),
            ("0\n3 4\n0 0\n1 1\n2 0 2\n1 1\n5\n", ":7: is a line after"),
            ("0\n3 4\n0 0\n1 1\n2 0 2\n1 1 5\n", ":6: \"5\" is one entry too many"),
            ("0\n3 4\n0 0\n1 1\n\n2 0 0\n1 1\n", ":6: vertex 1 lists its neighbour 0 twice"),
            (&SCOTCH.replace("20 6", "10 6"), ":6: the label 10 is that of another vertex too"),
            (&SCOTCH.replace("8 20", "8 21"), ":7: the neighbour 21 is no vertex's label"),
        ],
    );
}

/// Two squares side by side and a triangle at a corner of the second.
const MESH: &str = "3\n1 2 5 4\n2 3 6 5\n% a comment\n6 7 8 6\n";

#[test]
fn meshes_by_hand() {
    let dual = read("a.mesh", MESH).unwrap().graph;
    assert_eq!(lists(&dual), [vec![1], vec![0, 2], vec![1]]);
    let edges = ReadOptions { common: 2, ..ReadOptions::default() };
    let GraphFile { graph, notes } = read_bytes("a.mesh", MESH.as_bytes(), edges).unwrap();
    assert_eq!(lists(&graph), [vec![1], vec![0], vec![]]);
    assert_eq!(notes, ["vertices without neighbours: 1", "components that no edge connects: 2"]);
    let nodal = ReadOptions { nodal: true, ..ReadOptions::default() };
    let graph = read_bytes("a.mesh", MESH.as_bytes(), nodal).unwrap().graph;
    assert_eq!((graph.vertices(), graph.neighbours(4)), (8, &[0, 1, 2, 3, 5][..]));
    assert_eq!(graph.neighbours(5), [1, 2, 4, 6, 7]);
    let weighted = "2 2\n3 4 1 2 3\n5 6 2 3 4\n";
    let graph = read("a.mesh", weighted).unwrap().graph;
    assert_eq!((graph.constraints(), graph.total(0), graph.total(1)), (2, 8, 10));
    let notes = read_bytes("a.mesh", weighted.as_bytes(), nodal).unwrap().notes;
    assert_eq!(notes, ["weights of elements are not used in the graph of nodes"]);
    refused(
        "a.mesh",
        &[
            ("", ":1: has no header"),
            ("0\n", "there is no vertex"),
            ("3\n1 2 3\n2 3 4\n", ":3: ends after 2 of 3 elements"),
            ("1\n1 2 3\n2 3 4\n", ":3: is a line after the last element"),
            ("2\n1 2 3\n0 3 4\n", ":3: \"0\" is not a whole number from 1"),
            ("2\n1 2 3\n\n", ":3: is an element without nodes"),
            ("2 1\n1 2 3\n1\n", ":3: is an element without nodes"),
            ("99999\n1 2 3\n", ":1: declares more"),
        ],
    );
}

fn sparse(text: &str) -> Result<crate::SparseMatrix> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.mtx");
    std::fs::write(&path, text).unwrap();
    read_sparse(&path)
}

#[test]
fn matrices_by_hand() {
    let head = "%%MatrixMarket matrix coordinate";
    let rows = |text: &str| {
        let matrix = sparse(text).unwrap();
        let row = |row| (matrix.row(row).0.to_vec(), matrix.row(row).1.to_vec());
        (0..matrix.rows()).map(row).collect::<Vec<_>>()
    };
    let general =
        format!("{head} real general\n% a comment\n\n 2 3 5 \n2 3 -2e3\n1 1 1.5\n%\n1 1 1\n1 3 0\n1 2 4\n");
    assert_eq!(rows(&general), [(vec![0, 1, 2], vec![2.5, 4.0, 0.0]), (vec![2], vec![-2000.0])]);
    let symmetric = format!("{head} pattern symmetric\n2 2 2\n2 1\n1 1\n");
    assert_eq!(rows(&symmetric), [(vec![0, 1], vec![1.0, 1.0]), (vec![0], vec![1.0])]);
    let skew = format!("{} integer skew-symmetric\n2 2 2\n2 1 3\n2 2 0\n", head.replace("%%", "%"));
    assert_eq!(rows(&skew), [(vec![1], vec![-3.0]), (vec![0, 1], vec![3.0, 0.0])]);
    let weights = ReadOptions { weights: Weights::Values, ..ReadOptions::default() };
    let graph = read_bytes("a.mtx.gz", &packed(&skew), weights).unwrap().graph;
    assert_eq!((graph.weight(1, 0), graph.weights_of_edges(0).collect()), (2, vec![3]));
    refused("a.mtx", &[(&general, "a matrix of 2 x 3 has no graph (give a square matrix)")]);
}

#[test]
fn matrices_that_are_refused_name_their_line() {
    let with = |kind: &str, rest: &str| format!("%%MatrixMarket matrix coordinate {kind}\n{rest}");
    for (text, word) in [
        (String::new(), "begin with %%MatrixMarket"),
        ("hello\n".into(), ":1: does not begin like"),
        ("%%MatrixMarket matrix array real general\n".into(), ":1: \"array\" matrices"),
        (with("complex general", ""), ":1: \"complex\" matrices are not supported (use real"),
        (with("real hermitian", ""), ":1: \"hermitian\""),
        (with("pattern skew-symmetric", ""), ":1: \"skew-symmetric\""),
        (with("real general", ""), ":1: rows, columns and entries are missing"),
        (with("real general", "2 2\n"), ":2: the number of entries is missing"),
        (with("real general", "0 2 0\n"), "empty matrix of 0 x 2"),
        (with("real general", "2 2 999999\n"), ":2: declares more than the file can hold"),
        (with("real general", "2 2 2\n1 1 1\n"), ":3: ends after 1 of 2 entries"),
        (with("real general", "2 2 1\n1 1 1\n1 2 1\n"), ":4: is a line after the last entry"),
        (with("real general", "2 2 1\n0 1 1\n"), ":3: \"0\" is not a whole number from 1 to 2 (count from 1"),
        (with("real general", "2 2 1\n1 3 1\n"), ":3: \"3\""),
        (with("real general", "2 2 1\n1 1 x\n"), ":3: \"x\" is not a finite number"),
        (with("real general", "2 2 1\n1 1 nan\n"), ":3: \"nan\""),
        (with("real general", "2 2 1\n1 1\n"), ":3: the value is missing"),
        (with("pattern general", "2 2 1\n1 1 1\n"), ":3: \"1\" is one entry too many"),
        (with("integer general", "1 1 1\n1 1 1.5\n"), ":3: 1.5 is not a whole number"),
        (with("real symmetric", "2 3 0\n"), ":2: a symmetric matrix cannot be 2 x 3"),
        (with("real symmetric", "2 2 1\n1 2 1\n"), "exchange row and column"),
        (with("real skew-symmetric", "2 2 1\n1 2 1\n"), "negate"),
        (with("real skew-symmetric", "2 2 1\n2 2 1\n"), "diagonal"),
    ] {
        let error = sparse(&text).unwrap_err().to_string();
        assert!(error.contains(word), "{error}: {word}");
    }
}

proptest::proptest! {
    /// A damaged file is read or refused in one line, and never causes a panic.
    #[test]
    fn damage_is_refused(
        format in 0..4usize,
        flips in proptest::collection::vec((0..64usize, proptest::prelude::any::<u8>()), 0..4),
        keep in 0..90usize,
    ) {
        let market = "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1.5\n2 1 -2\n";
        let (name, text) =
            [("a.graph", METIS), ("a.grf", SCOTCH), ("a.mesh", MESH), ("a.mtx", market)][format];
        let mut bytes = text.as_bytes().to_vec();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(keep);
        if let Err(error) = read_bytes(name, &bytes, ReadOptions::default()) {
            proptest::prop_assert!(error.exit_code() == 2 && !error.to_string().contains('\n'));
        }
    }
}
