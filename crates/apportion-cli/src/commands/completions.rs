//! `apportion completions` and `apportion man`: from the grammar to what shells and man read.

use crate::args::headings;
use crate::console::Console;
use apportion::error::Result;
use apportion::output::write_whole;
use clap::Args;
use clap_complete::Shell;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    apportion completions bash >> ~/.bash_completion\n  \
    apportion completions zsh > ~/.zfunc/_apportion\n  \
    apportion completions fish > ~/.config/fish/completions/apportion.fish")]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  apportion man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Existing directory for apportion.1 and a page for each command.
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// Prints a completion script.
pub fn run(args: &CompletionsArgs, console: &Console) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut headings::command(), "apportion", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    console.result(|| json!({"shell": args.shell.to_string(), "script": script}), || script.clone());
    Ok(())
}

/// Writes the man pages.
pub fn man(args: &ManArgs, console: &Console) -> Result<()> {
    let mut whole = headings::command().disable_help_subcommand(true);
    // Global flags and the names of pages are filled in.
    whole.build();
    let mut pages = vec![("apportion.1".to_owned(), page(&whole))];
    for command in whole.get_subcommands().filter(|c| !c.is_hide_set()) {
        pages.push((format!("apportion-{}.1", command.get_name()), page(command)));
    }
    for (name, text) in &pages {
        write_whole(args.directory.join(name), text)?;
    }
    let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
    console.result(|| json!({"written": names}), || names.iter().map(|name| format!("{name}\n")).collect());
    Ok(())
}

fn page(command: &clap::Command) -> Vec<u8> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text).expect("memory can be written");
    text
}
