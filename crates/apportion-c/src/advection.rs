//! Advection of whole fields of one process: `apportion advect` on arrays in memory.

use crate::boundary::{
    array, check, count, free, guard, hand_out, optional, refuse, set_option, value, with_context, write,
};
use crate::processors::{Processors, truth, within, wrong};
use apportion::job::parse_choice;
use apportion::kernels::mpdata::{Boundary, Scheme};
use apportion::plan::shapes::Method;
use apportion::{Error, Result};
use apportion_advect::{AdvectTask, ArraySource, CourantSource, advect_field};
use std::ffi::{c_char, c_int};

/// The options of advections.
pub struct Advection {
    processors: Processors,
    scheme: Scheme,
    boundary: Vec<Boundary>,
    /// Courant numbers of the axes without faces.
    courant: Vec<f64>,
    method: Option<Method>,
    remeasure: bool,
}

/// The names of the arrays of Courant numbers.
const FACES: [&str; 3] = ["cx", "cy", "cz"];

impl Advection {
    fn set(&mut self, option: &str, value: &str) -> Result<()> {
        if self.processors.set(option, value)? {
            return Ok(());
        }
        fn each<T>(
            option: &str,
            value: &str,
            parse: impl Fn(&str) -> std::result::Result<T, String>,
        ) -> Result<Vec<T>> {
            value.split(',').map(|part| parse(part.trim()).map_err(|what| wrong(option, what))).collect()
        }
        match option {
            "iterations" => self.scheme.passes = within(option, value, 1..=4)? as usize,
            "nonoscillatory" => self.scheme.nonoscillatory = truth(option, value)?,
            "infinite_gauge" => self.scheme.infinite_gauge = truth(option, value)?,
            "third_order" => self.scheme.third_order = truth(option, value)?,
            "boundary" => self.boundary = each(option, value, str::parse)?,
            "courant" => {
                let number = |part: &str| part.parse().map_err(|_| format!("\"{part}\" is no number"));
                self.courant = each(option, value, number)?;
            }
            "method" => self.method = parse_choice(option, value)?,
            "remeasure" => self.remeasure = truth(option, value)?,
            other => {
                let known = "give iterations, nonoscillatory, infinite_gauge, third_order, boundary, courant, speeds, \
                    platform, models, method or remeasure";
                return Err(Error::input("option", format!("unknown option \"{other}\""), known));
            }
        }
        Ok(())
    }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_advection_new(advection: *mut *mut Advection) -> c_int {
    let new = || {
        let scheme = Scheme::new(2)?;
        let (processors, boundary, courant) = (Processors::default(), Vec::new(), Vec::new());
        Ok(Advection { processors, scheme, boundary, courant, method: None, remeasure: false })
    };
    // SAFETY: the caller's promise.
    guard(|| unsafe { hand_out(advection, new()?, "advection") })
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_advection_set(
    advection: *mut Advection,
    option: *const c_char,
    setting: *const c_char,
) -> c_int {
    // SAFETY: the caller's promises.
    unsafe { set_option(advection, "advection", option, setting, Advection::set) }
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_advect(
    advection: *mut Advection,
    axes: i64,
    sizes: *const i64,
    steps: i64,
    field: *const f64,
    cx: *const f64,
    cy: *const f64,
    cz: *const f64,
    result: *mut f64,
) -> c_int {
    guard(|| {
        let axes = count(axes, "axes", 1)?;
        if axes > FACES.len() {
            return Err(refuse(
                "axes",
                format!("{axes} are more than 3"),
                "give a field of 1 to 3 dimensions",
            ));
        }
        // SAFETY: the caller's promises.
        let (advection, given) = unsafe { (value(advection, "advection")?, array(sizes, axes, "sizes")?) };
        let sizes = given.iter().map(|size| count(*size, "sizes", 1)).collect::<Result<Vec<usize>>>()?;
        let steps = count(steps, "steps", 1)? as u64;
        let cells = cells(&sizes)?;
        // SAFETY: the caller's promise.
        let field = ArraySource::array("field", &sizes, unsafe { array(field, cells, "field")? });
        let mut courant = Vec::new();
        for (axis, pointer) in [cx, cy, cz].into_iter().enumerate() {
            let name = FACES[axis];
            if axis >= axes {
                if !pointer.is_null() {
                    let what = format!("is given for a field of {axes} dimensions");
                    return Err(refuse(name, what, "give NULL"));
                }
                continue;
            }
            let mut on_faces = sizes.clone();
            on_faces[axis] += 1;
            // SAFETY: the caller's promise.
            let faces = unsafe { optional(pointer, self::cells(&on_faces)?, name)? };
            courant.push(match faces {
                Some(faces) => CourantSource::Faces(ArraySource::array(name, &on_faces, faces)),
                None => CourantSource::Constant(advection.courant.get(axis).copied().unwrap_or(0.0)),
            });
        }
        check(result.cast_const(), cells, "result")?;
        let task = AdvectTask {
            boundary: advection.boundary.clone(),
            scheme: advection.scheme.checked()?,
            method: advection.method,
            sources: advection.processors.sources()?,
            remeasure: advection.remeasure,
            ..AdvectTask::new(field, courant, steps)
        };
        let found = with_context(|context| advect_field(&task, context)?.into_whole::<f64>(context.world))?;
        let found = found.expect("no file has the field");
        // SAFETY: the caller's promise.
        unsafe { write(result, &found, "result") }
    })
}

/// Number of cells of a grid.
fn cells(sizes: &[usize]) -> Result<usize> {
    let many = || refuse("sizes", "are of too many cells", "give smaller sizes");
    sizes.iter().try_fold(1_usize, |all, size| all.checked_mul(*size)).ok_or_else(many)
}

/// See `apportion.h`.
///
/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_advection_free(advection: *mut Advection) {
    // SAFETY: the caller's promise.
    drop(unsafe { free(advection) });
}
