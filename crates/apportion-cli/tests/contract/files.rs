//! `merge` and `random`: files of models and matrices.

use super::bench::Bench;
use apportion::matrix::AnyMatrix;

fn models(block: u32, seconds: f64) -> String {
    format!(
        "{{\"format\": \"apportion-models\", \"version\": 1, \"kernel\": \"gemm-f64\", \"unit\": \"u\", \
         \"parameters\": {{\"block\": {block}}}, \"models\": [{{\"processor\": \"core0\", \"points\": [\
         {{\"size\": 100, \"seconds\": {seconds}}}]}}]}}"
    )
}

#[test]
fn models_of_several_hosts_become_one_file() {
    let bench = Bench::new();
    bench.write("old.json", models(64, 3.0));
    bench.write("new.json", models(64, 1.0));
    bench.write("other.json", models(32, 1.0));
    let merged = bench.json("merge old.json new.json --prefix old,new -o models.json");
    assert_eq!(merged, bench.value("models.json"));
    let plan = bench.json("partition --units 400 --models models.json");
    assert_eq!(plan["processors"], serde_json::json!(["old:core0", "new:core0"]));
    assert_eq!(plan["shares"], serde_json::json!([100, 300]));
    let table = bench.done("merge models.json");
    assert!(table.contains("old:core0") && table.contains("new:core0"), "{table}");
    bench.refuses(&[
        ("merge old.json new.json -o m.json", "--prefix old,new"),
        ("merge old.json other.json --prefix a,b -o m.json", "block = 32"),
        ("merge old.json new.json --prefix a -o m.json", "1 names for 2 files"),
        ("merge old.json new.json --prefix a, -o m.json", "no name"),
        ("merge old.json new.json --prefix a,a -o m.json", "a:core0"),
        ("merge old.json none.json", "none.json"),
        ("merge", "FILE"),
    ]);
}

#[test]
#[ignore = "slow"]
fn random_matrices_are_reproducible_and_can_be_used() {
    let bench = Bench::new();
    bench.done("random 30 20 -o A.npy");
    let first = bench.bytes("A.npy");
    assert_eq!(first.len(), 128 + 30 * 20 * 8);
    let told = bench.json("random 30 20 -o A.npy --seed 1 --kind f64");
    assert!(bench.bytes("A.npy") == first);
    assert_eq!((&told["rows"], &told["cols"], &told["bytes"]), (&30.into(), &20.into(), &4800.into()));
    bench.done("random 30 20 -o B.npy --seed 2");
    assert!(bench.bytes("B.npy") != first);
    bench.done("random 20 30 -o B.npy");
    bench.done("matmul A.npy B.npy -o C.npy --speeds 3,1");
    for (kind, semiring) in
        [("f32", "min-plus"), ("i32", "min-plus"), ("i64", "max-plus"), ("bool", "or-and")]
    {
        bench.done(&format!("random 12 12 -o G.npy --kind {kind}"));
        bench.done(&format!("matmul G.npy G.npy --semiring {semiring} --speeds 3,1"));
        let matches = match bench.read("G.npy") {
            AnyMatrix::F32(_) => kind == "f32",
            AnyMatrix::I32(_) => kind == "i32",
            AnyMatrix::I64(_) => kind == "i64",
            AnyMatrix::Bool(_) => kind == "bool",
            _ => false,
        };
        assert!(matches, "{kind}");
    }
}
