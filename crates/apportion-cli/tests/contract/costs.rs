//! Units of different cost: files of costs, contiguous parts, memory, places, latency, and runs of them.

use super::bench::Bench;
use apportion_testing::holds;
use serde_json::{Value, json};

/// The bytes of a `.npy` file in C order.
fn npy(descr: &str, shape: &str, body: &[u8]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    text += &" ".repeat(64 - (10 + text.len() + 1) % 64);
    text += "\n";
    let head = [&b"\x93NUMPY\x01\x00"[..], &(text.len() as u16).to_le_bytes()].concat();
    [&head, text.as_bytes(), body].concat()
}

fn floats(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn parts_are_contiguous_and_balanced_by_cost() {
    let here = Bench::new();
    here.write("costs.txt", "# four light units and a heavy one\n1\n1\n1 # third\n\n1\n4\n");
    let plan = here.json("partition --costs costs.txt --speeds 1,1 -o plan.json");
    assert_eq!((&plan["shares"], &plan["costs"]), (&json!([4, 1]), &json!([4.0, 4.0])));
    assert_eq!(
        (&plan["problem"], &plan["method"]),
        (&json!({"kind": "units", "n": 5}), &json!("contiguous"))
    );
    assert_eq!((&plan["metrics"]["imbalance"], &plan["order"]), (&json!(1.0), &Value::Null));
    assert_eq!(here.value("plan.json"), plan);
    // Speeds with a unit give seconds: a unit of cost 4 takes as long as four.
    let timed = here.json(&["partition", "--costs", "costs.txt", "--speeds", "4 units/s,1 units/s"][..]);
    assert_eq!((&timed["shares"], &timed["forecast"]["compute"]), (&json!([5, 0]), &json!([2.0, 0.0])));
    assert_eq!(
        timed["baselines"],
        json!({"fastest_alone": {"processor": "p0", "seconds": 2.0}, "even_split": 5.0})
    );
    assert!((timed["metrics"]["imbalance"].as_f64().unwrap() - 1.25).abs() < 1e-9, "{timed}");
    // Arrays of NumPy say the same.
    for (descr, body) in [
        ("<f8", floats(&[1.0, 1.0, 1.0, 1.0, 4.0])),
        ("<i4", [1_i32, 1, 1, 1, 4].iter().flat_map(|x| x.to_le_bytes()).collect()),
        ("|u1", vec![1, 1, 1, 1, 4]),
    ] {
        here.write("costs.npy", npy(descr, "(5,)", &body));
        let plan = here.json("partition --units 5 --costs costs.npy --speeds 1,1");
        assert_eq!(plan["shares"], json!([4, 1]), "{descr}");
    }
    // Speed functions of cost: up to a cost of 4 the first is four times as fast.
    here.write(
        "models.json",
        r#"{"format": "apportion-models", "version": 1, "kernel": "k", "unit": "cost", "models": [
        {"processor": "a", "points": [{"size": 4, "seconds": 1}, {"size": 5, "seconds": 10}]},
        {"processor": "b", "points": [{"size": 1, "seconds": 1}]}]}"#,
    );
    let plan = here.json("partition --costs costs.txt --models models.json");
    assert_eq!((&plan["shares"], &plan["forecast"]["seconds"]), (&json!([4, 1]), &json!(4.0)));
}

#[test]
fn processors_change_places_and_memory_caps_their_parts() {
    let here = Bench::new();
    here.write("costs", "1\n1\n1\n1\n4\n");
    let line = "partition --costs costs --speeds 3,1";
    assert_eq!(here.json(line)["shares"], json!([5, 0]));
    let plan = here.json(&format!("{line} --any-order -o plan.json"));
    assert_eq!((&plan["shares"], &plan["order"]), (&json!([3, 2]), &json!([1, 0])));
    assert_eq!(here.value("plan.json"), plan);
    // Tools that know parts by their place get them in this order.
    let warned = here.run("partition --plan plan.json --export vllm");
    assert_eq!(String::from_utf8_lossy(&warned.stdout), "VLLM_PP_LAYER_PARTITION=2,3\n");
    holds(&String::from_utf8_lossy(&warned.stderr), &["in this order: p1, p0"]);
    let ranges = here.done("partition --plan plan.json --export slurm-units");
    holds(&ranges, &["  0) from=2 to=5 ;;\n", "  1) from=0 to=2 ;;\n"]);
    holds(&here.done("partition --plan plan.json --export c"), &["offsets[3] = {2, 0, 5};"]);
    // Caps: of units, and of memory by a second list.
    assert_eq!(here.json(&format!("{line} --max 2,9"))["shares"], json!([2, 3]));
    here.write(
        "machine.toml",
        "[[processor]]\nname = \"a\"\nspeed = 3\nmemory = \"2 GiB\"\n[[processor]]\nname = \"b\"\nspeed = 1\n",
    );
    here.write("bytes", "1 GiB\n1 GiB\n1 GiB\n0.5 GiB\n0.5 GiB\n");
    let line = "partition --costs costs --unit-memory bytes --platform machine.toml";
    assert_eq!(here.json(line)["shares"], json!([2, 3]));
    let plan = here.json(&format!("{line} --any-order"));
    assert_eq!((&plan["shares"], &plan["order"]), (&json!([3, 2]), &json!([1, 0])));
    // Without costs, units of different memory.
    let plan = here.json("partition --units 5 --unit-memory bytes --platform machine.toml");
    assert_eq!((&plan["shares"], &plan["costs"]), (&json!([2, 3]), &Value::Null));
    let small = "partition --costs costs --unit-memory bytes --platform small.toml";
    here.write("small.toml", here.text("machine.toml").replace("speed = 1", "speed = 1\nmemory = \"1 GiB\""));
    holds(&here.fails(1, small), &["memory"]);
}

