//! `score`: compares heads with one base, using one warm server.
//!
//! The base is written to a temporary folder; nothing else is modified. A head that only changes the contents of
//! files is shown to that folder's server as open documents. A head that adds or removes files is written to its own
//! folder, with its own server. Every change of a document makes Pyright drop all inferred types, so its diagnostics
//! for a head do not depend on earlier heads.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::analyzed::{add_on_disk, add_without_suppressions};
use super::bundle_states::BundleStates;
use super::editable_installs::reads_live;
use super::measure::{
    DiagnosticsByFile, EditMeasurement, added_suppressions, changed, judge_edit, types_lost,
};
use super::scratch_folder::remove_abandoned;
use super::scratch_workspace::ScratchWorkspace;
use super::source::{SourceContext, SourceError};
pub use super::source::{StateSource, is_revision};
use crate::bundle::portable::PathMap;
use crate::edit::{EditPlan, Original, PlannedChange};
use crate::engine::blocking::{blocking, blocking_within};
use crate::engine::failure::Failure;
use crate::engine::failure::cancelled;
use crate::engine::settings::Settings;
use crate::engine::{python_env, refactor};
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::Preset;
use crate::path::{AbsPath, WorkspacePath};
use crate::reward::environment_pin::{self, ContentChanges};
use crate::reward::episode::Episode;
use crate::reward::judge::JudgedEdit;
use crate::reward::{RewardFormula, scope_pin};
use crate::workspace::file_tree::FileTree;
use crate::workspace::files::{FileKind, Files as _};

/// Names the I/O that may time out before a server is used.
pub(super) const GIT: &str = "git's folder";

/// A named head.
#[derive(Debug, Clone)]
pub struct ScoreHead {
    /// The name given by the caller.
    pub name: String,
    /// The state that it refers to.
    pub source: StateSource,
}

/// Scores heads against a base, one after the other, by the diagnostics of the server and of the analyzers `with`. Each episode is passed to `tell` as soon as it is known. If
/// `interrupted` completes first, the servers are shut down and no more episodes follow.
///
/// # Errors
/// If the base does not exist, no server is available, or the caller interrupted. A head that cannot be loaded is an
/// episode without a score.
pub async fn score(
    settings: &Settings,
    base: &StateSource,
    heads: &[ScoreHead],
    (terms, with): (&RewardFormula, &[AnalyzerKind]),
    interrupted: impl Future<Output = ()>,
    mut tell: impl FnMut(Episode),
) -> Result<(), ErrorBody> {
    let into_body = |failure: Failure| failure.into_body(&PathMap::new().workspace(settings.root.clone()));
    let temp = settings.temp.clone();
    blocking(move || remove_abandoned(&temp)).await.map_err(into_body)?;
    let settings = &with_interpreter(settings).await.map_err(into_body)?;
    let named = std::iter::once(base).chain(heads.iter().map(|head| &head.source));
    let bundle_states = if named.clone().any(|source| matches!(source, StateSource::Bundle(_))) {
        Some(BundleStates::new(settings).await.map_err(into_body)?)
    } else {
        None
    };
    let source_context = SourceContext { root: settings.root.clone(), bundle_states };
    let (context, source) = (source_context.clone(), base.clone());
    let tree = match blocking_within(settings.timeout, GIT, move || source.tree(&context, None))
        .await
        .map_err(into_body)?
    {
        Ok(tree) => tree,
        Err(SourceError::NotLoaded(error)) if matches!(base, StateSource::Bundle(_)) => {
            // A state that cannot be found any more is not an error of the caller, but no head can be scored.
            heads.iter().for_each(|head| tell(Episode::failed(&head.name, error.clone(), None, terms)));
            return Ok(());
        }
        Err(SourceError::NotLoaded(error)) => return Err(error),
        Err(SourceError::DoesNotApply(why)) => return Err(ErrorBody::new(ErrorSymbol::Usage, why)),
    };
    let mut scorer = Scorer::new(settings, source_context, Arc::new(tree), with).await.map_err(into_body)?;
    let mut interrupted = std::pin::pin!(interrupted);
    let scoring = async {
        scorer.scratch.ready().await.map_err(into_body)?;
        let skew = scorer.skew(base);
        for head in heads {
            let episode = match skew.clone().or_else(|| scorer.skew(&head.source)) {
                Some(error) => Episode::failed(&head.name, error, None, terms),
                None => scorer.episode(head, terms).await?,
            };
            settings.progress.done();
            tell(episode);
        }
        Ok(())
    };
    let done = tokio::select! {
        done = scoring => done,
        () = &mut interrupted => Err(cancelled()),
    };
    scorer.scratch.close().await;
    done
}

