//! Flags of `apportion completions` and `apportion man`.

use clap::Args;
use clap_complete::Shell;
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
