//! Every flow on every kind of layout, with and without overlap, looking one or several blocks ahead.

use super::Bench;
use super::bench::{product, whole};
use apportion::kernels::Kernel;
use apportion::matrix::{AnyMatrix, Element, Matrix};
use apportion_testing::holds;

const FLOWS: [&str; 4] = ["one-to-all", "ring", "bulk", "broadcast"];

/// Four processors on one cable.
const BUS: &str = "name = \"bus\"\n\
    [[processor]]\nname = \"a\"\nspeed = \"4 Mflop/s\"\n\
    [[processor]]\nname = \"b\"\nspeed = \"3 Mflop/s\"\n\
    [[processor]]\nname = \"c\"\nspeed = \"2 Mflop/s\"\n\
    [[processor]]\nname = \"d\"\nspeed = \"1 Mflop/s\"\n\
    [network]\nlatency = \"1 ms\"\nbandwidth = \"1 MB/s\"\ntopology = \"bus\"\n";

fn flag(overlap: usize) -> &'static str {
    ["", "--overlap", "--look-ahead 3"][overlap]
}

#[test]
fn every_flow_on_every_layout_gives_the_product() {
    let bench = Bench::new();
    // One processor gets no share of so small a matrix.
    bench.write("some.toml", BUS.replace("1 Mflop/s", "1 flop/s"));
    for (m, k, n) in [(1, 1, 1), (3, 29, 2), (23, 37, 31)] {
        let (a, b) = (whole(m, k, 1), whole(k, n, 2));
        bench.matrix("a.npy", &a);
        bench.matrix("b.npy", &b);
        let expected = AnyMatrix::F64(product(&a, &b));
        for method in ["rows", "columns", "recursive"] {
            for (flow, overlap) in FLOWS.into_iter().flat_map(|f| (0..3).map(move |o| (f, o))) {
                if (flow, overlap) == ("bulk", 2) {
                    continue;
                }
                let call = "matmul a.npy b.npy -o c.npy --platform some.toml --block 4";
                let run = bench.json(&format!("{call} --method {method} --flow {flow} {}", flag(overlap)));
                assert_eq!(bench.read("c.npy"), expected, "{m} {k} {n} {method} {flow} {overlap}");
                assert_eq!(run["volume"], run["plan"]["metrics"]["volume"], "{method} {flow} {overlap}");
                assert_eq!(run["verified"], true);
                assert_eq!(run["flow"], flow);
            }
        }
    }
}

/// Every semiring, on few and on many rows, with more processors than rows, one of them without a share.
#[test]
fn every_semiring_takes_every_flow_and_layout() {
    let bench = Bench::new();
    bench.write("some.toml", BUS.replace("1 Mflop/s", "1 flop/s"));
    for (m, k, n) in [(2, 67, 3), (13, 5, 17)] {
        let (a, b) = (whole::<f64>(m, k, 1), whole::<f64>(k, n, 2));
        let truth = |from: &Matrix<f64>| {
            let bytes = from.as_slice().iter().map(|x| u8::from(x % 4.0 == 0.0)).collect();
            Matrix::new(from.rows(), from.cols(), bytes)
        };
        bench.matrix("a.npy", &a);
        bench.matrix("b.npy", &b);
        bench.matrix("ta.npy", &truth(&a));
        bench.matrix("tb.npy", &truth(&b));
        for semiring in ["max-plus", "min-plus", "or-and"] {
            let expected = match semiring {
                "or-and" => AnyMatrix::U8(by_definition(Kernel::or_and(), &truth(&a), &truth(&b))),
                "max-plus" => AnyMatrix::F64(by_definition(Kernel::max_plus(), &a, &b)),
                _ => AnyMatrix::F64(by_definition(Kernel::min_plus(), &a, &b)),
            };
            let files = if semiring == "or-and" { "ta.npy tb.npy" } else { "a.npy b.npy" };
            let call =
                format!("matmul {files} -o c.npy --platform some.toml --block 4 --semiring {semiring}");
            for method in ["rows", "columns", "grid", "recursive"] {
                for (flow, overlap) in FLOWS.into_iter().flat_map(|f| (0..2).map(move |o| (f, o))) {
                    let run =
                        bench.json(&format!("{call} --method {method} --flow {flow} {}", flag(overlap)));
                    assert_eq!(bench.read("c.npy"), expected, "{semiring} {m} {method} {flow} {overlap}");
                    assert_eq!(run["volume"], run["plan"]["metrics"]["volume"], "{semiring} {method} {flow}");
                    assert_eq!((&run["verified"], &run["semiring"]), (&true.into(), &semiring.into()));
                }
            }
        }
    }
}

