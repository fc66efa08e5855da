//! Selectors without a version: only their own text is known.

use lanser::internal::path::{AbsPath, WorkspacePath};
use lanser::internal::python::modules::ImportRoots;
use lanser::internal::python::outline::Outline;
use lanser::internal::relocate::index::{Index, entry_at};
use lanser::internal::relocate::lazy_index::LazyIndex;
use lanser::internal::relocate::locate::{self, ResolveContext, locate};
use lanser::internal::relocate::score::THRESHOLD;
use lanser::internal::relocate::selector_forms;
use lanser::internal::tape::Tape;
use lanser::internal::workspace::files::{DiskFiles, Files};
use lanser::internal::workspace::server_config::ServerConfig;
use lanser::internal::workspace::snapshot::{ChangeDetection, Snapshot};
use lanser::selector::{
    AnchorSpec, AstStep, Construct, ModuleName, PositionSpec, QualName, Role, SymbolSpec, SymidSpec,
};

use crate::answers::{Answer, index};
use crate::cases::{Case, Tree, Truth};
use crate::{Table, record};

/// The selector forms.
pub(crate) const FORMS: [&str; 4] = ["anchor", "py", "ast", "sym"];

/// A tree on disk, and the context in which selectors are resolved there.
struct Place {
    folder: tempfile::TempDir,
    root: AbsPath,
}

impl Place {
    fn of(tree: &Tree) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        for (path, document) in &tree.files {
            let path = folder.path().join(path);
            let _ = path.parent().map(std::fs::create_dir_all);
            let _ = std::fs::write(path, &document.text);
        }
        let root = AbsPath::new(folder.path()).ok()?;
        Some(Self { folder, root })
    }

    /// Calls `ask` with a function that resolves selectors there.
    fn ask<R>(&self, ask: impl FnOnce(&dyn Fn(&PositionSpec) -> locate::LocateOutcome) -> R) -> R {
        let files = DiskFiles::new();
        let config = ServerConfig::default();
        let roots_of = |files: &dyn Files| ImportRoots::new(files, &self.root, &config, None, None);
        let roots = roots_of(&files);
        let snapshot = Snapshot::take(&self.root, None, ChangeDetection::Content, 2);
        let index = LazyIndex::default();
        let world = ResolveContext {
            files: &files,
            roots: &roots,
            roots_of: &roots_of,
            snapshot: &snapshot,
            index: &index,
            contents: None,
            transactions: None,
            trails: None,
            cache_scope: "",
            threads: 2,
            tape: &Tape::off(),
        };
        ask(&|spec| {
            let path = spec.uri().and_then(|uri| uri.workspace_path()).map(|path| snapshot.absolute(path));
            locate(&world, spec, path.as_ref())
        })
    }
}

/// Makes selectors of every form in the old state and resolves them in the new one. Selectors that do not resolve to their case in
/// the old state are skipped, such as the path of a call for a line in the middle of it.
pub(crate) fn run(old: &Tree, new: &Tree, cases: &[Case], table: &mut Table, show: Option<&str>) {
    let (Some(then), Some(now)) = (Place::of(old), Place::of(new)) else { return };
    let before = index(old);
    let has_src = now.folder.path().join("src").is_dir();
    let made: Vec<Vec<(&'static str, PositionSpec)>> = then.ask(|locate| {
        let means = |case: &Case, spec: &PositionSpec| {
            let there = Case { truth: Truth::At(case.path.clone(), case.span.start), ..case.clone() };
            there.judge(old, &answer(&first(locate(spec)), &then.root, spec)) == "right"
        };
        let of = |case| selectors(old, &before, case, has_src).into_iter();
        cases.iter().map(|case| of(case).filter(|(_, spec)| means(case, spec)).collect()).collect()
    });
    now.ask(|locate| {
        for (case, specs) in cases.iter().zip(made) {
            for (way, spec) in specs {
                record(table, new, case, way, &answer(&locate(&spec), &now.root, &spec), show);
            }
        }
    });
}

