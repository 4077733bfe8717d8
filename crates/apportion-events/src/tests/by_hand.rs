use super::{cell, example, only, run};
use crate::{
    Deadlock, Dispatching, End, EventGraph, EventMatrices, EventOptions, EventRun, Place, Record, Wait, What,
    Workcell, shared_places,
};

/// Times in whole seconds at which something of this name happened.
fn times(run: &EventRun, workcell: &Workcell, what: What, name: &str) -> Vec<u64> {
    let hits = |r: &&Record| r.what == what && r.name(workcell) == name;
    run.records.iter().filter(hits).map(|r| r.time / 1_000_000_000).collect()
}

/// The robot brings part 1 to M1 (0 to 8), which mills until 68; to the buffer (68 to 74); the part goes on
/// to M2 at once (74 to 80) because it is nearer to the exit than part 2; M2 drills until 125. Part 2 enters
/// at 80, when the robot is free again. From then on everything repeats every 80 s.
#[test]
fn two_machines_and_a_robot() {
    let workcell = cell(example!("tacconi-lewis"));
    let run = only(&workcell);
    let at = |what, name| times(&run, &workcell, what, name);
    assert_eq!(at(What::Fire, "enter"), [0, 80, 160, 240, 320, 400]);
    assert_eq!(at(What::Start, "mill"), [8, 88, 168, 248, 328, 408]);
    assert_eq!(at(What::Fire, "leave M1"), [68, 148, 228, 308, 388, 468]);
    assert_eq!(at(What::Fire, "leave buffer"), [74, 154, 234, 314, 394, 474]);
    assert_eq!(at(What::Done, "drill"), [125, 205, 285, 365, 445, 525]);
    assert_eq!(at(What::Produce, "housing"), [135, 215, 295, 375, 455, 535]);
    assert_eq!((run.end.clone(), run.makespan), (End::Finished, 535_000_000_000));
    assert_eq!(run.products, [6]);
    // The robot works 8 + 6 + 6 + 10 s on each of six parts.
    let robot = workcell.resources.iter().position(|r| r.name == "robot").unwrap();
    let usage = run.usage(&workcell)[robot];
    assert_eq!((usage.working, usage.waiting), (180_000_000_000, 0));
    assert!((usage.utilisation - 180.0 / 535.0).abs() < 1e-12);
    // "enter" and "leave buffer" compete for it at 74 s first, for the last time before the last part.
    let fought: Vec<(Place, u64, u64)> =
        run.conflicts.iter().map(|c| (c.place, c.times, c.first / 1_000_000_000)).collect();
    assert_eq!(fought, [(Place::Resource(robot), 5, 74)]);
    let shared = shared_places(&workcell);
    assert_eq!(shared.iter().map(|s| s.place).collect::<Vec<_>>(), [Place::Resource(robot)]);
    assert!(EventGraph::of(&workcell).unwrap_err().contains("resource \"robot\" is taken by 4 rules"));
}

/// First come, first served: at 74 s the casting has waited since 0 s, the part in the buffer since 74 s.
#[test]
fn dispatching_decides() {
    let workcell = cell(example!("tacconi-lewis"));
    let fifo = Workcell { dispatching: Dispatching::Fifo, ..workcell.clone() };
    let run = only(&fifo);
    assert_eq!(times(&run, &fifo, What::Fire, "enter")[..2], [0, 74]);
    assert_eq!(times(&run, &fifo, What::Fire, "leave buffer")[0], 82);
    for (by, first) in [
        (Dispatching::FirstBuffer, "enter"),
        (Dispatching::LastBuffer, "leave buffer"),
        (Dispatching::Shortest, "leave buffer"),
        (Dispatching::Longest, "enter"),
        (Dispatching::Priority, "enter"),
    ] {
        let mut variant = Workcell { dispatching: by, ..workcell.clone() };
        variant.rules[0].priority = 1;
        let run = only(&variant);
        let winner = run
            .records
            .iter()
            .find(|r| r.what == What::Fire && r.time == 74_000_000_000 && r.name(&variant) != "buffered");
        assert_eq!(winner.unwrap().name(&variant), first, "{by}");
    }
    // A resource's own way comes before the workcell's.
    let mut mixed = workcell.clone();
    mixed.resources[1].dispatching = Some(Dispatching::FirstBuffer);
    assert_eq!(times(&only(&mixed), &mixed, What::Fire, "enter")[1], 74);
    // Scenarios are the same cell with other numbers.
    let runs = run_all(&workcell);
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[2].records, run.records);
}

