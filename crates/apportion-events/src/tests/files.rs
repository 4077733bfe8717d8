use crate::{Arrivals, Dispatching, Duration, parse_workcell};

const CELL: &str = "name = \"c\"\ndispatching = \"fifo\"\n\
    [[part]]\nname = \"p\"\ncount = 2\n\
    [[resource]]\nname = \"r\"\ncapacity = 2\nreset = \"1 s\"\ndispatching = \"priority\"\n\
    [[job]]\nname = \"j\"\nduration = 3\ndone = 0\n\
    [[rule]]\nname = \"in\"\nparts = [\"p\"]\nfree = [\"r\"]\nstart = [\"j\"]\npriority = 2\n\
    [[rule]]\nname = \"out\"\ndone = [\"j\"]\nrelease = [\"r\"]\nproduce = [\"x\"]\n\
    [[scenario]]\nname = \"s\"\nduration = { j = 4 }\ncapacity = { r = 1 }\ncount = { p = 9 }\n\
    dispatching = \"longest\"\n";

#[test]
fn a_file_says_everything() {
    let cell = parse_workcell(CELL, "c.toml").unwrap();
    assert_eq!((&cell.name[..], cell.products.len(), cell.rules[0].priority), ("c", 1, 2));
    assert_eq!(cell.resources[0].dispatching, Some(Dispatching::Priority));
    assert_eq!(
        (cell.resources[0].reset, &cell.jobs[0].duration),
        (1_000_000_000, &Duration::Fixed(3_000_000_000))
    );
    let variant = &cell.variants()[1];
    assert_eq!((&variant.name[..], variant.dispatching), ("s", Dispatching::Longest));
    assert_eq!((variant.resources[0].capacity, variant.resources[0].dispatching), (1, None));
    assert_eq!(variant.jobs[0].duration, Duration::Fixed(4_000_000_000));
    assert_eq!(variant.parts[0].arrivals, Arrivals::AtStart(9));
    let arrivals = |text: &str| {
        parse_workcell(&CELL.replace("count = 2\n[", &format!("{text}\n[")), "c").unwrap().parts[0]
            .arrivals
            .clone()
    };
    assert_eq!(arrivals("at = [1, \"1 min\"]"), Arrivals::At(vec![1_000_000_000, 60_000_000_000]));
    let (first, every) = (2_000_000_000, 500_000_000);
    assert_eq!(arrivals("every = 0.5\nfirst = 2"), Arrivals::Every { first, every, count: None });
}

#[test]
fn bad_files_are_refused_by_field() {
    for (from, to, wanted) in [
        (
            "done = [\"j\"]",
            "done = [\"drill\"]",
            "c.toml: rule \"out\": done: unknown job \"drill\" (known are j;",
        ),
        ("free = [\"r\"]", "free = [\"robot\"]", "c.toml: rule \"in\": free: unknown resource \"robot\""),
        ("parts = [\"p\"]", "parts = [\"q\"]", "c.toml: rule \"in\": parts: unknown part \"q\""),
        ("start = [\"j\"]", "start = [\"j\", \"j\"]", "rule \"in\": start: job \"j\" is listed twice"),
        (
            "produce = [\"x\"]",
            "produce = [\"x\", \"x\"]",
            "rule \"out\": produce: a product is empty or listed twice",
        ),
        ("done = [\"j\"]\nrelease", "release", "rule \"out\": done: has no condition"),
        ("duration = 3", "duration = -3", "job \"j\": duration: -3 is negative"),
        ("duration = 3", "duration = nan", "job \"j\": duration: NaN is not a finite number"),
        ("duration = 3", "duration = 1e9", "longer than three years"),
        ("duration = 3", "duration = \"3 parsec\"", "unknown unit \"parsec\""),
        ("duration = 3", "duration = { uniform = [5, 3] }", "duration.uniform: the times do not ascend"),
        ("duration = 3", "duration = { exponential = 5, uniform = [1, 2] }", "is not one distribution"),
        ("duration = 3", "duration = { normal = 5 }", "c.toml:13: a time such as 5"),
        ("capacity = 2", "capacity = 0", "resource \"r\": capacity: is 0"),
        ("capacity = 2", "capacity = 2000000", "2000000 is more than 1000000"),
        (
            "\"priority\"",
            "\"lifo\"",
            "resource \"r\": dispatching: unknown dispatching rule \"lifo\" (choose one of fifo,",
        ),
        ("name = \"out\"", "name = \"in\"", "rule.name: \"in\" is empty or used twice"),
        ("capacity = 2", "colour = 2", "c.toml:8: unknown field `colour`"),
        ("duration = { j", "duration = { k", "scenario \"s\": duration: unknown job \"k\""),
        ("count = 2\n[", "count = 2\nat = [1]\n[", "part \"p\": at: cannot be combined with count or first"),
        ("count = 2\n[", "every = 0\n[", "part \"p\": every: is 0"),
        ("count = 2\n[", "at = [2, 1]\n[", "part \"p\": at: the times do not ascend"),
        ("count = 2\n[", "[", "part \"p\": count: it is not given when parts enter"),
        ("count = 2\n[", "count = 99999999999\n[", "99999999999 is more than"),
    ] {
        assert!(CELL.contains(from), "{from}");
        let error = parse_workcell(&CELL.replacen(from, to, 1), "c.toml").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains(wanted), "{error}\n{wanted}");
    }
    assert!(parse_workcell("name = \"x\"", "c").unwrap_err().to_string().contains("has no rule"));
    assert!(parse_workcell("[[rule", "c").unwrap_err().to_string().starts_with("c:1: "));
}

/// A resource that is released, but was never taken.
#[test]
fn a_release_of_what_is_free_is_refused_by_field() {
    let cell = parse_workcell(&CELL.replace("free = [\"r\"]\n", ""), "c.toml").unwrap();
    let error = super::run(&cell, &crate::EventOptions::default()).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(
        error.to_string().starts_with("rule \"out\": release: resource \"r\" is released at 3 s, but all")
    );
}
