//! Forecasts a product on a platform that is not available: it runs the real schedule in simulated time.
//!
//! `cargo run --release --example simulate`

use apportion::plan::Shape;
use apportion::plan::shapes::{Columns, LayoutMethod};
use apportion::platform::parse_platform;
use apportion::schedule::{Flow, MatmulSchedule, ScheduleOptions};
use apportion::simulate::{CostModel, simulate};

/// Two sites, joined by a line that is ten times slower than either site's network.
const PLATFORM: &str = r#"
[[processor]]
name = "paris-1"
cluster = "paris"
speed = "20 Gflop/s"
[[processor]]
name = "paris-2"
cluster = "paris"
speed = "10 Gflop/s"
[[processor]]
name = "lyon-1"
cluster = "lyon"
speed = "30 Gflop/s"
[network]
latency = "50 us"
bandwidth = "10 Gbit/s"
[[network.link]]
between = ["paris", "lyon"]
latency = "5 ms"
bandwidth = "1 Gbit/s"
"#;

fn main() -> apportion::Result<()> {
    let platform = parse_platform(PLATFORM, "the example")?;
    let (size, block) = (4000, 250);
    let shape = Shape::new(size, size, size, "simulate")?;
    let flops: Vec<f64> = platform.speeds().unwrap_or_default().iter().map(|speed| speed.value()).collect();
    let layout = Columns::default().layout(shape, &flops)?;
    // A processor's rate: elements of C that it updates by one column of A and one row of B, per second.
    let rates: Vec<f64> = flops.iter().map(|flops| flops / 2.0).collect();
    println!(
        "flow        order             seconds  compute  communicate  idle (of {})",
        platform.names()[0]
    );
    for flow in Flow::ALL {
        for look_ahead in [0, 1] {
            let order = ScheduleOptions::new(flow, block).with_look_ahead(look_ahead);
            let model = CostModel { rates: &rates, network: &platform.network, element: 8 };
            let trace = simulate(&MatmulSchedule::new(&layout, order), model)?;
            let order = if look_ahead == 0 { "one by one" } else { "looks ahead" };
            let (compute, communicate, idle) = (trace.compute()[0], trace.communicate()[0], trace.idle()[0]);
            let seconds = trace.seconds();
            println!("{flow:10}  {order:16}  {seconds:7.3}  {compute:7.3}  {communicate:11.3}  {idle:.3}");
        }
    }
    Ok(())
}
