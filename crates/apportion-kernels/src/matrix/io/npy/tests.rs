//! Files as NumPy writes them, and damaged ones.

use super::*;
use crate::matrix::read_matrix;
use proptest::prelude::*;
use std::path::PathBuf;

/// numpy.save of float32 [[1, 2, 3], [4, 5, 6]].
const NUMPY: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\
    \x20                                                         \n\
    \x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80@\x00\x00\xa0@\x00\x00\xc0@";

fn file(directory: &tempfile::TempDir, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join("a.npy");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn six() -> Matrix<f32> {
    Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

fn with_header(dict: &str, body: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.bytes());
    bytes.extend(vec![0; body]);
    bytes
}

#[test]
fn numpys_bytes_are_read_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, NUMPY);
    assert_eq!(read_matrix(&path).unwrap(), AnyMatrix::F32(six()));
    let header = read_npy_header(&path).unwrap();
    assert_eq!((header.rows, header.cols, header.dtype, header.data_offset), (2, 3, "f32", 128));
    let out = directory.path().join("b.npy");
    let mut writer = OutputFile::create(&out).unwrap();
    write_npy(&mut writer, &six()).unwrap();
    writer.commit().unwrap();
    assert_eq!(std::fs::read(&out).unwrap(), NUMPY);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn either_order_and_endianness(rows in 1usize..40, cols in 1usize..40, big: bool, fortran: bool) {
        let directory = tempfile::tempdir().unwrap();
        let value = |i: usize, j: usize| (i * cols + j) as f64 + 0.1;
        let dict = format!(
            "{{'descr': '{}f8', 'fortran_order': {}, 'shape': ({rows}, {cols}), }}\n",
            if big { '>' } else { '<' }, if fortran { "True" } else { "False" },
        );
        let mut bytes = with_header(&dict, 0);
        for at in 0..rows * cols {
            let x = if fortran { value(at % rows, at / rows) } else { value(at / cols, at % cols) };
            bytes.extend(if big { x.to_be_bytes() } else { x.to_le_bytes() });
        }
        let expected = (0..rows * cols).map(|at| value(at / cols, at % cols)).collect();
        let read = read_matrix(&file(&directory, &bytes)).unwrap();
        prop_assert_eq!(read, AnyMatrix::F64(Matrix::new(rows, cols, expected)));
    }

    /// A damaged file is read or rejected in one line, and never causes a panic.
    #[test]
    fn damage_is_refused(
        flips in prop::collection::vec((0usize..152, any::<u8>()), 0..4), keep in 0usize..160,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut bytes = NUMPY.to_vec();
        for (at, value) in flips {
            // Mostly within the text of the header.
            bytes[if at >= 128 { 10 + at % 60 } else { at }] = value;
        }
        bytes.truncate(keep);
        if let Err(error) = read_matrix(&file(&directory, &bytes)) {
            prop_assert_eq!(error.exit_code(), 2);
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    /// Random headers, composed of the parts that headers are made of.
    #[test]
    fn odd_headers_are_refused(
        dict in r#"\{?('descr'|'shape'|'fortran_order'|[:,] ?|[\[\](){}]|True|False|'<f[48]'|"|[0-9]{1,9}|é|\\|\PC){0,30}\}?"#,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let error = read_matrix(&file(&directory, &with_header(&dict, 16))).unwrap_err();
        prop_assert_eq!(error.exit_code(), 2);
        prop_assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn truth_values_go_both_ways() {
    let directory = tempfile::tempdir().unwrap();
    let header = |descr: &str| format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 2), }}\n");
    let mut bytes = with_header(&header("|b1"), 0);
    bytes.extend([1, 0, 255, 1]);
    let path = file(&directory, &bytes);
    let truth = Matrix::new(2, 2, vec![1, 0, 1, 1]);
    assert_eq!(read_matrix(&path).unwrap(), AnyMatrix::Bool(truth.clone()));
    let out = directory.path().join("b.npy");
    let mut writer = OutputFile::create(&out).unwrap();
    write_npy_bool(&mut writer, &Matrix::new(2, 2, vec![7, 0, 1, 255])).unwrap();
    writer.commit().unwrap();
    assert_eq!(read_matrix(&out).unwrap(), AnyMatrix::Bool(truth));
    let mut bytes = with_header(&header("|u1"), 0);
    bytes.extend([1, 0, 255, 1]);
    let u8s = AnyMatrix::U8(Matrix::new(2, 2, vec![1, 0, 255, 1]));
    assert_eq!(read_matrix(&file(&directory, &bytes)).unwrap(), u8s);
}

