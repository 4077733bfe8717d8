//! `matmul` against three loops: element types, orders, sizes, sources of speeds.

use super::Bench;
use super::bench::{TWO, product, whole};
use apportion::matrix::{AnyMatrix, Matrix};

/// m, k, n: one element, primes, fewer rows than processors, a long inner dimension, a row, a column.
const SIZES: [(usize, usize, usize); 7] =
    [(1, 1, 1), (31, 37, 29), (2, 53, 71), (5, 1500, 3), (1, 64, 200), (200, 64, 1), (130, 1, 130)];

#[test]
fn awkward_sizes_in_double_precision() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    for (m, k, n) in SIZES {
        let (a, b) = (whole(m, k, 1), whole(k, n, 2));
        bench.matrix("a.npy", &a);
        bench.matrix("b.npy", &b);
        for flow in ["one-to-all", "ring", "bulk", "broadcast", "auto"] {
            let run = format!("matmul a.npy b.npy -o c.npy --platform two.toml --flow {flow}");
            bench.done(&run);
            assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&a, &b)), "{m} x {k} x {n}, {flow}");
        }
    }
}

#[test]
fn single_precision_gives_single_precision() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    for (m, k, n) in SIZES {
        bench.matrix("a.npy", &whole::<f32>(m, k, 1));
        bench.matrix("b.npy", &whole::<f32>(k, n, 2));
        bench.done("matmul a.npy b.npy -o c.npy --platform two.toml --overlap");
        let c = product(&whole(m, k, 1), &whole(k, n, 2));
        let single = c.as_slice().iter().map(|&x| x as f32).collect();
        assert_eq!(bench.read("c.npy"), AnyMatrix::F32(Matrix::new(m, n, single)), "{m} x {k} x {n}");
    }
}

/// An `.npy` file in Fortran order, written by hand.
fn fortran(matrix: &Matrix<f64>) -> Vec<u8> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let mut header = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': ({rows}, {cols}), }}");
    while !(10 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    for j in 0..cols {
        for i in 0..rows {
            bytes.extend(matrix.row(i)[j].to_le_bytes());
        }
    }
    bytes
}

#[test]
fn either_factor_may_be_in_fortran_order() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    let (a, b) = (whole(23, 41, 5), whole(41, 17, 6));
    let expected = AnyMatrix::F64(product(&a, &b));
    bench.matrix("a.npy", &a);
    bench.matrix("b.npy", &b);
    bench.write("af.npy", fortran(&a));
    bench.write("bf.npy", fortran(&b));
    for (left, right) in [("af.npy", "b.npy"), ("a.npy", "bf.npy"), ("af.npy", "bf.npy")] {
        bench.done(&format!("matmul {left} {right} -o c.npy --platform two.toml"));
        assert_eq!(bench.read("c.npy"), expected, "{left} {right}");
    }
}

#[test]
fn matrix_market_is_read() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 1 -3\n");
    let b = whole(2, 3, 4);
    bench.matrix("b.npy", &b);
    bench.done("matmul a.mtx b.npy -o c.npy --platform two.toml");
    let a = Matrix::new(2, 2, vec![2.0, 0.0, -3.0, 0.0]);
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&a, &b)));
}

#[test]
fn every_method_and_a_given_plan_compute_the_same_bytes() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &whole::<f64>(90, 40, 1));
    bench.matrix("b.npy", &whole::<f64>(40, 80, 2));
    let expected = AnyMatrix::F64(product(&whole(90, 40, 1), &whole(40, 80, 2)));
    let base = "matmul a.npy b.npy -o c.npy --platform two.toml";
    for method in ["rows", "straight-line", "columns", "square-corner", "hybrid", "auto"] {
        let report = bench.json(&format!("{base} --method {method}"));
        assert_eq!(bench.read("c.npy"), expected, "{method}");
        if method != "auto" {
            assert_eq!(report["plan"]["method"], method);
        }
        let shape = format!("partition --shape 90x40x80 --platform two.toml --method {method}");
        bench.done(&format!("{shape} -o plan.json"));
        let report = bench.json(&format!("{base} --plan plan.json"));
        assert_eq!(bench.read("c.npy"), expected, "{method}, given");
        assert_eq!(
            report["plan"]["layout"],
            bench.value("plan.json")["layout"],
            "the plan that was given is run"
        );
    }
}

#[test]
fn given_speeds_decide_the_shares() {
    let bench = Bench::new();
    bench.matrix("a.npy", &whole::<f64>(100, 10, 1));
    bench.matrix("b.npy", &whole::<f64>(10, 100, 2));
    let run = "matmul a.npy b.npy -o c.npy --method rows --block 64";
    let report = bench.json(&format!("{run} --speeds 7,2,1"));
    assert_eq!(report["plan"]["shares"], serde_json::json!([7000, 2000, 1000]));
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&whole(100, 10, 1), &whole(10, 100, 2))));
}

#[test]
fn without_an_output_the_product_is_verified_and_dropped() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &whole::<f64>(9, 9, 1));
    let before = bench.files();
    let report = bench.json("matmul a.npy a.npy --platform two.toml");
    assert_eq!(report["verified"], true);
    assert_eq!(bench.files(), before);
}

#[test]
fn a_factor_may_be_replaced_by_the_product() {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    let a = whole(12, 12, 1);
    bench.matrix("a.npy", &a);
    bench.done("matmul a.npy a.npy -o a.npy --platform two.toml");
    assert_eq!(bench.read("a.npy"), AnyMatrix::F64(product(&a, &a)));
}
