//! The contents of a checkpoint, and whether flags agree with those it was started with.

use crate::args::MatmulArgs;
use crate::prepare::product::Given;
use apportion::error::{Error, Result};
use apportion::kernels::Kernel;
use apportion::matrix::{Element, NpyFile};
use apportion::plan::Shape;
use apportion::product::{Files, Fingerprint, Manifest};
use apportion::schedule::DataPath;
use apportion::units;
use serde_json::{Value, json};
use std::path::Path;

/// Rejects flags that differ from those a checkpoint was started with.
pub fn same_decisions(
    begun: &Manifest,
    args: &MatmulArgs,
    shape: Shape,
    (of, element): ((u64, DataPath), u64),
    directory: &Path,
) -> Result<()> {
    let (flow, panels, order) = (&args.running.flow, &args.panels, begun.order);
    let (rows, block) = (begun.panels.rows, flow.pivot(shape.k)?.min(shape.k));
    let needs = begun.panels.predicted_bytes(shape, of, order, element);
    let refusals = [
        ("--flow", flow.flow.0.is_some_and(|flow| flow != order.flow), order.flow.to_string()),
        (
            "--block",
            (flow.block.is_some() || flow.blocks.is_some()) && block != order.block,
            order.block.to_string(),
        ),
        ("--overlap", flow.overlap && !order.overlaps(), "none".into()),
        (
            "--look-ahead",
            flow.look_ahead.is_some_and(|n| !order.overlaps() || n != order.look_ahead),
            order.look_ahead.to_string(),
        ),
        ("--messages", flow.messages.is_some_and(|messages| messages != order.messages), "others".into()),
        (
            "--method",
            !["auto", &*begun.plan.method].contains(&&*args.running.method),
            begun.plan.method.clone(),
        ),
        (
            "--panels",
            panels.panels.is_some_and(|n| shape.m.div_ceil(n) != rows),
            format!("panels of {rows} rows"),
        ),
        (
            "--memory",
            panels.memory.is_some_and(|memory| memory < needs),
            format!("a plan that needs {}", units::show_bytes(needs as f64)),
        ),
    ];
    match refusals.into_iter().find(|(_, refused, _)| *refused) {
        Some((flag, _, then)) => Err(Error::input(
            flag,
            format!("the product in {} was started with {then}", directory.display()),
            "remove the flag, or start in another directory",
        )),
        None => Ok(()),
    }
}

/// The operation that the product belongs to.
pub fn fingerprint<T: Element>(
    files: &mut Files,
    args: &MatmulArgs,
    kernel: Kernel<T>,
    given: &Given,
) -> Result<Fingerprint> {
    let named = |file: &mut NpyFile| -> Result<Value> {
        let header = *file.header();
        Ok(json!({
            "name": file.path().file_name().map(|name| name.to_string_lossy().into_owned()),
            "rows": header.rows,
            "cols": header.cols,
            "hash": format!("{:016x}", file.fingerprint()?),
        }))
    };
    let mut inputs = vec![named(&mut files.a)?, named(&mut files.b)?];
    if let Some(initial) = &mut files.initial {
        inputs.push(named(initial)?);
    }
    let scalar = |given: Option<f64>| given.map(|x| x.to_string());
    let settings = json!({
        "semiring": kernel.semiring().name(),
        "kernel": kernel.about(),
        "transposed": [args.scaled.transpose_a, args.scaled.transpose_b],
        "alpha": scalar(args.scaled.alpha),
        "beta": scalar(args.scaled.beta),
        "processors": given.platform.names(),
    });
    Ok(Fingerprint { inputs, settings })
}
