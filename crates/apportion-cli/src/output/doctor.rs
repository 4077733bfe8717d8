//! What this machine has, what it lacks, and what installs it.

use super::devices::{Device, describe_devices};
use apportion::error::Result;
use apportion::job::find_devices;
use apportion::kernels::{Blas, instruction_set};
use apportion::measure::{ClockNoise, CpuShare, UNDISTURBED, measure_availability, measure_clock_noise};
use apportion::platform::{CoreKind, Grouping, Host, discover};
use apportion::process_memory::available_memory;
use apportion::run::{Monitor, MpiLibrary, mpi_libraries};
use apportion::units::{show_bytes, show_seconds};
use apportion_graph::GraphMethod;
use apportion_report::{pairs, set_text_width};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Seconds of the look at what other programs leave, if they take anything.
const LOOK: f64 = 0.2;
/// Relative width of the times of equal work above which measured speeds are worth a warning.
const NOISY: f64 = 0.1;
/// Width of the text.
const COLUMNS: usize = 80;
/// Programs that start MPI programs.
const LAUNCHERS: [&str; 4] = ["mpirun", "mpiexec", "srun", "prterun"];

/// Something that is missing or takes speed, and what to do.
struct Advice {
    what: String,
    /// A command, or words where no command is known.
    remedy: String,
}

/// What was found.
pub struct Findings {
    host: Host,
    available: Option<u64>,
    shares: Vec<CpuShare>,
    noise: ClockNoise,
    mpi: Vec<MpiLibrary>,
    launchers: Vec<(&'static str, PathBuf)>,
    blas: Vec<Blas>,
    /// `None` without a library that lists them.
    devices: Option<Vec<Device>>,
    /// What is wrong with the drivers of devices.
    driver_faults: Vec<String>,
}

impl Findings {
    /// Looks. Only an interruption is an error: what cannot be found out stays unknown.
    pub fn new(monitor: &Monitor) -> Result<Self> {
        let host = discover();
        let shares = measure_availability(&host.platform(Grouping::Core), LOOK, monitor)?;
        let found = find_devices(false, monitor)?;
        Ok(Self {
            available: available_memory(),
            shares,
            noise: measure_clock_noise(),
            mpi: mpi_libraries(),
            launchers: LAUNCHERS.into_iter().filter_map(|name| Some((name, program(name)?))).collect(),
            blas: Blas::all(),
            devices: found.devices.map(describe_devices),
            driver_faults: found.faults,
            host,
        })
    }

    /// The kinds of cores, with their numbers.
    fn kinds(&self) -> Vec<Kind<'_>> {
        let mut kinds = Vec::new();
        for (number, kind) in self.host.kinds.iter().enumerate() {
            let cores = || self.host.cores.iter().filter(|core| core.kind == number);
            let threads = cores().map(|core| core.threads.len()).max().unwrap_or(1);
            kinds.push(Kind { kind, cores: cores().count(), threads });
        }
        kinds
    }

    /// The NUMA nodes of the cores; 1 where they are unknown.
    fn nodes(&self) -> usize {
        let nodes: std::collections::BTreeSet<usize> =
            self.host.cores.iter().filter_map(|c| c.node).collect();
        nodes.len().max(1)
    }

