//! `show`: a bundle from the local store.

use clap::Args;

use crate::cli::context::CliContext;
use crate::cli::exit::ProgramExit;
use crate::cli::rewards;

/// Arguments of `show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// `bundleId` of a stored bundle, or a file with a bundle
    pub(crate) bundle: String,
}

/// Prints the bundle.
pub(crate) fn run(args: &ShowArgs, context: &mut CliContext) -> ProgramExit {
    let loaded = context.settings().and_then(|settings| {
        let reward = rewards::requested(context, &settings)?;
        let mut bundle = rewards::load(&args.bundle, context, &settings)?;
        if let Some(reward) = reward {
            reward.apply_to(&mut bundle);
        }
        Ok(bundle)
    });
    match loaded {
        Ok(bundle) => context.printer.bundle(&bundle),
        Err(error) => context.fail(error),
    }
}
