//! Writes planned and checked edits, and undoes them: the only module that changes files of the workspace.

use std::time::{SystemTime, UNIX_EPOCH};

use super::filters::Filters;
use crate::bundle::page::page;
use crate::bundle::portable::PathMap;
use crate::bundle::seal::BundleDraft;
use crate::digest::Digest;
use crate::edit::EditPlan;
use crate::engine::failure::cursor_error;
use crate::engine::settings::Settings;
use crate::model::edits::{Edits, Transaction, TransactionState};
use crate::model::error::{ErrorBody, ErrorData, ErrorSymbol};
use crate::model::facts::{Facts, Provenance};
use crate::model::request::Request;
use crate::tape::{IoKind, Tape};
use crate::workspace::transaction::{
    Applied, Change, FailureClass, Label, OperationLogEntry, Policy, Recovery, Staged, TransactionError,
};

/// The file operations of a plan.
pub(super) fn changes(plan: &EditPlan) -> Vec<Change> {
    let change = |change: &crate::edit::PlannedChange| {
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
/// When nothing was written, with the reason.
pub(in crate::engine) fn commit(
    settings: &Settings,
    request: &Request,
    plan: &EditPlan,
    tape: &Tape,
) -> Result<Transaction, ErrorBody> {
    let paths: Vec<_> = plan.paths().collect();
    let unrecorded =
        || Err(ErrorBody::new(ErrorSymbol::ReplayMismatch, "the trace does not record what was written"));
    tape.query(IoKind::Transaction, &("write", paths), || write(settings, request, plan), unrecorded)
}

fn write(settings: &Settings, request: &Request, plan: &EditPlan) -> Result<Transaction, ErrorBody> {
    write_changes(settings, changes(plan), policy(request), description(request))
}

/// Writes files in one transaction, which `undo` undoes. Nothing outside of the workspace is written, also through links, and
/// nothing in a git folder. `what` describes it in the list of transactions. Blocking.
///
/// # Errors
/// When nothing was written, with the reason.
pub fn write_files(settings: &Settings, what: &str, changes: Vec<Change>) -> Result<Transaction, ErrorBody> {
    write_changes(settings, changes, Policy::default(), what.to_owned())
}

fn write_changes(
    settings: &Settings,
    changes: Vec<Change>,
    policy: Policy,
    what: String,
) -> Result<Transaction, ErrorBody> {
    let transactions = settings.transactions();
    let label = label(what);
    let done = transactions
        .plan(changes, policy)
        .and_then(|planned| planned.stage(&label))
        .and_then(Staged::apply)
        .and_then(Applied::commit)
        .map_err(|error| error_body(settings, &error))?;
    let files = u32::try_from(done.files).unwrap_or(u32::MAX);
    Ok(Transaction { id: done.id, state: TransactionState::Applied, what: Some(label.what), files })
}

/// The label of a transaction that is written now.
fn label(what: String) -> Label {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Label { what, time: now.as_secs() }
}

/// The description of a transaction: the request.
fn description(request: &Request) -> String {
    let about = request.selector.as_ref().map(ToString::to_string);
    let parts =
        [Some(request.cmd.as_str().to_owned()), about, request.new_name.clone(), request.options.run.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The error symbol of a failure.
pub(super) fn symbol(error: &TransactionError) -> ErrorSymbol {
    match error.class() {
        FailureClass::Permissions => ErrorSymbol::FsPermissions,
        FailureClass::Jail => ErrorSymbol::Jail,
        FailureClass::ContentModified => ErrorSymbol::ContentModified,
        FailureClass::Unsafe => ErrorSymbol::UnsafeEdit,
        FailureClass::Conflict => ErrorSymbol::ApplyConflict,
        FailureClass::NotFound => ErrorSymbol::NotFound,
    }
}

fn error_body(settings: &Settings, error: &TransactionError) -> ErrorBody {
    let paths = PathMap::new().workspace(settings.root.clone());
    let symbol = symbol(error);
    let message = paths.text(&error.to_string());
    let body = match error {
        TransactionError::NoTransaction { .. } => ErrorBody::new(symbol, message),
        _ => ErrorBody::new(symbol, format!("nothing was written: {message}")),
    };
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

/// What the user can do about a failure.
pub(super) fn hint(error: &TransactionError) -> Option<&'static str> {
    Some(match error {
        TransactionError::HardLinked { .. } => "to replace this name only, add --allow-hard-links",
        TransactionError::Outside { .. } => "to write outside of the workspace, add --workspace-jail=false",
        TransactionError::Filtered { .. } => "adjust --allow and --deny",
        TransactionError::ReadOnly { .. } => "make it writable: chmod u+w FILE",
        TransactionError::CaseOnly { .. } => "rename it in two steps, through a third name",
        TransactionError::Busy { .. } => "run the command again when the other one has finished",
        TransactionError::NoTransaction { id: Some(_) } => "`lanser undo --list` lists the transactions",
        TransactionError::NoTransaction { id: None } => {
            "`lanser undo --list` lists the transactions, and `lanser undo ID` undoes one"
        }
        TransactionError::AlreadyUndone { .. } => {
            "`lanser undo` with the id of the undo makes the edit again"
        }
        TransactionError::AlreadyRestored { .. } => {
            "to undo an earlier transaction, name its id from `lanser undo --list`"
        }
        TransactionError::Conflict { .. } => {
            "undo those edits first; `lanser undo --list` lists the ones that lanser made"
        }
        TransactionError::Unreadable { .. } => {
            "restore its files from git; to undo an earlier transaction, name its id from `lanser undo --list`"
        }
        TransactionError::HalfDone { cause, .. } => return hint(cause),
        _ if symbol(error) == ErrorSymbol::ContentModified => "run the command again",
        _ => return None,
    })
}

/// Completes or rolls back a transaction that another process left unfinished. Blocking. Errors are ignored here; the
/// next write reports them.
pub(in crate::engine) fn recover(settings: &Settings) {
    match settings.transactions().recover() {
        Ok(Recovery::RolledBack { id, what, foreign }) => {
            let mut text = format!("an interrupted edit was rolled back: {id} ({what})");
            if let Some(first) = foreign.first() {
                let files = match foreign.len() - 1 {
                    0 => first.to_string(),
                    more => format!("{first} and {more} more"),
                };
                text = format!("{text}; edited since, and therefore not restored: {files}");
            }
            settings.progress.notify(&text);
        }
        Ok(Recovery::Finished { id, what }) => {
            settings.progress.notify(&format!("an interrupted edit was completed: {id} ({what})"));
        }
        Ok(Recovery::Nothing | Recovery::UnderWay) | Err(_) => {}
    }
}

/// Answers `undo`. Blocking.
pub(in crate::engine) fn undo(settings: &Settings, request: &Request, tape: &Tape) -> BundleDraft {
    let run = || {
        let filters = Filters::new(&request.options.guards)?;
        undo_or_list(settings, request, &filters).map_err(|error| error_body(settings, &error))
    };
    let unrecorded =
        || Err(ErrorBody::new(ErrorSymbol::ReplayMismatch, "the trace does not record what was undone"));
    let outcome = tape.query(IoKind::Transaction, &("undo", request), run, unrecorded);
    let nothing = ErrorBody::new(ErrorSymbol::Internal, "");
    let failed = |error| BundleDraft::failed(Some(request.clone()), error);
    let (mut facts, edits) = match outcome {
        Ok(done) => done,
        Err(error) => return failed(error),
    };
    let (limit, cursor) = (request.options.limit, request.options.cursor.as_deref());
    let mut limits = None;
    // Without a limit the list is whole, and its bundle as it always was.
    if let Some(lines) = facts.transactions.take_if(|_| limit.is_some() || cursor.is_some()) {
        match page(lines, limit, cursor) {
            Ok((part, found)) => (facts.transactions, limits) = (Some(part), Some(found)),
            Err(error) => return failed(cursor_error(&error)),
        }
    }
    BundleDraft { facts: Some(facts), edits, limits, error: None, ..failed(nothing) }
}

fn undo_or_list(
    settings: &Settings,
    request: &Request,
    filters: &Filters,
) -> Result<(Facts, Option<Edits>), TransactionError> {
    let transactions = settings.transactions();
    let mut facts = Facts::new(Provenance::Syntax);
    let mut edits = None;
    if request.options.list {
        let log = transactions.list()?;
        let mut lines: Vec<Transaction> = log.iter().map(|line| listed(line, &log)).collect();
        lines.reverse();
        facts.transactions = Some(lines);
    } else {
        let id = request.options.transaction.as_deref();
        let undone = transactions
            .undo_if(id, &label(description(request)), policy(request), &|path| filters.allows(path))?;
        edits = Some(Edits {
            transaction: Some(Transaction {
                id: undone.transaction.id,
                state: TransactionState::Undone,
                what: Some(format!("undid {}", undone.undone)),
                files: u32::try_from(undone.files.len()).unwrap_or(u32::MAX),
            }),
            ..Edits::default()
        });
    }
    Ok((facts, edits))
}

fn listed(line: &OperationLogEntry, log: &[OperationLogEntry]) -> Transaction {
    let state = match (&line.damaged, &line.undone_by) {
        (Some(_), _) => TransactionState::Damaged,
        (None, Some(_)) => TransactionState::Undone,
        (None, None) => TransactionState::Applied,
    };
    let what = match (&line.damaged, &line.undoes) {
        (Some(damage), _) => damage.clone(),
        (None, None) => line.what.clone(),
        (None, Some(id)) => match log.iter().find(|other| other.id == *id) {
            Some(other) => format!("undo {id}: {}", other.what),
            None => format!("undo {id}"),
        },
    };
    Transaction {
        id: line.id.clone(),
        state,
        what: Some(what),
        files: u32::try_from(line.files.len()).unwrap_or(u32::MAX),
    }
}
