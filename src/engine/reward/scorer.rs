//! Scores heads on one server, against the base that it has.
//!
//! A head that only changes the contents of files is shown to the base's server as open documents. A head that adds or removes
//! files is written to its own folder, with its own server. Every change of a document makes Pyright drop all inferred types, so
//! its diagnostics for a head do not depend on earlier heads.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::analyzed::{add_on_disk, add_without_suppressions};
use super::editable_installs::reads_live;
use super::measure::{
    DiagnosticsByFile, EditMeasurement, added_suppressions, changed, judge_edit, types_lost,
};
use super::scratch_workspace::{ScratchTree, ScratchWorkspace};
use super::source::{SourceContext, SourceError, StateSource};
use crate::bundle::portable::PathMap;
use crate::edit::{EditPlan, Original, PlannedChange};
use crate::engine::blocking::blocking_within;
use crate::engine::failure::Failure;
use crate::engine::refactor;
use crate::engine::settings::Settings;
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
use crate::workspace::scripts::may_be_code;

/// How often a head is tried again after its server ended.
const MAX_RESTARTS: u32 = 2;

/// A named head.
#[derive(Debug, Clone)]
pub struct ScoreHead {
    /// The name given by the caller.
    pub name: String,
    /// The state that it refers to.
    pub source: StateSource,
}

/// A state that heads are compared with.
pub(super) struct ScoreBase {
    pub(super) settings: Settings,
    pub(super) tree: Arc<FileTree>,
    pub(super) scratch: Arc<ScratchTree>,
    /// The diagnostics in files of the base, as far as heads needed them.
    pub(super) known: Mutex<DiagnosticsByFile>,
    /// The analyzers besides the server.
    pub(super) with: Vec<AnalyzerKind>,
    /// Whether no more heads are scored against it.
    pub(super) is_retired: AtomicBool,
}

/// A server for a base.
pub(super) struct Scorer {
    pub(super) base: Arc<ScoreBase>,
    pub(super) scratch: ScratchWorkspace,
}

impl Scorer {
    /// Without a server yet.
    pub(super) async fn new(base: Arc<ScoreBase>) -> Result<Self, Failure> {
        let scratch = ScratchWorkspace::on(base.scratch.clone()).await?;
        Ok(Self { base, scratch })
    }

    /// Compares the environment of a bundle (server, configuration, interpreter) with the one in use.
    ///
    /// # Errors
    /// If they differ, or no server can be started.
    pub(super) async fn check_environment(&mut self, source: &StateSource) -> Result<(), ErrorBody> {
        let StateSource::Bundle(bundle) = source else { return Ok(()) };
        let Some(then) = &bundle.environment else { return Ok(()) };
        let ready = self.scratch.ready().await;
        ready.map_err(|failure| failure.into_body(&self.scratch.state.inputs.paths))?;
        let now = self.scratch.environment();
        let Some(what) = now.and_then(|now| environment_pin::difference(then, &now)) else { return Ok(()) };
        let message = format!("{what} differs from that of the bundle {}", bundle.bundle_id);
        let hint = "score in the environment of the bundle, or name the revision that it was computed from as rev:NAME";
        Err(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(hint))
    }

    /// Scores one head. An edit that does not apply is the fault of its author and scores the worst; a server failure
    /// gives no score.
    pub(super) async fn episode(
        &mut self,
        head: &ScoreHead,
        source_context: &SourceContext,
        terms: &RewardFormula,
    ) -> Result<Episode, ErrorBody> {
        let base = self.base.clone();
        let (source_context, source, tree) = (source_context.clone(), head.source.clone(), base.tree.clone());
        let made =
            blocking_within(base.settings.timeout, move || source.tree(&source_context, Some(&tree))).await;
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
        let live = &base.settings.root;
        let live_tree_warning = |tree: &FileTree| reads_live(&self.scratch.state.inputs, live, tree);
        let warnings: Vec<String> =
            live_tree_warning(&base.tree).or_else(|| live_tree_warning(&after)).into_iter().collect();
        let mut judged = self.judge_tree(&after, terms.preset).await;
        for restart in 1..=MAX_RESTARTS {
            // A second server that does not respond in time would not either.
            let again = |failure: &Failure| failure.is_crash() || failure.is_hang() && restart == 1;
            if !judged.as_ref().is_err_and(again) {
                break;
            }
            self.scratch.discard_server();
            judged = self.judge_tree(&after, terms.preset).await;
        }
        Ok(match judged {
            Ok((judged, left_out)) => {
                let episode = Episode::of(&head.name, &judged, left_out, terms);
                Episode { warnings, ..episode }.with_sources(&judged, &base.with)
            }
            Err(failure) => {
                self.scratch.discard_server();
                let body = failure.into_body(&self.scratch.state.inputs.paths);
                Episode::failed(&head.name, body, None, terms)
            }
        })
    }

    async fn judge_tree(&mut self, after: &FileTree, preset: Preset) -> Result<(JudgedEdit, usize), Failure> {
        let base = self.base.clone();
        let mut difference = base.tree.difference(after);
        let files: ContentChanges<'_> = difference
            .iter()
            .map(|(path, (then, now))| {
                (path.as_str(), (then.map(|bytes| bytes.as_slice()), now.map(|bytes| bytes.as_slice())))
            })
            .collect();
        let config_changed = changed(&self.scratch.state.inputs, &files, &base.with);
        let mut head = after.clone();
        if preset == Preset::Guarded && config_changed > 0 {
            // The base's configuration is used, so that the head's other changes still get a score.
            for (path, (then, _)) in &difference {
                if !may_be_code(path) {
                    match then {
                        Some(bytes) => head.files.insert((*path).clone(), (*bytes).clone()),
                        None => head.files.remove(*path),
                    };
                }
            }
        }
        if preset == Preset::Guarded || config_changed == 0 {
            difference.retain(|path, _| may_be_code(path));
        }
        let in_place =
            difference.iter().all(|(path, (then, now))| may_be_code(path) && then.is_some() && now.is_some());
        let changes = difference.iter().filter(|(path, _)| may_be_code(path)).map(|(path, (then, now))| {
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
        let base = self.base.clone();
        let there = |path: &&AbsPath| self.scratch.state.files.kind(path) == FileKind::File;
        let unknown: Vec<AbsPath> = {
            let known = base.known.lock().unwrap_or_else(PoisonError::into_inner);
            files.iter().filter(there).filter(|path| !known.contains_key(*path)).cloned().collect()
        };
        let mut found = self.scratch.diagnostics(&unknown).await?;
        if !base.with.is_empty() && !unknown.is_empty() {
            found = self
                .scratch
                .with_context(async |cx| {
                    add_on_disk(cx, &base.with, &unknown, &mut found).await?;
                    Ok(found)
                })
                .await?;
        }
        let mut known = base.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(found);
        Ok(files.iter().filter_map(|path| Some((path.clone(), known.get(path)?.clone()))).collect())
    }

    /// Judges a head whose texts are shown to the base's server.
    async fn judge_in_memory(
        &mut self,
        plan: &EditPlan,
        head: &Arc<FileTree>,
        config_changed: u32,
    ) -> Result<(JudgedEdit, usize), Failure> {
        let base = self.base.clone();
        let with = &base.with;
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
        let mut other = ScratchWorkspace::new(&self.base.settings, &tree).await?;
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
        let base = self.base.clone();
        let with = &base.with;
        let mut scope: BTreeSet<WorkspacePath> = plan.paths().cloned().collect();
        if whole_workspace {
            scope.extend(base.tree.files.keys().filter(|path| may_be_code(path)).cloned());
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
