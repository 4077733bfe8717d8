//! The rules, interpreted one by one with plain lists: no matrices, no calendar, no units.

use crate::{Dispatching, Duration, What, Workcell};

/// Events as (time, what, index), and whether the firings ran out.
type Happened = (Vec<(u64, What, usize)>, bool);

/// Everything that happens, as (time, what, index), sorted; and whether the firings ran out. `Err` if a rule
/// releases what is free.
pub(crate) fn interpret(
    cell: &Workcell,
    until: u64,
    limit: u64,
    [seed, replication]: [u64; 2],
) -> Result<Happened, ()> {
    let mut events = Vec::new();
    // Times since when each instance, unit and part is there.
    let mut done: Vec<Vec<u64>> = cell.jobs.iter().map(|job| vec![0; job.done as usize]).collect();
    let mut free: Vec<u64> = cell.resources.iter().map(|r| r.capacity).collect();
    let mut busy = vec![0u64; cell.resources.len()];
    let mut parts: Vec<Vec<u64>> = vec![Vec::new(); cell.parts.len()];
    let mut running: Vec<(u64, usize)> = Vec::new();
    let mut resetting: Vec<(u64, usize)> = Vec::new();
    let mut arrived = vec![0; cell.parts.len()];
    let mut started: Vec<u64> = cell.jobs.iter().map(|job| job.done).collect();
    let (mut now, mut fired) = (0, 0);
    loop {
        // What is due now; jobs of no duration are done at once.
        for (part, source) in cell.parts.iter().enumerate() {
            while source.arrivals.time(arrived[part]) == Some(now) {
                events.push((now, What::Arrive, part));
                parts[part].push(now);
                arrived[part] += 1;
            }
        }
        running.retain(|&(time, job)| {
            if time == now {
                events.push((now, What::Done, job));
                done[job].push(now);
            }
            time != now
        });
        resetting.retain(|&(time, resource)| {
            if time == now {
                events.push((now, What::Free, resource));
                free[resource] += 1;
            }
            time != now
        });
        let can: Vec<usize> = (0..cell.rules.len())
            .filter(|&i| {
                let rule = &cell.rules[i];
                rule.done.iter().all(|&j| !done[j].is_empty())
                    && rule.free.iter().all(|&r| free[r] > 0)
                    && rule.parts.iter().all(|&p| !parts[p].is_empty())
            })
            .collect();
        if can.is_empty() {
            // Parts that still come cannot help: no rule will ever fire again.
            let comes = |p: usize| cell.parts[p].arrivals.time(arrived[p]).is_some();
            let hopeless = |rule: &crate::Rule| {
                rule.done.iter().any(|&j| done[j].is_empty())
                    || rule.free.iter().any(|&r| free[r] == 0)
                    || rule.parts.iter().any(|&p| parts[p].is_empty() && !comes(p))
            };
            if running.is_empty() && resetting.is_empty() && cell.rules.iter().all(hopeless) {
                break;
            }
            let arrivals = (0..arrived.len()).filter_map(|p| cell.parts[p].arrivals.time(arrived[p]));
            let next = running.iter().chain(&resetting).map(|&(time, _)| time).chain(arrivals).min();
            match next {
                Some(time) if time <= until => now = time,
                _ => break,
            }
            continue;
        }
        let since = |i: usize| {
            let rule = &cell.rules[i];
            let jobs = rule.done.iter().map(|&j| done[j][0]);
            jobs.chain(rule.parts.iter().map(|&p| parts[p][0])).max().unwrap_or(0)
        };
        let work = |i: usize| -> i128 {
            cell.rules[i].start.iter().map(|&j| i128::from(cell.jobs[j].duration.mean())).sum()
        };
        // True if rule a goes before rule b.
        let before = |by: Dispatching, a: usize, b: usize| match by {
            Dispatching::FirstBuffer => a < b,
            Dispatching::LastBuffer => a > b,
            Dispatching::Fifo => (since(a), a) < (since(b), b),
            Dispatching::Shortest => (work(a), since(a), a) < (work(b), since(b), b),
            Dispatching::Longest => (-work(a), since(a), a) < (-work(b), since(b), b),
            Dispatching::Priority => {
                let wish = |i: usize| -cell.rules[i].priority;
                (wish(a), since(a), a) < (wish(b), since(b), b)
            }
        };
        let mut alive = can.clone();
        let mut settle = |units: u64, by: Dispatching, wants: &dyn Fn(usize) -> bool| {
            let rivals: Vec<usize> = alive.iter().copied().filter(|&i| wants(i)).collect();
            alive.retain(|&i| {
                !wants(i) || (rivals.iter().filter(|&&j| before(by, j, i)).count() as u64) < units
            });
        };
        for (j, done) in done.iter().enumerate() {
            settle(done.len() as u64, cell.dispatching, &|i| cell.rules[i].done.contains(&j));
        }
        for (r, resource) in cell.resources.iter().enumerate() {
            let by = resource.dispatching.unwrap_or(cell.dispatching);
            settle(free[r], by, &|i| cell.rules[i].free.contains(&r));
        }
        for (p, parts) in parts.iter().enumerate() {
            settle(parts.len() as u64, cell.dispatching, &|i| cell.rules[i].parts.contains(&p));
        }
        // One of those that give the same thing.
        let meet = |x: &[usize], y: &[usize]| x.iter().any(|one| y.contains(one));
        let mut chosen: Vec<usize> = Vec::new();
        while let Some(&first) =
            alive.iter().find(|&&i| alive.iter().all(|&j| !before(cell.dispatching, j, i)))
        {
            alive.retain(|&i| i != first);
            let rule = &cell.rules[first];
            let apart = chosen.iter().map(|&i| &cell.rules[i]).all(|other| {
                !meet(&rule.start, &other.start)
                    && !meet(&rule.release, &other.release)
                    && !meet(&rule.produce, &other.produce)
            });
            if apart {
                chosen.push(first);
            }
        }
        chosen.sort_unstable();
        for &i in &chosen {
            let rule = &cell.rules[i];
            events.push((now, What::Fire, i));
            fired += 1;
            rule.done.iter().for_each(|&j| {
                done[j].remove(0);
            });
            rule.parts.iter().for_each(|&p| {
                parts[p].remove(0);
            });
            for &r in &rule.free {
                free[r] -= 1;
                busy[r] += 1;
            }
            for &r in &rule.release {
                busy[r] = busy[r].checked_sub(1).ok_or(())?;
            }
        }
        let mut outputs: Vec<(What, usize)> = Vec::new();
        for &i in &chosen {
            let rule = &cell.rules[i];
            outputs.extend(rule.release.iter().map(|&r| (What::Release, r)));
            outputs.extend(rule.start.iter().map(|&j| (What::Start, j)));
            outputs.extend(rule.produce.iter().map(|&p| (What::Produce, p)));
        }
        for (what, index) in outputs {
            events.push((now, what, index));
            match what {
                What::Release => match cell.resources[index].reset {
                    0 => free[index] += 1,
                    reset => resetting.push((now + reset, index)),
                },
                What::Start => {
                    let number = [replication, index as u64, started[index]];
                    let duration: &Duration = &cell.jobs[index].duration;
                    running.push((now + duration.draw(seed, number), index));
                    started[index] += 1;
                }
                _ => {}
            }
        }
        if fired >= limit {
            events.sort_unstable();
            return Ok((events, true));
        }
    }
    events.sort_unstable();
    Ok((events, false))
}
