//! Products of whole matrices of one process: `apportion matmul` on arrays in memory.

use crate::boundary::{
    area, array, check, count, free, guard, hand_out, look, refuse, set_option, value, with_context, write,
    write_text,
};
use crate::processors::{Processors, truth, within, wrong};
use apportion::job::{
    KernelChoice, MatrixJob, MatrixOperand, Operation, ProductTask, RunOptions, parse_choice,
};
use apportion::kernels::Semiring;
use apportion::matrix::{AnyBlocks, AnyView};
use apportion::units::number;
use apportion::{Error, Result};
use std::ffi::{c_char, c_int};

/// The options of a product, and the plan of the last one.
pub struct Product {
    semiring: Semiring,
    alpha: Option<f64>,
    processors: Processors,
    options: RunOptions,
    plan: Option<String>,
}

impl Product {
    fn new() -> Self {
        Self {
            semiring: Semiring::PlusTimes,
            alpha: None,
            processors: Processors::default(),
            options: RunOptions { seed: 1, ..RunOptions::default() },
            plan: None,
        }
    }

    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        if self.processors.set(option, value)? {
            return Ok(());
        }
        let options = &mut self.options;
        match option {
            "semiring" => self.semiring = value.parse()?,
            "alpha" => self.alpha = Some(number(value).map_err(|what| wrong(option, what))?),
            "method" => options.method = parse_choice("`method`", value)?,
            "flow" => options.flow.flow = parse_choice("`flow`", value)?,
            "block" => options.flow.block = Some(within(option, value, 1..=1 << 20)?),
            "overlap" => options.flow.overlap = truth(option, value)?,
            "look_ahead" => options.flow.look_ahead = Some(within(option, value, 1..=1 << 20)?),
            "keep_all" => options.keep_all = truth(option, value)?,
            "remeasure" => options.remeasure = truth(option, value)?,
            "blas" => options.kernel = KernelChoice::named(value),
            "seed" => options.seed = within(option, value, 0..=u64::MAX)?,
            other => {
                let known = "give semiring, alpha, speeds, platform, models, method, flow, block, overlap, look_ahead, \
                             keep_all, remeasure, blas or seed";
                return Err(Error::input("option", format!("unknown option \"{other}\""), known));
            }
        }
        Ok(())
    }

    /// Multiplies A by B, or by its own transpose, and keeps the plan.
    fn run(&mut self, a: AnyView<'_>, b: Option<AnyView<'_>>) -> Result<Vec<f64>> {
        let operation = if b.is_some() { Operation::Product } else { Operation::Symmetric };
        let task = ProductTask {
            b: b.map(|view| MatrixOperand::Array { name: "B", view }),
            alpha: self.alpha,
            sources: self.processors.sources()?,
            options: self.options.clone(),
            ..ProductTask::new(operation, self.semiring, MatrixOperand::Array { name: "A", view: a })
        };
        let outcome = with_context(|context| MatrixJob::open(&task, context)?.run())?;
        self.plan = Some(outcome.report.plan.to_json());
        let blocks = outcome.result.and_then(AnyBlocks::into_blocks::<f64>).unwrap_or_default();
        Ok(blocks.into_iter().flat_map(|(_, elements)| elements).collect())
    }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_product_new(product: *mut *mut Product) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { hand_out(product, Product::new(), "product") })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_product_set(
    product: *mut Product,
    option: *const c_char,
    setting: *const c_char,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { set_option(product, "product", option, setting, Product::set) }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_product_run(
    product: *mut Product,
    m: i64,
    k: i64,
    n: i64,
    a: *const f64,
    b: *const f64,
    c: *mut f64,
) -> c_int {
    guard(|| {
        let (m, k, n) = (count(m, "m", 1)?, count(k, "k", 1)?, count(n, "n", 1)?);
        // SAFETY: the caller's promises.
        let (product, a, b) = unsafe {
            (value(product, "product")?, array(a, area(m, k, "a")?, "a")?, array(b, area(k, n, "b")?, "b")?)
        };
        check(c.cast_const(), area(m, n, "c")?, "c")?;
        let elements = product.run(AnyView::new(m, k, a), Some(AnyView::new(k, n, b)))?;
        // SAFETY: the caller's promise.
        unsafe { write(c, &elements, "c") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_product_syrk(
    product: *mut Product,
    n: i64,
    k: i64,
    a: *const f64,
    c: *mut f64,
) -> c_int {
    guard(|| {
        let (n, k) = (count(n, "n", 1)?, count(k, "k", 1)?);
        // SAFETY: the caller's promises.
        let (product, a) = unsafe { (value(product, "product")?, array(a, area(n, k, "a")?, "a")?) };
        check(c.cast_const(), area(n, n, "c")?, "c")?;
        let elements = product.run(AnyView::new(n, k, a), None)?;
        // SAFETY: the caller's promise.
        unsafe { write(c, &elements, "c") }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_product_plan(
    product: *const Product,
    capacity: i64,
    plan: *mut c_char,
    length: *mut i64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let product = unsafe { look(product, "product") }?;
        let Some(found) = &product.plan else {
            return Err(refuse("product", "has no plan yet", "call apportion_product_run first"));
        };
        // SAFETY: the caller's promises.
        unsafe { write_text(found, capacity, plan, "plan", length) }
    })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_product_free(product: *mut Product) {
    // SAFETY: the caller's promise.
    drop(unsafe { free(product) });
}
