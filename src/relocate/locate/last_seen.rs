//! Names and snippets that are not where the selector says: the last commit that has them, and what became of them since.

use std::fmt;

use super::history::short;
use super::named::scope_names;
use super::plain_name::qualnames;
use super::snippet::has_context;
use super::{LocateOutcome, LocatedTarget, ResolveContext, ResolvedVia, past};
use crate::path::{AbsPath, WorkspacePath};
use crate::python::not_found::{NotFound, NotFoundReason};
use crate::python::outline::DefinitionKind;
use crate::relocate::THRESHOLD;
use crate::relocate::index::entries;
use crate::selector::doc_version::Revision;
use crate::selector::{AnchorSpec, AstSpec, Construct, DocVersion, NameSpec, PositionSpec, QualName};
use crate::tape::IoKind;
use crate::text::decode_source;
use crate::workspace::files::{ReadError, check_limits};
use crate::workspace::history::last_with;

/// A reason that the history gives has this confidence at most: the selector says nothing about a revision.
const MAX_SCORE: f64 = 0.95;

/// The most files that are searched in each commit.
const MAX_FILES: usize = 32;

/// The most bytes of earlier contents that are parsed.
const MAX_PARSED_BYTES: usize = 24 << 20;

/// A target that a selector may mean, and the files that may have had it.
struct Missing {
    selector: PositionSpec,
    sought: Sought,
    files: Vec<WorkspacePath>,
}

/// What to search earlier contents for.
enum Sought {
    /// A definition, by its chain of names.
    Chain(Vec<String>),
    Snippet(AnchorSpec),
    /// The file itself, for numbers of lines, which mean nothing in another revision than that of the caller.
    File,
}

impl Sought {
    /// Whether a text can have it, before it is parsed.
    fn may_be_in(&self, text: &str) -> bool {
        match self {
            Self::Chain(names) => names.last().is_some_and(|last| text.contains(last.as_str())),
            Self::Snippet(spec) => !spec.snippet.is_empty(),
            Self::File => true,
        }
    }

    fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Chain(names) => {
                let chain = names.join(".");
                entries(text).iter().any(|entry| entry.chain == chain)
            }
            Self::Snippet(spec) => match spec.hash {
                Some(_) => past::snippet_spans(text, spec).iter().any(|span| has_context(text, span, spec)),
                None => past::snippet_spans(text, spec).len() == 1,
            },
            Self::File => true,
        }
    }
}

impl fmt::Display for Sought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(names) => f.write_str(&names.join(".")),
            Self::Snippet(_) => f.write_str("the snippet"),
            Self::File => f.write_str("the file"),
        }
    }
}

