//! Pages of `report`: of every format, refused in one line, and opened, clicked and measured in a browser.

use super::Bench;
use super::bench::{TWO, whole};
use apportion_testing::{Need, holds, program, skip};
use serde_json::Value;
use std::process::{Command, Stdio};

/// A bench with a result of every format, in files named after their commands.
fn results() -> (Bench, Vec<&'static str>) {
    let bench = Bench::new();
    bench.write("two.toml", TWO);
    bench.matrix("a.npy", &whole::<f64>(120, 80, 1));
    bench.matrix("b.npy", &whole::<f64>(80, 100, 2));
    bench.numbers("field.npy", "<f8", (24, 16), false);
    bench.write("models.json", MODELS);
    bench.write("cell.toml", CELL);
    bench.done(
        "matmul a.npy b.npy --platform two.toml --method square-corner --flow bulk -o c.npy --report matmul.json",
    );
    bench.done(
        "advect --field field.npy --courant 0.2,0.1 --steps 3 --platform two.toml --report advect.json",
    );
    bench.done("random 90 90 -o s.npy");
    bench.done("factor s.npy --kind lu --platform two.toml --report factor.json");
    let printed = [
        ("partition.json", "partition --units 1000 --models models.json"),
        ("plan.json", "partition --shape 300x200 --platform two.toml --method square-corner"),
        ("simulate.json", "simulate --plan plan.json --platform two.toml --flow bulk --explain slow"),
        ("balance.json", "balance --units 100 --processors 2 --max-rounds 2 --command 'true {share}'"),
        ("mdem.json", "mdem cell.toml"),
    ];
    for (name, line) in printed {
        bench.write(name, bench.json(line).to_string());
    }
    let files = ["matmul.json", "advect.json", "factor.json", "models.json"];
    (bench, files.into_iter().chain(printed.map(|(name, _)| name)).collect())
}

const MODELS: &str = r#"{"format": "apportion-models", "version": 1, "kernel": "work", "unit": "items",
    "models": [
        {"processor": "fast", "points": [
            {"size": 10, "seconds": 0.5, "ci": 0.01, "repetitions": 5},
            {"size": 2000, "seconds": 40, "ci": 1, "repetitions": 5, "low": 38, "high": 50}]},
        {"processor": "slow", "points": [
            {"size": 10, "seconds": 1, "ci": 0.01, "repetitions": 5, "precision_met": false},
            {"size": 2000, "seconds": 200, "ci": 1, "repetitions": 5}]}]}"#;

const CELL: &str = r#"name = "cell"
[[part]]
name = "blank"
count = 3
[[resource]]
name = "mill"
[[job]]
name = "cut"
duration = "5 s"
[[rule]]
name = "begin"
parts = ["blank"]
free = ["mill"]
start = ["cut"]
[[rule]]
name = "end"
done = ["cut"]
release = ["mill"]
produce = ["piece"]
"#;

#[test]
fn every_result_makes_a_page() {
    let (bench, files) = results();
    let expected = [
        ("matmul.json", "What would make it faster"),
        ("advect.json", "3 steps of MPDATA"),
        ("factor.json", "lu of 90 × 90"),
        ("models.json", "Speeds of work"),
        ("partition.json", "1,000 units by fpm on 2 processors"),
        ("plan.json", "C of 300 × 200"),
        ("simulate.json", "bulk flow"),
        ("balance.json", "Rounds"),
        ("mdem.json", "Makespan"),
    ];
    assert_eq!(files.len(), expected.len());
    for (file, words) in expected {
        bench.done(&format!("report {file} -o page.html"));
        let page = bench.text("page.html");
        holds(&page, &["<!doctype html>", "</html>", words]);
        if ["models.json", "partition.json", "plan.json"].contains(&file) {
            assert!(page.contains("do not record their command"));
        } else {
            holds(&page, &["<code>apportion "]);
        }
    }
    // The page goes to stdout too, and is the same for the same files.
    bench.done("report matmul.json advect.json -o page.html");
    assert_eq!(bench.done("report matmul.json advect.json -o -"), bench.text("page.html"));
    let said = bench.json("report matmul.json advect.json -o page.html");
    assert_eq!((&said["page"], &said["results"]), (&"page.html".into(), &2.into()));
}

/// A run file records what a page needs; plan and models files stay the same whoever writes them.
#[test]
fn runs_record_where_they_come_from() {
    let (bench, _) = results();
    bench.done("simulate --plan plan.json --platform two.toml");
    assert!(bench.value("plan.json").get("provenance").is_none());
    // The speed functions beside a plan are not part of it.
    assert_eq!(bench.value("partition.json")["models"]["models"].as_array().unwrap().len(), 2);
    bench.done("partition --plan partition.json --export csv");
    let run = bench.value("matmul.json");
    let provenance = &run["provenance"];
    assert!(
        provenance["command"].as_str().unwrap().starts_with("apportion matmul a.npy b.npy "),
        "{provenance}"
    );
    assert!(provenance["machine"]["cores"].as_u64().is_some_and(|cores| cores > 0), "{provenance}");
    assert_eq!(run["timeline"]["measured"].as_array().unwrap().len(), 2);
    assert_eq!(run["timeline"]["forecast"].as_array().unwrap().len(), 2);
    let path = &run["critical_path"];
    let sum: f64 = ["work", "queue", "transfer"].iter().map(|part| path[*part].as_f64().unwrap()).sum();
    let forecast = run["forecast_seconds"].as_f64().unwrap();
    assert!(
        (sum - forecast).abs() <= 1e-9 + 1e-6 * forecast,
        "the chain covers the time: {path}, {forecast}"
    );
}