#[test]
fn latency_is_the_sum_of_the_stages() {
    let here = Bench::new();
    here.write("costs", "1\n1\n1\n1\n4\n");
    let seconds = |flags: &str| {
        let speeds = "2 units/s,1 units/s";
        let mut words = vec!["partition", "--costs", "costs", "--speeds", speeds];
        words.extend(flags.split_whitespace());
        let plan = here.json(&words[..]);
        (plan["shares"].clone(), plan["forecast"]["seconds"].clone())
    };
    assert_eq!(seconds("--objective latency"), (json!([5, 0]), json!(4.0)));
    assert_eq!(seconds("--objective latency --max 4,5"), (json!([4, 1]), json!(6.0)));
    assert_eq!(
        seconds("--objective latency --max 4,5 --any-order"),
        (json!([4, 1]), json!(4.5)),
        "1, and 7 / 2"
    );
    assert_eq!(seconds("--objective makespan --max 4,5"), (json!([4, 1]), json!(4.0)));
}

/// Two kinds of work: the last unit is heavy in the first, of which the second processor does most.
#[test]
fn costs_of_two_kinds_follow_the_speeds_of_both() {
    let here = Bench::new();
    let models = |name: &str, seconds: [u32; 2]| {
        let model = |(p, t): (&str, u32)| json!({"processor": p, "points": [{"size": 1, "seconds": t}]});
        let models: Vec<Value> = ["a", "b"].into_iter().zip(seconds).map(model).collect();
        let file =
            json!({"format": "apportion-models", "version": 1, "kernel": "k", "unit": "u", "models": models});
        here.write(name, file.to_string());
    };
    models("first.json", [4, 1]);
    models("second.json", [1, 4]);
    here.write("costs", "0 1\n0 1\n0 1\n3 0\n");
    let line = "partition --models first.json,second.json --costs costs";
    let plan = here.json(&format!("{line} --mix 0.5"));
    assert_eq!((&plan["shares"], &plan["forecast"]["compute"]), (&json!([3, 1]), &json!([1.5, 1.5])));
    here.write("costs.npy", npy("<f8", "(4, 2)", &floats(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 3.0, 0.0])));
    let same = here.json("partition --models first.json,second.json --costs costs.npy --mix 0.5");
    assert_eq!(same["shares"], json!([3, 1]));
    here.refuses(&[
        ("partition --models first.json --costs costs", "--mix"),
        ("run --costs costs --processors 2 -- true {from} {to}", "2 columns"),
        ("balance --costs costs --processors 2 -- true {share}", "2 columns"),
    ]);
}

