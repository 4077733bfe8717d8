//! What `detect` prints.

use apportion::platform::{Core, CoreGroup, CoreKind, Grouping, Host, list_cpus};
use apportion::units::show_bytes;
use apportion_report::table;
use serde_json::{Value, json};

/// The kind of a pool whose cores are of several.
const MIXED: &str = "mixed";

/// A host as it is described.
pub struct Description {
    pub host: Host,
    /// Vector instructions of the kernels; `None` for a recorded machine.
    pub instructions: Option<String>,
}

impl Description {
    pub fn to_value(&self, by: Grouping) -> Value {
        let host = &self.host;
        let kind = |(number, kind): (usize, &CoreKind)| {
            let cores = host.cores.iter().filter(|core| core.kind == number).count();
            json!({"name": kind.name, "cores": cores, "capacity": kind.capacity, "max_khz": kind.max_khz,
                   "l2_bytes": kind.l2_bytes, "l2_cores": kind.l2_cores, "l3_bytes": kind.l3_bytes})
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
               "quota_cores": host.quota_cores, "memory_limit_bytes": host.memory_limit,
               "kinds": host.kinds.iter().enumerate().map(kind).collect::<Vec<_>>(),
               "processors": host.groups(by).iter().map(processor).collect::<Vec<_>>()})
    }

    pub fn to_text(&self, by: Grouping) -> String {
        let host = &self.host;
        let row = |group: CoreGroup<'_>| {
            let clock = top_clock(&group).map_or("?".into(), |khz| format!("{} MHz", khz / 1000));
            let kind = self.kind_of(&group).to_owned();
            vec![
                group.name.clone(),
                kind,
                group.cores.len().to_string(),
                list_cpus(&cpus(&group)),
                clock,
                group.cluster,
            ]
        };
        let memory = host.memory.map_or(String::new(), |bytes| {
            format!(", {:.1} GiB of memory", bytes as f64 / (1u64 << 30) as f64)
        });
        let kernels = self.instructions.as_ref().map_or(String::new(), |set| format!("; kernels: {set}"));
        let quota = host.quota_cores.map(|quota| host.quota_text(quota));
        let limit = host
            .memory_limit
            .map(|bytes| format!("the control group allows {} of memory", show_bytes(bytes as f64)));
        let limits: String = [quota, limit].into_iter().flatten().map(|limit| format!("\n{limit}")).collect();
        let header = ["processor", "kind", "cores", "CPUs", "top clock", "cluster"];
        format!(
            "{}{memory}{kernels}{limits}\n{}",
            host.model,
            table(&header, host.groups(by).into_iter().map(row))
        )
    }

    fn kind_of(&self, group: &CoreGroup<'_>) -> &str {
        common(group, |core| Some(core.kind)).map_or(MIXED, |kind| &self.host.kinds[kind].name)
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