/// The settings with the interpreter of the workspace's own environment: in a copy elsewhere the search would find
/// another one.
pub(super) async fn with_interpreter(settings: &Settings) -> Result<Settings, Failure> {
    let own = settings.clone();
    let found = blocking(move || python_env::find(&own, &python_env::environment_cache(&own)))
        .await?
        .map_err(Failure::reported)?;
    let interpreter = found.0.map(|python| python.interpreter);
    Ok(Settings { python: interpreter.or_else(|| settings.python.clone()), ..settings.clone() })
}

/// The base, its server, and the base's diagnostics.
struct Scorer<'s> {
    settings: &'s Settings,
    source_context: SourceContext,
    tree: Arc<FileTree>,
    scratch: ScratchWorkspace,
    /// The diagnostics in files of the base.
    known: DiagnosticsByFile,
    /// The analyzers besides the server.
    with: &'s [AnalyzerKind],
}

impl<'s> Scorer<'s> {
    async fn new(
        settings: &'s Settings,
        source_context: SourceContext,
        tree: Arc<FileTree>,
        with: &'s [AnalyzerKind],
    ) -> Result<Self, Failure> {
        let scratch = ScratchWorkspace::new(settings, &tree).await?;
        Ok(Self { settings, source_context, tree, scratch, known: DiagnosticsByFile::new(), with })
    }

    /// An error if the environment of a bundle (server, configuration, interpreter) differs from the one in use.
    fn skew(&self, source: &StateSource) -> Option<ErrorBody> {
        let StateSource::Bundle(bundle) = source else { return None };
        let (then, now) = (bundle.environment.as_ref()?, self.scratch.environment()?);
        let what = environment_pin::difference(then, &now)?;
        let message = format!("{what} differs from that of the bundle {}", bundle.bundle_id);
        let hint = "score in the environment of the bundle, or name the revision that it was computed from as rev:NAME";
        Some(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(hint))
    }

    /// Scores one head. An edit that does not apply is the fault of its author and scores the worst; a server failure
    /// gives no score.
    async fn episode(&mut self, head: &ScoreHead, terms: &RewardFormula) -> Result<Episode, ErrorBody> {
        let (source_context, source, tree) =
            (self.source_context.clone(), head.source.clone(), self.tree.clone());
        let made =
            blocking_within(self.settings.timeout, GIT, move || source.tree(&source_context, Some(&tree)))
                .await;
        let made = made.map_err(|failure| failure.into_body(&PathMap::new()))?;
        let after = match made {
            Ok(after) => after,
            Err(SourceError::NotLoaded(error)) => return Ok(Episode::failed(&head.name, error, None, terms)),
            Err(SourceError::DoesNotApply(why)) => {
                let error = ErrorBody::new(ErrorSymbol::ApplyConflict, why)
                    .hint("edits are applied to the base: name the base that the edit was made for");
                return Ok(Episode::failed(&head.name, error, Some(1.0), terms));
            }
        };
        let live = &self.settings.root;
        let live_tree_warning = |tree: &FileTree| reads_live(&self.scratch.state.inputs, live, tree);
        let warnings: Vec<String> =
            live_tree_warning(&self.tree).or_else(|| live_tree_warning(&after)).into_iter().collect();
        let mut judged = self.judge_tree(&after, terms.preset).await;
        if judged.as_ref().is_err_and(|failure| failure.is_crash() || failure.is_hang()) {
            self.scratch.discard_server();
            judged = self.judge_tree(&after, terms.preset).await;
        }
        Ok(match judged {
            Ok((judged, left_out)) => {
                let episode = Episode::of(&head.name, &judged, left_out, terms);
                Episode { warnings, ..episode }.with_sources(&judged, self.with)
            }
            Err(failure) => {
                self.scratch.discard_server();
                let body = failure.into_body(&self.scratch.state.inputs.paths);
                Episode::failed(&head.name, body, None, terms)
            }
        })
    }

