//! Laws that hold for every plan, seen from outside: through the public interface alone.

mod cover;
mod oracles;
mod parsers;
mod repeatable;
mod three_counts;

use apportion::shapes::{Communication, Method};
use apportion::{Layout, Shape};

fn shape(m: u64, k: u64, n: u64) -> Shape {
    Shape::new(m, k, n, "test").unwrap()
}

/// Every method's layout of these weights, for both kinds of communication, where the method serves them.
fn layouts(shape: Shape, weights: &[f64]) -> Vec<(Method, Layout)> {
    let mut found = Vec::new();
    for method in Method::ALL {
        for communication in [Communication::Serial, Communication::Parallel] {
            match method.layout(shape, weights, communication) {
                Ok(layout) => found.push((method, layout)),
                Err(error) => assert_eq!(error.exit_code(), 1, "{method}: {error}"),
            }
        }
    }
    assert!(found.iter().any(|(m, _)| *m == Method::Columns), "columns serve any input");
    found
}