    fn advice(&self) -> Vec<Advice> {
        let apt = program("apt-get").is_some();
        let install = |package: &str, words: &str| match apt {
            true => format!("apt install {package}"),
            false => format!("install {words}"),
        };
        let mut all = Vec::new();
        let mut add = |what: &str, remedy: String| all.push(Advice { what: what.into(), remedy });
        if self.mpi.is_empty() {
            add("no MPI library: runs on one host only", install("openmpi-bin", "Open MPI or MPICH"));
        } else if self.launchers.is_empty() {
            add("no MPI launcher (mpirun)", install("openmpi-bin", "the programs of your MPI library"));
        }
        if self.blas.is_empty() {
            add(
                "no BLAS: products use the built-in kernel",
                install("libopenblas0", "OpenBLAS, BLIS or MKL"),
            );
        }
        if GraphMethod::libraries().is_empty() {
            add(
                "no METIS and no Scotch: graphs are cut in the order of their vertices",
                install("libmetis5", "METIS 5"),
            );
        }
        for fault in &self.driver_faults {
            add(fault, "install the driver anew, or remove it: its devices are not used".into());
        }
        match &self.devices {
            _ if !self.driver_faults.is_empty() => {}
            None => add(
                "no OpenCL library: devices cannot be listed",
                install("ocl-icd-libopencl1", "an OpenCL loader") + ", and the driver of the device",
            ),
            Some(devices) if devices.is_empty() => add(
                "an OpenCL library, but no device",
                install("pocl-opencl-icd", "the driver of the device") + " (runs on the CPU)",
            ),
            Some(_) => {}
        }
        if let Some(quota) = self.host.scarce_cores() {
            add(&self.host.quota_text(quota), "raise the CPU quota of the container or job".into());
        }
        if self.shares.iter().any(|share| share.mean < UNDISTURBED) && self.host.scarce_cores().is_none() {
            let least = self.shares.iter().map(|share| share.mean).fold(1.0, f64::min);
            let what = format!("other programs take up to {:.0} % of a core", 100.0 * (1.0 - least));
            add(&what, "end them before measuring; shares and forecasts allow for them".into());
        }
        if self.noise.high - self.noise.low > NOISY {
            let what =
                format!("times of equal work differ by {:.0} %", 100.0 * (self.noise.high - self.noise.low));
            // What a quota stops varies whatever the clock does.
            let remedy = match self.host.scarce_cores() {
                Some(_) => "the CPU quota stops the work now and then: measure with more repetitions",
                None => "measure with more repetitions, or fix the clock of the cores",
            };
            add(&what, remedy.into());
        }
        all
    }

    pub fn to_value(&self) -> Value {
        let platform = self.host.platform(Grouping::Core);
        let kinds = self.kinds().into_iter().map(|kind| {
            json!({"kind": kind.kind.name, "cores": kind.cores, "max_khz": kind.kind.max_khz,
                   "threads_per_core": kind.threads})
        });
        let shares = platform.processors.iter().zip(&self.shares).map(|(processor, share)| {
            json!({"processor": processor.name, "mean": share.mean, "least": share.least, "most": share.most})
        });
        json!({
            "model": self.host.model, "instructions": instruction_set(),
            "kinds": kinds.collect::<Vec<_>>(), "numa_nodes": self.nodes(),
            "quota_cores": self.host.quota_cores, "memory_bytes": self.host.memory,
            "memory_limit_bytes": self.host.memory_limit, "memory_available_bytes": self.available,
            "mpi": self.mpi.iter().map(|one| json!({"library": one.file, "version": one.version}))
                .collect::<Vec<_>>(),
            "launchers": self.launchers.iter().map(|(name, path)| json!({"name": name, "path": path}))
                .collect::<Vec<_>>(),
            "blas": self.blas.iter().map(|blas| {
                json!({"name": blas.name(), "library": blas.file(), "version": blas.version()})
            }).collect::<Vec<_>>(),
            "devices": self.devices,
            "cpu_shares": shares.collect::<Vec<_>>(),
            "clock": {"resolution_seconds": self.noise.resolution, "low": self.noise.low, "high": self.noise.high},
            "advice": self.advice().into_iter().map(|one| json!({"what": one.what, "remedy": one.remedy}))
                .collect::<Vec<_>>(),
        })
    }

