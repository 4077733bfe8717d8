//! What crosses the border between C and Rust: codes, messages, pointers and lengths.

use apportion::job::Context;
use apportion::run::{Monitor, World};
use apportion::{Error, Result};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

const DONE: c_int = 0;
/// A bug of this library. 1 and 2 are the exit codes of the command.
const PANICKED: c_int = 3;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs the body of a function; errors and panics become codes, and their messages are kept.
pub fn guard(body: impl FnOnce() -> Result<()>) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => DONE,
        Ok(Err(error)) => {
            keep(&in_c(&error.to_string()));
            c_int::from(error.exit_code())
        }
        Err(panic) => {
            keep(&format!("internal error: {} (please report it)", words(&*panic)));
            PANICKED
        }
    }
}

/// The error's line without the backquotes that mark parameters.
fn in_c(line: &str) -> String {
    line.replace('`', "")
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic")
}

fn keep(message: &str) {
    let text = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
    LAST_ERROR.with(|last| *last.borrow_mut() = text);
}

/// See `apportion.h`.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_last_error() -> *const c_char {
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

/// See `apportion.h`.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Where a job of this program alone runs: no one observes it.
pub fn with_context<R>(job: impl FnOnce(Context<'_>) -> R) -> R {
    let monitor = Monitor::new();
    let world = World::solo(&monitor);
    job(Context::silent(&world, &monitor))
}

/// The error of a wrong argument.
pub fn refuse(name: &str, what: impl Into<String>, remedy: &str) -> Error {
    Error::input(name, what, remedy)
}

/// A number of things that is at least `least`.
pub fn count(value: i64, name: &str, least: i64) -> Result<usize> {
    if value < least {
        return Err(refuse(name, format!("{value} is less than {least}"), "give the number of entries"));
    }
    usize::try_from(value).map_err(|_| refuse(name, format!("{value} is too large"), "give a smaller number"))
}

/// The number of elements of a matrix.
pub fn area(rows: usize, cols: usize, name: &str) -> Result<usize> {
    let many = || refuse(name, format!("{rows} x {cols} elements are too many"), "give smaller sizes");
    rows.checked_mul(cols).ok_or_else(many)
}

/// A number of units that is at least 0.
pub fn units(value: i64, name: &str) -> Result<u64> {
    u64::try_from(value).map_err(|_| refuse(name, format!("{value} is negative"), "give at least 0"))
}

/// Units as C has them. All counts of the library are at most 2^53.
pub fn to_c(values: &[u64]) -> Vec<i64> {
    values.iter().map(|&x| i64::try_from(x).unwrap_or(i64::MAX)).collect()
}

pub fn check<T>(pointer: *const T, length: usize, name: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(refuse(name, "is a null pointer", "give the address of an array or variable"));
    }
    if !pointer.is_aligned() {
        return Err(refuse(
            name,
            "is no aligned address",
            "give the address of an array of the declared type",
        ));
    }
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(refuse(name, format!("{length} entries are too many"), "give a smaller number"));
    }
    Ok(())
}

