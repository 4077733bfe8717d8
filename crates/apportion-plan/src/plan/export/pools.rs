//! Commands that start a program on the cores of each processor: `taskset`, `numactl`, and `mpirun` with a
//! part for each.

use super::launch::{host_for, ranks};
use super::{Export, without_zeros};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::platform::{Platform, Processor, THIS_MACHINE, list_cpus};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A script that starts a program on the cores of each processor: `taskset -c LIST`.
pub(super) fn taskset(plan: &Plan, platform: &Platform) -> Result<Export> {
    script(plan, platform, "taskset", "taskset -c ")
}

/// The same with memory of the NUMA nodes of these cores: `numactl --localalloc --physcpubind=LIST`.
pub(super) fn numactl(plan: &Plan, platform: &Platform) -> Result<Export> {
    script(plan, platform, "numactl", "numactl --localalloc --physcpubind=")
}

/// A script that starts a program for each processor that has units. They are in its environment, with as many
/// threads of OpenMP as the processor has cores.
fn script(plan: &Plan, platform: &Platform, tool: &str, command: &str) -> Result<Export> {
    let (parts, mut warnings) = without_zeros(&plan.processors, &plan.shares, tool);
    let ranges = plan.ranges();
    let mut text = String::from(
        "# sh THIS_FILE ./program ARGUMENTS starts the program once for each processor, on its cores. The program\n\
         # has the units from <= unit < to, and as many threads as cores, in its environment.\n\
         pids=\n",
    );
    let mut hosts = BTreeSet::new();
    for (name, _) in parts {
        let processor = processor_of(name, platform)?;
        hosts.insert(processor.host().unwrap_or(THIS_MACHINE));
        let cores = &processor.cores;
        if cores.is_empty() {
            return Err(Error::input(
                format!("processor \"{name}\""),
                format!("has no cores for {tool}"),
                "pass a `platform` that names them (`cores = [0, 1]`), such as that of apportion detect",
            ));
        }
        let rank = plan.processors.iter().position(|other| other == name).unwrap_or(0);
        let (from, to) = (ranges[rank].start, ranges[rank].end);
        let (threads, list) = (cores.len(), list_cpus(cores));
        writeln!(
            text,
            "from={from} to={to} OMP_NUM_THREADS={threads} OMP_PLACES=threads {command}{list} \"$@\" &\npids=\"$pids $!\""
        )
        .expect("a string takes any text");
    }
    if hosts.len() > 1 {
        let hosts: Vec<&str> = hosts.into_iter().collect();
        warnings
            .push(format!("{tool} starts all on one host, and the processors are on {}", hosts.join(", ")));
    }
    text += "status=0\nfor pid in $pids; do wait \"$pid\" || status=1; done\nexit $status\n";
    Ok(Export { text, warnings })
}

/// One line for Open MPI and MPICH: each processor's share is its number of ranks, which run on its cores, on
/// its host ([`Processor::host`]).
pub(super) fn mpirun(plan: &Plan, platform: &Platform) -> Result<Export> {
    let (parts, warnings) = ranks(&plan.processors, &plan.shares, "mpirun")?;
    let mut commands = Vec::new();
    for (name, ranks) in parts {
        let processor = processor_of(name, platform)?;
        let mut command = format!("-np {ranks} ");
        if processor.host().is_some() {
            command += &format!("-host {}:{ranks} ", host_for(processor, "mpirun", None)?);
        }
        if !processor.cores.is_empty() {
            command += &format!("taskset -c {} ", list_cpus(&processor.cores));
        }
        commands.push(command + "./program");
    }
    Ok(Export { text: format!("mpirun --bind-to none {}\n", commands.join(" : ")), warnings })
}

fn processor_of<'a>(name: &str, platform: &'a Platform) -> Result<&'a Processor> {
    platform.processors.iter().find(|processor| processor.name == name).ok_or_else(|| {
        Error::input(
            "`platform`",
            format!("the platform \"{}\" lacks \"{name}\"", platform.name),
            "use the platform for which the plan was created, or rename the processors",
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::plan::{Plan, export_plan};
    use crate::platform::{Platform, Processor};

    fn platform(clusters: [&str; 3]) -> Platform {
        let mut platform = Platform::from_names(&["fast", "idle", "slow"].map(String::from));
        for ((processor, cluster), cores) in
            platform.processors.iter_mut().zip(clusters).zip([vec![0, 2, 4], vec![9], vec![6, 7]])
        {
            *processor = Processor { cluster: cluster.into(), cores, ..Processor::named(&processor.name) };
        }
        platform
    }

    fn plan() -> Plan {
        let names = ["fast", "idle", "slow"].map(String::from).to_vec();
        Plan::of_units("proportional", names, vec![6, 0, 3], 1.0)
    }

    #[test]
    fn each_processor_has_its_cores_units_and_threads() {
        let written = |format: &str, clusters| {
            export_plan(format.parse().unwrap(), &plan(), &platform(clusters)).unwrap()
        };
        let taskset = written("taskset", ["machine"; 3]);
        assert_eq!(taskset.warnings.len(), 1);
        for line in [
            "from=0 to=6 OMP_NUM_THREADS=3 OMP_PLACES=threads taskset -c 0,2,4 \"$@\" &",
            "from=6 to=9 OMP_NUM_THREADS=2 OMP_PLACES=threads taskset -c 6-7 \"$@\" &",
        ] {
            assert!(taskset.text.lines().any(|other| other == line), "{line}: {taskset:?}");
        }
        let numactl = written("numactl", ["machine/node0", "machine", "machine/node1"]);
        assert_eq!(numactl.warnings.len(), 1);
        assert!(numactl.text.contains(" numactl --localalloc --physcpubind=0,2,4 \"$@\" &"), "{numactl:?}");
        // A script runs on one host.
        let hosts = written("taskset", ["alpha/node0", "gamma", "beta"]);
        assert!(hosts.warnings[1].ends_with("are on alpha, beta"), "{hosts:?}");
    }

    #[test]
    fn ranks_are_started_on_the_cores_and_hosts_of_their_processors() {
        let text =
            |clusters| export_plan("mpirun".parse().unwrap(), &plan(), &platform(clusters)).map(|e| e.text);
        assert_eq!(
            text(["machine/node0", "machine", "machine"]).unwrap(),
            "mpirun --bind-to none -np 6 taskset -c 0,2,4 ./program : -np 3 taskset -c 6-7 ./program\n"
        );
        assert_eq!(
            text(["alpha/node0", "beta", "beta"]).unwrap(),
            "mpirun --bind-to none -np 6 -host alpha:6 taskset -c 0,2,4 ./program : -np 3 -host beta:3 taskset -c 6-7 \
             ./program\n"
        );
        assert!(text(["a b", "beta", "beta"]).unwrap_err().to_string().contains("is no host name"));
    }

    #[test]
    fn processors_without_cores_or_place_are_refused() {
        let bare = Platform::from_names(&plan().processors);
        for format in ["taskset", "numactl"] {
            let said = export_plan(format.parse().unwrap(), &plan(), &bare).unwrap_err();
            assert!(said.exit_code() == 2 && said.to_string().contains("\"fast\": has no cores"), "{said}");
        }
        let hosts = export_plan("mpirun".parse().unwrap(), &plan(), &bare).unwrap().text;
        assert_eq!(
            hosts,
            "mpirun --bind-to none -np 6 -host fast:6 ./program : -np 3 -host slow:3 ./program\n"
        );
        let other = Platform::from_names(&["x".to_string()]);
        assert!(export_plan("taskset".parse().unwrap(), &plan(), &other).is_err());
    }
}
