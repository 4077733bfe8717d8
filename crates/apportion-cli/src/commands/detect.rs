//! `apportion detect`.

use crate::args::DetectArgs;
use crate::console::Console;
use apportion::error::Result;
use apportion::kernels::instruction_set;
use apportion::output::write_whole;
use apportion::platform::discover;
use apportion::units::show_bytes;
use apportion_report::table;
use serde_json::json;

pub fn run(args: &DetectArgs, console: &Console) -> Result<()> {
    let machine = discover();
    let platform = machine.platform();
    if let Some(path) = &args.output {
        write_whole(path, platform.to_toml().as_bytes())?;
    }
    console.result(
        || {
            let cores: Vec<_> = machine
                .cores
                .iter()
                .zip(&platform.processors)
                .map(|(core, p)| {
                    json!({"name": p.name, "cpu": core.cpu, "cluster": p.cluster,
                           "max_khz": core.max_khz, "numa_node": core.node})
                })
                .collect();
            json!({"model": machine.model, "memory": machine.memory, "instructions": instruction_set(),
                   "quota_cores": machine.quota_cores, "memory_limit_bytes": machine.memory_limit,
                   "processors": cores})
        },
        || {
            let rows = machine.cores.iter().zip(&platform.processors).map(|(core, p)| {
                let clock = core.max_khz.map_or("?".into(), |khz| format!("{} MHz", khz / 1000));
                vec![p.name.clone(), core.cpu.to_string(), p.cluster.clone(), clock]
            });
            let memory = machine.memory.map_or(String::new(), |bytes| {
                format!(", {:.1} GiB of memory", bytes as f64 / (1u64 << 30) as f64)
            });
            let quota = machine.quota_cores.map(|quota| machine.quota_text(quota));
            let limit = machine
                .memory_limit
                .map(|bytes| format!("the control group allows {} of memory", show_bytes(bytes as f64)));
            let limits: String =
                [quota, limit].into_iter().flatten().map(|limit| format!("\n{limit}")).collect();
            format!(
                "{}{memory}; kernels: {}{limits}\n{}",
                machine.model,
                instruction_set(),
                table(&["processor", "cpu", "cluster", "top clock"], rows)
            )
        },
    );
    Ok(())
}
