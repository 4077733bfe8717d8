//! `matmul --syrk`: C = alpha A A^T + beta C0 by the lower triangle of the product, against three loops.

use super::Bench;
use super::bench::{TWO, product, whole};
use apportion::matrix::{AnyMatrix, Element, Matrix};
use serde_json::{Value, json};

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench
}

/// A product with each product of two elements once, whose result is symmetric.
fn with_transpose(a: &Matrix<f64>) -> Matrix<f64> {
    product(a, &a.transposed())
}

#[test]
fn the_whole_result_at_awkward_sizes_for_any_processors() {
    let bench = bench();
    for (n, k) in [(1, 1), (1, 30), (31, 37), (2, 900), (70, 1), (129, 5), (300, 3)] {
        let a = whole::<f64>(n, k, 1);
        bench.matrix("a.npy", &a);
        for processors in [
            "--platform two.toml",
            "--platform two.toml --copy --flow ring --overlap --block 8",
            "--platform two.toml --copy --flow bulk --overlap --block 8",
            "--platform two.toml --copy --flow broadcast --block 8",
            "--speeds 1",
            "--speeds 3,0,1",
            "--speeds 1,1,2,3,5,8,13",
        ] {
            let report = bench.json(&format!("matmul a.npy --syrk -o c.npy {processors}"));
            assert_eq!((&report["verified"], &report["products"]), (&json!(true), &json!(1)));
            assert_eq!(report["volume"], report["plan"]["metrics"]["volume"], "{n} {k} {processors}");
            assert_eq!(report["plan"]["problem"], json!({"kind": "syrk", "n": n, "k": k}));
            assert_eq!(bench.read("c.npy"), AnyMatrix::F64(with_transpose(&a)), "{n} {k} {processors}");
        }
    }
}

/// About half of the multiply-adds of the product: the shares are the elements that are computed.
#[test]
fn half_is_computed() {
    let bench = bench();
    bench.matrix("a.npy", &whole::<f64>(1000, 4, 1));
    let report = bench.json("product --syrk a.npy --speeds 9,1");
    let shares = report["plan"]["shares"].as_array().unwrap();
    let shares: Vec<f64> = shares.iter().map(|share| share.as_f64().unwrap()).collect();
    let all = shares.iter().sum::<f64>() / 1e6;
    assert!((0.5..0.55).contains(&all), "{all}");
    assert!((shares[0] / shares[1] / 9.0 - 1.0).abs() < 0.02, "{shares:?}");
}

#[test]
fn every_part_of_the_expression() {
    let bench = bench();
    let (a, c0) = (whole::<f64>(90, 40, 1), whole::<f64>(40, 40, 3));
    bench.matrix("a.npy", &a);
    bench.matrix("c0.npy", &c0);
    // A^T A, added to a C0 that is not symmetric.
    let call =
        "matmul a.npy --syrk --transpose-a --alpha -2 --beta 0.5 --c-in c0.npy -o c.npy --platform two.toml";
    bench.done(call);
    let p = with_transpose(&a.transposed());
    let data = p.as_slice().iter().zip(c0.as_slice()).map(|(x, y)| -2.0 * x + 0.5 * y).collect();
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(Matrix::new(40, 40, data)));
}

/// Each element by the definition of the semiring, which is symmetric too.
#[test]
fn other_semirings_and_elements() {
    fn check<T: Element>(
        bench: &Bench,
        semiring: &str,
        seed: usize,
        any: impl Fn(Matrix<T>) -> AnyMatrix,
        entry: impl Fn(&[T], &[T]) -> T,
    ) {
        let a = whole::<T>(75, 9, seed);
        bench.matrix("a.npy", &a);
        bench.done(&format!("matmul a.npy --syrk --semiring {semiring} -o c.npy --platform two.toml"));
        let all = (0..75).flat_map(|i| (0..75).map(move |j| (i, j)));
        let wanted = Matrix::new(75, 75, all.map(|(i, j)| entry(a.row(i), a.row(j))).collect());
        assert_eq!(bench.read("c.npy"), any(wanted), "{semiring} {}", T::NAME);
    }
    let bench = bench();
    let pairs = |x: &[i64], y: &[i64]| x.iter().zip(y).map(|(x, y)| x + y).collect::<Vec<i64>>();
    check(&bench, "max-plus", 3, AnyMatrix::I64, |x, y| pairs(x, y).into_iter().max().unwrap());
    check(&bench, "min-plus", 4, AnyMatrix::I64, |x, y| pairs(x, y).into_iter().min().unwrap());
    let sum = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    check(&bench, "plus-times", 5, AnyMatrix::F32, sum);
}

/// In parts, with a file for each: also their transposes are there.
#[test]
fn the_result_in_several_files_is_whole() {
    let bench = bench();
    let a = whole::<f64>(150, 8, 1);
    bench.matrix("a.npy", &a);
    bench.done("matmul a.npy --syrk -o c.json --platform two.toml");
    bench.matrix(
        "one.npy",
        &Matrix::new(150, 150, {
            let one = |at: usize| f64::from(u8::from(at.is_multiple_of(151)));
            (0..150 * 150).map(one).collect()
        }),
    );
    bench.done("matmul c.json one.npy -o c.npy --platform two.toml");
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(with_transpose(&a)));
}

/// The plan of a run divides the same product again, and no other.
#[test]
fn plans_are_of_symmetric_products() {
    let bench = bench();
    let a = whole::<f64>(100, 100, 1);
    bench.matrix("a.npy", &a);
    let report = bench.json("matmul a.npy --syrk --platform two.toml --keep-all");
    bench.write("plan.json", report["plan"].to_string());
    let again = bench.json("matmul a.npy --syrk --plan plan.json --platform two.toml -o c.npy");
    assert_eq!(again["plan"]["layout"], report["plan"]["layout"]);
    assert_eq!(bench.read("c.npy"), AnyMatrix::F64(with_transpose(&a)));
    for other in ["matmul a.npy a.npy", "power a.npy --exponent 2"] {
        let error = bench.fails(2, &format!("{other} --plan plan.json --platform two.toml"));
        assert!(error.contains("is a plan of a symmetric product"), "{other}: {error}");
    }
    bench.done("partition --shape 100x100 --speeds 2,1 -o product.json");
    let error = bench.fails(2, "matmul a.npy --syrk --plan product.json");
    assert!(error.contains("not of a symmetric product"), "{error}");
    bench.done("simulate --plan plan.json --platform two.toml");
    bench.done("arrange --plan plan.json --platform two.toml");
    // Whoever computes an element owns its mirror image.
    let owners: Value =
        serde_json::from_str(&bench.done("partition --plan plan.json --export owners")).unwrap();
    let owners = &owners["matrices"]["C"]["owners"];
    let of = |i: usize, j: usize| owners[i][j].as_u64().unwrap();
    let blocks = owners.as_array().unwrap().len();
    assert!(
        (0..blocks).all(|i| (0..i).all(|j| of(i, j) == of(j, i))) && of(0, 0) != of(blocks - 1, 0),
        "{owners}"
    );
}
