//! `matmul --transpose-a --transpose-b --alpha --beta --c-in` against three loops.

use super::Bench;
use super::bench::{TWO, product, whole};
use apportion::matrix::{AnyMatrix, Element, Matrix};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench
}

const RUN: &str = "matmul a.npy b.npy -o c.npy --platform two.toml";

fn run(more: &str) -> String {
    format!("{RUN} {more}")
}

fn turned<T: Element>(matrix: &Matrix<T>) -> Matrix<T> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    Matrix::new(cols, rows, (0..rows * cols).map(|at| matrix.row(at % rows)[at / rows]).collect())
}

/// alpha P + beta C0.
fn scaled(p: &Matrix<f64>, alpha: f64, beta: f64, c0: &Matrix<f64>) -> Matrix<f64> {
    let data = p.as_slice().iter().zip(c0.as_slice()).map(|(x, y)| alpha * x + beta * y).collect();
    Matrix::new(p.rows(), p.cols(), data)
}

#[test]
fn every_part_of_the_expression_at_awkward_sizes() {
    let bench = bench();
    for (m, k, n) in [(1, 1, 1), (31, 37, 29), (3, 900, 2), (70, 1, 90), (2, 5, 300), (301, 3, 1)] {
        let (a, b, c0) = (whole::<f64>(m, k, 1), whole::<f64>(k, n, 2), whole::<f64>(m, n, 3));
        bench.matrix("a.npy", &a);
        bench.matrix("at.npy", &turned(&a));
        bench.matrix("b.npy", &b);
        bench.matrix("bt.npy", &turned(&b));
        bench.matrix("c0.npy", &c0);
        let p = product(&a, &b);
        for flow in ["one-to-all", "ring", "bulk"] {
            for (left, right, turns) in [
                ("at.npy", "b.npy", "--transpose-a"),
                ("a.npy", "bt.npy", "--transpose-b"),
                ("at.npy", "bt.npy", "--transpose-a --transpose-b"),
            ] {
                let call =
                    format!("matmul {left} {right} {turns} -o c.npy --platform two.toml --flow {flow}");
                let report = bench.json(&format!("{call} --alpha -2 --beta 0.5 --c-in c0.npy"));
                assert_eq!(report["verified"], true);
                assert_eq!(
                    bench.read("c.npy"),
                    AnyMatrix::F64(scaled(&p, -2.0, 0.5, &c0)),
                    "{m} {k} {n} {turns:?}"
                );
            }
        }
        bench.done(&run("--c-in c0.npy"));
        assert_eq!(bench.read("c.npy"), AnyMatrix::F64(scaled(&p, 1.0, 1.0, &c0)), "beta is 1 by default");
        bench.done(&run("--alpha 3"));
        assert_eq!(bench.read("c.npy"), AnyMatrix::F64(scaled(&p, 3.0, 0.0, &c0)));
    }
}

#[test]
fn matrix_market_and_fortran_order_are_transposed_too() {
    let bench = bench();
    bench.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 2\n2 3 -3\n");
    bench.matrix("b.npy", &whole::<f64>(2, 4, 4));
    bench.done("matmul a.mtx b.npy -o c.npy --platform two.toml --transpose-a");
    let a = Matrix::new(3, 2, vec![2.0, 0.0, 0.0, 0.0, 0.0, -3.0]);
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&a, &whole(2, 4, 4))));
}

/// The rule of BLAS.
#[test]
fn what_zero_multiplies_is_not_read() {
    let bench = bench();
    let c0 = whole::<f64>(5, 4, 3);
    bench.matrix("a.npy", &Matrix::new(5, 3, vec![f64::NAN; 15]));
    bench.matrix("b.npy", &whole::<f64>(3, 4, 2));
    bench.matrix("c0.npy", &c0);
    bench.done(&run("--alpha 0 --c-in c0.npy"));
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(c0));
    bench.matrix("a.npy", &whole::<f64>(5, 3, 1));
    bench.matrix("c0.npy", &Matrix::new(5, 4, vec![f64::NAN; 20]));
    bench.done(&run("--beta 0 --c-in c0.npy"));
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(product(&whole(5, 3, 1), &whole(3, 4, 2))));
}

#[test]
fn scalars_are_those_of_the_semiring() {
    let bench = bench();
    let (a, b, c0) = (whole::<f64>(9, 7, 1), whole::<f64>(7, 8, 2), whole::<f64>(9, 8, 3));
    bench.matrix("a.npy", &a);
    bench.matrix("b.npy", &b);
    bench.matrix("c0.npy", &c0);
    for (semiring, better, sign) in
        [("max-plus", f64::max as fn(f64, f64) -> f64, 1.0), ("min-plus", f64::min, -1.0)]
    {
        bench.done(&run(&format!("--semiring {semiring} --alpha -1.5 --beta 8 --c-in c0.npy")));
        let expected = (0..72).map(|at| {
            let (i, j) = (at / 8, at % 8);
            let best = (0..7).map(|p| a.row(i)[p] + b.row(p)[j]).fold(-sign * f64::INFINITY, better);
            better(best - 1.5, c0.row(i)[j] + 8.0)
        });
        assert_eq!(bench.read("c.npy"), AnyMatrix::F64(Matrix::new(9, 8, expected.collect())), "{semiring}");
    }
    let refused = bench.fails(2, &run("--semiring max-plus --alpha inf"));
    assert!(refused.contains("--alpha"), "{refused}");
}
