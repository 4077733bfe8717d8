//! Finished panels of C on disk, with the identity of their product: a run that was killed resumes from them.
//!
//! The file of a panel appears completely or not at all, and its name contains a hash of its elements. A
//! panel that was not finished is missing; a panel that was changed later is detected and computed again.

use crate::error::{Error, Result};
use crate::geometry::{Rect, Span};
use crate::matrix::{Element, Matrix, NpyFile, write_npy};
use crate::output::{OutputFile, write_whole};
use crate::plan::Plan;
use crate::product::Panels;
use crate::schedule::ScheduleOptions;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Identity of a product: two products with the same fingerprint have the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    /// Each input file: its name, its length and its hash, or another identification.
    pub inputs: Vec<Value>,
    /// The semiring, the element type, the scalars, and everything else that determines the result.
    pub settings: Value,
}

/// A directory of finished panels.
#[derive(Debug)]
pub struct Checkpoint {
    directory: PathBuf,
}

/// The decisions at the start of a checkpoint. With newly measured speeds they could differ.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The plan of a panel of full height.
    pub plan: Plan,
    /// Flow, block, overlap.
    pub order: ScheduleOptions,
    /// Panels of C.
    pub panels: Panels,
}

impl Manifest {
    /// The decisions as JSON.
    pub fn to_value(&self) -> Value {
        let Self { plan, order, panels } = self;
        json!({
            "rows": panels.rows,
            "segment": panels.segment,
            "order": {
                "flow": order.flow.to_string(),
                "block": order.block,
                "overlap": order.overlaps(),
                "look_ahead": order.look_ahead,
            },
            "plan": Plan { forecast: None, ..plan.clone() }.to_value(),
        })
    }

    /// Parses the output of [`Manifest::to_value`]; `place` names the source in errors.
    ///
    /// # Errors
    /// Text in another format: exit code 2.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let value = serde_json::from_str(text).ok();
        value
            .and_then(|value| begun(&value, place))
            .ok_or_else(|| Error::input(place, "holds no usable plan", "start a new checkpoint"))
    }
}

const MANIFEST: &str = "checkpoint.json";