    async fn judge_tree(&mut self, after: &FileTree, preset: Preset) -> Result<(JudgedEdit, usize), Failure> {
        let base = self.tree.clone();
        let mut difference = base.difference(after);
        let files: ContentChanges<'_> = difference
            .iter()
            .map(|(path, (then, now))| {
                (path.as_str(), (then.map(|bytes| bytes.as_slice()), now.map(|bytes| bytes.as_slice())))
            })
            .collect();
        let config_changed = changed(&self.scratch.state.inputs, &files, self.with);
        let mut head = after.clone();
        if preset == Preset::Guarded && config_changed > 0 {
            // The base's configuration is used, so that the head's other changes still get a score.
            for (path, (then, _)) in &difference {
                if !path.is_python() {
                    match then {
                        Some(bytes) => head.files.insert((*path).clone(), (*bytes).clone()),
                        None => head.files.remove(*path),
                    };
                }
            }
        }
        if preset == Preset::Guarded || config_changed == 0 {
            difference.retain(|path, _| path.is_python());
        }
        let in_place =
            difference.iter().all(|(path, (then, now))| path.is_python() && then.is_some() && now.is_some());
        let changes = difference.iter().filter(|(path, _)| path.is_python()).map(|(path, (then, now))| {
            let before = then.map(|bytes| Arc::new(Original { bytes: bytes.to_vec(), executable: false }));
            PlannedChange::of_one((*path).clone(), before, now.map(|bytes| bytes.to_vec()))
        });
        let plan = EditPlan::of(changes.collect());
        if in_place {
            self.judge_in_memory(&plan, &Arc::new(head), config_changed).await
        } else {
            // A changed configuration can affect every file.
            let whole_workspace = preset != Preset::Guarded && config_changed > 0;
            self.judge_in_folder(&plan, Arc::new(head), config_changed, whole_workspace).await
        }
    }

    /// The diagnostics in files of the base.
    async fn before(&mut self, files: &BTreeSet<AbsPath>) -> Result<DiagnosticsByFile, Failure> {
        let there = |path: &&AbsPath| self.scratch.state.files.kind(path) == FileKind::File;
        let unknown: Vec<AbsPath> =
            files.iter().filter(there).filter(|path| !self.known.contains_key(*path)).cloned().collect();
        let mut found = self.scratch.diagnostics(&unknown).await?;
        if !self.with.is_empty() && !unknown.is_empty() {
            let with = self.with;
            found = self
                .scratch
                .with_context(async |cx| {
                    add_on_disk(cx, with, &unknown, &mut found).await?;
                    Ok(found)
                })
                .await?;
        }
        self.known.extend(found);
        Ok(files.iter().filter_map(|path| Some((path.clone(), self.known.get(path)?.clone()))).collect())
    }