fn by_definition<T: Element>(kernel: Kernel<T>, a: &Matrix<T>, b: &Matrix<T>) -> Matrix<T> {
    let column = |j: usize| -> Vec<T> { (0..b.rows()).map(|p| b.row(p)[j]).collect() };
    let columns: Vec<Vec<T>> = (0..b.cols()).map(column).collect();
    let entry = |at: usize| kernel.entry(a.row(at / b.cols()), &columns[at % b.cols()]);
    Matrix::new(a.rows(), b.cols(), (0..a.rows() * b.cols()).map(entry).collect())
}

/// Tinetti 3.4.2 and 3.4.4: P broadcasts to the P - 1 others, in N blocks as many times; the memory beside
/// the processor's own parts is divided by N.
#[test]
fn blocks_divide_the_memory_for_messages() {
    let bench = Bench::new();
    bench.write("bus.toml", BUS);
    let (m, k, n) = (40, 240, 80);
    bench.matrix("a.npy", &whole::<f64>(m, k, 1));
    bench.matrix("b.npy", &whole::<f64>(k, n, 2));
    let rows = [16, 12, 8, 4];
    for blocks in [1, 2, 10, 240] {
        for overlap in 0..3 {
            let call = "matmul a.npy b.npy --platform bus.toml --method rows --flow broadcast";
            let run = bench.json(&format!("{call} --blocks {blocks} {}", flag(overlap)));
            assert_eq!(run["volume"], (3 * k * n) as u64);
            assert_eq!(run["carried"], (k * n) as u64, "a bus carries every element of B once");
            assert_eq!(run["pairs"].as_array().unwrap().len(), 12);
            let pair = &run["pairs"][1];
            assert_eq!((&pair["from"], &pair["to"]), (&0.into(), &2.into()));
            assert_eq!((&pair["messages"], &pair["bytes"]), (&blocks.into(), &(8 * k * n / 4).into()));
            for (i, height) in rows.into_iter().enumerate() {
                assert_eq!(run["processors"][i]["messages"], 3 * blocks as u64);
                let own = 8 * (height * k + k * n / 4 + height * n);
                let peak = run["peak_memory_bytes"][i].as_u64().unwrap();
                assert_eq!(peak - own as u64, (8 * k / blocks * n / 4) as u64, "{blocks} {overlap}");
            }
        }
    }
}

/// Tinetti (3.10) and (3.11): four processors whose rows are in proportion to their speeds.
#[test]
fn a_broadcast_on_a_bus_takes_what_the_equations_say() {
    let bench = Bench::new();
    bench.write("bus.toml", BUS);
    bench.done("partition --shape 100x100x100 --platform bus.toml --method rows -o plan.json");
    let seconds = |more: &str| {
        let call = "simulate --plan plan.json --platform bus.toml --flow broadcast";
        bench.json(&format!("{call} {more}"))["seconds"].as_f64().unwrap()
    };
    // t_bcast = 1 ms + 100 x 25 x 8 bytes / 1 MB/s; t_comp = 2 x 10^6 / (4 x 10 Mflop/s).
    let (cast, compute) = (0.001 + 0.02, 0.05);
    let close =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    close(seconds("--blocks 1"), 4.0 * (cast + compute));
    close(seconds("--blocks 1 --overlap"), cast + 3.0 * f64::max(cast, compute) + compute);
    // Ten blocks: ten times as many turns, of a tenth.
    let cast = 0.001 + 0.002;
    close(seconds("--blocks 10"), 40.0 * (cast + 0.005));
    close(seconds("--blocks 10 --overlap"), cast + 39.0 * 0.005 + 0.005);
}

/// The file's name makes a trace a picture: a lane for each processor, with their names in the legend.
#[test]
fn a_trace_can_be_a_picture() {
    let bench = Bench::new();
    bench.write("bus.toml", BUS);
    bench.done("partition --shape 100x100x100 --platform bus.toml --method rows -o plan.json");
    let call = "simulate --plan plan.json --platform bus.toml --flow broadcast";
    bench.done(&format!("{call} --trace trace.svg"));
    let svg = bench.text("trace.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    holds(
        &svg,
        &[
            ">a<",
            ">b<",
            ">c<",
            ">d<",
            "\"compute\"",
            "\"send\"",
            "\"receive\"",
            ">computes<",
            "broadcast flow, 4 processors",
        ],
    );
    bench.done(&format!("{call} --trace trace.json"));
    assert!(bench.value("trace.json")["traceEvents"].is_array());
}
