//! Libraries of drivers, which are loaded while running.

use crate::input::harmless;
use libloading::Library;

/// Why the functions of a library cannot be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The loader finds no such library.
    Library,
    /// The library has no such function.
    Function(&'static str),
}

/// Loads the first of these libraries that is there.
#[allow(unsafe_code)]
pub(super) fn load(names: &[&str]) -> Result<Library, Missing> {
    // SAFETY: loading runs the library's own initialisers, and the loader reports an error for a file that is not a
    // library.
    names.iter().find_map(|name| unsafe { Library::new(name) }.ok()).ok_or(Missing::Library)
}

/// Declares the table `Api` of a library: a field for each function, with its name there. `Api::load` fills it from
/// the first library that is there, which then stays loaded until the process ends.
macro_rules! table {
    ($($field:ident = $name:literal: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions of the library that are used, by their addresses.
        pub(crate) struct Api {
            $(pub $field: unsafe extern "system" fn($($argument),*) -> $result,)*
        }

        impl Api {
            /// # Errors
            /// There is no library, or it lacks a function.
            pub(crate) fn load(names: &[&str]) -> Result<Self, $crate::device::library::Missing> {
                let library = $crate::device::library::load(names)?;
                // SAFETY: these are the types that the library's specification gives for the names.
                let api = unsafe {
                    Self {
                        $($field: *library
                            .get(concat!($name, "\0").as_bytes())
                            .map_err(|_| $crate::device::library::Missing::Function($name))?,)*
                    }
                };
                // Drivers with threads of their own do not unload safely.
                std::mem::forget(library);
                Ok(api)
            }
        }
    };
}
pub(super) use table;

/// A text of a library, in one line without characters that do harm.
pub(super) fn one_line(text: &str) -> String {
    harmless(text).split_whitespace().collect::<Vec<_>>().join(" ")
}