/// Opens pages in frames of two widths; each reports what it measured of itself after clicks.
#[test]
fn pages_work_in_a_browser_at_two_widths() {
    let Some(browser) = program(&["chromium", "chromium-browser", "google-chrome"]) else {
        return skip(Need::Browser, "there is no chromium on PATH");
    };
    let (bench, files) = results();
    bench.done(&format!("report {} -o several.html", files.join(" ")));
    bench.done("report matmul.json -o one.html");
    let mut frames = String::new();
    for name in ["one", "several"] {
        let page = bench.text(&format!("{name}.html"));
        let page = page.replacen("<head>", &format!("<head><script>{WATCH}</script>"), 1);
        let page = page.replacen("</body>", &format!("<script>{MEASURE}</script></body>"), 1);
        bench.write(&format!("{name}-measured.html"), page);
        for width in [390, 1280] {
            frames += &format!(
                "<iframe name=\"{name} {width}\" src=\"{name}-measured.html\" width=\"{width}\" height=\"844\" \
                 style=\"border:0\"></iframe>\n"
            );
        }
    }
    bench.write("frames.html", format!("<!doctype html><body>{frames}<pre></pre><script>{COLLECT}</script>"));
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args(["--window-size=1400,4000", "--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", bench.path("profile").display()))
        .arg(format!("file://{}", bench.path("frames.html").display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let found =
        dom.split_once("<pre>").and_then(|(_, rest)| rest.split_once("</pre>")).map(|(found, _)| found);
    let found = found.filter(|found| !found.is_empty()).unwrap_or_else(|| {
        panic!("nothing was measured: {dom}\n{}", String::from_utf8_lossy(&output.stderr))
    });
    let found = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let found: Value = serde_json::from_str(&found).unwrap_or_else(|error| panic!("{error}: {found}"));
    let pages = found.as_object().unwrap();
    assert_eq!(pages.len(), 4, "{found}");
    for (name, page) in pages {
        let number = |field: &str| page[field].as_f64().unwrap_or_else(|| panic!("{name}: {field}"));
        assert_eq!(page["errors"], serde_json::json!([]), "{name}");
        assert!(number("overflow") <= 0.0, "{name} scrolls sideways by {}", page["overflow"]);
        assert_eq!(page["outside"], serde_json::json!([]), "{name}: parts beyond the right edge");
        assert!(number("least") >= 12.0, "{name}: type of {} px in {}", page["least"], page["smallest"]);
        let headings: Vec<&str> =
            page["headings"].as_array().unwrap().iter().map(|h| h.as_str().unwrap()).collect();
        for heading in ["The plan", "Timeline", "Where the time went", "What would make it faster", "Made by"]
        {
            assert!(headings.contains(&heading), "{name}: {heading} in {headings:?}");
        }
        // A click names the step, whose title a pointer shows.
        let step = page["step"].as_str().unwrap();
        assert!(step.contains("computes: ") && step.contains(", from "), "{name}: {step}");
        assert_eq!(page["hint"], page["step"], "{name}");
        assert!(number("titles") >= 4.0, "{name}");
        assert!(number("copied") == 1.0, "{name}: the button answers");
    }
    let several = &pages["several 390"];
    for heading in ["Times", "Plans", "Speed functions", "Rounds", "Resources", "Points"] {
        let there = several["headings"].as_array().unwrap().iter().any(|h| h == heading);
        assert!(there, "{heading} in {}", several["headings"]);
    }
}

/// Collects errors from the start.
const WATCH: &str = r#"
window.failures = [];
addEventListener("error", (event) => failures.push(String(event.message)));
addEventListener("unhandledrejection", (event) => failures.push(String(event.reason)));
console.error = (...words) => failures.push(words.join(" "));
"#;

/// Clicks and measures, and tells the page around.
const MEASURE: &str = r#"
addEventListener("load", async () => {
  const seen = (e) => e.getClientRects().length > 0;
  const all = [...document.querySelectorAll("body *")].filter(seen);
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  let least = 1000, smallest = "";
  for (const e of all.filter(own).filter((e) => !["SCRIPT", "STYLE", "title"].includes(e.tagName))) {
    const svg = e.ownerSVGElement;
    const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
    const size = parseFloat(getComputedStyle(e).fontSize) * scale;
    if (size < least) { least = size; smallest = e.tagName + " " + e.textContent.trim().slice(0, 40); }
  }
  const width = document.documentElement.clientWidth;
  const outside = all
    .filter((e) => !e.closest(".scroll") && e.getBoundingClientRect().right > width + 0.5)
    .map((e) => e.tagName + "." + (e.getAttribute("class") || "") + " " + e.textContent.trim().slice(0, 40))
    .slice(0, 5);
  const steps = [...document.querySelectorAll(".timeline svg path.compute")].filter(seen).filter((e) => e.querySelector("title"));
  const step = steps[0];
  step.dispatchEvent(new MouseEvent("click", { bubbles: true }));
  const hint = step.closest("figure").querySelector(".hint").textContent;
  const button = document.querySelector(".command button");
  button.click();
  await new Promise((done) => setTimeout(done, 300));
  parent.postMessage({
    name: window.name, errors: failures, least, smallest, outside, hint,
    overflow: document.documentElement.scrollWidth - width,
    headings: [...document.querySelectorAll("h2, h3")].filter(seen).map((e) => e.textContent),
    step: step.querySelector("title").textContent, titles: steps.length,
    copied: ["Copied", "Selected"].includes(button.textContent) ? 1 : 0,
  }, "*");
});
"#;

/// Puts what the frames tell into the page that is dumped.
const COLLECT: &str = r#"
const found = {};
addEventListener("message", (event) => {
  const { name, ...rest } = event.data;
  found[name] = rest;
  document.querySelector("pre").textContent = JSON.stringify(found);
});
"#;