fn run_all(workcell: &Workcell) -> Vec<EventRun> {
    run(workcell, &EventOptions::default()).unwrap()
}

/// Part 1 is milled from 8 to 68 s; meanwhile the robot takes part 2 (8 to 16 s) and waits for M1.
#[test]
fn a_greedy_robot_deadlocks() {
    let workcell = cell(example!("deadlock"));
    let runs = run_all(&workcell);
    let wait = |rule: &str, job: &str, waits_for: &str, held: &str| Wait {
        rule: rule.into(),
        jobs: vec![job.into()],
        waits_for: format!("resource \"{waits_for}\""),
        held_by: vec![held.into()],
    };
    let circle = vec![wait("mount", "load", "M1", "mill"), wait("take out", "mill", "robot", "load")];
    let deadlock = Deadlock { circle };
    assert_eq!(
        deadlock.to_string(),
        "job \"load\" waits for resource \"M1\", held by job \"mill\", job \"mill\" waits for resource \
         \"robot\", held by job \"load\""
    );
    assert_eq!((&runs[0].end, runs[0].makespan), (&End::Deadlocked(deadlock.clone()), 68_000_000_000));
    assert_eq!((&runs[1].end, runs[1].products[0]), (&End::Finished, 4), "one pallet");
    // Parts that go on arriving do not hide it, nor does another line that goes on working.
    let text = example!("deadlock").replace("count = 4", "every = \"1 s\"");
    assert_eq!(only(&cell(&text)).end, End::Deadlocked(deadlock.clone()));
    let text = text
        + "\n[[part]]\nname=\"p\"\nevery=5\n[[job]]\nname=\"j\"\nduration=1\n\
        [[rule]]\nname=\"on\"\nparts=[\"p\"]\nstart=[\"j\"]\n\
        [[rule]]\nname=\"off\"\ndone=[\"j\"]\nproduce=[\"q\"]\n";
    let options = EventOptions { until: Some(200_000_000_000), ..EventOptions::default() };
    let run = run(&cell(&text), &options).unwrap().remove(0);
    assert_eq!((run.end, run.products[1]), (End::Deadlocked(deadlock), 40));
}

#[test]
fn work_that_can_never_go_on_is_not_finished() {
    let assembly = "[[part]]\nname=\"nut\"\ncount=3\n[[part]]\nname=\"bolt\"\ncount=2\n\
        [[job]]\nname=\"join\"\nduration=1\n\
        [[rule]]\nname=\"start\"\nparts=[\"nut\",\"bolt\"]\nstart=[\"join\"]\n\
        [[rule]]\nname=\"end\"\ndone=[\"join\"]\nproduce=[\"pair\"]\n";
    let run = only(&cell(assembly));
    let why = "rule \"start\" waits for part \"bolt\", which can never come".to_owned();
    assert_eq!((run.end, run.products), (End::Starved(why), vec![2]));
    // Nuts that still arrive are not what is lacking.
    let late = assembly.replace("count=3", "every=9");
    let End::Starved(why) = only(&cell(&late)).end else { panic!("bolts are used up") };
    assert_eq!(why, "rule \"start\" waits for part \"bolt\", which can never come");
    let lost = "[[part]]\nname=\"p\"\ncount=2\n[[resource]]\nname=\"r\"\n[[job]]\nname=\"j\"\nduration=1\n\
        [[rule]]\nname=\"in\"\nparts=[\"p\"]\nfree=[\"r\"]\nstart=[\"j\"]\n";
    let End::Starved(why) = only(&cell(lost)).end else { panic!("one part waits forever") };
    assert_eq!(why, "rule \"in\" waits for resource \"r\", which can never come");
    // A job that nothing follows is a store: its parts have arrived.
    assert_eq!(only(&cell(&lost.replace("free=[\"r\"]\n", ""))).end, End::Finished);
}

#[test]
fn rules_that_never_rest_stop_at_the_limit() {
    let text = "[[job]]\nname=\"tick\"\nduration=0\ndone=1\n\
        [[rule]]\nname=\"again\"\ndone=[\"tick\"]\nstart=[\"tick\"]\n";
    let run = only(&cell(text));
    assert_eq!((run.end, run.firings[0], run.makespan), (End::Limit, 100_000, 0));
    let slow = text.replace("duration=0", "duration=7");
    let options = EventOptions { until: Some(30_000_000_000), ..EventOptions::default() };
    let run = super::run(&cell(&slow), &options).unwrap().remove(0);
    assert_eq!(
        (run.end, run.firings[0], run.makespan, run.ended),
        (End::Until, 5, 28_000_000_000, 30_000_000_000)
    );
}

