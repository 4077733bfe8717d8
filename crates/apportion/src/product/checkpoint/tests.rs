use super::*;
use crate::plan::shapes::LayoutMethod;
use crate::plan::{Shape, shapes};
use crate::schedule::Flow;

fn identity(hash: u64) -> Fingerprint {
    let inputs = vec![json!({"name": "a.npy", "hash": hash})];
    Fingerprint { work: "product", inputs, settings: json!({"alpha": 1.5}) }
}

fn manifest_of() -> Manifest {
    let shape = Shape::new(4, 9, 5, "test").unwrap();
    let layout = shapes::Columns::default().layout(shape, &[2.0, 1.0]).unwrap();
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
    checkpoint.begin(&identity(1), manifest_of().to_value()).unwrap();
    std::fs::write(path.join(".checkpoint-left"), b"half").unwrap();
    std::fs::write(path.join(".apportion-other"), b"an output of another process").unwrap();
    let busy = Checkpoint::open(&path, &identity(1)).unwrap_err();
    assert!(busy.to_string().contains("in use by another process"), "{busy}");
    assert!(path.join(".checkpoint-left").exists());
    drop(checkpoint);
    let (reopened, again) = Checkpoint::open(&path, &identity(1)).unwrap();
    let again = Manifest::of_checkpoint(&reopened, &again.unwrap()).unwrap();
    drop(reopened);
    assert_eq!((again.order, again.panels), (manifest_of().order, manifest_of().panels));
    assert_eq!(again.plan.layout().unwrap(), manifest_of().plan.layout().unwrap());
    assert!(!path.join(".checkpoint-left").exists() && path.join(".apportion-other").exists());
    assert_eq!(Checkpoint::open(&path, &identity(2)).unwrap_err().exit_code(), 2);
    let settings = Fingerprint { settings: json!({"alpha": 2.5}), ..identity(1) };
    assert!(Checkpoint::open(&path, &settings).unwrap_err().to_string().contains("another product"));
    for text in ["", "{}", "{\"format\": 3}"] {
        std::fs::write(path.join(MANIFEST), text).unwrap();
        assert_eq!(Checkpoint::open(&path, &identity(1)).unwrap_err().exit_code(), 2, "{text}");
    }
}

#[test]
fn panels_of_another_product_or_number_are_not_taken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let panel = |x: f64| Matrix::new(1, 2, vec![x, 2.0]);
    let (checkpoint, _) = Checkpoint::open(path, &identity(1)).unwrap();
    checkpoint.begin(&identity(1), manifest_of().to_value()).unwrap();
    checkpoint.save(0, &panel(0.0)).unwrap();
    checkpoint.save(1, &panel(1.0)).unwrap();
    let of = |index: usize| {
        let names = checkpoint.names().unwrap();
        path.join(names.iter().find(|name| name.starts_with(&prefix(index))).unwrap())
    };
    let renamed = |from: &Path, index: usize| {
        let name = from.file_name().unwrap().to_str().unwrap();
        path.join(format!("{}{}", prefix(index), name.split_at(prefix(0).len()).1))
    };
    let (zero, one) = (of(0), of(1));
    std::fs::rename(&zero, renamed(&zero, 1)).unwrap();
    std::fs::rename(&one, renamed(&one, 0)).unwrap();
    let mut damaged = 0;
    for index in [0, 1] {
        let found = checkpoint.load::<f64>(index, [1, 2], &mut |_| damaged += 1);
        assert!(found.unwrap().is_none());
    }
    assert_eq!(damaged, 2);
    checkpoint.save(0, &panel(0.0)).unwrap();
    drop(checkpoint);
    std::fs::remove_file(path.join(MANIFEST)).unwrap();
    let orphaned = Checkpoint::open(path, &identity(2)).unwrap_err();
    assert!(orphaned.to_string().contains("1 panels of a product but no"), "{orphaned}");
    // Even with a manifest of the other product.
    let (kept, name) = (path.join("kept"), zero.file_name().unwrap());
    std::fs::rename(&zero, &kept).unwrap();
    let (other, _) = Checkpoint::open(path, &identity(2)).unwrap();
    other.begin(&identity(2), manifest_of().to_value()).unwrap();
    std::fs::rename(&kept, path.join(name)).unwrap();
    assert!(other.load::<f64>(0, [1, 2], &mut |_| ()).unwrap().is_none());
}

#[test]
fn panels_come_back_as_they_were_and_any_flipped_bit_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (checkpoint, _) = Checkpoint::open(directory.path(), &identity(1)).unwrap();
    let panel = Matrix::new(2, 3, vec![1.5f64, f64::NAN, -0.0, f64::INFINITY, 5e-324, 1.0]);
    let load = |damaged: &mut Vec<PathBuf>| {
        checkpoint
            .load::<f64>(7, [2, 3], &mut |path| damaged.push(path.to_path_buf()))
            .unwrap()
            .map(|m| m.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    assert_eq!(load(&mut Vec::new()), None);
    assert_eq!(checkpoint.count().unwrap(), 0);
    checkpoint.save(7, &panel).unwrap();
    assert_eq!(checkpoint.count().unwrap(), 1);
    let names = checkpoint.names().unwrap();
    let path = directory.path().join(names.iter().find(|name| name.starts_with("panel-")).unwrap());
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

/// A link in the directory could lead anywhere.
#[cfg(unix)]
#[test]
fn links_are_refused() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let victim = path.join("victim");
    std::fs::write(&victim, b"kept").unwrap();
    symlink(&victim, path.join(LOCK)).unwrap();
    let error = Checkpoint::open(path, &identity(1)).unwrap_err();
    assert!(error.to_string().contains("is a link"), "{error}");
    std::fs::remove_file(path.join(LOCK)).unwrap();
    let (checkpoint, _) = Checkpoint::open(path, &identity(1)).unwrap();
    let panel = Matrix::new(1, 1, vec![1.0]);
    symlink(&victim, path.join(checkpoint.name_of(0, &panel))).unwrap();
    assert_eq!(checkpoint.save(0, &panel).unwrap_err().exit_code(), 2);
    symlink(&victim, path.join(MANIFEST)).unwrap();
    assert!(checkpoint.begin(&identity(1), manifest_of().to_value()).is_err());
    assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
}
