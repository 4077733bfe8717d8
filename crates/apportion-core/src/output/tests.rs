use super::*;

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out");
    let mut file = OutputFile::create(&path).unwrap();
    file.put(b"half").unwrap();
    file.flush().unwrap();
    assert!(!path.exists());
    drop(file);
    assert!(names(directory.path()).is_empty());
    write_whole(&path, b"one").unwrap();
    let mut file = OutputFile::create(&path).unwrap();
    file.put(b"two").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"one");
    write_whole(&path, b"three").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"three");
    assert_eq!(names(directory.path()), ["out"]);
}

#[test]
fn what_cannot_end_well_does_not_begin() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), b"").unwrap();
    for (name, word) in [
        ("", "directory"),
        ("missing/out", "no directory"),
        ("new/", "not the name"),
        ("file/out", "cannot create"),
    ] {
        let error = OutputFile::create(directory.path().join(name)).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(word), "{error}");
    }
    assert_eq!(OutputFile::create("").unwrap_err().exit_code(), 2);
    assert_eq!(OutputFile::create("/").unwrap_err().exit_code(), 2);
}

#[cfg(unix)]
#[test]
fn permissions_are_kept_or_usual() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let (plain, ours) = (directory.path().join("plain"), directory.path().join("ours"));
    fs::write(&plain, b"").unwrap();
    write_whole(&ours, b"").unwrap();
    assert_eq!(mode(&ours), mode(&plain));
    // The rights of its owner are not for other contents.
    fs::set_permissions(&ours, fs::Permissions::from_mode(0o6640)).unwrap();
    write_whole(&ours, b"again").unwrap();
    assert_eq!(mode(&ours), 0o640);
}

/// A pipe in place of a file of the program's own would be waited for.
#[cfg(unix)]
#[test]
fn a_file_of_the_programs_own_is_no_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("models.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = OutputFile::create_own(&pipe, ".apportion-").unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("not a regular file"), "{error}");
    write_cache(&pipe, "speeds");
}

#[cfg(unix)]
#[test]
fn the_room_is_that_of_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = OutputFile::create(directory.path().join("big")).unwrap();
    assert!(file.room().is_some_and(|free| free > 0 && free < 1 << 62));
    file.reserve(4096).unwrap();
    assert!(file.is_on_disk_of(directory.path()) && !file.is_on_disk_of(Path::new("/proc")));
    let error = file.reserve(1 << 62).unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().contains("are free on its disk"), "{error}");
    let mut null = OutputFile::create("/dev/null").unwrap();
    assert_eq!(null.room(), None);
    null.reserve(1 << 62).unwrap();
}

#[cfg(unix)]
#[test]
fn links_are_followed() {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("deep")).unwrap();
    symlink("deep/real", at("deep-link")).unwrap();
    symlink("deep-link", at("link")).unwrap();
    for text in [b"dangling", b"existing"] {
        write_whole(at("link"), text).unwrap();
        assert_eq!(fs::read(at("deep/real")).unwrap(), text);
        assert!(at("link").is_symlink() && at("deep-link").is_symlink());
    }
    symlink("round", at("round")).unwrap();
    assert_eq!(OutputFile::create(at("round")).unwrap_err().exit_code(), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_written_to_and_a_full_one_is_an_error() {
    use std::os::unix::fs::FileTypeExt;
    write_whole("/dev/null", b"gone").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let error = write_whole("/dev/full", b"too much").unwrap_err();
    assert_eq!(error.exit_code(), 1);
    assert!(error.to_string().starts_with("/dev/full: cannot write: No space left"), "{error}");
}

/// A link that another user left in a shared directory is not written through, whatever
/// `fs.protected_symlinks` says. Only root can make a file of another user.
#[cfg(unix)]
#[test]
fn links_of_others_in_shared_directories_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(at("victim"), b"kept").unwrap();
    symlink("victim", at("link")).unwrap();
    write_whole(at("link"), b"ours").unwrap();
    if lchown(at("link"), Some(4321), Some(4321)).is_err() || lchown(at("victim"), Some(4321), None).is_err()
    {
        return;
    }
    // The directory is root's as this process is; a link of user 4321 in it belongs to neither.
    let error = OutputFile::create(at("link")).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("another user"), "{error}");
    assert_eq!(fs::read(at("victim")).unwrap(), b"ours");
}

/// A pipe behind a link, such as `/dev/stdout` in a pipeline, is written to directly.
#[cfg(target_os = "linux")]
#[test]
fn a_pipe_behind_a_link_is_written_to() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let (mut reader, writer) = io::pipe().unwrap();
    write_whole(format!("/proc/self/fd/{}", writer.as_raw_fd()), b"through").unwrap();
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through");
}