/// The entries of an array of the caller.
///
/// # Safety
/// A pointer that is not null points to `length` entries, which nothing changes during the call.
pub unsafe fn array<'a, T>(pointer: *const T, length: usize, name: &str) -> Result<&'a [T]> {
    check(pointer, length, name)?;
    // SAFETY: the pointer is aligned and not null; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// The same for an array that may be left out.
///
/// # Safety
/// As [`array`].
pub unsafe fn optional<'a, T>(pointer: *const T, length: usize, name: &str) -> Result<Option<&'a [T]>> {
    // SAFETY: the caller's promise.
    (!pointer.is_null()).then(|| unsafe { array(pointer, length, name) }).transpose()
}

/// Copies values into an array of the caller.
///
/// # Safety
/// A pointer that is not null points to room for as many entries as there are values.
pub unsafe fn write<T: Copy>(pointer: *mut T, values: &[T], name: &str) -> Result<()> {
    check(pointer.cast_const(), values.len(), name)?;
    // SAFETY: the pointer is aligned and not null; the caller promises the room, which is not ours.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), pointer, values.len()) };
    Ok(())
}

/// The same, if the caller wants the values.
///
/// # Safety
/// As [`write`].
pub unsafe fn write_if_wanted<T: Copy>(pointer: *mut T, values: &[T], name: &str) -> Result<()> {
    // SAFETY: the caller's promise.
    if pointer.is_null() { Ok(()) } else { unsafe { write(pointer, values, name) } }
}

/// Writes a text with a zero byte at its end, and its length with that byte; only the length if `capacity` is 0
/// and `place` is null.
///
/// # Safety
/// As [`write`]: `place` has room for `capacity` bytes, `length` for a number.
pub unsafe fn write_text(
    text: &str,
    capacity: i64,
    place: *mut c_char,
    name: &str,
    length: *mut i64,
) -> Result<()> {
    let capacity = count(capacity, "capacity", 0)?;
    // SAFETY: the caller's promise.
    unsafe { write(length, &[text.len() as i64 + 1], "length") }?;
    if capacity == 0 && place.is_null() {
        return Ok(());
    }
    if capacity < text.len() + 1 {
        let what = format!("{capacity} bytes are too few for {}", text.len() + 1);
        return Err(refuse("capacity", what, "ask for the length with a capacity of 0 first"));
    }
    let bytes: Vec<c_char> = text.bytes().chain([0]).map(|byte| byte as c_char).collect();
    // SAFETY: the caller's promise, and there is room.
    unsafe { write(place, &bytes, name) }
}

/// Hands a value to the caller, as an opaque pointer.
///
/// # Safety
/// A pointer that is not null points to room for a pointer.
pub unsafe fn hand_out<T>(place: *mut *mut T, value: T, name: &str) -> Result<()> {
    check(place.cast_const(), 1, name)?;
    // SAFETY: aligned and not null; the caller promises the room.
    unsafe { place.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// The value behind an opaque pointer.
///
/// # Safety
/// A pointer that is not null was handed out, was not freed, and is used by one thread at a time.
pub unsafe fn value<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    check(pointer.cast_const(), 1, name)?;
    // SAFETY: aligned and not null; the rest is the caller's promise.
    Ok(unsafe { &mut *pointer })
}

/// Sets an option of the value behind an opaque pointer.
///
/// # Safety
/// As [`value`] and [`text`].
pub unsafe fn set_option<T>(
    pointer: *mut T,
    name: &str,
    option: *const c_char,
    setting: *const c_char,
    set: impl FnOnce(&mut T, &str, &str) -> Result<()>,
) -> c_int {
    // SAFETY: the caller's promises.
    guard(|| unsafe { set(value(pointer, name)?, text(option, "option")?, text(setting, "value")?) })
}

/// The value behind an opaque pointer, to read it.
///
/// # Safety
/// A pointer that is not null was handed out and was not freed.
pub unsafe fn look<'a, T>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, 1, name)?;
    // SAFETY: aligned and not null; the rest is the caller's promise.
    Ok(unsafe { &*pointer })
}

/// The same for a value that may be left out.
///
/// # Safety
/// As [`look`].
pub unsafe fn look_if_given<'a, T>(pointer: *const T, name: &str) -> Result<Option<&'a T>> {
    // SAFETY: the caller's promise.
    (!pointer.is_null()).then(|| unsafe { look(pointer, name) }).transpose()
}

/// Takes a value back; null is nothing.
///
/// # Safety
/// As [`value`]; the pointer is not used again.
pub unsafe fn free<T>(pointer: *mut T) -> Option<T> {
    if pointer.is_null() || !pointer.is_aligned() {
        return None;
    }
    // SAFETY: the caller promises that it was handed out, by `Box::into_raw`.
    Some(*unsafe { Box::from_raw(pointer) })
}

/// A text of the caller.
///
/// # Safety
/// A pointer that is not null points to a text that ends with a zero byte.
pub unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str> {
    check(pointer, 1, name)?;
    // SAFETY: not null; the rest is the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| refuse(name, "is not UTF-8", "give a text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the message lives until the next failure in this thread.
        unsafe { CStr::from_ptr(apportion_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn errors_and_panics_become_codes_with_messages() {
        assert_eq!(guard(|| Ok(())), 0);
        assert_eq!(guard(|| Err(refuse("units", "0 is none", "give 1"))), 2);
        assert_eq!(last(), "units: 0 is none (give 1)");
        assert_eq!(guard(|| Err(Error::infeasible("no room", "add some"))), 1);
        assert_eq!(guard(|| panic!("a \0 byte")), 3);
        assert!(last().contains("a \\0 byte"), "{}", last());
        // Another thread has its own.
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
    }

    #[test]
    fn pointers_and_lengths_are_checked() {
        let numbers = [1_i64, 2, 3];
        // SAFETY: the addresses that are wrong are refused before they are used.
        unsafe {
            assert!(array::<i64>(std::ptr::null(), 3, "numbers").is_err());
            assert!(array(numbers.as_ptr().cast::<u8>().add(1).cast::<i64>(), 1, "numbers").is_err());
            assert!(array(numbers.as_ptr(), usize::MAX / 4, "numbers").is_err());
            assert_eq!(array(numbers.as_ptr(), 3, "numbers").unwrap(), numbers);
            assert!(optional::<i64>(std::ptr::null(), 3, "numbers").unwrap().is_none());
            assert!(text(std::ptr::null(), "text").is_err() && text(c"\xff".as_ptr(), "text").is_err());
            assert!(free::<Vec<u8>>(std::ptr::null_mut()).is_none());
        }
        assert!(count(-1, "processors", 0).is_err() && count(0, "processors", 1).is_err());
        assert!(units(-1, "units").is_err());
    }

    #[test]
    fn parameters_stand_without_backquotes() {
        assert_eq!(guard(|| Err(Error::infeasible("4 are missing", "raise `max`"))), 1);
        assert_eq!(last(), "4 are missing (raise max)");
    }
}
