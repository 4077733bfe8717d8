//! The candidates that a sweep along a parameter compares.

use super::{Candidate, LayoutSource, Parameter};
use crate::error::{Error, Result};
use crate::job::parse_choice;
use crate::plan::shapes::Method;
use crate::plan::{Factors, Plan};
use crate::schedule::ScheduleOptions;
use crate::select::FactorLayout;
use std::collections::BTreeSet;

/// What a caller says of the candidates; what is left out follows from the parameter.
#[derive(Debug, Clone, Copy)]
pub struct SweepQuestion<'a> {
    /// The parameter that varies.
    pub parameter: Parameter,
    /// Names of methods; by default those of the plan, or all and the best plan of all.
    pub methods: Option<&'a [String]>,
    /// Methods of the levels of a hierarchy, from the outermost, as one more candidate.
    pub levels: Option<&'a [String]>,
    /// A plan whose layout or method is compared.
    pub plan: Option<&'a Plan>,
    /// Orders of steps.
    pub orders: &'a [ScheduleOptions],
    /// Whether the best plan of all may have another pivot block than these.
    pub open_block: bool,
}

/// The candidates: methods, each with all orders; or the orders of one layout if it is the only one.
///
/// # Errors
/// An unknown method, or none; a plan that cannot be laid out again.
pub fn sweep_candidates(question: SweepQuestion<'_>) -> Result<Vec<Candidate>> {
    let SweepQuestion { parameter, methods, levels, plan, orders, open_block } = question;
    let by = |method: Method| (method.to_string(), LayoutSource::By(method));
    let mut layouts = Vec::new();
    match (methods, plan.and_then(|plan| Some((plan, plan.layout().ok()?)))) {
        (Some([]), _) => {
            return Err(Error::input("`methods`", "there are none", "leave it out, or name at least one"));
        }
        (Some(names), _) => {
            for name in names {
                match parse_choice("`methods`", name)? {
                    Some(method) => layouts.push(by(method)),
                    None => layouts.extend(Method::candidates().map(by)),
                }
            }
        }
        (None, Some((plan, layout))) if parameter.is_of_the_network() => {
            layouts.push((plan.method.clone(), LayoutSource::Given(Box::new(layout.clone()))));
        }
        (None, Some((plan, _))) => match plan.method.parse() {
            Ok(method) => layouts.push(by(method)),
            Err(_) => {
                let what = format!(
                    "the plan's method \"{}\" cannot be used while the {parameter} varies",
                    plan.method
                );
                return Err(Error::input("`sweep`", what, "pass `methods`"));
            }
        },
        (None, None) => {
            layouts.extend(Method::candidates().map(by));
            layouts.push(("auto".into(), LayoutSource::Auto { open_block }));
        }
    }
    if let Some(names) = levels {
        let methods = names.iter().map(|name| parse_choice("`levels`", name)).collect::<Result<Vec<_>>>()?;
        layouts.push((names.join("/"), LayoutSource::Levels(methods)));
    }
    let mut seen = BTreeSet::new();
    layouts.retain(|(name, _)| seen.insert(name.clone()));
    // With a single source of the layout, its flows compete.
    Ok(match &layouts[..] {
        [(_, layout)] => orders
            .iter()
            .map(|&order| Candidate { name: order.to_string(), way: layout.clone(), orders: vec![order] })
            .collect(),
        _ => {
            layouts.into_iter().map(|(name, way)| Candidate { name, way, orders: orders.to_vec() }).collect()
        }
    })
}

/// The candidates of a factorisation: layouts of block columns by their names, or all, each with the fastest of these
/// blocks.
///
/// # Errors
/// An unknown layout, or none.
pub fn factor_candidates(
    factors: Factors,
    methods: Option<&[String]>,
    blocks: &[u64],
) -> Result<Vec<Candidate>> {
    let layouts: Vec<FactorLayout> = match methods {
        None => FactorLayout::ALL.to_vec(),
        Some([]) => {
            return Err(Error::input("`methods`", "there are none", "leave it out, or name at least one"));
        }
        Some(names) => {
            let all = FactorLayout::ALL.map(FactorLayout::name).join(", ");
            let unknown = |name: &str| {
                let what = format!("\"{name}\" divides no factorisation");
                Error::input("`methods`", what, format!("choose among {all}"))
            };
            let layout = |name: &String| name.parse().map_err(|_: Error| unknown(name));
            names.iter().map(layout).collect::<Result<_>>()?
        }
    };
    let mut seen = BTreeSet::new();
    let layouts = layouts.into_iter().filter(|layout| seen.insert(layout.name()));
    let candidate = |layout: FactorLayout| Candidate {
        name: layout.name().into(),
        way: LayoutSource::Columns { factors, layout, blocks: blocks.to_vec() },
        orders: Vec::new(),
    };
    Ok(layouts.map(candidate).collect())
}
