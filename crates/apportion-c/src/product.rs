//! Products of whole matrices of one process: `apportion matmul` on arrays in memory.

use crate::boundary::{
    array, check, count, free, guard, hand_out, look, refuse, text, value, with_context, write, write_text,
};
use apportion::job::{
    KernelChoice, MatrixJob, MatrixOperand, Operation, ProductTask, RunOptions, Sources, parse_choice,
    with_speeds,
};
use apportion::kernels::Semiring;
use apportion::matrix::{AnyBlocks, AnyView};
use apportion::model::read_models;
use apportion::platform::{Speed, parse_speeds, read_platform};
use apportion::units::{number, whole};
use apportion::{Error, Result};
use std::ffi::{c_char, c_int};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The options of a product, and the plan of the last one.
pub struct Product {
    semiring: Semiring,
    alpha: Option<f64>,
    speeds: Option<Vec<Speed>>,
    platform: Option<PathBuf>,
    models: Option<PathBuf>,
    options: RunOptions,
    plan: Option<String>,
}

impl Product {
    fn new() -> Self {
        Self {
            semiring: Semiring::PlusTimes,
            alpha: None,
            speeds: None,
            platform: None,
            models: None,
            options: RunOptions { seed: 1, ..RunOptions::default() },
            plan: None,
        }
    }

    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        let wrong = |what: String| Error::input(option, what, "see apportion.h");
        let within = |range: RangeInclusive<u64>| match whole(value).map_err(wrong)? {
            x if range.contains(&x) => Ok(x),
            x => Err(wrong(format!("{x} is not in {}..={}", range.start(), range.end()))),
        };
        let truth =
            || value.parse::<bool>().map_err(|_| wrong(format!("\"{value}\" is neither true nor false")));
        let options = &mut self.options;
        match option {
            "semiring" => self.semiring = value.parse()?,
            "alpha" => self.alpha = Some(number(value).map_err(wrong)?),
            "speeds" => self.speeds = Some(parse_speeds(value).map_err(wrong)?),
            "platform" => self.platform = Some(value.into()),
            "models" => self.models = Some(value.into()),
            "method" => options.method = parse_choice("`method`", value)?,
            "flow" => options.flow.flow = parse_choice("`flow`", value)?,
            "block" => options.flow.block = Some(within(1..=1 << 20)?),
            "overlap" => options.flow.overlap = truth()?,
            "look_ahead" => options.flow.look_ahead = Some(within(1..=1 << 20)?),
            "keep_all" => options.keep_all = truth()?,
            "remeasure" => options.remeasure = truth()?,
            "blas" => options.kernel = KernelChoice::named(value),
            "seed" => options.seed = whole(value).map_err(wrong)?,
            other => {
                let known = "give semiring, alpha, speeds, platform, models, method, flow, block, overlap, look_ahead, \
                             keep_all, remeasure, blas or seed";
                return Err(Error::input("option", format!("unknown option \"{other}\""), known));
            }
        }
        Ok(())
    }

    /// What the options say of the processors.
    fn sources(&self) -> Result<Sources> {
        let file = self.platform.as_deref().map(read_platform).transpose()?;
        Ok(Sources {
            platform: match &self.speeds {
                Some(speeds) => Some(with_speeds(file, speeds)?),
                None => file,
            },
            models: self.models.as_deref().map(read_models).transpose()?,
            ..Sources::default()
        })
    }

    /// Multiplies, and keeps the plan.
    fn run(&mut self, a: AnyView<'_>, b: AnyView<'_>) -> Result<Vec<f64>> {
        let task = ProductTask {
            b: Some(MatrixOperand::Array { name: "B", view: b }),
            alpha: self.alpha,
            sources: self.sources()?,
            options: self.options.clone(),
            ..ProductTask::new(Operation::Product, self.semiring, MatrixOperand::Array { name: "A", view: a })
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
    guard(|| {
        // SAFETY: the caller's promises.
        let (product, option, setting) =
            unsafe { (value(product, "product")?, text(option, "option")?, text(setting, "value")?) };
        product.set(option, setting)
    })
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
        let area = |rows: usize, cols: usize, name: &str| {
            let many =
                || refuse(name, format!("{rows} x {cols} elements are too many"), "give smaller sizes");
            rows.checked_mul(cols).ok_or_else(many)
        };
        // SAFETY: the caller's promises.
        let (product, a, b) = unsafe {
            (value(product, "product")?, array(a, area(m, k, "a")?, "a")?, array(b, area(k, n, "b")?, "b")?)
        };
        check(c.cast_const(), area(m, n, "c")?, "c")?;
        let elements = product.run(AnyView::new(m, k, a), AnyView::new(k, n, b))?;
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
