//! Devices, listed in a process of its own: a driver that faults, hangs, or ends the process that loads it ends only
//! that.

use crate::device::{DeviceInfo, Interface};
use crate::error::Result;
use crate::measure::process::{End, LineObserver, Listeners, run};
use crate::run::Monitor;
use crate::run::mailboxes::StopSignal;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The argument that asks a process for the devices of the interface that follows.
const REQUEST: &str = "--list-devices-of";
/// What the line with the devices begins with, after a line's end: drivers may print, too.
const ANSWER: &str = "apportion-devices ";
/// The time that drivers have: those of several cards take some seconds to start.
const LIMIT: Duration = Duration::from_secs(10);

/// What a look at the drivers of an interface found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DriverLook {
    /// Its devices; `None` without a library that lists them.
    pub devices: Option<Vec<DeviceInfo>>,
    /// What the driver does to a process that loads it, in words that follow its name, where that is not to list its
    /// devices.
    pub fault: Option<String>,
}

/// The program that lists devices for this process; `None` if there is none.
static LISTER: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Lets this program list devices for [`look_at_drivers`]: call it first in `main`. In a process that was started to
/// do so it prints them, and ends the process; in all others it returns at once.
pub fn answer_device_requests() {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_none_or(|word| word != REQUEST) {
        let _ = LISTER.set(std::env::current_exe().ok());
        return;
    }
    let asked = words.next().unwrap_or_default();
    let Some(interface) = Interface::ALL.into_iter().find(|interface| asked == interface.id()) else {
        std::process::exit(2)
    };
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // A driver that faults leaves no image of the process.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    }
    let devices = serde_json::to_string(&interface.devices()).unwrap_or_default();
    let _ = std::io::stdout().write_all(format!("\n{ANSWER}{devices}\n").as_bytes());
    // What drivers do at the end of a process does not matter any more.
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::exit(0)
}

/// Lists the devices of an interface in a process of its own: that of this program, if it calls
/// [`answer_device_requests`], or of the command `apportion` that is installed with this library. `None` where there is
/// neither, or no process can be started.
///
/// # Errors
/// An interruption.
pub(crate) fn look_at_drivers(interface: Interface, monitor: &Monitor) -> Result<Option<DriverLook>> {
    let installed = || library_file().as_deref().and_then(command_beside);
    let Some(program) = LISTER.get_or_init(installed) else { return Ok(None) };
    let mut command = Command::new(program);
    command.args([REQUEST, interface.id()]);
    look_by(command, LIMIT, monitor)
}

fn look_by(command: Command, most: Duration, monitor: &Monitor) -> Result<Option<DriverLook>> {
    let answer = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&answer);
    let lines: LineObserver = Arc::new(move |line: &str| {
        if let Some(devices) = line.strip_prefix(ANSWER).and_then(|text| serde_json::from_str(text).ok()) {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(devices);
        }
    });
    let Ok(exit) = run(command, Some(most), &Listeners::of_lines(lines), None, &StopSignal::new(monitor))?
    else {
        return Ok(None);
    };
    let found = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
    let fault = || match exit.end {
        End::TimedOut => format!("does not list its devices within {} s", most.as_secs()),
        End::Exited { failure, .. } => {
            let how = failure.unwrap_or_else(|| "exit status: 0".into());
            format!("ends the process that loads it ({how})")
        }
    };
    Ok(Some(match found {
        Some(devices) => DriverLook { devices, fault: None },
        None => DriverLook { devices: None, fault: Some(fault()) },
    }))
}

/// The file from which this code was loaded: a library or an executable. On Linux only.
fn library_file() -> Option<PathBuf> {
    let here = library_file as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let is_here = |line: &&str| {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).unwrap_or_default();
        let address = |text: &str| usize::from_str_radix(text, 16).unwrap_or_default();
        (address(from)..address(to)).contains(&here)
    };
    let line = maps.lines().find(is_here)?;
    line.find('/').map(|start| line[start..].into())
}

/// The command `apportion` that is installed with a library: in its directory, or in `bin` beside the `lib` that it is
/// in.
fn command_beside(library: &Path) -> Option<PathBuf> {
    let directory = library.parent()?;
    let is_lib = |place: &&Path| place.file_name().is_some_and(|name| name == "lib" || name == "lib64");
    let prefix = directory.ancestors().find(is_lib).and_then(Path::parent);
    let places = [Some(directory.join("apportion")), prefix.map(|prefix| prefix.join("bin/apportion"))];
    places.into_iter().flatten().find(|path| path.is_file())
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)] // A test says what went wrong by failing.
mod tests {
    use super::*;

    fn look(script: &str, most: Duration) -> DriverLook {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        look_by(command, most, &Monitor::new()).unwrap().unwrap()
    }

    #[test]
    fn what_a_driver_does_to_its_process_is_said() {
        let long = Duration::from_secs(600);
        let found =
            look("echo words; printf 'no end'; printf '\\napportion-devices []\\n'; kill -9 $$", long);
        assert_eq!(found, DriverLook { devices: Some(Vec::new()), fault: None });
        assert_eq!(look("echo apportion-devices null", long), DriverLook { devices: None, fault: None });
        for (script, says) in [
            ("exit 3", "exit status: 3"),
            ("exit 0", "exit status: 0"),
            ("echo apportion-devices nonsense; kill -ABRT $$", "signal: 6"),
            ("kill -SEGV $$", "signal: 11"),
        ] {
            let fault = look(script, long).fault.unwrap();
            assert!(fault.starts_with("ends the process") && fault.contains(says), "{script}: {fault}");
        }
        let fault = look("sleep 3600", Duration::from_millis(50)).fault.unwrap();
        assert!(fault.starts_with("does not list"), "{fault}");
        let stopped = Monitor::new();
        stopped.stop();
        assert!(look_by(Command::new("sh"), long, &stopped).is_err());
    }

    #[test]
    fn the_command_is_found_beside_the_library() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for directory in ["p/bin", "p/lib/python3/site-packages/apportion", "q/lib64", "r"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        for command in ["p/bin/apportion", "r/apportion"] {
            std::fs::write(root.join(command), "").unwrap();
        }
        for (library, command) in [
            ("p/lib/python3/site-packages/apportion/_native.so", Some("p/bin/apportion")),
            ("p/lib/libapportion.so.0", Some("p/bin/apportion")),
            ("q/lib64/libapportion.so.0", None),
            ("r/libapportion_c.so", Some("r/apportion")),
        ] {
            assert_eq!(command_beside(&root.join(library)), command.map(|name| root.join(name)), "{library}");
        }
        #[cfg(target_os = "linux")]
        assert_eq!(library_file(), std::env::current_exe().ok());
    }
}