/// The best of several candidates: the meaning of an ordinal when it was made.
fn first(answer: locate::LocateOutcome) -> locate::LocateOutcome {
    match answer {
        locate::LocateOutcome::Ambiguous(mut several)
            if several.places.first().is_some_and(|one| one.evidence.score < THRESHOLD) =>
        {
            locate::LocateOutcome::Found(Box::new(several.places.swap_remove(0)))
        }
        answer => answer,
    }
}

fn answer(answer: &locate::LocateOutcome, root: &AbsPath, spec: &PositionSpec) -> Answer {
    match answer {
        locate::LocateOutcome::Found(located) => {
            let path = located.target.document.path.strip_prefix(root).unwrap_or_default().to_owned();
            let evidence = &located.evidence;
            let told =
                format!("{spec} → {path} {:.3} {:?} {}", evidence.score, evidence.features, evidence.reason);
            // A statement is located at its beginning, a definition at its name.
            let certified = evidence.certified;
            Answer { place: Some((path, located.target.span.start)), ambiguous: false, certified, told }
        }
        locate::LocateOutcome::Ambiguous(all) => Answer {
            place: None,
            ambiguous: true,
            certified: false,
            told: format!(
                "{spec} → {} candidates, {:?}",
                all.total,
                all.places.first().map(|one| (one.evidence.score, one.evidence.features))
            ),
        },
        locate::LocateOutcome::NotFound(near) => Answer {
            place: None,
            ambiguous: false,
            certified: false,
            told: format!("{spec} → {}", near.reason),
        },
        locate::LocateOutcome::Skew(reason) => {
            Answer { place: None, ambiguous: true, certified: false, told: reason.clone() }
        }
    }
}

/// The selectors of a case, as `locate --as` would have printed them in the old state.
fn selectors(old: &Tree, before: &Index, case: &Case, has_src: bool) -> Vec<(&'static str, PositionSpec)> {
    let mut found = Vec::new();
    let Some(text) = old.text(&case.path) else { return found };
    let Some(path) = WorkspacePath::new(&case.path) else { return found };
    if let Some((snippet, ctx, hash)) = selector_forms::snippet(text, &case.span) {
        let uri = lanser::internal::path::DocUri::Workspace(path.clone());
        let anchor = AnchorSpec { uri, snippet, ctx, hash: Some(hash), doc_version: None };
        found.push(("anchor", PositionSpec::Anchor(anchor)));
    }
    let stem = case.path.trim_end_matches(".py").trim_end_matches("/__init__");
    let stem = if has_src { stem.trim_start_matches("src/") } else { stem };
    let module = stem.replace('/', ".");
    let outline = Outline::parse(text);
    if let Some(at) = outline.definitions.iter().position(|definition| definition.name_span == case.span) {
        if let Some(qualname) =
            ModuleName::new(&module).and_then(|module| QualName::new(module, outline.names(at)))
        {
            let symbol =
                SymbolSpec { qualname, param: None, role: Role::Def, overload: None, doc_version: None };
            found.push(("py", PositionSpec::Symbol(symbol)));
        }
        let chain = outline.names(at).join(".");
        if let Some(entry) = entry_at(before.file(&path), case.span.start, &chain) {
            found.push((
                "sym",
                PositionSpec::Symid(SymidSpec { id: before.id(&path, entry), doc_version: None }),
            ));
        }
    }
    if let Some(mut ast) = selector_forms::ast(text, &case.span, &module) {
        // For a definition, the whole is kept.
        if ast
            .path
            .last()
            .is_some_and(|step| step.construct == Construct::Name && AstStep::name(step).is_none())
        {
            ast.path.pop();
        }
        // A position inside a literal has no construct of its own: the path selects the whole literal.
        let inside = ast.path.last().is_some_and(|step| {
            matches!(step.construct, Construct::Doc | Construct::String | Construct::Class | Construct::Def)
                && !outline.definitions.iter().any(|definition| definition.name_span == case.span)
        });
        if !inside {
            found.push(("ast", PositionSpec::Ast(ast)));
        }
    }
    found
}
