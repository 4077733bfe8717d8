//! Limits of CPU time and memory that control groups (cgroups, versions 1 and 2) set to this process.

use crate::system_files::read_system_file;
use std::path::{Component, Path, PathBuf};

/// What version 1 writes where memory has no limit: the largest multiple of a page in 63 bits, so that every
/// limit above this is none.
const NO_LIMIT: u64 = 1 << 60;

/// The control groups of this process that limit CPU time and memory, and all groups around them.
#[derive(Debug, Clone, Default)]
pub struct ControlGroups {
    groups: Vec<Group>,
}

#[derive(Debug, Clone)]
struct Group {
    directory: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Version {
    /// A hierarchy of the controller `cpu`.
    OneCpu,
    /// A hierarchy of the controller `memory`.
    OneMemory,
    /// The hierarchy of all controllers.
    Two,
}

impl ControlGroups {
    /// Those of this process on the machine whose files are under `root`; `/` is the one that runs.
    pub fn of_process(root: &Path) -> Self {
        let read = |path: &str| read_system_file(&root.join(path)).unwrap_or_default();
        let (own, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let mut groups = Vec::new();
        for line in own.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            // Version 2 has one hierarchy without names; version 1 has one or more controllers in each.
            if controllers.is_empty() {
                groups.extend(hierarchy(root, Version::Two, path, &mounts));
            }
            for name in controllers.split(',') {
                match name {
                    "cpu" => groups.extend(hierarchy(root, Version::OneCpu, path, &mounts)),
                    "memory" => groups.extend(hierarchy(root, Version::OneMemory, path, &mounts)),
                    _ => (),
                }
            }
        }
        Self { groups }
    }

    /// CPU seconds per second that the groups allow: the least over all; `None` for no limit.
    pub fn quota(&self) -> Option<f64> {
        self.groups.iter().filter_map(Group::quota).reduce(f64::min)
    }

    /// Bytes of memory that the groups allow: the least over all; `None` for no limit.
    pub fn memory_limit(&self) -> Option<u64> {
        self.groups.iter().filter_map(Group::memory_limit).min()
    }

    /// Bytes of memory that the groups leave: the least over all; `None` for no limit.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        self.groups.iter().filter_map(Group::memory_left).min()
    }
}

impl Group {
    fn read(&self, name: &str) -> Option<String> {
        read_system_file(&self.directory.join(name))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.read(name)?.trim().parse().ok()
    }

    /// A number of `memory.stat`.
    fn statistic(&self, name: &str) -> Option<u64> {
        let text = self.read("memory.stat")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line?.trim().parse().ok()
    }

