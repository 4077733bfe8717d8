//! Laws that hold for every plan, seen from outside: through the public interface alone.

mod cover;
mod methods;
mod oracles;
mod parsers;
mod repeatable;
mod three_counts;

use apportion::plan::shapes::{Communication, Method, MethodOptions};
use apportion::plan::{Layout, Shape};

fn shape(m: u64, k: u64, n: u64) -> Shape {
    Shape::new(m, k, n, "test").unwrap()
}

/// Every method's layout of these weights, where the method serves them; the hybrids for both kinds of
/// communication and, on three processors, with each of them as the centre of a star.
fn layouts(shape: Shape, weights: &[f64]) -> Vec<(Method, Layout)> {
    let p = weights.len();
    let groups = vec![(0..p.div_ceil(2)).collect(), (p.div_ceil(2)..p).collect::<Vec<_>>()];
    let groups = Some(groups.into_iter().filter(|g| !g.is_empty()).collect());
    let mut found = Vec::new();
    // Layouts that cut the inner dimension have laws of their own, beside `plan::boxes`.
    for method in Method::all().filter(|method| !method.cuts_inner()) {
        let hybrid = method == Method::Hybrid;
        let kinds = [Communication::Serial, Communication::Parallel];
        for communication in kinds.into_iter().take(if hybrid { 2 } else { 1 }) {
            for centre in [None, Some(0), Some(2)].into_iter().take(if hybrid && p == 3 { 3 } else { 1 }) {
                match method.layout(
                    shape,
                    weights,
                    &MethodOptions {
                        communication,
                        centre,
                        groups: groups.clone(),
                        ..MethodOptions::default()
                    },
                ) {
                    Ok(layout) => found.push((method, layout)),
                    Err(error) => assert_eq!(error.exit_code(), 1, "{method}: {error}"),
                }
            }
        }
    }
    assert!(found.iter().any(|(m, _)| *m == Method::Columns), "columns serve any input");
    found
}
