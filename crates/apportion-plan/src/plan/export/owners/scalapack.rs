//! Two-dimensional block-cyclic distributions, as ScaLAPACK's array descriptors name them.
//!
//! Source: ScaLAPACK Users' Guide, section 4.3 (Blackford et al. 1997): block (i, j) belongs to the process
//! in row i mod P and column j mod Q of a P x Q grid; all blocks are MB x NB, but for the last ones.

use super::header::{CHeader, c_ints};
use super::table::OwnerTable;
use crate::error::{Error, Result};
use serde_json::{Value, json};

/// Matrices that are block-cyclic on one process grid.
#[derive(Debug)]
pub(super) struct Cyclic {
    /// Ranks of the processes, a row of the grid after the other.
    grid: Vec<Vec<usize>>,
    matrices: Vec<(&'static str, Descriptor)>,
}

/// The sizes in a descriptor; the source process is (0, 0).
#[derive(Debug)]
struct Descriptor {
    sizes: [u64; 2],
    block: [u64; 2],
}

impl Cyclic {
    /// The process grid of the last matrix (C), on which all of them must be block-cyclic.
    ///
    /// # Errors
    /// Blocks of unequal sizes, or owners that do not recur like a grid of processes: exit code 1.
    pub(crate) fn of(tables: &[(&'static str, OwnerTable)]) -> Result<Self> {
        let (name, last) = tables.last().expect("a plan has a matrix");
        let lines = distinct((0..last.high()).map(|i| last.owner(i, 0)));
        let columns = distinct((0..last.wide()).map(|j| last.owner(0, j)));
        let grid: Vec<Vec<usize>> =
            (0..lines).map(|i| (0..columns).map(|j| last.owner(i, j)).collect()).collect();
        if distinct(grid.iter().flatten().copied()) != lines * columns {
            return Err(refusal(format!("the owners of {name} do not form a grid of processes")));
        }
        let matrices = tables
            .iter()
            .map(|(name, table)| Ok((*name, Descriptor::of(name, table, &grid)?)))
            .collect::<Result<_>>()?;
        Ok(Self { grid, matrices })
    }

    fn processes(&self) -> [usize; 2] {
        [self.grid.len(), self.grid[0].len()]
    }

    /// Processors that own nothing: no process of the grid.
    pub(crate) fn warnings(&self, names: &[String]) -> Vec<String> {
        let idle = |rank: &usize| !self.grid.iter().flatten().any(|r| r == rank);
        let idle: Vec<&str> = (0..names.len()).filter(idle).map(|rank| names[rank].as_str()).collect();
        match idle.is_empty() {
            true => Vec::new(),
            false => vec![format!("{} own nothing and are not in the process grid", idle.join(", "))],
        }
    }

    pub(crate) fn to_value(&self) -> Value {
        let [p, q] = self.processes();
        let descriptors: serde_json::Map<String, Value> = self
            .matrices
            .iter()
            .map(|(name, d)| {
                let lld: Vec<u64> = (0..p).map(|row| d.local_rows(row, p).max(1)).collect();
                let value = json!({
                    "dtype": 1, "m": d.sizes[0], "n": d.sizes[1], "mb": d.block[0], "nb": d.block[1],
                    "rsrc": 0, "csrc": 0, "lld": lld,
                });
                ((*name).to_owned(), value)
            })
            .collect();
        json!({
            "format": "apportion-scalapack",
            "version": 1,
            "process_grid": {"rows": p, "cols": q, "ranks": self.grid},
            "descriptors": descriptors,
        })
    }

    /// Writes the grid and a function per matrix that fills its descriptor.
    ///
    /// # Errors
    /// A size that is no C `int`: exit code 1.
    pub(crate) fn write(&self, header: &mut CHeader) -> Result<()> {
        let [p, q] = self.processes();
        header.put(&format!("#define APPORTION_PROCESS_ROWS {p}\n#define APPORTION_PROCESS_COLS {q}"));
        header.put("/* The usermap of blacs_gridmap, column by column. */");
        let map: Vec<u64> = (0..q).flat_map(|j| self.grid.iter().map(move |row| row[j] as u64)).collect();
        header.array("apportion_usermap", &map);
        header.put(NUMROC);
        for (name, d) in &self.matrices {
            c_ints(name, d.sizes)?;
            let ([m, n], [mb, nb]) = (d.sizes, d.block);
            header.put(&format!(
                "/* {name}: {m} x {n} in blocks of {mb} x {nb}. Fills the descriptor of the process in grid row\n   \
                 myrow; its local array has the leading dimension desc[8]. */\n\
                 static inline void apportion_{name}_desc(int desc[9], int context, int myrow)\n{{\n    \
                 int rows = apportion_numroc({m}, {mb}, myrow, APPORTION_PROCESS_ROWS);\n    \
                 desc[0] = 1;\n    desc[1] = context;\n    desc[2] = {m};\n    desc[3] = {n};\n    \
                 desc[4] = {mb};\n    desc[5] = {nb};\n    desc[6] = 0;\n    desc[7] = 0;\n    \
                 desc[8] = rows > 1 ? rows : 1;\n}}\n\
                 static inline int apportion_{name}_owner(int64_t row, int64_t col)\n{{\n    \
                 int i = (int)(row / {mb} % APPORTION_PROCESS_ROWS);\n    \
                 int j = (int)(col / {nb} % APPORTION_PROCESS_COLS);\n    \
                 return apportion_usermap[j * APPORTION_PROCESS_ROWS + i];\n}}\n"
            ));
        }
        Ok(())
    }
}

/// The number of rows of a process, as ScaLAPACK's tool function NUMROC counts them.
const NUMROC: &str = "\
static inline int apportion_numroc(int n, int block, int process, int processes)
{
    int blocks = n / block, rows = blocks / processes * block, more = blocks % processes;
    if (process < more) return rows + block;
    return process == more ? rows + n % block : rows;
}
";

impl Descriptor {
    fn of(name: &str, table: &OwnerTable, grid: &[Vec<usize>]) -> Result<Self> {
        let (p, q) = (grid.len(), grid[0].len());
        let block = [equal(name, "rows", &table.row_splits)?, equal(name, "columns", &table.col_splits)?];
        let fits = |i: usize, j: usize| table.owner(i, j) == grid[i % p][j % q];
        if (0..table.high()).any(|i| (0..table.wide()).any(|j| !fits(i, j))) {
            return Err(refusal(format!("the owners of {name} do not recur like those of a {p} x {q} grid")));
        }
        Ok(Self { sizes: table.sizes(), block })
    }

    /// Rows of the process in row `process` of `processes`.
    fn local_rows(&self, process: usize, processes: usize) -> u64 {
        let [m, block] = [self.sizes[0], self.block[0]];
        let starts = (process as u64..m.div_ceil(block)).step_by(processes);
        starts.map(|i| block.min(m - i * block)).sum()
    }
}

/// The common size of the blocks between these lines; the last block may be smaller.
fn equal(name: &str, what: &str, splits: &[u64]) -> Result<u64> {
    let size = |w: &[u64]| w[1] - w[0];
    let block = size(&splits[..2]);
    let mut sizes = splits.windows(2).map(size);
    let last = sizes.next_back().expect("a matrix has a block");
    if let Some(other) = sizes.find(|&size| size != block).or((last > block).then_some(last)) {
        return Err(refusal(format!("the {what} of {name} are cut into blocks of {block} and of {other}")));
    }
    Ok(block)
}

fn refusal(what: String) -> Error {
    Error::infeasible(
        format!("{what}, and ScaLAPACK needs equal blocks that recur on a grid of processes"),
        "use equal speeds, `method = grid` and a `repeat` of equal blocks, or export `owners`",
    )
}

/// Number of distinct ranks.
fn distinct(ranks: impl Iterator<Item = usize>) -> usize {
    ranks.collect::<std::collections::BTreeSet<_>>().len()
}
