//! Hosts: k computations on a host of c cores run at speed x min(1, c / k) each.

/// A host: speed of one core, and the number of cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    /// Units of work per second and core.
    pub speed: f64,
    /// At least 1.
    pub cores: u32,
}

#[derive(Debug, Clone, Default)]
struct Job {
    rest: f64,
    rate: f64,
    since: f64,
    version: u32,
}

/// Hosts, and the computation of each rank, at most one at a time.
#[derive(Debug)]
pub(super) struct Hosts<'a> {
    hosts: &'a [Host],
    of: &'a [usize],
    running: Vec<Vec<u32>>,
    jobs: Vec<Job>,
}

impl<'a> Hosts<'a> {
    /// Creates the state; `of` maps each rank to its host.
    pub fn new(hosts: &'a [Host], of: &'a [usize]) -> Self {
        Self { hosts, of, running: vec![Vec::new(); hosts.len()], jobs: vec![Job::default(); of.len()] }
    }

    /// Speed of a rank's host.
    pub fn speed(&self, rank: usize) -> f64 {
        self.hosts[self.of[rank]].speed
    }

    /// Starts a computation; `changed` receives the new end and version of every computation that it affects.
    pub fn start(&mut self, rank: usize, amount: f64, now: f64, mut changed: impl FnMut(u32, f64, u32)) {
        let version = self.jobs[rank].version;
        let (number, running) = (self.of[rank], &mut self.running[self.of[rank]]);
        running.push(rank as u32);
        let Host { speed, cores } = self.hosts[number];
        if running.len() <= cores as usize {
            // A core is free: no other computation is affected.
            self.jobs[rank] = Job { rest: amount, rate: speed, since: now, version };
            changed(rank as u32, now + amount / speed, version);
            return;
        }
        self.jobs[rank] = Job { rest: amount, rate: 0.0, since: now, version };
        self.share(number, now, changed);
    }

    /// Ends a rank's computation.
    pub fn finish(&mut self, rank: usize, now: f64, changed: impl FnMut(u32, f64, u32)) {
        self.jobs[rank].version = self.jobs[rank].version.wrapping_add(1);
        let running = &mut self.running[self.of[rank]];
        running.retain(|&r| r != rank as u32);
        if running.len() >= self.hosts[self.of[rank]].cores as usize {
            self.share(self.of[rank], now, changed);
        }
    }

    /// True if an event with this version is not obsolete.
    pub fn current(&self, rank: u32, version: u32) -> bool {
        self.jobs[rank as usize].version == version
    }

    fn share(&mut self, host: usize, now: f64, mut changed: impl FnMut(u32, f64, u32)) {
        let Host { speed, cores } = self.hosts[host];
        let rate = speed * f64::min(1.0, f64::from(cores) / self.running[host].len().max(1) as f64);
        for &rank in &self.running[host] {
            let job = &mut self.jobs[rank as usize];
            if job.rate == rate {
                continue;
            }
            job.rest = (job.rest - (now - job.since) * job.rate).max(0.0);
            job.rate = rate;
            job.since = now;
            job.version = job.version.wrapping_add(1);
            changed(rank, now + job.rest / rate, job.version);
        }
    }
}
