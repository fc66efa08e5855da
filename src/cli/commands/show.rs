//! `show`: a bundle out of the local store.

use clap::Args;

use crate::cli::context::Context;
use crate::cli::exit::Exit;
use crate::cli::rewards;

/// Arguments of `show`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The `bundleId` of a bundle that was answered here, or a file that holds one
    pub(crate) bundle: String,
}

/// Prints the bundle.
pub(crate) fn run(args: &ShowArgs, context: &mut Context) -> Exit {
    let found = context.settings().and_then(|settings| {
        let asked = rewards::asked(context, &settings)?;
        let mut bundle = rewards::load(&args.bundle, context, &settings)?;
        if let Some(asked) = asked {
            asked.put_into(&mut bundle);
        }
        Ok(bundle)
    });
    match found {
        Ok(bundle) => context.printer.bundle(&bundle),
        Err(error) => context.fail(error),
    }
}
