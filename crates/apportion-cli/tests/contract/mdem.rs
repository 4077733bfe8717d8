//! `mdem` on files: events, pictures, matrices, max-plus, deadlocks, refusals, processors.

use super::Bench;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn example(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mdem").join(name);
    path.canonicalize().unwrap().display().to_string()
}

fn names(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

/// By hand: six parts, one every 80 s, the first out after 135 s.
#[test]
fn the_robot_cell_from_a_file() {
    let bench = Bench::new();
    let cell = example("tacconi-lewis.toml");
    let line = format!("mdem {cell} -o events.csv --gantt cell.svg --matrices matrices");
    let said = bench.json(&line);
    assert_eq!((&said["end"], &said["seconds"]), (&json!("finished"), &json!(535.0)));
    assert_eq!(said["products"], json!({"housing": 6}));
    assert_eq!(said["max_plus"]["linear"], false);
    assert_eq!(names(&said["shared"][0]["rules"]), ["enter", "leave M1", "leave buffer", "leave M2"]);
    assert_eq!(said["conflicts"][0]["first_seconds"], 74.0);
    let robot = &said["resources"][1];
    assert_eq!((&robot["name"], &robot["working_seconds"]), (&json!("robot"), &json!(180.0)));
    let events = bench.text("events.csv");
    assert_eq!(events.lines().count(), 1 + said["events"].as_array().unwrap().len());
    assert!(events.starts_with("seconds,event,name,number\n0,arrive,casting,0\n"));
    assert!(events.ends_with("535,produce,housing,5\n"), "{events}");
    assert!(bench.text("cell.svg").contains("two machines and a robot: 535 s, 6 products, finished"));
    for name in ["F_v", "F_r", "F_u", "F_D", "S_v", "S_r", "S_y"] {
        assert!(bench.has(&format!("matrices/{name}.npy")), "{name}");
    }
    // The same as JSON; text for people; the scenario that is asked for.
    bench.done(&format!("mdem {cell} -o events.json"));
    assert_eq!(bench.value("events.json"), said["events"]);
    let text = bench.done(&format!("mdem {cell}"));
    assert!(text.contains("finished: all parts are through") && text.contains("535 s"), "{text}");
    assert!(text.contains("resource \"robot\" is taken by enter, leave M1, leave buffer,"), "{text}");
    let first = bench.json(&format!("mdem {cell} --scenario 'first come, first served'"));
    assert_eq!(first["seconds"], first["scenarios"][2]["mean_seconds"]);
    assert_eq!(first["conflicts"][0]["rules"], json!(["enter", "leave buffer"]));
}

#[test]
fn the_flow_line_agrees_with_its_max_plus_system() {
    let bench = Bench::new();
    let line = format!("mdem {} --max-plus A.npy", example("flow-line.toml"));
    let said = bench.json(&line);
    let linear = &said["max_plus"];
    assert_eq!((&linear["linear"], &linear["cycle_seconds"]), (&json!(true), &json!(27.0)));
    assert_eq!(linear["simulated_cycle_seconds"], 27.0);
    assert_eq!(
        (&linear["firings_compared"], &linear["largest_difference_seconds"]),
        (&json!(240), &json!(0.0))
    );
    assert!(names(&linear["circuit"]["places"]).contains(&"resource \"press\""));
    let text = bench.done(&line);
    assert!(text.contains("27 s by the max-plus eigenvalue, simulated 27 s"), "{text}");
    assert!(text.contains("240 firings by x(k) = A x(k - 1), at most 0 s off"), "{text}");
    // The matrix is one that the other commands take: after 9 more steps 27 s a step have passed.
    bench.done("power A.npy -k 40 -o A40.npy --semiring max-plus");
    bench.done("power A.npy -k 49 -o A49.npy --semiring max-plus");
    let [early, late] = ["A40.npy", "A49.npy"].map(|name| {
        let bytes = bench.bytes(name);
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let number = |eight: &[u8]| f64::from_le_bytes(eight.try_into().unwrap());
        bytes[start..].chunks(8).map(number).fold(f64::NEG_INFINITY, f64::max)
    });
    assert_eq!(late - early, 9.0 * 27.0);
    let rail = bench
        .json(&format!("mdem {} --until '12 h' --scenario 'works on the lake line'", example("rail.toml")));
    assert_eq!(rail["max_plus"]["cycle_seconds"], 74.0 * 60.0);
    assert_eq!(rail["max_plus"]["largest_difference_seconds"], 0.0);
    let said = bench.fails(1, &format!("mdem {} --max-plus A.npy", example("tacconi-lewis.toml")));
    assert!(said.contains("no max-plus matrix: resource \"robot\" is taken by 4 rules"), "{said}");
}

#[test]
fn a_deadlock_is_reported_with_its_circular_wait() {
    let bench = Bench::new();
    let cell = example("deadlock.toml");
    let said = bench.fails(1, &format!("mdem {cell} -o events.csv --gantt cell.svg"));
    let circle = "job \"load\" waits for resource \"M1\", held by job \"mill\", job \"mill\" waits for \
                  resource \"robot\", held by job \"load\"";
    assert!(said.starts_with(&format!("apportion: deadlock at 68 s: {circle} (")), "{said}");
    let allowed = bench.json(&format!("mdem {cell} --allow-deadlock --gantt cell.svg"));
    assert_eq!((&allowed["end"], &allowed["deadlock"]["text"]), (&json!("deadlock"), &json!(circle)));
    assert_eq!(allowed["deadlock"]["circle"][1]["held_by"], json!(["load"]));
    assert!(bench.text("cell.svg").contains("68 s, deadlock"));
    // The scenario without it is no failure, and the table shows both.
    let text = bench.done(&format!("mdem {cell} --scenario 'one pallet'"));
    assert!(text.contains("deadlock") && text.contains("finished"), "{text}");
}

#[test]
fn cells_that_never_rest_end_at_their_limits() {
    let bench = Bench::new();
    let ticks =
        "[[job]]\nname=\"t\"\nduration=1\ndone=1\n[[rule]]\nname=\"again\"\ndone=[\"t\"]\nstart=[\"t\"]\n";
    bench.write("ticks.toml", ticks);
    let said = bench.json("mdem ticks.toml --firings 50");
    assert_eq!((&said["end"], &said["seconds"]), (&json!("limit"), &json!(49.0)));
    let said = bench.json("mdem ticks.toml --until '2 min'");
    assert_eq!((&said["end"], &said["firings"]["again"]), (&json!("until"), &json!(121)));
    assert_eq!(said["max_plus"]["simulated_cycle_seconds"], 1.0);
}

/// Ten million firings and more are too many, which is known when they have been counted.
#[test]
#[ignore = "slow"]
fn too_many_firings_are_refused() {
    let bench = Bench::new();
    bench.write("good.toml", std::fs::read_to_string(example("deadlock.toml")).unwrap());
    bench.refuses(&[("mdem good.toml --replications 1e6 --firings 5e6", "--replications: ")]);
}

/// Processors of known speeds, and the events of one core.
#[test]
fn unequal_processors_give_the_same_events() {
    let bench = Bench::new();
    bench.write("two.toml", super::bench::TWO);
    let text = std::fs::read_to_string(example("tacconi-lewis.toml")).unwrap();
    bench.write("cell.toml", text.replace("duration = \"60 s\"", "duration = { triangular = [40, 60, 90] }"));
    let line = "mdem cell.toml --replications 4 --seed 7";
    let mut alone = bench.json(line);
    // Their commands differ.
    alone["provenance"].take();
    bench.done("partition --shape 8x13x12 --platform two.toml --method square-corner -o plan.json");
    for (how, method) in [
        ("--platform two.toml --method straight-line", "straight-line"),
        ("--plan plan.json --platform two.toml", "square-corner"),
    ] {
        let mut shared =
            bench.json(&format!("{line} {how} --report run.json --trace trace.json --svg plan.svg"));
        let run = shared.as_object_mut().unwrap().remove("run").unwrap();
        shared["provenance"].take();
        assert_eq!(shared, alone, "{how}");
        assert_eq!((&run["plan"]["method"], &run["semiring"]), (&json!(method), &json!("or-and")));
        assert_eq!((&run["verified"], &bench.value("run.json")), (&json!(true), &run));
        assert!(run["products"].as_u64().unwrap() > 20);
    }
    let other = bench.json("mdem cell.toml --replications 4 --seed 8");
    assert_ne!(other["events"], alone["events"].take());
}

/// Replications: mean, least and most of the makespans.
#[test]
fn replications_are_summed_up() {
    let bench = Bench::new();
    let text = std::fs::read_to_string(example("flow-line.toml")).unwrap();
    bench.write("cell.toml", text.replace("duration = \"25 s\"", "duration = { uniform = [10, 40] }"));
    let said = bench.json("mdem cell.toml --replications 30");
    let line = &said["scenarios"][0];
    let number = |name: &str| line[name].as_f64().unwrap();
    assert_eq!((&line["replications"], &line["ends"]), (&json!(30), &json!({"finished": 30})));
    assert!(
        number("least_seconds") < number("mean_seconds") && number("mean_seconds") < number("most_seconds")
    );
    assert_eq!(said["max_plus"]["why"], "the duration of job \"form\" is random");
}

/// No job is done at the start, so no rule can ever fire.
#[test]
fn a_dead_circuit_is_named() {
    let bench = Bench::new();
    let ring = |done: u64| {
        format!(
            "name = \"loop of two stations\"\n[[job]]\nname = \"AB\"\nduration = \"30 min\"\ndone = {done}\n\
             [[job]]\nname = \"BA\"\nduration = \"20 min\"\n[[resource]]\nname = \"x\"\n\
             [[rule]]\nname = \"dep B\"\ndone = [\"AB\"]\nstart = [\"BA\"]\n\
             [[rule]]\nname = \"dep A\"\ndone = [\"BA\"]\nstart = [\"AB\"]\n"
        )
    };
    bench.write("dead.toml", ring(0));
    bench.write("live.toml", ring(1));
    for line in ["mdem dead.toml -o events.csv", "mdem dead.toml -o events.csv --until '2 h'"] {
        let said = bench.fails(1, line);
        let circuit = "rule \"dep B\" waits for job \"AB\", rule \"dep A\" waits for job \"BA\"";
        assert!(said.contains(circuit) && said.contains("done = 1"), "{said}");
        assert!(!bench.has("events.csv"));
    }
    let shown = bench.json("mdem dead.toml --allow-deadlock");
    assert_eq!(
        (&shown["end"], &shown["deadlock"]["circle"][0]["waits_for"]),
        (&json!("deadlock"), &json!("job \"AB\""))
    );
    assert_eq!(bench.json("mdem live.toml --until '2 h'")["end"], "until");
}