    /// Judges a head whose texts are shown to the base's server.
    async fn judge_in_memory(
        &mut self,
        plan: &EditPlan,
        head: &Arc<FileTree>,
        config_changed: u32,
    ) -> Result<(JudgedEdit, usize), Failure> {
        let with = self.with;
        let outcome = self.scratch.with_context(async |cx| {
            let affected = refactor::affected(cx, plan, refactor::EditKind::Any).await?;
            let overlay = refactor::EditOverlay::new(cx, plan);
            let comparison = refactor::Comparison {
                plan,
                overlay: &overlay,
                affected: &affected,
                renamed: &[],
                wants_resolved: true,
            };
            refactor::show_overlay(cx, &overlay)?;
            let mut after = refactor::diagnostics_after(cx, &comparison).await?;
            refactor::hide_overlay(cx, &overlay)?;
            refactor::add_analyses_after(cx, with, &comparison, head, &mut after).await?;
            Ok((affected, after))
        });
        let (affected, after) = outcome.await?;
        let refactor::EditedDiagnostics { found, bare } = after;
        let before = self.before(&affected.files.iter().cloned().collect()).await?;
        let overlay_of = |cx: &crate::engine::context::RequestContext<'_>| {
            let overlay = refactor::EditOverlay::new(cx, plan);
            let measurement = EditMeasurement {
                disk: &cx.state.files,
                overlay: &overlay,
                before: &before,
                after: &found,
                bare: &bare,
                config_changed,
            };
            let inputs = &*cx.state.inputs;
            judge_edit((inputs, inputs), cx.locations.server_unit, &measurement)
        };
        let judged = self.scratch.with_context(async |cx| {
            let mut judged = overlay_of(cx);
            if judged.is_gain() {
                let overlay = refactor::EditOverlay::new(cx, plan);
                refactor::show_overlay(cx, &overlay)?;
                judged.integrity.types_erased += refactor::types_lost(cx, &overlay, &judged.repaired).await?;
                refactor::hide_overlay(cx, &overlay)?;
            }
            Ok(judged)
        });
        Ok((judged.await?, affected.left_out))
    }

    /// Judges a head in its own folder, with its own server.
    async fn judge_in_folder(
        &mut self,
        plan: &EditPlan,
        tree: Arc<FileTree>,
        config_changed: u32,
        whole_workspace: bool,
    ) -> Result<(JudgedEdit, usize), Failure> {
        let mut other = ScratchWorkspace::new(self.settings, &tree).await?;
        let measured = self.compare((&mut other, &tree), plan, config_changed, whole_workspace).await;
        other.close().await;
        measured
    }

    async fn compare(
        &mut self,
        (other, tree): (&mut ScratchWorkspace, &Arc<FileTree>),
        plan: &EditPlan,
        config_changed: u32,
        whole_workspace: bool,
    ) -> Result<(JudgedEdit, usize), Failure> {
        let with = self.with;
        let mut scope: BTreeSet<WorkspacePath> = plan.paths().cloned().collect();
        if whole_workspace {
            scope.extend(self.tree.files.keys().filter(|path| path.is_python()).cloned());
        }
        let mut left_out = 0;
        for scratch in [&mut self.scratch, &mut *other] {
            let affected = scratch
                .with_context(async |cx| refactor::affected(cx, plan, refactor::EditKind::Any).await)
                .await?;
            left_out = left_out.max(affected.left_out);
            let inside = affected.files.iter().filter_map(|path| path.strip_prefix(&scratch.root));
            scope.extend(inside.filter_map(WorkspacePath::new));
        }
        // A file that no server would check is not opened, because an open file is checked in any case.
        let is_seen = |path: &&WorkspacePath| scope_pin::is_checked_name(path.as_str());
        let before: BTreeSet<AbsPath> = scope.iter().map(|path| self.scratch.at(path)).collect();
        let before = self.before(&before).await?;
        let there: Vec<AbsPath> = scope.iter().filter(is_seen).map(|path| other.at(path)).collect();
        let there: Vec<AbsPath> =
            there.into_iter().filter(|path| other.state.files.kind(path) == FileKind::File).collect();
        let mut after = other.diagnostics(&there).await?;
        let touched: Vec<&WorkspacePath> = plan.paths().collect();
        let old: Vec<_> = touched
            .iter()
            .filter_map(|path| self.scratch.state.files.read(&self.scratch.at(path)).ok())
            .collect();
        let new: Vec<_> =
            touched.iter().filter_map(|path| other.state.files.read(&other.at(path)).ok()).collect();
        let hidden = added_suppressions(old.iter().cloned(), new.iter());
        let bare = other
            .with_context(async |cx| {
                let mut bare = refactor::diagnostics_without(cx, cx.locations, &hidden).await?;
                add_on_disk(cx, with, &there, &mut after).await?;
                add_without_suppressions(cx, with, tree, &hidden, cx.locations, &mut bare).await?;
                Ok(bare)
            })
            .await?;
        let unit = other.with_context(async |cx| Ok(cx.locations.server_unit)).await?;
        let measurement = EditMeasurement {
            disk: &self.scratch.state.files,
            overlay: &other.state.files,
            before: &before,
            after: &after,
            bare: &bare,
            config_changed,
        };
        let inputs = (&*self.scratch.state.inputs, &*other.state.inputs);
        let mut judged = judge_edit(inputs, unit, &measurement);
        if judged.is_gain() {
            let lost =
                other.with_context(async |cx| types_lost(cx, &old, &new, &judged.repaired).await).await?;
            judged.integrity.types_erased += lost;
        }
        Ok((judged, left_out))
    }
}