    pub fn to_text(&self) -> String {
        set_text_width(COLUMNS);
        let none = || "none".to_owned();
        let mut about =
            vec![("processor", self.host.model.clone()), ("kernels", instruction_set().to_owned())];
        for (i, kind) in self.kinds().iter().enumerate() {
            about.push((if i == 0 { "cores" } else { "" }, kind.text()));
        }
        about.push(("NUMA nodes", self.nodes().to_string()));
        let quota = self.host.quota_cores.map(|quota| self.host.quota_text(quota));
        about.push(("CPU quota", quota.unwrap_or_else(none)));
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), |b| show_bytes(b as f64));
        about.push((
            "memory",
            format!("{}, of which {} are available", bytes(self.host.memory), bytes(self.available)),
        ));
        about.push(("memory limit", self.host.memory_limit.map_or_else(none, |limit| bytes(Some(limit)))));
        let mut list = |name: &'static str, entries: Vec<String>| {
            let entries = if entries.is_empty() { vec![none()] } else { entries };
            for (i, entry) in entries.into_iter().enumerate() {
                about.push((if i == 0 { name } else { "" }, entry));
            }
        };
        list("MPI", self.mpi.iter().map(|one| format!("{} ({})", one.version, one.file)).collect());
        list("launchers", self.launchers.iter().map(|(_, path)| path.display().to_string()).collect());
        let blas = self
            .blas
            .iter()
            .map(|blas| format!("{} ({})", blas.version().unwrap_or_else(|| blas.name()), blas.file()));
        list("BLAS", blas.collect());
        list("partitioners", GraphMethod::libraries().into_iter().map(str::to_owned).collect());
        match &self.devices {
            None => list("devices", vec!["no OpenCL library".into()]),
            Some(devices) => list("devices", devices.iter().map(Device::text).collect()),
        }
        let percent = |x: f64| format!("{:.0} %", 100.0 * x);
        let (least, most) =
            self.shares.iter().fold((1.0f64, 0.0f64), |(a, b), share| (a.min(share.mean), b.max(share.mean)));
        about.push((
            "free cores",
            match least >= UNDISTURBED {
                true => "other programs leave all of every core".to_owned(),
                false => format!("other programs leave {} to {} of a core", percent(least), percent(most)),
            },
        ));
        about.push((
            "clock",
            format!(
                "steps of {}; equal work takes {} to {} of its usual time",
                show_seconds(self.noise.resolution),
                percent(self.noise.low),
                percent(self.noise.high)
            ),
        ));
        let advice = self.advice();
        if advice.is_empty() {
            return format!("{}\nNothing is missing.\n", pairs(&about));
        }
        let items: String = advice.iter().map(|one| format!("- {}\n  {}\n", one.what, one.remedy)).collect();
        format!("{}\nWhat is missing or takes speed:\n{items}", pairs(&about))
    }
}

/// A kind of core, with the number of cores and the hardware threads of each.
struct Kind<'a> {
    kind: &'a CoreKind,
    cores: usize,
    threads: usize,
}

impl Kind<'_> {
    fn text(&self) -> String {
        let plural = if self.cores == 1 { "" } else { "s" };
        let name = if self.kind.name == "core" { String::new() } else { format!("{} ", self.kind.name) };
        let clock = self.kind.max_khz.map_or_else(String::new, |khz| format!(" of up to {} MHz", khz / 1000));
        let threads = match self.threads {
            1 => "one hardware thread each".to_owned(),
            several => format!("{several} hardware threads each, of which one is used"),
        };
        format!("{} {name}core{plural}{clock}, {threads}", self.cores)
    }
}

/// The file of a program on PATH.
fn program(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|place| place.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::recorded_machine;

    #[test]
    fn times_that_a_quota_spreads_are_no_matter_of_the_clock() {
        let advice = |machine: &str| {
            let findings = Findings {
                host: Host::read(recorded_machine(machine).path()),
                available: None,
                shares: Vec::new(),
                noise: ClockNoise { resolution: 1e-9, low: 0.9, high: 2.0 },
                mpi: Vec::new(),
                launchers: Vec::new(),
                blas: Vec::new(),
                devices: None,
                driver_faults: Vec::new(),
            };
            findings.advice().into_iter().map(|one| one.remedy).collect::<Vec<_>>().join("; ")
        };
        assert!(advice("smt-off").contains("fix the clock"));
        let quota = advice("container-v2");
        assert!(quota.contains("the CPU quota stops") && !quota.contains("fix the clock"), "{quota}");
    }
}
