//! What `detect` prints and writes.

use super::devices::{Device, add_devices};
use super::extended;
use apportion::platform::{Core, CoreGroup, CoreKind, Grouping, Host, Network, Platform, list_cpus};
use apportion::units::show_bytes;
use apportion_report::table;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind of a pool whose cores are of several.
const MIXED: &str = "mixed";
/// Hosts whose names are the name of their platform; of more, their number is.
const NAMED_HOSTS: usize = 4;

/// A host as it is described.
#[derive(Debug, Serialize, Deserialize)]
pub struct Description {
    pub host: Host,
    /// Vector instructions of the kernels; `None` for a recorded machine.
    pub instructions: Option<String>,
    pub devices: Vec<Device>,
}

impl Description {
    /// The platform of this host: its groups of cores, and its devices.
    pub fn platform(&self, by: Grouping) -> Platform {
        let mut platform = self.host.platform(by);
        add_devices(&mut platform, self.host.name.as_deref(), &self.devices);
        platform
    }

    pub fn to_value(&self, by: Grouping) -> Value {
        let host = &self.host;
        let kind = |(number, kind): (usize, &CoreKind)| {
            let cores = host.cores.iter().filter(|core| core.kind == number).count();
            extended(json!({"name": kind.name, "cores": cores}), kind)
        };
        let processor = |group: &CoreGroup<'_>| {
            let mut threads: Vec<usize> = group.cores.iter().flat_map(|core| core.threads.clone()).collect();
            threads.sort_unstable();
            json!({"name": group.name, "kind": self.kind_of(group), "cores": cpus(group), "threads": threads,
                   "cluster": group.cluster, "max_khz": top_clock(group),
                   "numa_node": common(group, |core| core.node),
                   "package": common(group, |core| core.package)})
        };
        json!({"model": host.model, "memory": host.memory, "instructions": self.instructions,
               "online_cores": host.online_cores, "quota_cores": host.quota_cores,
               "memory_limit_bytes": host.memory_limit,
               "kinds": host.kinds.iter().enumerate().map(kind).collect::<Vec<_>>(),
               "processors": host.groups(by).iter().map(processor).collect::<Vec<_>>(),
               "devices": self.devices})
    }

    pub fn to_text(&self, by: Grouping) -> String {
        self.headline() + &table(&HEADER, self.rows(by))
    }

    /// All but the processors: the model, memory, limits and devices.
    fn headline(&self) -> String {
        let host = &self.host;
        let name = host.name.as_ref().map_or(String::new(), |name| format!("{name}: "));
        let memory = host.memory.map_or(String::new(), |b| format!(", {} of memory", show_bytes(b as f64)));
        let kernels = self.instructions.as_ref().map_or(String::new(), |set| format!("; kernels: {set}"));
        let (usable, online) = (host.cores.len(), host.online_cores);
        let bound = (usable < online).then(|| format!("the process may use {usable} of {online} cores"));
        let quota = host.quota_cores.map(|quota| host.quota_text(quota));
        let limit = host
            .memory_limit
            .map(|bytes| format!("the control group allows {} of memory", show_bytes(bytes as f64)));
        let devices = self.devices.iter().map(|device| format!("device {}", device.text()));
        let lines = [bound, quota, limit].into_iter().flatten().chain(devices);
        let lines: String = lines.map(|line| format!("\n{line}")).collect();
        format!("{name}{}{memory}{kernels}{lines}\n", host.model)
    }

    /// A row for each processor.
    fn rows(&self, by: Grouping) -> Vec<Vec<String>> {
        let row = |group: CoreGroup<'_>| {
            let clock = top_clock(&group).map_or("?".into(), |khz| format!("{} MHz", khz / 1000));
            vec![
                group.name.clone(),
                self.kind_of(&group).to_owned(),
                group.cores.len().to_string(),
                list_cpus(&cpus(&group)),
                clock,
                group.cluster,
            ]
        };
        self.host.groups(by).into_iter().map(row).collect()
    }

    fn kind_of(&self, group: &CoreGroup<'_>) -> &str {
        common(group, |core| Some(core.kind)).map_or(MIXED, |kind| &self.host.kinds[kind].name)
    }
}

const HEADER: [&str; 6] = ["processor", "kind", "cores", "CPUs", "top clock", "cluster"];

/// The hosts of a world, in the order of their first ranks.
pub struct Descriptions(pub Vec<Description>);

impl Descriptions {
    /// The platform of all hosts, each a cluster.
    pub fn platform(&self, by: Grouping) -> Platform {
        let names: Vec<&str> = self.0.iter().filter_map(|one| one.host.name.as_deref()).collect();
        let name = match names.len() {
            few if few <= NAMED_HOSTS => names.join(", "),
            many => format!("{many} hosts"),
        };
        let processors = self.0.iter().flat_map(|one| one.host.platform(by).processors).collect();
        let mut platform = Platform { name, processors, network: Network::free() };
        for Description { host, devices, .. } in &self.0 {
            add_devices(&mut platform, host.name.as_deref(), devices);
        }
        platform
    }

    /// A description for each host, and the processors and devices of all with their hosts.
    pub fn to_value(&self, by: Grouping) -> Value {
        let hosts: Vec<Value> =
            self.0.iter().map(|one| extended(json!({"name": one.host.name}), one.to_value(by))).collect();
        let of_all = |field: &str| -> Vec<Value> {
            let of_host = |host: &Value| {
                let mut entries = host[field].as_array().cloned().unwrap_or_default();
                entries.iter_mut().for_each(|entry| entry["host"] = host["name"].clone());
                entries
            };
            hosts.iter().flat_map(of_host).collect()
        };
        json!({"processors": of_all("processors"), "devices": of_all("devices"), "hosts": hosts})
    }

    pub fn to_text(&self, by: Grouping) -> String {
        let headlines: String = self.0.iter().map(Description::headline).collect();
        headlines + &table(&HEADER, self.0.iter().flat_map(|one| one.rows(by)))
    }
}

fn cpus(group: &CoreGroup<'_>) -> Vec<usize> {
    group.cores.iter().map(|core| core.cpu).collect()
}

fn top_clock(group: &CoreGroup<'_>) -> Option<u64> {
    group.cores.iter().filter_map(|core| core.max_khz).max()
}

/// What all cores of a group have in common, if they do.
fn common(group: &CoreGroup<'_>, of: impl Fn(&Core) -> Option<usize>) -> Option<usize> {
    let first = of(group.cores[0])?;
    group.cores.iter().all(|core| of(core) == Some(first)).then_some(first)
}