/// What `numpy.load` takes too: plain names of types, and the long integers of Python 2.
#[test]
fn other_spellings_of_types_and_sizes_are_read() {
    let directory = tempfile::tempdir().unwrap();
    for (descr, shape, dtype, size) in [
        ("<f8", "(2L, 3L)", "f64", 8),
        ("f8", "(2, 3)", "f64", 8),
        ("float64", "(2, 3)", "f64", 8),
        ("double", "(2L, 3)", "f64", 8),
        ("=f4", "(2, 3)", "f32", 4),
        ("f4", "(2, 3)", "f32", 4),
        ("float32", "(2L, 3L,)", "f32", 4),
        ("int32", "(2, 3)", "i32", 4),
        ("i8", "(2, 3)", "i64", 8),
        ("int64", "(2, 3)", "i64", 8),
        ("b1", "(2, 3)", "bool", 1),
        ("bool", "(2, 3)", "bool", 1),
        ("?", "(2, 3)", "bool", 1),
        ("<u1", "(2, 3)", "u8", 1),
        ("uint8", "(2, 3)", "u8", 1),
    ] {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let path = file(&directory, &with_header(&dict, 6 * size));
        let header = read_npy_header(&path).unwrap();
        assert_eq!(
            (header.rows, header.cols, header.dtype, header.big_endian),
            (2, 3, dtype, false),
            "{descr}"
        );
    }
    for descr in ["<float64", "f16", "float16", "f", "", "é8", "int", "u2"] {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2, 3), }}\n");
        let path = file(&directory, &with_header(&dict, 7));
        assert_eq!(read_npy_header(&path).unwrap_err().exit_code(), 2, "{descr}");
    }
}

#[test]
fn defects_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
    };
    let deep = format!("{}1{}", "[".repeat(4000), "]".repeat(4000));
    for (dict, body, word) in [
        (header("'<f8'", "(6,)"), 48, "1 dimensions"),
        (header("'<f8'", "(1, 2, 3)"), 48, "3 dimensions"),
        (header("'<f8'", "()"), 8, "0 dimensions"),
        (header("'<f8'", "(0, 3)"), 0, "empty"),
        (header("'<f8'", "(2, 3)"), 47, "1 are missing"),
        (header("'<f8'", "(2, 3)"), 50, "2 are left over"),
        (header("'<f8'", "(-2, 3)"), 48, "negative"),
        (header("'<f8'", "(18446744073709551615, 18446744073709551615)"), 48, "too large"),
        (header("'<f8'", "(9999999999, 999999999)"), 48, "missing"),
        (header("'<i2'", "(2, 3)"), 12, "numpy.float64 (f64)"),
        (header("'|b1'", "(2, 3)"), 7, "1 are left over"),
        (header("'|u1'", "(2, 3)"), 4, "of u8 are 6 bytes, but 2 are missing"),
        (header("'<u2'", "(2, 3)"), 12, "numpy.bool_"),
        (header("'<f2'", "(2, 3)"), 12, "f32 or f64"),
        (header("'<c8'", "(2, 3)"), 48, "f32 or f64"),
        (header("'|O'", "(2, 3)"), 48, "f32 or f64"),
        (header("[('x', '<f8'), ('y', '<f4', (2, 2))]", "(2, 3)"), 48, "f32 or f64"),
        (header("'<\u{e9}'", "(2, 3)"), 48, "f32 or f64"),
        (header(&deep, "(2, 3)"), 48, "structures"),
        (header("'<f8'", &deep), 48, "'(' is expected"),
        (header("'<f8'", "(0xFFFFFFFFFFFF, 0xFFFFFFFFFFFF)"), 48, "is expected"),
        ("{'descr': '<f8'}".into(), 48, "no entry 'fortran_order'"),
        ("{'descr': '<f8', 'descr': '<f8'}".into(), 48, "two entries"),
        ("{'desc': '<f8'}".into(), 48, "unknown entry"),
        (String::new(), 48, "ends where"),
    ] {
        let error = read_matrix(&file(&directory, &with_header(&dict, body))).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{dict}");
        assert!(error.to_string().contains(word), "{error}: {word}");
    }
    for bytes in [&b""[..], b"\x93NUMPY", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", b"\x93NUMPY\x09\x00\x00\x00"]
    {
        assert_eq!(read_matrix(&file(&directory, bytes)).unwrap_err().exit_code(), 2);
    }
    assert_eq!(read_matrix(&file(&directory, &with_header("\u{1}", 0))).unwrap_err().exit_code(), 2);
    assert_eq!(read_matrix(directory.path()).unwrap_err().exit_code(), 2);
    assert_eq!(read_matrix(&directory.path().join("none.npy")).unwrap_err().exit_code(), 2);
}
