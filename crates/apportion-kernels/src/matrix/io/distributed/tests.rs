use super::*;
use crate::geometry::{Rect, Span};
use crate::matrix::{LocalBlocks, npy_header};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn rect(rows: [u64; 2], cols: [u64; 2]) -> Rect {
    Rect::new(Span::new(rows[0], rows[1]), Span::new(cols[0], cols[1]))
}

/// Writes arrays of a matrix whose element (i, j) is i * cols + j, and their layout file.
fn distribute(directory: &Path, [rows, cols]: [u64; 2], by_rank: &[Vec<Rect>]) -> PathBuf {
    let whole: LocalBlocks<f64> =
        vec![(rect([0, rows], [0, cols]), (0..rows * cols).map(|x| x as f64).collect())];
    let mut named = Vec::new();
    for (rank, rects) in by_rank.iter().enumerate() {
        for (number, array) in local_arrays(rects).into_iter().enumerate() {
            let name = format!("m-{rank}-{number}.npy");
            let [high, wide] = [array.rows, array.cols].map(|x| x as usize);
            let body = bytemuck::cast_slice(&array.fill(&whole)).to_vec();
            std::fs::write(directory.join(&name), [npy_header::<f64>(&[high, wide], false), body].concat())
                .unwrap();
            named.push(LocalArrayFile { name, array });
        }
    }
    let path = directory.join("m.json");
    std::fs::write(&path, layout_file_text(rows, cols, &named)).unwrap();
    path
}

/// A matrix cut at `cuts` into blocks that go to the ranks in turn, `turn` telling how.
fn blocks(sizes: [u64; 2], cuts: [u64; 2], ranks: usize, cyclic: bool) -> Vec<Vec<Rect>> {
    let mut by_rank = vec![Vec::new(); ranks];
    for (i, rows) in Span::new(0, sizes[0]).blocks(cuts[0]).enumerate() {
        for (j, cols) in Span::new(0, sizes[1]).blocks(cuts[1]).enumerate() {
            let rank = if cyclic { i % ranks } else { (i + j) % ranks };
            by_rank[rank].push(Rect::new(rows, cols));
        }
    }
    by_rank
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Any rectangle of a distributed matrix, or of its transpose, is that of the matrix.
    #[test]
    fn rectangles_are_gathered(
        rows in 1u64..20, cols in 1u64..20, high in 1u64..7, wide in 1u64..7, ranks in 1usize..4, cyclic: bool,
        top in 0.0f64..1.0, left in 0.0f64..1.0, transposed: bool,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let path = distribute(directory.path(), [rows, cols], &blocks([rows, cols], [high, wide], ranks, cyclic));
        let file = DistributedFile::open(&path, transposed).unwrap();
        let sizes = if transposed { [cols, rows] } else { [rows, cols] };
        prop_assert_eq!([file.rows() as u64, file.cols() as u64], sizes);
        let [top, left] = [(top * sizes[0] as f64) as u64, (left * sizes[1] as f64) as u64];
        let wanted = [rect([top, sizes[0]], [left, sizes[1]]), rect([0, sizes[0]], [0, left]), rect([0, top], [0, 0])];
        for (rect, elements) in file.read::<f64>(&wanted).unwrap() {
            let element = |i: u64, j: u64| if transposed { j * cols + i } else { i * cols + j };
            let expected: Vec<f64> = (rect.rows.start..rect.rows.end)
                .flat_map(|i| (rect.cols.start..rect.cols.end).map(move |j| element(i, j) as f64))
                .collect();
            prop_assert_eq!(elements, expected);
        }
    }
}

#[test]
fn block_cyclic_parts_are_one_array_and_corners_are_several() {
    // Rows 0-1 and 4-5, columns 0-2 and 6-8: ScaLAPACK's local array of 4 x 6.
    let rects = [[0, 2], [4, 6]].map(|rows| [[0, 3], [6, 9]].map(|cols| rect(rows, cols))).concat();
    let arrays = local_arrays(&rects);
    assert_eq!(arrays.len(), 1);
    assert_eq!((arrays[0].rows, arrays[0].cols), (4, 6));
    assert_eq!(arrays[0].blocks[3], ArrayBlock { rect: rect([4, 6], [6, 9]), row: 2, col: 3 });
    // An L: two arrays, without a hole.
    let arrays = local_arrays(&[rect([0, 4], [0, 6]), rect([4, 6], [0, 3])]);
    assert_eq!(arrays.iter().map(|a| [a.rows, a.cols]).collect::<Vec<_>>(), [[4, 6], [2, 3]]);
    assert!(local_arrays(&[rect([3, 3], [0, 4])]).is_empty());
}