/// The matrices of the greedy robot, written out.
#[test]
fn the_matrices_of_a_cell() {
    let workcell = cell(example!("deadlock"));
    let matrices = EventMatrices::of(&workcell).by_name(&workcell);
    let wanted: [(&str, &[&[u8]]); 7] = [
        // Rules: enter, mount, take out, exit; jobs: load, mill, unload.
        ("F_v", &[&[0, 0, 0], &[1, 0, 0], &[0, 1, 0], &[0, 0, 1]]),
        // Pallet, robot, M1.
        ("F_r", &[&[1, 1, 0], &[0, 0, 1], &[0, 1, 0], &[0, 0, 0]]),
        ("F_u", &[&[1], &[0], &[0], &[0]]),
        // "enter" and "take out" compete for the robot; "mount" and "exit" release it.
        ("F_D", &[&[1, 0, 0, 0], &[0, 1, 0, 0], &[0, 0, 1, 0], &[0, 0, 0, 1]]),
        ("S_v", &[&[1, 0, 0, 0], &[0, 1, 0, 0], &[0, 0, 1, 0]]),
        ("S_r", &[&[0, 0, 0, 1], &[0, 1, 0, 1], &[0, 0, 1, 0]]),
        ("S_y", &[&[0, 0, 0, 1]]),
    ];
    for ((name, bytes, size), (wanted_name, rows)) in matrices.into_iter().zip(wanted) {
        assert_eq!((name, size), (wanted_name, [rows.len(), rows[0].len()]));
        assert_eq!(bytes, rows.concat(), "{name}");
    }
}

/// Two stations in a ring. Without a token nothing ever begins; with one it runs; a ring beside one that
/// runs, or beside parts that go through, is told too. A loop for rework that parts have passed is none.
#[test]
fn a_circuit_without_a_token_is_a_deadlock() {
    let ring = |done: u64| {
        format!(
            "[[job]]\nname=\"AB\"\nduration=30\ndone={done}\n[[job]]\nname=\"BA\"\nduration=20\n\
             [[resource]]\nname=\"x\"\n[[rule]]\nname=\"dep B\"\ndone=[\"AB\"]\nstart=[\"BA\"]\n\
             [[rule]]\nname=\"dep A\"\ndone=[\"BA\"]\nstart=[\"AB\"]\n"
        )
    };
    let name = "name=\"rings\"\n";
    let until = |text: &str| {
        let options = EventOptions { until: Some(1_000_000_000_000), ..EventOptions::default() };
        run(&cell(text), &options).unwrap().remove(0).end
    };
    let circuit = |end: End| match end {
        End::Deadlocked(deadlock) => deadlock.to_string(),
        other => panic!("{other:?}"),
    };
    let text = "rule \"dep B\" waits for job \"AB\", rule \"dep A\" waits for job \"BA\"";
    assert_eq!(circuit(only(&cell(&format!("{name}{}", ring(0)))).end), text);
    assert_eq!(circuit(until(&format!("{name}{}", ring(0)))), text);
    assert_eq!(until(&format!("{name}{}", ring(1))), End::Until);
    let second = "[[job]]\nname=\"CD\"\nduration=1\ndone=1\n\
                  [[rule]]\nname=\"round\"\ndone=[\"CD\"]\nstart=[\"CD\"]\n";
    assert_eq!(circuit(until(&format!("{name}{}{second}", ring(0)))), text);
    let line = |count: u64| {
        format!(
            "{name}[[part]]\nname=\"p\"\ncount={count}\n[[job]]\nname=\"make\"\nduration=1\n\
             [[job]]\nname=\"rework\"\nduration=1\n\
             [[rule]]\nname=\"in\"\nparts=[\"p\"]\nstart=[\"make\"]\n\
             [[rule]]\nname=\"out\"\ndone=[\"make\"]\nproduce=[\"q\"]\n\
             [[rule]]\nname=\"bad\"\ndone=[\"make\"]\nstart=[\"rework\"]\n\
             [[rule]]\nname=\"again\"\ndone=[\"rework\"]\nstart=[\"make\"]\n"
        )
    };
    assert_eq!(only(&cell(&line(3))).end, End::Finished);
    let both = line(3) + &ring(0).replace("[[resource]]\nname=\"x\"\n", "");
    assert_eq!(circuit(only(&cell(&both)).end), text);
}
