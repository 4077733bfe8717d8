//! `apportion merge`.

use crate::console::Console;
use crate::output::models::text;
use apportion::error::{Error, Result};
use apportion::model::{Models, ModelsFile, merge_models, read_models};
use apportion::output::write_whole;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  \
    apportion merge old.json new.json --prefix old,new -o models.json    # old:core0, new:core0, …\n\
    All files must be of the same kernel, unit and parameters. Processors keep their names if they are \
    distinct; otherwise, name the hosts with --prefix.")]
pub struct MergeArgs {
    /// Models files (models.json), one per host.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Put these names, one per file, before the processors' names: HOST:NAME.
    #[arg(long, value_name = "HOST,HOST,…", value_delimiter = ',', help_heading = "Output")]
    pub prefix: Vec<String>,
    /// Write the merged models to this file (models.json).
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    pub output: Option<PathBuf>,
}

pub fn run(args: &MergeArgs, console: &Console) -> Result<()> {
    if !args.prefix.is_empty() && args.prefix.len() != args.files.len() {
        let what = format!("{} names for {} files", args.prefix.len(), args.files.len());
        return Err(Error::input("--prefix", what, "give one for each file, in their order"));
    }
    let parts = args.files.iter().enumerate().map(|(i, path)| {
        let models = read_models(path)?;
        let models = match args.prefix.get(i) {
            Some(host) => models.with_host(host)?,
            None => models,
        };
        Ok(ModelsFile { name: path.display().to_string(), models })
    });
    let models: Models = merge_models(parts.collect::<Result<_>>()?)?;
    if let Some(path) = &args.output {
        write_whole(path, format!("{}\n", models.to_json()).as_bytes())?;
    }
    console.result(|| models.to_value(), || text(&models, models.block()));
    Ok(())
}