    fn quota(&self) -> Option<f64> {
        let (quota, period): (u64, u64) = match self.version {
            Version::OneMemory => return None,
            // Without a limit -1, which is no u64.
            Version::OneCpu => (self.number("cpu.cfs_quota_us")?, self.number("cpu.cfs_period_us")?),
            // Without a limit `max 100000`.
            Version::Two => {
                let text = self.read("cpu.max")?;
                let mut fields = text.split_whitespace().map(str::parse);
                (fields.next()?.ok()?, fields.next()?.ok()?)
            }
        };
        (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
    }

    fn memory_limit(&self) -> Option<u64> {
        let limit = match self.version {
            Version::OneCpu => None,
            // The second counts groups around this one that are not to be seen from inside a container.
            Version::OneMemory => {
                let limits =
                    [self.number("memory.limit_in_bytes"), self.statistic("hierarchical_memory_limit")];
                limits.into_iter().flatten().min()
            }
            // Above `memory.high` a group is not ended, but slowed down until it is of no use.
            Version::Two => {
                ["memory.max", "memory.high"].into_iter().filter_map(|name| self.number(name)).min()
            }
        };
        limit.filter(|limit| *limit < NO_LIMIT)
    }

    /// Cached pages of files are given up on demand: first those that were not used lately, then the others.
    fn memory_left(&self) -> Option<u64> {
        let limit = self.memory_limit()?;
        let (used, cached) = match self.version {
            Version::OneMemory => {
                (self.number("memory.usage_in_bytes")?, ["total_inactive_file", "total_active_file"])
            }
            _ => (self.number("memory.current")?, ["inactive_file", "active_file"]),
        };
        let cached = cached.into_iter().filter_map(|name| self.statistic(name)).fold(0, u64::saturating_add);
        Some(limit.saturating_sub(used.saturating_sub(cached)))
    }
}

/// The group at `path` of a hierarchy and the groups around it, the innermost first.
fn hierarchy(root: &Path, version: Version, path: &str, mounts: &str) -> Vec<Group> {
    let (top, inside) = mounts.lines().find_map(|line| mount(line, version, path)).unwrap_or_else(|| {
        let top = match version {
            Version::OneCpu => "/sys/fs/cgroup/cpu",
            Version::OneMemory => "/sys/fs/cgroup/memory",
            Version::Two => "/sys/fs/cgroup",
        };
        (top.to_owned(), path.to_owned())
    });
    let top = root.join(below(&top));
    let own = top.join(below(&inside));
    own.ancestors()
        .take_while(|directory| directory.starts_with(&top))
        .map(|directory| Group { directory: directory.to_owned(), version })
        .collect()
}

/// A path without its root. One that climbs leads out of what can be seen: the kernel shows the groups around
/// the root of a namespace so, and the top is then the innermost that can be read.
fn below(path: &str) -> &str {
    let climbs = Path::new(path).components().any(|part| part == Component::ParentDir);
    if climbs { "" } else { path.trim_start_matches('/') }
}

/// From a line of `/proc/self/mountinfo`: where the hierarchy is mounted, and the path of the group from
/// there; `None` if the line is of another mount. A container often sees its own group as the root.
fn mount(line: &str, version: Version, path: &str) -> Option<(String, String)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (origin, top) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let (kind, options) = (kind.next()?, kind.nth(1)?);
    let has = |controller: &str| kind == "cgroup" && options.split(',').any(|name| name == controller);
    let fits = match version {
        Version::OneCpu => has("cpu"),
        Version::OneMemory => has("memory"),
        Version::Two => kind == "cgroup2",
    };
    // Outside of what is mounted here: its top is all that can be seen.
    let inside = Path::new(path).strip_prefix(origin).map_or("", |inside| inside.to_str().unwrap_or(""));
    fits.then(|| (top.to_owned(), inside.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A recorded machine: files and their texts.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, ControlGroups) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let groups = ControlGroups::of_process(directory.path());
        (directory, groups)
    }

    #[test]
    fn version_two_counts_the_groups_around_a_group() {
        let (_files, groups) = machine(&[
            ("proc/self/cgroup", "0::/user.slice/job\n"),
            ("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/user.slice/job/memory.max", "1000\n"),
            ("sys/fs/cgroup/user.slice/job/memory.current", "600\n"),
            ("sys/fs/cgroup/user.slice/job/memory.stat", "anon 10\ninactive_file 300\nactive_file 5\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/memory.current", "9000\n"),
        ]);
        assert_eq!(
            (groups.quota(), groups.memory_limit(), groups.memory_left()),
            (Some(1.5), Some(1000), Some(705))
        );
    }

    #[test]
    fn version_one_counts_the_groups_around_a_group() {
        let none = "9223372036854771712\n";
        let (_files, groups) = machine(&[
            ("proc/self/cgroup", "4:memory:/outer/inner\n3:cpuset:/\n2:cpu,cpuacct:/outer/inner\n0::/\n"),
            ("sys/fs/cgroup/cpu/outer/inner/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/outer/inner/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/outer/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/outer/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/memory/outer/inner/memory.limit_in_bytes", none),
            ("sys/fs/cgroup/memory/outer/inner/memory.usage_in_bytes", "10\n"),
            ("sys/fs/cgroup/memory/outer/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/outer/memory.usage_in_bytes", "900\n"),
            ("sys/fs/cgroup/memory/outer/memory.stat", "inactive_file 0\ntotal_inactive_file 200\n"),
        ]);
        assert_eq!(
            (groups.quota(), groups.memory_limit(), groups.memory_left()),
            (Some(0.5), Some(1000), Some(300))
        );
    }

