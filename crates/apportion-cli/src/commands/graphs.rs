//! `apportion partition --graph`: meshes, graphs and sparse matrices in parts.

use super::partition::PartitionArgs;
use crate::args::units::{units_of, with_memory};
use crate::console::{Console, monitor};
use crate::output::graphs::{Comparison, Row};
use crate::output::plan::text;
use crate::output::results::add_models;
use crate::output::{appear, open, picture};
use apportion::error::{Error, Result};
use apportion::model::{Machine, WorkUnit};
use apportion::platform::Platform;
use apportion_graph::{
    Coordinates, Graph, GraphChoice, GraphFile, GraphFormat, GraphMethod, GraphOptions, ReadOptions, Weights,
    divide_evenly, divide_graph, parts_text, raster, read_coordinates, read_graph,
};
use apportion_report::graph_svg;
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// What only graphs have.
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// Divide the vertices of a graph by METIS or Scotch: METIS .graph or .mesh, Scotch .grf, or the pattern of a sparse
    /// matrix .mtx, each also packed (.gz).
    #[arg(long, value_name = "FILE", help_heading = "What is divided",
        conflicts_with_all = ["units", "shape", "kind", "plan", "surfaces", "at", "communication", "groups",
        "minimise", "mesh", "shares", "keep_all", "left_over", "levels", "granularity", "repeat", "flow",
        "overlap", "look_ahead", "block", "blocks", "messages", "robust", "objective", "unit_memory", "any_order",
        "mix", "any_size", "hierarchical", "multiple_of"])]
    pub graph: Option<PathBuf>,
    /// Write the part of each vertex of --graph, one number a line, from 0; or, to a file .json, the vertices of each
    /// processor.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub parts: Option<PathBuf>,
    /// Places of the vertices of --graph: x y or x y z a line, or .npy. The picture then shows them, and --method
    /// coordinates cuts across them.
    #[arg(long, value_name = "FILE", help_heading = "For experts")]
    pub coordinates: Option<PathBuf>,
    /// Divide the nodes of a mesh (.mesh) instead of its elements.
    #[arg(long, help_heading = "For experts")]
    pub nodal: bool,
    /// Nodes that two elements of a mesh share if they are neighbours [default: 1].
    #[arg(long, value_name = "N", help_heading = "For experts",
        value_parser = crate::args::numbers::within(1..=64))]
    pub common: Option<u64>,
    /// Weigh the edges of a matrix (.mtx) by the magnitudes of its elements.
    #[arg(long, help_heading = "For experts")]
    pub values: bool,
}

impl GraphArgs {
    /// The first flag that is of graphs alone.
    pub fn flag(&self) -> Option<&'static str> {
        let flags = [
            ("--parts", self.parts.is_some()),
            ("--coordinates", self.coordinates.is_some()),
            ("--nodal", self.nodal),
            ("--common", self.common.is_some()),
            ("--values", self.values),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }
}

/// Divides a graph, and writes the parts.
pub fn partition(args: &PartitionArgs, path: &Path, console: &Console) -> Result<()> {
    let files = [&args.svg, &args.output, &args.of_graph.parts];
    let [svg, output, parts_file] = files.map(|path| open(path.as_ref()));
    let (svg, output, parts_file) = (svg?, output?, parts_file?);
    let machine = args.sources.machine(WorkUnit::Unit)?;
    let machine = with_memory(machine, &args.of_units, console)?;
    let monitor = monitor();
    monitor.begin(0);
    let (graph, coordinates) = console.watch("reading", monitor, || read(args, path, console))?;
    let coordinates = coordinates.as_ref();
    let options = GraphOptions {
        methods: GraphMethod::named("`method`", args.method.as_deref().unwrap_or("auto"), true)?,
        limits: args.of_units.limits(machine.processors())?,
    };
    let choices =
        console.watch("dividing", monitor, || divide_graph(&graph, coordinates, &machine, &options))?;
    if monitor.is_stopped() {
        return Err(Error::Interrupted);
    }
    if options.methods.is_empty() && GraphMethod::libraries().is_empty() && machine.processors() > 1 {
        console.note("note: neither METIS nor Scotch is on this machine (Debian: apt install libmetis5)");
    }
    let GraphChoice { plan, parts, .. } = &choices[0];
    let empty = plan.processors.iter().zip(plan.costs.iter().flatten()).filter(|(_, cost)| **cost == 0.0);
    let able = |name: &String| machine.models.iter().any(|m| m.processor() == name && m.speed(1.0) > 0.0);
    for (name, _) in empty.filter(|(name, _)| able(name)) {
        console.note(format!("note: {name} gets nothing: there are too few vertices to reach its share"));
    }
    let compared = args.compare.then(|| compare(&graph, coordinates, &machine, &choices)).transpose()?;
    let names = &plan.processors;
    let lists = args.of_graph.parts.as_ref().and_then(|path| path.extension()).is_some_and(|e| e == "json");
    let written = || if lists { lists_of(parts, names) } else { parts_text(parts) };
    let value = || {
        let mut value = plan.to_value();
        add_models(&mut value, &machine, None);
        value
    };
    let places = coordinates.map(|coordinates| raster(coordinates, parts, names.len())).transpose()?;
    let drawn = || match &places {
        Some(raster) => graph_svg(plan, &clusters(&machine.platform), raster),
        None => picture(plan, &machine.platform),
    };
    appear([(svg, &drawn), (output, &|| format!("{:#}\n", value())), (parts_file, &written)])?;
    let export = args.export.apply(plan, &machine.platform, console)?;
    console.result(
        || {
            let mut value = compared.as_ref().map_or_else(value, |compared| compared.to_value(plan));
            value["parts"] = json!(args.of_graph.parts);
            if let Some(export) = &export {
                value["export"] = export.value.clone();
            }
            value
        },
        || match (export.as_ref().and_then(|e| e.text.as_ref()), &compared) {
            (Some(exported), _) => exported.clone(),
            (None, Some(compared)) => compared.to_text(plan),
            (None, None) => {
                let network = &machine.platform.network;
                text(plan, plan.method.clone(), &[], None, against(&choices), network)
            }
        },
    );
    Ok(())
}

