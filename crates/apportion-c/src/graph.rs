//! Division of graphs in memory.

use crate::boundary::{array, check, count, guard, optional, refuse, text, to_c, write, write_if_wanted};
use apportion::Result;
use apportion::model::Machine;
use apportion_graph::{Graph, GraphMethod, GraphOptions, RawGraph, divide_graph};
use std::ffi::{c_char, c_int};

/// Numbers of the caller as graphs have them.
fn narrow(numbers: &[i64], name: &str) -> Result<Vec<u32>> {
    let narrow = |&number: &i64| {
        let what = || refuse(name, format!("{number} is out of range"), "give numbers from 0 to 4294967295");
        u32::try_from(number).map_err(|_| what())
    };
    numbers.iter().map(narrow).collect()
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_graph(
    method: *const c_char,
    vertices: i64,
    offsets: *const i64,
    neighbours: *const i64,
    vertex_weights: *const i64,
    edge_weights: *const i64,
    processors: i64,
    speeds: *const f64,
    parts: *mut i32,
    edge_cut: *mut i64,
    volume: *mut i64,
) -> c_int {
    guard(|| {
        let n = count(vertices, "vertices", 1)?;
        let p = count(processors, "processors", 1)?;
        // SAFETY: the caller's promises.
        let (methods, machine, offsets, vertex_weights) = unsafe {
            let name = if method.is_null() { "auto" } else { text(method, "method")? };
            let methods = GraphMethod::named("method", name, false)?;
            let machine = Machine::from_speeds(array(speeds, p, "speeds")?)?;
            let ends = narrow(array(offsets, n.saturating_add(1), "offsets")?, "offsets")?;
            (methods, machine, ends, optional(vertex_weights, n, "vertex_weights")?)
        };
        let entries = offsets[n] as usize;
        // SAFETY: the caller's promises.
        let (neighbours, edge_weights) = unsafe {
            (array(neighbours, entries, "neighbours")?, optional(edge_weights, entries, "edge_weights")?)
        };
        check(parts.cast_const(), n, "parts")?;
        let numbers = |given: Option<&[i64]>, name| given.map_or(Ok(Vec::new()), |given| narrow(given, name));
        let raw = RawGraph {
            offsets,
            neighbours: narrow(neighbours, "neighbours")?,
            vertex_weights: numbers(vertex_weights, "vertex_weights")?,
            constraints: 1,
            edge_weights: numbers(edge_weights, "edge_weights")?,
        };
        let graph = Graph::new(raw, 0).map_err(|defect| defect.at_place("graph"))?;
        let options = GraphOptions { methods, ..GraphOptions::default() };
        let best = divide_graph(&graph, None, &machine, &options)?.remove(0);
        let found: Vec<i32> = best.parts.iter().map(|part| *part as i32).collect();
        let metrics = [best.plan.metrics.edge_cut, best.plan.metrics.volume].map(Option::unwrap_or_default);
        let metrics = to_c(&metrics);
        // SAFETY: the caller's promises.
        unsafe {
            write(parts, &found, "parts")?;
            write_if_wanted(edge_cut, &metrics[..1], "edge_cut")?;
            write_if_wanted(volume, &metrics[1..], "volume")
        }
    })
}