impl Checkpoint {
    /// Opens a directory, which is created if it is missing, and returns its manifest if it has one.
    /// Temporary files of a killed run are deleted.
    ///
    /// # Errors
    /// Exit code 2: the directory cannot be created or read, its manifest is damaged, or it belongs to
    /// another product.
    pub fn open(directory: &Path, identity: &Fingerprint) -> Result<(Self, Option<Manifest>)> {
        std::fs::create_dir_all(directory).map_err(|e| Error::file(directory, "create", e))?;
        let checkpoint = Self { directory: directory.to_path_buf() };
        for name in checkpoint.names()?.iter().filter(|name| name.starts_with(".apportion-")) {
            // Only this program writes here: the file was left behind by a killed run.
            let _ = std::fs::remove_file(directory.join(name));
        }
        let path = directory.join(MANIFEST);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((checkpoint, None)),
            Err(e) => return Err(Error::file(path, "read", e)),
        };
        let damaged = |what: String| {
            Error::input(path.display().to_string(), what, "delete the directory and start again")
        };
        let manifest: Value =
            serde_json::from_str(&text).map_err(|e| damaged(format!("is not valid JSON: {e}")))?;
        if (&manifest["format"], &manifest["version"]) != (&json!("apportion-checkpoint"), &json!(1)) {
            return Err(damaged("is not the manifest of a checkpoint of version 1".into()));
        }
        let other = |what: &str, then: &Value, now: &Value| {
            let what = format!("belongs to another product: its {what} were {then}, now they are {now}");
            Error::input(path.display().to_string(), what, "give the same inputs, or another directory")
        };
        let inputs = json!(identity.inputs);
        if manifest["inputs"] != inputs {
            return Err(other("inputs", &manifest["inputs"], &inputs));
        }
        if manifest["settings"] != identity.settings {
            return Err(other("settings", &manifest["settings"], &identity.settings));
        }
        let begun = begun(&manifest, &path.display().to_string());
        begun.map(|begun| (checkpoint, Some(begun))).ok_or_else(|| damaged("holds no usable plan".into()))
    }

    /// Writes the manifest.
    ///
    /// # Errors
    /// The manifest cannot be written.
    pub fn begin(&self, identity: &Fingerprint, begun: &Manifest) -> Result<()> {
        let mut manifest = json!({
            "format": "apportion-checkpoint",
            "version": 1,
            "inputs": identity.inputs,
            "settings": identity.settings,
        });
        if let (Value::Object(all), Value::Object(decided)) = (&mut manifest, begun.to_value()) {
            all.extend(decided);
        }
        write_whole(self.directory.join(MANIFEST), format!("{manifest:#}\n").as_bytes())
    }

    /// Saves a finished panel.
    ///
    /// # Errors
    /// The disk is full, or another error of the operating system.
    pub fn save<T: Element>(&self, index: usize, panel: &Matrix<T>) -> Result<()> {
        let name = format!("{}{:016x}.npy", prefix(index), hash_of(panel));
        let mut file = OutputFile::create(self.directory.join(name))?;
        write_npy(&mut file, panel)?;
        file.commit()
    }

    /// Loads a finished panel of C if its file is as it was saved. A damaged file is deleted, and `damaged`
    /// is called with its name.
    ///
    /// # Errors
    /// The directory cannot be read, or a damaged file cannot be deleted.
    pub fn load<T: Element>(
        &self,
        index: usize,
        (rows, cols): (Span, u64),
        damaged: &mut dyn FnMut(&Path),
    ) -> Result<Option<Matrix<T>>> {
        let prefix = prefix(index);
        for name in self.names()?.iter().filter(|name| name.starts_with(&prefix)) {
            let path = self.directory.join(name);
            let panel = read(&path, rows.len(), cols);
            let whole = panel.filter(|panel| format!("{prefix}{:016x}.npy", hash_of(panel)) == **name);
            match whole {
                Some(panel) => return Ok(Some(panel)),
                None => {
                    damaged(&path);
                    std::fs::remove_file(&path).map_err(|e| Error::file(&path, "delete", e))?;
                }
            }
        }
        Ok(None)
    }

    /// Number of saved panels.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn count(&self) -> Result<usize> {
        let number = |name: &String| name.strip_prefix("panel-")?.split('-').next().map(str::to_owned);
        Ok(self.names()?.iter().filter_map(number).collect::<BTreeSet<String>>().len())
    }

    fn names(&self) -> Result<Vec<String>> {
        let unreadable = |e| Error::file(&self.directory, "read", e);
        let entries = std::fs::read_dir(&self.directory).map_err(unreadable)?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }
}

fn prefix(index: usize) -> String {
    format!("panel-{index:06}-")
}

fn hash_of<T: Element>(panel: &Matrix<T>) -> u64 {
    twox_hash::XxHash64::oneshot(0, bytemuck::cast_slice(panel.as_slice()))
}

fn begun(manifest: &Value, place: &str) -> Option<Manifest> {
    let order = &manifest["order"];
    Some(Manifest {
        plan: Plan::parse(&manifest["plan"].to_string(), place).ok()?,
        order: ScheduleOptions::new(
            order["flow"].as_str()?.parse().ok()?,
            order["block"].as_u64().filter(|b| *b > 0)?,
        )
        .with_look_ahead(match order["overlap"].as_bool() {
            // Earlier versions wrote a look-ahead that was not used.
            Some(false) => 0,
            _ => order["look_ahead"].as_u64()?,
        }),
        panels: Panels {
            rows: manifest["rows"].as_u64().filter(|r| *r > 0)?,
            segment: manifest["segment"].as_u64().filter(|s| *s > 0)?,
        },
    })
}

