//! The text of a C header that C and C++ programs include.

use super::table::OwnerTable;
use crate::error::{Error, Result};
use std::fmt::Write;

/// Numbers on a line of an array.
const PER_LINE: usize = 12;

/// A search in the splits of an axis, for the functions that look elements up.
const LOOKUP: &str = "\
/* The block that an index is in: splits[block] <= index < splits[block + 1]. */
static inline int apportion_block_of(const int *splits, int blocks, int64_t index)
{
    int low = 0, high = blocks - 1;
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (splits[middle] <= index) low = middle; else high = middle - 1;
    }
    return low;
}
";

/// A header that is being written.
pub(super) struct CHeader {
    text: String,
    guard: String,
}

impl CHeader {
    /// A header of this kind, with the processors' names by rank.
    pub(crate) fn new(kind: &str, processors: &[String]) -> Self {
        let guard = format!("APPORTION_{}_H", kind.to_uppercase());
        let mut header = Self { text: String::new(), guard };
        header.put(&format!("/* Written by `apportion partition --export {kind}-h`. Ranks count from 0. */"));
        header.put(&format!("#ifndef {0}\n#define {0}\n\n#include <stdint.h>\n", header.guard));
        header.put(&format!("#define APPORTION_PROCESSORS {}\n", processors.len()));
        header.put("static const char *const apportion_processors[] = {");
        for name in processors {
            header.put(&format!("    {},", c_text(name)));
        }
        header.put("};\n");
        header
    }

    /// Appends a line, or several.
    pub(crate) fn put(&mut self, line: &str) {
        writeln!(self.text, "{line}").expect("a string takes any text");
    }

    /// Appends an array of integers.
    pub(crate) fn array(&mut self, name: &str, numbers: &[u64]) {
        self.put(&format!("static const int {name}[{}] = {{", numbers.len()));
        for line in numbers.chunks(PER_LINE) {
            let line: Vec<String> = line.iter().map(u64::to_string).collect();
            self.put(&format!("    {},", line.join(", ")));
        }
        self.put("};");
    }

    /// Appends the function that the lookups of tables need.
    pub(crate) fn lookup(&mut self) {
        self.put(LOOKUP);
    }

    /// Appends a matrix's table: COSTA's arrays, SLATE's functions, and the owner of an element.
    ///
    /// # Errors
    /// A size that is no C `int`: exit code 1.
    pub(crate) fn table(&mut self, name: &str, table: &OwnerTable) -> Result<()> {
        let [rows, cols] = table.sizes();
        c_ints(name, [rows, cols])?;
        let upper = name.to_uppercase();
        let (high, wide) = (table.high(), table.wide());
        self.put(&format!(
            "/* {name}: {rows} x {cols}. The owner of block (i, j) is owners[i * COLBLOCKS + j]; its rows are\n   \
             rowsplit[i] to rowsplit[i + 1] - 1, its columns colsplit[j] to colsplit[j + 1] - 1. */"
        ));
        for (what, number) in
            [("ROWS", rows), ("COLS", cols), ("ROWBLOCKS", high as u64), ("COLBLOCKS", wide as u64)]
        {
            self.put(&format!("#define APPORTION_{upper}_{what} {number}"));
        }
        self.array(&format!("apportion_{name}_rowsplit"), &table.row_splits);
        self.array(&format!("apportion_{name}_colsplit"), &table.col_splits);
        let owners: Vec<u64> = table.owners.iter().map(|&owner| owner as u64).collect();
        self.array(&format!("apportion_{name}_owners"), &owners);
        self.put(&format!(
            "static inline int64_t apportion_{name}_tileMb(int64_t i)\n\
             {{\n    return apportion_{name}_rowsplit[i + 1] - apportion_{name}_rowsplit[i];\n}}\n\
             static inline int64_t apportion_{name}_tileNb(int64_t j)\n\
             {{\n    return apportion_{name}_colsplit[j + 1] - apportion_{name}_colsplit[j];\n}}\n\
             static inline int apportion_{name}_tileRank(int64_t i, int64_t j)\n\
             {{\n    return apportion_{name}_owners[i * APPORTION_{upper}_COLBLOCKS + j];\n}}\n\
             static inline int apportion_{name}_owner(int64_t row, int64_t col)\n\
             {{\n    int i = apportion_block_of(apportion_{name}_rowsplit, APPORTION_{upper}_ROWBLOCKS, row);\n    \
             int j = apportion_block_of(apportion_{name}_colsplit, APPORTION_{upper}_COLBLOCKS, col);\n    \
             return apportion_{name}_tileRank(i, j);\n}}\n"
        ));
        Ok(())
    }

    /// The whole text.
    pub(crate) fn finish(mut self) -> String {
        let end = format!("#endif /* {} */", self.guard);
        self.put(&end);
        self.text
    }
}

/// Refuses sizes that COSTA's and ScaLAPACK's `int` cannot hold.
pub(super) fn c_ints(name: &str, [rows, cols]: [u64; 2]) -> Result<()> {
    if rows.max(cols) <= i32::MAX as u64 {
        return Ok(());
    }
    Err(Error::infeasible(
        format!("{name} of {rows} x {cols} is too large for C's int"),
        "export `owners` (JSON), which has no such limit",
    ))
}

/// A text literal of C, in ASCII, without trigraphs.
pub(in crate::plan::export) fn c_text(name: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'?' => format!("\\{}", byte as char),
        b' '..=b'~' => (byte as char).to_string(),
        // Octal escapes end after three digits, unlike hexadecimal ones.
        other => format!("\\{other:03o}"),
    };
    format!("\"{}\"", name.bytes().map(escaped).collect::<String>())
}
