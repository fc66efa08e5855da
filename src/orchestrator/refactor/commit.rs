//! Writing what was planned and checked: the only place from which the workspace's files change. And taking it back.

use std::time::{SystemTime, UNIX_EPOCH};

use super::filters::Filters;
use crate::bundle::portable::PathMap;
use crate::bundle::seal::Draft;
use crate::digest::Digest;
use crate::edit::Plan;
use crate::model::edits::{Edits, Transaction, TransactionState};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::facts::{Facts, Provenance};
use crate::model::request::Request;
use crate::orchestrator::Settings;
use crate::orchestrator::state_folder;
use crate::tape::{Door, Tape};
use crate::workspace::transaction::{
    Applied, Change, Class, Label, Line, Policy, Recovery, Staged, TransactionError, Transactions,
};

/// The transactions of the workspace.
pub(in crate::orchestrator) fn transactions(settings: &Settings) -> Transactions {
    Transactions::new(&settings.root, &state_folder(&settings.environment, &settings.cache))
}

/// A plan in the words of the disk.
pub(super) fn changes(plan: &Plan) -> Vec<Change> {
    let change = |change: &crate::edit::FileChange| {
        let before = change.before.as_ref().map(|original| Digest::of(&original.bytes));
        let path = change.path.clone();
        let executable = change.new_mode();
        match (&change.from, before, &change.after) {
            (Some(from), Some(before), Some(after)) => {
                let same = before == Digest::of(after);
                let content = (!same).then(|| after.clone());
                Some(Change::Move { from: from.clone(), to: path, before, content, executable })
            }
            (_, Some(before), None) => Some(Change::Delete { path, before }),
            (_, before, Some(content)) => {
                Some(Change::Write { path, before, content: content.clone(), executable })
            }
            (_, None, None) => None,
        }
    };
    plan.changes().iter().filter_map(change).collect()
}

pub(super) fn policy(request: &Request) -> Policy {
    let guards = &request.options.guards;
    Policy { jail: !guards.outside, hard_links: guards.hard_links }
}

/// Writes a plan. Blocking.
///
/// # Errors
/// Why nothing was written.
pub(in crate::orchestrator) fn commit(
    settings: &Settings,
    request: &Request,
    plan: &Plan,
    tape: &Tape,
) -> Result<Transaction, ErrorBody> {
    let paths: Vec<_> = plan.paths().collect();
    let lost = || Err(ErrorBody::new(ErrorSymbol::ReplayMismatch, "what was written was not recorded"));
    tape.ask(Door::Transaction, &("write", paths), || written(settings, request, plan), lost)
}

fn written(settings: &Settings, request: &Request, plan: &Plan) -> Result<Transaction, ErrorBody> {
    let transactions = transactions(settings);
    let label = label(request);
    let done = transactions
        .plan(changes(plan), policy(request))
        .and_then(|planned| planned.stage(&label))
        .and_then(Staged::apply)
        .and_then(Applied::keep)
        .map_err(|error| refused(settings, &error))?;
    Ok(Transaction {
        id: done.id,
        state: TransactionState::Applied,
        what: Some(label.what),
        files: u32::try_from(plan.changes().len()).unwrap_or(u32::MAX),
    })
}

/// What a transaction is called: what was asked for.
fn label(request: &Request) -> Label {
    let about = request.selector.as_ref().map(ToString::to_string);
    let words =
        [Some(request.cmd.as_str().to_owned()), about, request.new_name.clone(), request.options.run.clone()];
    let what = words.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Label { what, time: now.as_secs() }
}

/// The exit code of a failure.
pub(super) fn symbol(error: &TransactionError) -> ErrorSymbol {
    match error.class() {
        Class::Permissions => ErrorSymbol::FsPermissions,
        Class::Jail => ErrorSymbol::Jail,
        Class::ContentModified => ErrorSymbol::ContentModified,
        Class::Unsafe => ErrorSymbol::UnsafeEdit,
        Class::Conflict => ErrorSymbol::ApplyConflict,
        Class::NotFound => ErrorSymbol::NotFound,
    }
}

fn refused(settings: &Settings, error: &TransactionError) -> ErrorBody {
    let paths = PathMap::new().workspace(settings.root.clone());
    let symbol = symbol(error);
    let body = ErrorBody::new(symbol, format!("nothing was written: {}", paths.text(&error.to_string())));
    let body = match error {
        TransactionError::Conflict { paths } | TransactionError::Filtered { paths } => {
            let paths = paths.iter().map(ToString::to_string).collect();
            body.data(ErrorData::Files { paths })
        }
        TransactionError::Changed { path } => body.data(ErrorData::Changed { path: path.to_string() }),
        _ => body,
    };
    match hint(error) {
        Some(hint) => body.hint(hint),
        None => body,
    }
}

