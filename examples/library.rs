//! lanser as a library: opens a folder, sends requests, and prints parts of the typed answers.
//!
//! `cargo run --example library -- [FOLDER [SELECTOR]]`, by default for the code in `fixtures/inventory`.

#![allow(clippy::print_stdout, reason = "the answers are what this program is for")]

use std::error::Error;

use lanser::model::request::{Command, Options, Request};
use lanser::{Bundle, Workspace};

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder =
        words.next().unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/inventory").to_owned());
    let selector = words.next().unwrap_or_else(|| "py://inventory#Stock.add".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(answers(&folder, &selector))
}

async fn answers(folder: &str, selector: &str) -> Result<(), Box<dyn Error>> {
    let workspace = Workspace::open(folder)?;
    // Both requests run concurrently and share one server; the first one starts it, and installs it if necessary.
    let (uses, hover) = tokio::join!(workspace.references(selector), workspace.hover(selector));
    if let Some(facts) = facts_or_print_error(&uses) {
        for place in facts.references.iter().flatten() {
            println!("{}  {}", place.at, place.preview.as_deref().unwrap_or_default().trim());
        }
        if let Some(completeness) = &facts.completeness {
            println!("{:?}: the name stands in {} files", completeness.status, completeness.files_with_name);
        }
    }
    if let Some(hover) = facts_or_print_error(&hover).and_then(|facts| facts.hover.as_ref()) {
        println!("{}", hover.markdown);
    }
    // A request supports everything that a line of a batch supports.
    let place = lanser::selector::parse(selector, lanser::ColumnUnit::Codepoint)?;
    let limited = Options { limit: Some(1), ..Options::default() };
    let first = Request { options: limited, ..Request::about(Command::References, place) };
    let first = workspace.ask(first).await;
    if let Some(limits) = &first.meta.limits {
        println!("{:?}: the first of {}, {}", first.status, limits.total, first.bundle_id);
    }
    workspace.close().await;
    Ok(())
}

/// The facts of a bundle. Prints the error if there are none.
fn facts_or_print_error(bundle: &Bundle) -> Option<&lanser::model::facts::Facts> {
    if let Some(error) = &bundle.error {
        println!("{}: {}", error.symbol.as_str(), error.message);
    }
    bundle.facts.as_deref()
}