#[test]
fn bad_layout_files_are_refused_by_field() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, header: Vec<u8>, bytes: usize| {
        std::fs::write(directory.path().join(name), [header, vec![0; bytes]].concat()).unwrap();
    };
    write("top.npy", npy_header::<f64>(&[2, 4], false), 64);
    write("low.npy", npy_header::<f64>(&[1, 4], false), 32);
    write("f32.npy", npy_header::<f32>(&[1, 4], false), 16);
    std::fs::write(directory.path().join("text.npy"), "no matrix").unwrap();
    let path = directory.path().join("m.json");
    let text = |shape: &str, blocks: &str| {
        format!(
            "{{\"format\": \"apportion-blocks\", \"version\": 1, \"shape\": {shape}, \"blocks\": [{blocks}]}}"
        )
    };
    let top = r#"{"rows": [0, 2], "cols": [0, 4], "file": "top.npy"}"#;
    let low = r#"{"rows": [2, 3], "cols": [0, 4], "file": "low.npy"}"#;
    let both = format!("{top}, {low}");
    let opened = |text: String| {
        std::fs::write(&path, text).unwrap();
        DistributedFile::open(&path, false)
    };
    assert_eq!(opened(text("[3, 4]", &both)).unwrap().files().count(), 2);
    let other = |file: &str, more: &str| {
        text("[3, 4]", &format!(r#"{top}, {{"rows": [2, 3], "cols": [0, 4], "file": "{file}"{more}}}"#))
    };
    for (text, word) in [
        (text("[3, 4]", top), "blocks: cover 8 of 12 elements"),
        (text("[3, 4]", &format!("{both}, {low}")), "blocks[2]: element (2, 0) is also in blocks[1]"),
        (text("[3, 5]", &both), "blocks: cover 12 of 15"),
        (text("[2, 4]", &both), "blocks[1].rows: [2, 3] is no range within 0 to 2"),
        (text("[0, 4]", &both), "shape: a matrix of 0 x 4"),
        (text("[9999999999, 9999999999]", &both), "more than 2^53"),
        (text("[3, 4]", ""), "blocks: 0 blocks"),
        (text("[3, 4]", r#"{"rows": [2, 1], "cols": [0, 4], "file": "low.npy"}"#), "blocks[0].rows: [2, 1]"),
        (
            text("[3, 4]", r#"{"rows": [0, 3], "cols": [0, 4], "file": "top.npy"}"#),
            "\"top.npy\" is 2 x 4, but the block is 3 x 4",
        ),
        (other("missing.npy", ""), "blocks[1].file: "),
        (other("text.npy", ""), "does not begin like an .npy file"),
        (other("f32.npy", ""), "\"f32.npy\" holds f32, but "),
        (other("", ""), "blocks[1].file: is empty"),
        (other("top.npy", r#", "at": [2, 0]"#), "blocks[1].at: a block of 1 x 4 at [2, 0] reaches outside"),
        (other("top.npy", r#", "at": [18446744073709551615, 0]"#), "blocks[1].at"),
        (other("low.npy", r#", "colour": 1"#), "unknown field `colour`"),
        (
            text("[3, 4]", &both).replace("version\": 1", "version\": 2"),
            "format: \"apportion-blocks\" version 2",
        ),
        ("{".into(), "m.json:1"),
    ] {
        let error = opened(text).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(error.to_string().contains(word), "{error}\nlacks {word}");
    }
    // The same file for two blocks, by their places in it.
    let parts = r#"{"rows": [0, 1], "cols": [0, 4], "file": "top.npy", "at": [1, 0]},
        {"rows": [1, 2], "cols": [0, 4], "file": "top.npy", "at": [0, 0]}"#;
    assert_eq!(opened(text("[2, 4]", parts)).unwrap().files().count(), 1);
}
