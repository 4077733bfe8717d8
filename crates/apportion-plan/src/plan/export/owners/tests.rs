use super::*;
use crate::geometry::{Rank, Span};
use crate::plan::shapes::{Grid, LayoutMethod, Method, MethodOptions};
use crate::plan::{ExportFormat, Layout, Part, Shape, export_plan, repeat_block};
use crate::platform::Platform;
use proptest::prelude::*;

fn shape(m: u64, k: u64, n: u64) -> Shape {
    Shape::new(m, k, n, "test").unwrap()
}

fn plan(layout: Layout) -> Plan {
    let names = (0..layout.processors()).map(|i| format!("p{i}")).collect();
    Plan::of_layout("test", names, layout, 1.0)
}

fn text(format: &str, plan: &Plan) -> String {
    export_plan(format.parse().unwrap(), plan, &Platform::from_names(&plan.processors)).unwrap().text
}

fn value(format: &str, plan: &Plan) -> Value {
    serde_json::from_str(&text(format, plan)).unwrap()
}

/// By hand: p0 has the left half, p1 the upper right quarter and p2 the lower one.
#[test]
fn three_parts_make_a_table_of_four_blocks() {
    let part = |owner, rows: [u64; 2], cols: [u64; 2]| Part {
        owner: Rank(owner),
        rows: rows.into(),
        cols: cols.into(),
    };
    let parts = [part(0, [0, 4], [0, 3]), part(1, [0, 1], [3, 6]), part(2, [1, 4], [3, 6])];
    let plan = plan(Layout::new(shape(4, 12, 6), 3, parts).unwrap());
    let owners = value("owners", &plan);
    assert_eq!(owners["format"], "apportion-owners");
    let c = &owners["matrices"]["C"];
    assert_eq!(c["row_splits"], json!([0, 1, 4]));
    assert_eq!(c["col_splits"], json!([0, 3, 6]));
    assert_eq!(c["owners"], json!([[0, 1], [0, 2]]));
    // A is cut like C, its columns in proportion: 3 of 6 are 6 of 12. B's rows: 1 of 4 are 3 of 12.
    assert_eq!(owners["matrices"]["A"]["col_splits"], json!([0, 6, 12]));
    assert_eq!(owners["matrices"]["B"]["row_splits"], json!([0, 3, 12]));
    assert_eq!(owners["matrices"]["B"]["owners"], json!([[0, 1], [0, 2]]));
    let header = text("owners-h", &plan);
    assert!(header.contains("static const int apportion_C_rowsplit[3] = {\n    0, 1, 4,\n};"), "{header}");
    // Unequal rows: no descriptor.
    let error =
        export_plan(ExportFormat::Scalapack, &plan, &Platform::from_names(&plan.processors)).unwrap_err();
    assert_eq!(error.exit_code(), 1, "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Each element of each matrix has the owner of the part that it is in; the table is the coarsest.
    #[test]
    fn tables_agree_with_layouts(
        m in 1u64..20, k in 1u64..20, n in 1u64..20, weights in prop::collection::vec(0.5f64..9.0, 1..6), method in 0usize..3,
    ) {
        let method = [Method::Columns, Method::Rows, Method::Recursive][method];
        let Ok(layout) = method.layout(shape(m, k, n), &weights, &MethodOptions::default()) else { return Ok(()) };
        let plan = plan(layout.clone());
        let tables = tables(&plan).unwrap();
        for ((_, table), parts) in tables.iter().zip([layout.parts_of_a(), layout.parts_of_b(), layout.parts().to_vec()]) {
            let [rows, cols] = table.sizes();
            for row in 0..rows {
                for col in 0..cols {
                    let part = parts.iter().find(|p| {
                        p.rows.contains(Span::new(row, row + 1)) && p.cols.contains(Span::new(col, col + 1))
                    });
                    let at = |splits: &[u64], index| splits.partition_point(|&s| s <= index) - 1;
                    let owner = table.owner(at(&table.row_splits, row), at(&table.col_splits, col));
                    prop_assert_eq!(owner, part.unwrap().owner.0);
                }
            }
            for i in 1..table.high() {
                prop_assert!((0..table.wide()).any(|j| table.owner(i, j) != table.owner(i - 1, j)));
            }
        }
    }
}

/// 2 x 3 processes with blocks of 2 x 2, in a matrix that they do not fill: by hand.
#[test]
fn a_block_cyclic_plan_has_descriptors() {
    let block = Grid::default().layout(shape(4, 6, 6), &[1.0; 6]).unwrap();
    let block = Layout::new(shape(4, 14, 6), 6, block.parts().iter().copied());
    let plan = plan(repeat_block(shape(9, 14, 14), &block.unwrap()).unwrap());
    let cyclic = value("scalapack", &plan);
    assert_eq!(
        cyclic["process_grid"]["rows"].as_u64().unwrap() * cyclic["process_grid"]["cols"].as_u64().unwrap(),
        6
    );
    let c = &cyclic["descriptors"]["C"];
    assert_eq!((&c["m"], &c["n"], &c["mb"], &c["nb"]), (&json!(9), &json!(14), &json!(2), &json!(2)));
    // Rows 0-1, 4-5 and 8 are those of the first process row; 2-3 and 6-7 of the second.
    assert_eq!(c["lld"], json!([5, 4]));
    assert!(text("scalapack-h", &plan).contains("desc[4] = 2;"));
}

/// Every element's owner by ScaLAPACK's formula is the layout's, wherever descriptors are given.
#[test]
fn descriptors_agree_with_tables() {
    let mut served = 0;
    for (p, q, b) in [(1, 1, 4), (1, 3, 2), (2, 2, 3), (3, 2, 1), (2, 4, 5)] {
        for (m, n) in [(17, 23), (30, 30), (6, 40)] {
            let parts = (0..p * q).map(|rank| {
                let (i, j) = (rank / q, rank % q);
                Part {
                    owner: Rank(rank as usize),
                    rows: Span::new(i * b, (i + 1) * b),
                    cols: Span::new(j * b, (j + 1) * b),
                }
            });
            let block = Layout::new(shape(p * b, n, q * b), (p * q) as usize, parts).unwrap();
            let plan = plan(repeat_block(shape(m, n, n), &block).unwrap());
            let tables = tables(&plan).unwrap();
            let Ok(cyclic) = scalapack::Cyclic::of(&tables) else { continue };
            served += 1;
            let value = cyclic.to_value();
            for (name, table) in &tables {
                let d = &value["descriptors"][name];
                let number = |field: &str| d[field].as_u64().unwrap();
                for (i, rows) in table.row_splits.windows(2).enumerate() {
                    for (j, cols) in table.col_splits.windows(2).enumerate() {
                        for (row, col) in [(rows[0], cols[0]), (rows[1] - 1, cols[1] - 1)] {
                            let grid = &value["process_grid"]["ranks"];
                            let (high, wide) = (
                                grid.as_array().unwrap().len() as u64,
                                grid[0].as_array().unwrap().len() as u64,
                            );
                            let [i0, j0] = [row / number("mb") % high, col / number("nb") % wide];
                            assert_eq!(
                                grid[i0 as usize][j0 as usize],
                                json!(table.owner(i, j)),
                                "{name} {row} {col}"
                            );
                        }
                    }
                }
            }
        }
    }
    assert!(served >= 8, "{served}");
}

#[test]
fn plans_without_matrices_are_refused() {
    let units = Plan::of_units("even", vec!["p0".into()], vec![3], 1.0);
    for format in ["owners", "owners-h", "scalapack", "scalapack-h"] {
        assert_eq!(
            export_plan(format.parse().unwrap(), &units, &Platform::from_names(&units.processors))
                .unwrap_err()
                .exit_code(),
            2
        );
        let names = ["p0".to_string()];
        assert_eq!(crate::plan::export(format.parse().unwrap(), &names, &[3]).unwrap_err().exit_code(), 2);
    }
    let domain = Plan::of_grid(
        "rows",
        vec!["p0".into()],
        Grid::default().layout(shape(4, 1, 5), &[1.0]).unwrap(),
        1.0,
    );
    assert_eq!(value("owners", &domain)["matrices"]["domain"]["owners"], json!([[0]]));
}