#[cfg(unix)]
#[test]
fn a_plan_of_costs_is_run_in_its_order() {
    let here = Bench::new();
    here.program("count", "#!/bin/sh\ni=$1; while [ $i -lt $2 ]; do echo unit $i; i=$((i + 1)); done\n");
    let units = |text: &str| -> Vec<u64> {
        text.lines().filter_map(|line| line.split("unit ").nth(1)?.trim().parse().ok()).collect()
    };
    here.write("costs", "1\n1\n1\n1\n4\n");
    here.done("partition --costs costs --speeds 3,1 --any-order -o plan.json");
    let ran = here.json("run --plan plan.json --command './count {from} {to}'");
    let range = |i: usize| (ran["processors"][i]["from"].clone(), ran["processors"][i]["to"].clone());
    assert_eq!((range(0), range(1)), ((json!(2), json!(5)), (json!(0), json!(2))));
    // Once, while it is divided: each unit once and in order, with a plan that knows the costs.
    here.write("many", (0..200).map(|i| format!("{}\n", 1 + i % 7)).collect::<String>());
    let all: Vec<u64> = (0..200).collect();
    let line = "run --costs many --processors 2 -o once.json --command './count {from} {to}'";
    assert_eq!(units(&here.done(line)), all);
    let plan = here.value("once.json");
    let sum = |field: &str| plan[field].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum::<f64>();
    let total: u64 = (0..200).map(|i| 1 + i % 7).sum();
    assert_eq!((sum("shares"), sum("costs")), (200.0, total as f64));
    for costs in ["", "--costs many"] {
        assert_eq!(
            units(&here.done(&format!("run --plan once.json {costs} --command './count {{from}} {{to}}'"))),
            all
        );
    }
    here.refuses(&[("run --plan once.json --costs costs -- true {from} {to}", "5 costs for 200 units")]);
}

/// By the times that a program prints: a tenth of a second for each cost, three times as long on the second processor.
#[cfg(unix)]
#[test]
fn balance_ends_with_parts_of_equal_time() {
    let here = Bench::new();
    here.program(
        "work",
        "#!/bin/sh\nexec awk -v from=$1 -v to=$2 -v rank=$3 'NR > from && NR <= to { cost += $1 } \
         END { printf \"%.12g\\n\", 0.1 * cost * (rank == 0 ? 1 : 3) }' costs\n",
    );
    here.write("costs", (0..400).map(|i| format!("{}\n", 1 + i % 7)).collect::<String>());
    let line = "balance --costs costs --processors 2 --seconds-from stdout -o plan.json --models-out learnt.json \
        --command './work {from} {to} {rank}'";
    let found = here.json(line);
    assert_eq!(found["balanced"], true);
    let plan = here.value("plan.json");
    let costs: Vec<f64> = plan["costs"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect();
    let total: u64 = (0..400).map(|i| 1 + i % 7).sum();
    assert_eq!(costs.iter().sum::<f64>(), total as f64);
    assert!((costs[0] / costs[1] - 3.0).abs() < 0.1, "{costs:?}");
    assert!(plan["metrics"]["imbalance"].as_f64().unwrap() < 1.02, "{plan}");
    // What it has learnt are speeds of cost, as `partition` takes them.
    let again = here.json("partition --costs costs --models learnt.json");
    let near = |i: usize| again["costs"][i].as_f64().unwrap() / costs[i];
    assert!((near(0) - 1.0).abs() < 0.02 && (near(1) - 1.0).abs() < 0.05, "{again}");
}

#[test]
fn results_of_llama_bench_are_speeds() {
    let here = Bench::new();
    let entry = |prompt: u32, answer: u32, speed: f64| {
        json!({"build_commit": "4a5b", "cpu_info": "cpu", "gpu_info": "gpu", "backends": "CUDA",
               "model_filename": "model.gguf", "n_gpu_layers": 99, "devices": "auto", "n_prompt": prompt,
               "n_gen": answer, "avg_ns": 1, "stddev_ns": 0, "avg_ts": speed, "stddev_ts": 0.5})
    };
    here.write("large.json", json!([entry(512, 0, 4000.0), entry(0, 128, 60.0)]).to_string());
    here.write("small.json", json!([entry(512, 0, 1200.0), entry(0, 128, 40.0)]).to_string());
    let line = "partition --units 32 --models large.json,small.json";
    // As in the guide, where the same numbers are in two models files.
    let plan = here.json(&format!("{line} --mix 0.8"));
    assert_eq!((&plan["shares"], &plan["processors"]), (&json!([20, 12]), &json!(["large", "small"])));
    assert_eq!(here.json(&format!("{line} --mix 1"))["shares"], json!([25, 7]));
    here.write("prompts.json", json!([entry(512, 0, 9.0)]).to_string());
    let alone = here.json("partition --units 4 --models prompts.json");
    assert!((alone["forecast"]["seconds"].as_f64().unwrap() - 1.0 / 9.0).abs() < 1e-12, "{alone}");
    here.refuses(&[
        (line, "--mix"),
        (
            "partition --units 32 --models large.json,prompts.json --mix 0.5",
            "no result of answers of \"prompts\"",
        ),
        ("partition --units 32 --models large.json,large.json --mix 0.5", "\"large\" is in two files"),
    ]);
}
