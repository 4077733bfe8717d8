//! Matrices that are distributed over files: operands by their layout files, and results.

use super::bench::{Bench, TWO, irrational, whole};
use apportion::matrix::{AnyMatrix, Matrix};
use serde_json::{Value, json};

/// Cuts a matrix into blocks, each a file of its own, and writes their layout file.
fn cut(here: &Bench, name: &str, matrix: &Matrix<f64>, rows: &[usize], cols: &[usize]) {
    let mut blocks = Vec::new();
    for (i, high) in rows.windows(2).enumerate() {
        for (j, wide) in cols.windows(2).enumerate() {
            let file = format!("{name}-{i}-{j}.npy");
            let data =
                (high[0]..high[1]).flat_map(|row| matrix.row(row)[wide[0]..wide[1]].to_vec()).collect();
            here.matrix(&file, &Matrix::new(high[1] - high[0], wide[1] - wide[0], data));
            blocks.push(json!({"rows": high, "cols": wide, "file": file}));
        }
    }
    let shape = [matrix.rows(), matrix.cols()];
    let layout = json!({"format": "apportion-blocks", "version": 1, "shape": shape, "blocks": blocks});
    here.write(&format!("{name}.json"), layout.to_string());
}

/// The matrix of a layout file, put together from its files.
fn whole_of(here: &Bench, name: &str) -> Matrix<f64> {
    let layout = here.value(name);
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    let mut c = Matrix::zeros(number(&layout["shape"][0]), number(&layout["shape"][1]));
    let wide = c.cols();
    for block in layout["blocks"].as_array().unwrap() {
        let AnyMatrix::F64(part) = here.read(block["file"].as_str().unwrap()) else { panic!("f64") };
        let at = block.get("at").map_or([0, 0], |at| [number(&at[0]), number(&at[1])]);
        let [rows, cols] = ["rows", "cols"].map(|side| [number(&block[side][0]), number(&block[side][1])]);
        for row in rows[0]..rows[1] {
            let from = &part.row(at[0] + row - rows[0])[at[1]..][..cols[1] - cols[0]];
            c.as_mut_slice()[row * wide + cols[0]..row * wide + cols[1]].copy_from_slice(from);
        }
    }
    c
}

#[test]
fn distributed_operands_give_the_same_bytes() {
    let here = Bench::new();
    let (a, b) = (irrational::<f64>(31, 23, 0.3), irrational::<f64>(23, 37, 0.7));
    here.matrix("a.npy", &a);
    here.matrix("b.npy", &b);
    cut(&here, "a", &a, &[0, 7, 20, 31], &[0, 11, 23]);
    cut(&here, "b", &b, &[0, 23], &[0, 30, 36, 37]);
    cut(&here, "turned", &a.transposed(), &[0, 9, 23], &[0, 31]);
    here.write("two.toml", TWO);
    let product = |line: &str| {
        here.json(&format!("matmul {line} --platform two.toml --block 8"));
        std::fs::read(here.path(line.rsplit(' ').next().unwrap())).unwrap()
    };
    let wanted = product("a.npy b.npy -o c.npy");
    assert!(product("a.json b.json -o blocks.npy") == wanted);
    assert!(product("a.json b.npy --copy -o copied.npy") == wanted);
    assert!(product("turned.json b.json --transpose-a -o turned.npy") == wanted);
    let scaled = product("a.npy b.npy --c-in c.npy --beta 0.5 -o scaled.npy");
    let AnyMatrix::F64(c) = here.read("c.npy") else { panic!("f64") };
    cut(&here, "c0", &c, &[0, 30, 31], &[0, 1, 37]);
    assert!(product("a.json b.json --c-in c0.json --beta 0.5 -o again.npy") == scaled);
}

#[test]
fn a_result_is_a_file_for_each_processor() {
    let here = Bench::new();
    here.matrix("a.npy", &irrational::<f64>(30, 23, 0.3));
    here.matrix("b.npy", &irrational::<f64>(23, 40, 0.7));
    let platform = |p: usize| -> String {
        (0..p).map(|i| format!("[[processor]]\nname = \"p{i}\"\nspeed = \"1 Gflop/s\"\n")).collect()
    };
    here.write("four.toml", platform(4));
    here.write("one.toml", platform(1));
    here.done("partition --shape 30x23x40 --speeds 1,1,1,1 --method grid --repeat 6x8 -o cyclic.json");
    here.done("partition --shape 30x23x40 --speeds 9,1 --method square-corner -o corner.json");
    here.write("two.toml", platform(2));
    for (plan, platform, files) in [
        // ScaLAPACK's local arrays: one for each processor.
        ("--plan cyclic.json", "four.toml", 4),
        // The larger part is an L of two rectangles.
        ("--plan corner.json", "two.toml", 3),
        ("--method rows", "one.toml", 1),
    ] {
        let run =
            |result: &str| here.json(&format!("matmul a.npy b.npy {plan} --platform {platform} -o {result}"));
        run("c.npy");
        run("c.json");
        let AnyMatrix::F64(c) = here.read("c.npy") else { panic!("f64") };
        assert_eq!(whole_of(&here, "c.json"), c, "{plan}");
        let names: std::collections::BTreeSet<String> = here.value("c.json")["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["file"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(names.len(), files, "{plan}: {names:?}");
        assert!(names.first().unwrap().starts_with("c-0"), "{names:?}");
        // It is an operand of the next product.
        here.json("matmul c.json c.json --transpose-b -o square.npy");
    }
}

#[test]
fn powers_and_truth_values_are_distributed_too() {
    let here = Bench::new();
    let a = whole::<f64>(12, 12, 1);
    here.matrix("a.npy", &a);
    cut(&here, "a", &a, &[0, 5, 12], &[0, 12]);
    here.done("power a.npy -k 3 -o one.npy --speeds 2,1");
    here.done("power a.json -k 3 -o two.json --speeds 2,1");
    let AnyMatrix::F64(cube) = here.read("one.npy") else { panic!("f64") };
    assert_eq!(whole_of(&here, "two.json"), cube);
    here.done("random 9 9 -o t.npy --kind bool");
    let layout = r#"{"format": "apportion-blocks", "version": 1, "shape": [9, 9],
        "blocks": [{"rows": [0, 9], "cols": [0, 9], "file": "t.npy"}]}"#;
    here.write("t.json", layout);
    here.done("closure t.npy --semiring or-and -o whole.npy --speeds 2,1");
    here.done("closure t.json --semiring or-and -o parts.npy --speeds 2,1");
    assert!(here.read("whole.npy") == here.read("parts.npy"));
}
