//! The interfaces through which drivers offer devices, and the files that their drivers consist of.

use super::{DeviceInfo, cuda, opencl};
use std::fs;
use std::path::{Path, PathBuf};

/// An interface through which drivers offer devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// OpenCL, by the library that loads the drivers of all vendors.
    OpenCl,
    /// The CUDA driver of NVIDIA's cards.
    Cuda,
}

impl Interface {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OpenCl, Self::Cuda];

    /// The interface of a device, by its `id`, such as `opencl:0`.
    pub fn of_device(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|interface| id.split(':').next() == Some(interface.id()))
    }

    /// What the ids of its devices begin with: `opencl` or `cuda`.
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenCl => "opencl",
            Self::Cuda => "cuda",
        }
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenCl => "OpenCL",
            Self::Cuda => "CUDA",
        }
    }

    /// Its devices, for which its drivers are loaded into this process; `None` without a library that lists them.
    pub fn devices(self) -> Option<Vec<DeviceInfo>> {
        match self {
            Self::OpenCl => opencl::devices(),
            Self::Cuda => Some(cuda::devices()).filter(|cards| !cards.is_empty()),
        }
    }

    /// The files that decide which devices are found, as far as they are known without loading one: libraries, the
    /// files that name OpenCL's drivers, the loader's list of libraries, and the nodes of devices.
    pub fn driver_files(self) -> Vec<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let mut libraries: Vec<PathBuf> =
            set("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect();
        for place in ["/usr/local/lib", "/usr/lib", "/lib"] {
            libraries.push(format!("{place}/{}-linux-gnu", std::env::consts::ARCH).into());
            libraries.extend([format!("{place}64").into(), place.into()]);
        }
        let mut found = vec![PathBuf::from("/etc/ld.so.cache")];
        match self {
            Self::OpenCl => {
                let named = ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"].into_iter().filter_map(set);
                let vendors: Vec<PathBuf> =
                    named.map(PathBuf::from).chain(["/etc/OpenCL/vendors".into()]).collect();
                found.extend(opencl::LIBRARIES.iter().filter_map(|name| find(name, &libraries)));
                found.extend(vendors.iter().flat_map(|vendors| vendor_files(vendors, &libraries)));
            }
            Self::Cuda => found.extend(cuda::LIBRARIES.iter().filter_map(|name| find(name, &libraries))),
        }
        let nodes = entries(Path::new("/dev")).into_iter().filter(|path| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name == b"kfd" || name.starts_with(b"nvidia")
        });
        found.extend(nodes.chain(entries(Path::new("/dev/dri"))));
        found
    }
}

/// The files that name OpenCL's drivers, in a directory or alone, each with the library that it names.
fn vendor_files(vendors: &Path, libraries: &[PathBuf]) -> Vec<PathBuf> {
    let is_vendor = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "icd");
    let files = if vendors.is_dir() { entries(vendors) } else { vec![vendors.to_owned()] };
    let with_library = |file: PathBuf| {
        let named = fs::read_to_string(&file).unwrap_or_default();
        let library = find(named.trim(), libraries);
        [Some(file), library]
    };
    files.into_iter().filter(is_vendor).flat_map(with_library).flatten().collect()
}

/// The first library of this name, or the one at this path.
fn find(name: &str, libraries: &[PathBuf]) -> Option<PathBuf> {
    let mut places = libraries.iter().map(|place| place.join(name));
    places.find(|path| !name.is_empty() && path.is_file())
}

/// The paths in a directory, in order; none if it cannot be read.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    #[test]
    fn a_driver_is_found_by_the_file_that_names_it() {
        let place = tempfile::tempdir().unwrap();
        let [vendors, libraries] = ["vendors", "lib"].map(|name| place.path().join(name));
        for directory in [&vendors, &libraries] {
            fs::create_dir(directory).unwrap();
        }
        for name in ["libone.so.1", "libtwo.so"] {
            fs::write(libraries.join(name), "").unwrap();
        }
        let two = libraries.join("libtwo.so");
        let files =
            [("a.icd", "libone.so.1\n"), ("b.icd", two.to_str().unwrap()), ("c.icd", ""), ("d.txt", "x")];
        for (name, text) in files {
            fs::write(vendors.join(name), text).unwrap();
        }
        let found = vendor_files(&vendors, std::slice::from_ref(&libraries));
        let [a, b, c] = ["a.icd", "b.icd", "c.icd"].map(|name| vendors.join(name));
        let one = libraries.join("libone.so.1");
        assert_eq!(found, [a.clone(), one.clone(), b, two, c]);
        assert_eq!(vendor_files(&a, std::slice::from_ref(&libraries)), [a, one]);
        assert_eq!(vendor_files(&place.path().join("none"), &[libraries]), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_device_names_its_interface() {
        assert_eq!(Interface::of_device("opencl:0"), Some(Interface::OpenCl));
        assert_eq!(Interface::of_device("cuda:12"), Some(Interface::Cuda));
        assert_eq!(Interface::of_device("gpu0"), None);
    }
}
