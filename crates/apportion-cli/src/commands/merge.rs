//! `apportion merge`.

use crate::args::MergeArgs;
use crate::console::Console;
use crate::output::models::text;
use apportion::error::{Error, Result};
use apportion::model::{Models, ModelsFile, merge_models, read_models};
use apportion::output::write_whole;

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