/// Locates what the current files do not have, by the last commit that has it. `now` is what the current files alone
/// show: nothing, or a guess.
pub(super) fn by_last_commit(
    cx: &ResolveContext<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    now: LocateOutcome,
) -> LocateOutcome {
    if !is_open(&now) && !is_submodule(selector, &now) {
        return now;
    }
    let missing = missing(cx, selector, path, &now);
    let Some((commit, which)) = last_commit(cx, &missing) else { return now };
    let (Some(revision), Some(missing)) = (Revision::new(&commit), missing.into_iter().nth(which)) else {
        return now;
    };
    let version = DocVersion::Git(revision);
    let mut selector = missing.selector;
    selector.set_doc_version(Some(version.clone()));
    let seen = format!("{} was in {}", missing.sought, short(&commit));
    if let (Sought::File, LocateOutcome::NotFound(near)) = (&missing.sought, &now) {
        let reason = NotFoundReason::Other { reason: format!("{}; {seen}", near.reason) };
        return LocateOutcome::NotFound(NotFound { reason, suggestions: vec![selector.to_string()] });
    }
    let doubtful = |mut located: LocatedTarget| {
        let evidence = &mut located.evidence;
        evidence.certified = false;
        evidence.followed_history = true;
        evidence.score = evidence.score.min(MAX_SCORE);
        evidence.reason = format!("{seen}; {}", evidence.reason);
        located
    };
    match past::locate(cx, &selector, path, &version) {
        // The definition is gone, and its name is that of the submodule.
        LocateOutcome::NotFound(_) | LocateOutcome::Ambiguous(_) if is_submodule(&selector, &now) => now,
        // Below the threshold for two states, which is not that for a product of steps.
        LocateOutcome::Found(located)
            if !located.evidence.followed_history && located.evidence.score < THRESHOLD =>
        {
            LocateOutcome::Ambiguous(vec![doubtful(*located)].into())
        }
        LocateOutcome::Found(located) => LocateOutcome::Found(Box::new(doubtful(*located))),
        LocateOutcome::Ambiguous(mut several) => {
            several.places = several.places.into_iter().map(doubtful).collect();
            LocateOutcome::Ambiguous(several)
        }
        LocateOutcome::NotFound(gone) => {
            let suggestions = match now {
                LocateOutcome::NotFound(near) => near.suggestions,
                _ => gone.suggestions,
            };
            let reason = NotFoundReason::Other { reason: format!("{seen}; {}", gone.reason) };
            LocateOutcome::NotFound(NotFound { reason, suggestions })
        }
        LocateOutcome::Skew(_) => now,
    }
}

/// Whether the current files do not decide: they have nothing, or only something elsewhere.
fn is_open(now: &LocateOutcome) -> bool {
    let is_guess = |located: &LocatedTarget| match located.evidence.via {
        ResolvedVia::Since(_) => true,
        // In another context.
        ResolvedVia::Snippet => located.evidence.features.is_some_and(|features| features.proximity == 0.0),
        _ => false,
    };
    match now {
        LocateOutcome::Found(located) => is_guess(located),
        LocateOutcome::Ambiguous(several) => several.places.iter().all(is_guess),
        LocateOutcome::NotFound(near) => matches!(
            near.reason,
            NotFoundReason::Module { .. }
                | NotFoundReason::Name { .. }
                | NotFoundReason::Local { .. }
                | NotFoundReason::Parameter { .. }
                | NotFoundReason::Unqualified
                | NotFoundReason::Other { .. }
                | NotFoundReason::Unreadable(_)
        ),
        LocateOutcome::Skew(_) => false,
    }
}

/// Whether a name in a module is that of a submodule now: a module that became a package may have had a definition of that name.
fn is_submodule(selector: &PositionSpec, now: &LocateOutcome) -> bool {
    let is_module = |located: &LocatedTarget| located.target.kind == Some(DefinitionKind::Module);
    match now {
        LocateOutcome::Found(located) => matches!(selector, PositionSpec::Symbol(_)) && is_module(located),
        _ => false,
    }
}

fn missing(
    cx: &ResolveContext<'_>,
    selector: &PositionSpec,
    path: Option<&AbsPath>,
    now: &LocateOutcome,
) -> Vec<Missing> {
    match selector {
        PositionSpec::Symbol(spec) => {
            let files = files_of(cx, spec.qualname.module.as_str());
            vec![Missing {
                selector: selector.clone(),
                sought: Sought::Chain(spec.qualname.names().to_vec()),
                files,
            }]
        }
        PositionSpec::Name(spec) => match path {
            Some(path) => {
                let files = cx.relative(path).into_iter().collect();
                vec![Missing {
                    selector: selector.clone(),
                    sought: Sought::Chain(spec.name.names().to_vec()),
                    files,
                }]
            }
            None => splits(cx, spec),
        },
        PositionSpec::Ast(spec) => of_steps(cx, spec).into_iter().collect(),
        PositionSpec::Anchor(spec) => {
            let files = path.and_then(|path| cx.relative(path)).into_iter().collect();
            vec![Missing { selector: selector.clone(), sought: Sought::Snippet(spec.clone()), files }]
        }
        PositionSpec::Cursor(_) | PositionSpec::Range(_) | PositionSpec::Line(_) => {
            let has_no_file = matches!(
                now,
                LocateOutcome::NotFound(NotFound {
                    reason: NotFoundReason::Unreadable(ReadError::Missing { .. }),
                    ..
                })
            );
            let file = path.filter(|_| has_no_file).and_then(|path| cx.relative(path));
            let missing =
                |file| Missing { selector: selector.clone(), sought: Sought::File, files: vec![file] };
            file.map(missing).into_iter().collect()
        }
        PositionSpec::Symid(_) => Vec::new(),
    }
}

