//! Owner tables of distributed matrices: which process owns which block of A, B and C.
//!
//! The table of a matrix is a grid of blocks, cut by row and column splits, with one owner a block. That is
//! what COSTA's custom layouts are made of (Kabić, Pintarelli, Kozhevnikov, VandeVondele 2021), and what
//! SLATE's functions `tileMb`, `tileNb` and `tileRank` return (SLATE users' guide, matrix constructors).

mod header;
mod scalapack;
mod table;

pub(super) use header::c_text;

use super::Export;
use crate::error::{Error, Result};
use crate::plan::{Division, Plan};
use header::CHeader;
use serde_json::{Value, json};
use table::OwnerTable;

/// The matrices of a plan by name, each with its table.
type Tables = Vec<(&'static str, OwnerTable)>;

/// One JSON object with the tables.
pub(super) fn json(plan: &Plan) -> Result<Export> {
    let matrices: serde_json::Map<String, Value> =
        tables(plan)?.iter().map(|(name, table)| ((*name).to_owned(), table.to_value())).collect();
    let whole = json!({
        "format": "apportion-owners",
        "version": 1,
        "processors": plan.processors,
        "matrices": matrices,
    });
    Ok(Export { text: format!("{whole:#}\n"), warnings: Vec::new() })
}

/// A C header with the tables as arrays, and functions that look elements and tiles up.
pub(super) fn header(plan: &Plan) -> Result<Export> {
    let tables = tables(plan)?;
    let mut header = CHeader::new("owners", &plan.processors);
    header.lookup();
    for (name, table) in &tables {
        header.table(name, table)?;
    }
    Ok(Export { text: header.finish(), warnings: Vec::new() })
}

/// ScaLAPACK's process grid and descriptors as JSON.
pub(super) fn scalapack(plan: &Plan) -> Result<Export> {
    let cyclic = scalapack::Cyclic::of(&tables(plan)?)?;
    Ok(Export { text: format!("{:#}\n", cyclic.to_value()), warnings: cyclic.warnings(&plan.processors) })
}

/// The same as a C header.
pub(super) fn scalapack_header(plan: &Plan) -> Result<Export> {
    let cyclic = scalapack::Cyclic::of(&tables(plan)?)?;
    let mut header = CHeader::new("scalapack", &plan.processors);
    cyclic.write(&mut header)?;
    Ok(Export { text: header.finish(), warnings: cyclic.warnings(&plan.processors) })
}

/// The tables of A, B and C, or that of a stencil's domain.
fn tables(plan: &Plan) -> Result<Tables> {
    match &plan.division {
        Division::Matmul(layout) => {
            let shape = layout.shape();
            Ok(vec![
                ("A", OwnerTable::new([shape.m, shape.k], &layout.parts_of_a())?),
                ("B", OwnerTable::new([shape.k, shape.n], &layout.parts_of_b())?),
                ("C", OwnerTable::new([shape.m, shape.n], &layout.parts_of_c())?),
            ])
        }
        Division::Grid(layout) => {
            let shape = layout.shape();
            Ok(vec![("domain", OwnerTable::new([shape.m, shape.n], layout.parts())?)])
        }
        Division::Factorisation { layout, .. } => {
            let shape = layout.shape();
            Ok(vec![("A", OwnerTable::new([shape.m, shape.n], layout.parts())?)])
        }
        Division::Graph { n, .. } => Err(Error::input(
            format!("plan of a graph of {n} vertices"),
            "has no matrix, so there are no owners of its blocks",
            "use the parts file of `partition --graph --parts`",
        )),
        Division::Units { n } => Err(Error::input(
            format!("plan of {n} units"),
            "has no matrix, so there are no owners of its blocks",
            "export the plan of a matrix product",
        )),
    }
}

#[cfg(test)]
mod tests;