/// What to do about a failure.
pub(super) fn hint(error: &TransactionError) -> Option<&'static str> {
    Some(match error {
        TransactionError::HardLinked { .. } => "to replace this name only, add --allow-hard-links",
        TransactionError::Outside { .. } => "to write outside of the workspace, add --workspace-jail=false",
        TransactionError::Filtered { .. } => "the filters are --allow and --deny",
        TransactionError::ReadOnly { .. } => "make it writable: chmod u+w FILE",
        TransactionError::CaseOnly { .. } => "rename it in two steps, by way of a third name",
        TransactionError::Busy { .. } => "ask again when it is done",
        TransactionError::NoTransaction { .. } => "`lanser undo --list` tells what there is",
        TransactionError::Conflict { .. } => {
            "take those edits back first; `lanser undo --list` tells what there is"
        }
        TransactionError::Unreadable { .. } => {
            "its files can be had from git; to take back an earlier one, name it: `lanser undo --list`"
        }
        TransactionError::HalfDone { cause, .. } => return hint(cause),
        _ if symbol(error) == ErrorSymbol::ContentModified => "ask again",
        _ => return None,
    })
}

/// Finishes or takes back what an earlier lanser left half done. Blocking. What is wrong with it, the next write tells.
pub(in crate::orchestrator) fn recover(settings: &Settings) {
    match transactions(settings).recover() {
        Ok(Recovery::RolledBack { id, what, foreign }) => {
            let mut text = format!("an interrupted edit was taken back: {id} ({what})");
            if let Some(first) = foreign.first() {
                let more = foreign.len() - 1;
                text = format!("{text}; edited since and left as they are: {first} and {more} more");
            }
            settings.progress.say(&text);
        }
        Ok(Recovery::Finished { id, what }) => {
            settings.progress.say(&format!("an interrupted edit was finished: {id} ({what})"));
        }
        Ok(Recovery::Nothing | Recovery::UnderWay) | Err(_) => {}
    }
}

/// Answers `undo`. Blocking.
pub(in crate::orchestrator) fn undo(settings: &Settings, request: &Request, tape: &Tape) -> Draft {
    let undone = || {
        let filters = Filters::new(&request.options.guards)?;
        undone(settings, request, &filters).map_err(|error| refused(settings, &error))
    };
    let lost = || Err(ErrorBody::new(ErrorSymbol::ReplayMismatch, "what was undone was not recorded"));
    let outcome = tape.ask(Door::Transaction, &("undo", request), undone, lost);
    let nothing = ErrorBody::new(ErrorSymbol::Internal, "");
    let failed = |error| Draft::failed(Some(request.clone()), error);
    match outcome {
        Ok((facts, edits)) => Draft { facts: Some(facts), edits, error: None, ..failed(nothing) },
        Err(error) => failed(error),
    }
}

fn undone(
    settings: &Settings,
    request: &Request,
    filters: &Filters,
) -> Result<(Facts, Option<Edits>), TransactionError> {
    let transactions = transactions(settings);
    let mut facts = Facts::new(Provenance::Syntax);
    let mut edits = None;
    if request.options.list {
        let mut lines: Vec<Transaction> = transactions.list()?.iter().map(told).collect();
        lines.reverse();
        facts.transactions = Some(lines);
    } else {
        let id = request.options.transaction.as_deref();
        let undone =
            transactions.undo_if(id, &label(request), policy(request), &|path| filters.pass(path))?;
        edits = Some(Edits {
            transaction: Some(Transaction {
                id: undone.transaction.id,
                state: TransactionState::Undone,
                what: Some(format!("took back {}", undone.undone)),
                files: u32::try_from(undone.files.len()).unwrap_or(u32::MAX),
            }),
            ..Edits::default()
        });
    }
    Ok((facts, edits))
}

fn told(line: &Line) -> Transaction {
    let state = match (&line.damaged, &line.undone_by) {
        (Some(_), _) => TransactionState::Damaged,
        (None, Some(_)) => TransactionState::Undone,
        (None, None) => TransactionState::Applied,
    };
    Transaction {
        id: line.id.clone(),
        state,
        what: Some(line.damaged.clone().unwrap_or_else(|| line.what.clone())),
        files: u32::try_from(line.files.len()).unwrap_or(u32::MAX),
    }
}