/// The definitions that dotted names may mean.
fn splits(cx: &ResolveContext<'_>, spec: &NameSpec) -> Vec<Missing> {
    let missing = |name: QualName| Missing {
        files: files_of(cx, name.module.as_str()),
        sought: Sought::Chain(name.names().to_vec()),
        selector: PositionSpec::Symbol(spec.qualified(name)),
    };
    qualnames(spec).map(missing).collect()
}

/// The definition that the steps of an AST path name, if they name one.
fn of_steps(cx: &ResolveContext<'_>, spec: &AstSpec) -> Option<Missing> {
    let module = spec.path.first().filter(|step| step.construct == Construct::Module)?.name()?;
    let names = scope_names(spec);
    let is_path = crate::path::is_python(module);
    let files = if is_path { WorkspacePath::new(module).into_iter().collect() } else { files_of(cx, module) };
    let selector = PositionSpec::Ast(spec.clone());
    (!names.is_empty()).then_some(Missing { selector, sought: Sought::Chain(names), files })
}

/// The files of the workspace that a module has, or may have had.
fn files_of(cx: &ResolveContext<'_>, module: &str) -> Vec<WorkspacePath> {
    let stem = module.replace('.', "/");
    let now = cx.roots.find(cx.files, module).into_iter().flat_map(|module| [module.source, module.stub]);
    let mut files: Vec<WorkspacePath> = now.flatten().filter_map(|file| cx.relative(&file)).collect();
    let roots =
        cx.roots.all_roots().filter(|root| cx.relative(root).is_some() || *root == cx.snapshot.root());
    for root in roots {
        let names = [format!("{stem}.py"), format!("{stem}/__init__.py")];
        for file in names.iter().filter_map(|name| cx.relative(&root.join(name))) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files
}

/// The newest commit in which a file defines what is missing, and which of `missing` that is.
fn last_commit(cx: &ResolveContext<'_>, missing: &[Missing]) -> Option<(String, usize)> {
    let wanted: Vec<(&WorkspacePath, usize)> = (0..)
        .zip(missing)
        .flat_map(|(which, missing)| missing.files.iter().map(move |file| (file, which)))
        .take(MAX_FILES)
        .collect();
    let mut parsed = 0;
    let mut defines = |at: usize, bytes: &[u8]| {
        let (path, which) = wanted[at];
        if parsed > MAX_PARSED_BYTES || check_limits(&cx.snapshot.absolute(path), bytes).is_err() {
            return false;
        }
        let (sought, text) = (&missing[which].sought, decode_source(bytes.to_vec()).text);
        let may_be = sought.may_be_in(&text);
        parsed += if may_be { text.len() } else { 0 };
        may_be && sought.is_in(&text)
    };
    let find = || {
        let files: Vec<&WorkspacePath> = wanted.iter().map(|(file, _)| *file).collect();
        let (commit, at) = last_with(cx.snapshot.root(), &files, &mut defines)?;
        Some((commit, wanted[at].1))
    };
    if wanted.is_empty() {
        return None;
    }
    let selectors: Vec<String> = missing.iter().map(|missing| missing.selector.to_string()).collect();
    cx.tape.query_rare(IoKind::History, &("last", selectors), find)
}