/// Reads a panel's elements if its file contains this type and size.
fn read<T: Element>(path: &Path, rows: u64, cols: u64) -> Option<Matrix<T>> {
    let mut file = NpyFile::open(path, false).ok()?;
    let header = *file.header();
    let fits = (header.rows as u64, header.cols as u64, header.dtype) == (rows, cols, T::NAME);
    let whole = Rect::new(Span::new(0, rows), Span::new(0, cols));
    if fits && !header.fortran && !header.big_endian { file.read(whole).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Shape, shapes};
    use crate::schedule::Flow;

    fn identity(hash: u64) -> Fingerprint {
        Fingerprint { inputs: vec![json!({"name": "a.npy", "hash": hash})], settings: json!({"alpha": 1.5}) }
    }

    fn begun() -> Manifest {
        let shape = Shape::new(4, 9, 5, "test").unwrap();
        let layout = shapes::columns(shape, &[2.0, 1.0]).unwrap();
        let plan = Plan::of_layout("columns", vec!["a".into(), "b".into()], layout, 1.0);
        let order = ScheduleOptions::new(Flow::Ring, 3).with_look_ahead(2);
        Manifest { plan, order, panels: Panels { rows: 4, segment: 9 } }
    }

    #[test]
    fn what_was_begun_is_read_back_and_another_product_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/deep");
        let (checkpoint, none) = Checkpoint::open(&path, &identity(1)).unwrap();
        assert!(none.is_none());
        checkpoint.begin(&identity(1), &begun()).unwrap();
        std::fs::write(path.join(".apportion-left"), b"half").unwrap();
        let (_, again) = Checkpoint::open(&path, &identity(1)).unwrap();
        let again = again.unwrap();
        assert_eq!((again.order, again.panels), (begun().order, begun().panels));
        assert_eq!(again.plan.layout().unwrap(), begun().plan.layout().unwrap());
        assert!(!path.join(".apportion-left").exists());
        assert_eq!(Checkpoint::open(&path, &identity(2)).unwrap_err().exit_code(), 2);
        let settings = Fingerprint { settings: json!({"alpha": 2.5}), ..identity(1) };
        assert!(Checkpoint::open(&path, &settings).unwrap_err().to_string().contains("another product"));
        for text in ["", "{}", "{\"format\": 3}"] {
            std::fs::write(path.join(MANIFEST), text).unwrap();
            assert_eq!(Checkpoint::open(&path, &identity(1)).unwrap_err().exit_code(), 2, "{text}");
        }
    }

    #[test]
    fn panels_come_back_as_they_were_and_any_flipped_bit_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let (checkpoint, _) = Checkpoint::open(directory.path(), &identity(1)).unwrap();
        let panel = Matrix::new(2, 3, vec![1.5f64, f64::NAN, -0.0, f64::INFINITY, 5e-324, 1.0]);
        let load = |damaged: &mut Vec<PathBuf>| {
            checkpoint
                .load::<f64>(7, (Span::new(4, 6), 3), &mut |path| damaged.push(path.to_path_buf()))
                .unwrap()
                .map(|m| m.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>())
        };
        assert_eq!(load(&mut Vec::new()), None);
        assert_eq!(checkpoint.count().unwrap(), 0);
        checkpoint.save(7, &panel).unwrap();
        assert_eq!(checkpoint.count().unwrap(), 1);
        let path = directory.path().join(&checkpoint.names().unwrap()[0]);
        let bytes = std::fs::read(&path).unwrap();
        let wanted: Vec<u64> = panel.as_slice().iter().map(|x| x.to_bits()).collect();
        assert_eq!(load(&mut Vec::new()), Some(wanted));
        for bit in (0..bytes.len() * 8).step_by(61) {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &wrong).unwrap();
            let mut damaged = Vec::new();
            match load(&mut damaged) {
                None => assert_eq!((damaged.len(), path.exists()), (1, false)),
                // A bit of the header without meaning.
                Some(_) => assert!(bit < 128 * 8, "bit {bit}"),
            }
        }
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_eq!(load(&mut Vec::new()), None);
    }
}