/// The graph, with the weights of --costs, and the places of its vertices.
fn read(args: &PartitionArgs, path: &Path, console: &Console) -> Result<(Graph, Option<Coordinates>)> {
    let of_graph = &args.of_graph;
    let options = ReadOptions {
        weights: if of_graph.values { Weights::Values } else { Weights::Rows },
        nodal: of_graph.nodal,
        common: of_graph.common.map_or(ReadOptions::default().common, |common| common as usize),
    };
    let format = GraphFormat::of_name(path)?;
    let stray = [
        ("--values", of_graph.values && format != GraphFormat::MatrixMarket, "a matrix (.mtx)"),
        ("--nodal", of_graph.nodal && format != GraphFormat::Mesh, "a mesh (.mesh)"),
        ("--common", of_graph.common.is_some() && format != GraphFormat::Mesh, "a mesh (.mesh)"),
    ];
    if let Some((flag, _, what)) = stray.iter().find(|(_, stray, _)| *stray) {
        return Err(Error::input(*flag, format!("is of {what}"), "remove the flag"));
    }
    let GraphFile { mut graph, notes } = read_graph(path, options)?;
    notes.iter().for_each(|note| console.note(format!("note: {}: {note}", path.display())));
    if let Some(costs) = &args.of_units.costs {
        let costs_of = units_of(None, Some(costs))?.of_one_kind(Some(costs))?.unwrap_or_default();
        let place = || format!("--costs {}", costs.display());
        let weight = |(vertex, cost): (usize, &f64)| {
            let whole = cost.fract() == 0.0 && *cost <= f64::from(i32::MAX);
            let what = format!("{cost} of vertex {vertex} is no whole number of 31 bits");
            let remedy = "scale the costs: partitioners count in whole numbers";
            if whole { Ok(*cost as u32) } else { Err(Error::input(place(), what, remedy)) }
        };
        let weights = costs_of.iter().enumerate().map(weight).collect::<Result<_>>()?;
        graph = graph.with_weights(weights).map_err(|defect| defect.at_place(place()))?;
    }
    let coordinates = of_graph.coordinates.as_deref();
    let coordinates = coordinates.map(|path| read_coordinates(path, graph.vertices())).transpose()?;
    Ok((graph, coordinates))
}

/// The vertices of each processor, as JSON.
fn lists_of(parts: &[u32], names: &[String]) -> String {
    let mut lists = vec![Vec::new(); names.len()];
    parts.iter().enumerate().for_each(|(vertex, part)| lists[*part as usize].push(vertex));
    let lists: serde_json::Map<_, _> =
        names.iter().cloned().zip(lists.into_iter().map(|list| json!(list))).collect();
    format!("{}\n", serde_json::Value::Object(lists))
}

fn clusters(platform: &Platform) -> Vec<String> {
    platform.processors.iter().map(|processor| processor.cluster.clone()).collect()
}

/// What else was forecast, in a line.
fn against(choices: &[GraphChoice]) -> Vec<(&'static str, String)> {
    let mut others: Vec<&str> = choices.iter().map(|choice| &choice.plan.method[..]).collect();
    let chosen = others.remove(0);
    others.retain(|other| *other != chosen);
    others.dedup();
    let line = (!others.is_empty()).then(|| format!("{chosen}, against {}", others.join("; ")));
    line.into_iter().map(|line| ("chosen", line)).collect()
}

/// The fastest processor alone, consecutive vertices in equal parts, parts of equal weight by the method that was chosen,
/// and every division that was forecast.
fn compare(
    graph: &Graph,
    coordinates: Option<&Coordinates>,
    machine: &Machine,
    choices: &[GraphChoice],
) -> Result<Comparison> {
    let mut rows = Vec::new();
    let seconds = |rank: &usize| machine.models[*rank].seconds(graph.total(0) as f64);
    let able = (0..machine.processors()).filter(|rank| seconds(rank).is_finite());
    if let Some(rank) = able.min_by(|a, b| seconds(a).total_cmp(&seconds(b))) {
        let (parts, name) = (vec![rank as u32; graph.vertices()], &machine.platform.processors[rank].name);
        let choice = GraphChoice::new(graph, parts, machine, format!("{name} alone"))?;
        rows.push(Row { kind: "alone", choice });
    }
    let best = choices[0].method.unwrap_or(GraphMethod::Contiguous);
    for (kind, method) in [("consecutive", GraphMethod::Contiguous), ("even", best)] {
        // Equal parts may be more than a processor holds, and several weights more than an order of vertices divides.
        let divided = divide_evenly(graph, coordinates, machine, method).ok();
        let new = divided.filter(|_| kind == "even" || best != method);
        rows.extend(new.map(|choice| Row { kind, choice }));
    }
    rows.extend(choices.iter().map(|choice| Row { kind: "weighted", choice: choice.clone() }));
    Ok(Comparison { rows, relative: machine.only_ratios() })
}
