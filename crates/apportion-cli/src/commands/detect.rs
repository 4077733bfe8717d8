//! `apportion detect`.

use crate::args::DetectArgs;
use crate::console::Console;
use crate::output::detect::Description;
use apportion::error::{Error, Result};
use apportion::kernels::instruction_set;
use apportion::output::write_whole;
use apportion::platform::{Host, discover};

pub fn run(args: &DetectArgs, console: &Console) -> Result<()> {
    let description = match &args.root {
        None => Description { host: discover(), instructions: Some(instruction_set().to_string()) },
        Some(root) if !root.is_dir() => {
            let what = format!("{} is no directory", root.display());
            return Err(Error::input(
                "--root",
                what,
                "name the directory that holds the machine's proc and sys",
            ));
        }
        Some(root) => Description { host: Host::read(root), instructions: None },
    };
    let by = args.by.grouping();
    if let Some(path) = &args.output {
        write_whole(path, description.host.platform(by).to_toml().as_bytes())?;
    }
    console.result(|| description.to_value(by), || description.to_text(by));
    Ok(())
}