    /// A group above `memory.high` is slowed down: that limit counts too, of any group.
    #[test]
    fn version_two_counts_the_limit_above_which_a_group_is_slowed_down() {
        let (_files, groups) = machine(&[
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/step/memory.max", "1000\n"),
            ("sys/fs/cgroup/job/step/memory.high", "max\n"),
            ("sys/fs/cgroup/job/step/memory.current", "100\n"),
            ("sys/fs/cgroup/job/memory.max", "max\n"),
            ("sys/fs/cgroup/job/memory.high", "800\n"),
            ("sys/fs/cgroup/job/memory.current", "150\n"),
        ]);
        assert_eq!((groups.memory_limit(), groups.memory_left()), (Some(800), Some(650)));
    }

    /// Inside a container the group's path is that of the host, and the group is mounted as the root. The
    /// limits of groups around it show in a statistic only.
    #[test]
    fn groups_are_found_where_they_are_mounted() {
        let (_files, groups) = machine(&[
            ("proc/self/cgroup", "2:memory:/docker/1/sub\n1:cpu:/docker/1/sub\n0::/elsewhere\n"),
            (
                "proc/self/mountinfo",
                "31 23 0:28 / /sys rw - tmpfs tmpfs rw,mode=755\n\
                 32 31 0:29 /docker/1 /groups/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                 35 31 0:32 /docker/1 /groups/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
                 41 31 0:37 / /groups/unified rw,relatime - cgroup2 cgroup2 rw\n",
            ),
            ("groups/cpu,cpuacct/sub/cpu.cfs_quota_us", "250000"),
            ("groups/cpu,cpuacct/sub/cpu.cfs_period_us", "100000"),
            ("groups/memory/sub/memory.limit_in_bytes", "5000"),
            ("groups/memory/sub/memory.usage_in_bytes", "1000"),
            ("groups/memory/sub/memory.stat", "hierarchical_memory_limit 3000"),
            ("groups/unified/elsewhere/cpu.max", "200000 100000"),
        ]);
        assert_eq!(
            (groups.quota(), groups.memory_limit(), groups.memory_left()),
            (Some(2.0), Some(3000), Some(2000))
        );
    }

    /// A process outside of the root of its namespace: what is seen of its groups is the root.
    #[test]
    fn paths_that_climb_stay_within_the_machine() {
        let (_files, groups) = machine(&[
            ("proc/self/cgroup", "0::/../../job\n"),
            ("sys/fs/cgroup/cpu.max", "300000 100000\n"),
            ("job/cpu.max", "100000 100000\n"),
            ("sys/job/cpu.max", "100000 100000\n"),
        ]);
        assert_eq!(groups.quota(), Some(3.0));
    }

    #[test]
    fn no_groups_and_damaged_files_are_no_limits() {
        let (_files, groups) = machine(&[]);
        assert_eq!((groups.quota(), groups.memory_limit(), groups.memory_left()), (None, None, None));
        let (_files, groups) = machine(&[
            ("proc/self/cgroup", "0::/\nnonsense\n1:cpu:/a\n"),
            ("proc/self/mountinfo", "x - cgroup2\n\n - - -\n"),
            ("sys/fs/cgroup/cpu.max", "0 100000"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "5000"),
            ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "0"),
            ("sys/fs/cgroup/memory.max", "-5"),
        ]);
        assert_eq!((groups.quota(), groups.memory_limit(), groups.memory_left()), (None, None, None));
    }
}
