//! From flags to the variant of MPDATA, the ends of its axes, and the orders to choose from.

use crate::args::{ExchangeName, SchemeArgs};
use apportion::error::{Error, Result};
use apportion::kernels::mpdata::{Boundary, Exchange, Scheme};
use apportion::units::whole;
use apportion_advect::AdvectOrder;

impl SchemeArgs {
    /// The variant.
    ///
    /// # Errors
    /// Options that do not go together.
    pub fn scheme(&self) -> Result<Scheme> {
        Scheme {
            passes: self.iterations.unwrap_or(2) as usize,
            nonoscillatory: self.nonoscillatory,
            infinite_gauge: self.infinite_gauge,
            third_order: self.third_order,
        }
        .checked()
    }

    /// What is beyond the ends of the axes, as it is given: for all, or for each; nothing if it is not.
    ///
    /// # Errors
    /// An unknown boundary.
    pub fn boundaries(&self) -> Result<Vec<Boundary>> {
        let parse = |end: &str| {
            end.trim().parse().map_err(|what: String| Error::input("--boundary", what, "see --help"))
        };
        self.boundary.iter().flat_map(|text| text.split(',')).map(parse).collect()
    }

    /// The orders of steps that the flags leave open, the simplest first.
    pub fn orders(&self, overlap: bool) -> Vec<AdvectOrder> {
        let wanted = |order: &AdvectOrder| {
            let exchange = match self.exchange.unwrap_or(ExchangeName::Auto) {
                ExchangeName::Auto => true,
                ExchangeName::Wide => order.exchange == Exchange::Wide,
                ExchangeName::Narrow => order.exchange == Exchange::Narrow,
            };
            exchange && (order.overlap || !overlap)
        };
        AdvectOrder::ALL.into_iter().filter(wanted).collect()
    }
}

/// The sizes of a grid of one to three dimensions, such as `512x512x64`.
///
/// # Errors
/// Anything else.
pub fn grid_sizes(text: &str) -> Result<Vec<usize>> {
    let sizes: Option<Vec<usize>> = text
        .split(['x', 'X', '×'])
        .map(|size| whole(size).ok().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0))
        .collect();
    let cells = |sizes: &[usize]| sizes.iter().try_fold(1_u64, |all, n| all.checked_mul(*n as u64));
    match sizes {
        Some(sizes) if (1..=3).contains(&sizes.len()) && cells(&sizes).is_some_and(|n| n <= 1 << 53) => {
            Ok(sizes)
        }
        _ => Err(Error::input(
            "--grid",
            format!("\"{text}\" is not a grid of one to three dimensions with at most 2^53 cells"),
            "write its sizes, such as 512x512x64",
        )),
    }
}
