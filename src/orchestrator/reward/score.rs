//! `score`: what heads are worth against one base, by one warm server.
//!
//! The base is laid out in a temporary folder; nothing else is touched. A head that only gives files other contents is shown to
//! the server that stands there as open documents. One with files that come or go is laid out as well, for a server of its
//! own. Every change of a document makes Pyright forget all types, so what it says of a head does not hang on the heads before it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::bench::Bench;
use super::editable::reads_live;
use super::folder::sweep;
use super::measure::{Found, Shown, changed, hidden_by, of_edit, types_lost, without};
use super::origin::Origins;
use super::source::{Places, Wrong};
pub use super::source::{Source, is_revision};
use crate::bundle::portable::PathMap;
use crate::edit::{FileChange, Original, Plan};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::Preset;
use crate::orchestrator::failure::Failure;
use crate::orchestrator::{Settings, blocking, blocking_within, cancelled, diagnose, python, refactor};
use crate::path::{AbsPath, WorkspacePath};
use crate::reward::environment_pin::{self, Changed};
use crate::reward::episode::Episode;
use crate::reward::judge::Judged;
use crate::reward::{Terms, scope_pin};
use crate::workspace::files::{FileKind, Files as _};
use crate::workspace::tree::FileTree;

/// What may keep a score waiting before any server is asked.
const GIT: &str = "git's folder";

/// A head with its name.
#[derive(Debug, Clone)]
pub struct Scored {
    /// As it was named.
    pub name: String,
    /// What it is.
    pub source: Source,
}

/// Scores heads against a base, one after the other; each is told as soon as it is known. When `interrupted` ends first, the
/// servers are ended in order, and nothing more is told.
///
/// # Errors
/// When there is no such base, no server, or the caller interrupted. A head that cannot be had is an episode without a score.
pub async fn score(
    settings: &Settings,
    base: &Source,
    heads: &[Scored],
    terms: &Terms,
    interrupted: impl Future<Output = ()>,
    mut tell: impl FnMut(Episode),
) -> Result<(), ErrorBody> {
    let told = |failure: Failure| failure.into_body(&PathMap::new().workspace(settings.root.clone()));
    let temp = settings.temp.clone();
    blocking(move || sweep(&temp)).await.map_err(told)?;
    let settings = &with_interpreter(settings).await.map_err(told)?;
    let named = std::iter::once(base).chain(heads.iter().map(|head| &head.source));
    let origins = if named.clone().any(|source| matches!(source, Source::Bundle(_))) {
        Some(Origins::new(settings).await.map_err(told)?)
    } else {
        None
    };
    let places = Places { root: settings.root.clone(), origins };
    let (looked_in, source) = (places.clone(), base.clone());
    let tree = match blocking_within(settings.timeout, GIT, move || source.tree(&looked_in, None))
        .await
        .map_err(told)?
    {
        Ok(tree) => tree,
        Err(Wrong::Named(error)) if matches!(base, Source::Bundle(_)) => {
            // It is no mistake of the caller's that nobody knows the state any more: nothing honest can be said of any head.
            heads.iter().for_each(|head| tell(Episode::failed(&head.name, error.clone(), None, terms)));
            return Ok(());
        }
        Err(Wrong::Named(error)) => return Err(error),
        Err(Wrong::Unfit(why)) => return Err(ErrorBody::new(ErrorSymbol::Usage, why)),
    };
    let mut judge = Judge::new(settings, places, Arc::new(tree)).await.map_err(told)?;
    let mut interrupted = std::pin::pin!(interrupted);
    let scoring = async {
        judge.bench.ready().await.map_err(told)?;
        let skew = judge.skew(base);
        for head in heads {
            let episode = match skew.clone().or_else(|| judge.skew(&head.source)) {
                Some(error) => Episode::failed(&head.name, error, None, terms),
                None => judge.episode(head, terms).await?,
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
    judge.bench.close().await;
    done
}

/// The same settings with the interpreter that the workspace's own environment has: a copy elsewhere would find another one.
pub(super) async fn with_interpreter(settings: &Settings) -> Result<Settings, Failure> {
    let own = settings.clone();
    let found = blocking(move || python::find(&own, &python::memory(&own))).await?.map_err(Failure::told)?;
    let interpreter = found.0.map(|python| python.interpreter);
    Ok(Settings { python: interpreter.or_else(|| settings.python.clone()), ..settings.clone() })
}

/// The base with its server, and what that has said of it.
struct Judge<'s> {
    settings: &'s Settings,
    places: Places,
    tree: Arc<FileTree>,
    bench: Bench,
    /// What the server finds in files of the base.
    known: Found,
}

impl<'s> Judge<'s> {
    async fn new(settings: &'s Settings, places: Places, tree: Arc<FileTree>) -> Result<Self, Failure> {
        let bench = Bench::new(settings, &tree).await?;
        Ok(Self { settings, places, tree, bench, known: Found::new() })
    }

    /// Why what a bundle recorded is not what would be measured here: another server, configuration or interpreter.
    fn skew(&self, source: &Source) -> Option<ErrorBody> {
        let Source::Bundle(bundle) = source else { return None };
        let (then, now) = (bundle.environment.as_ref()?, self.bench.environment()?);
        let what = environment_pin::difference(then, &now)?;
        let message = format!("{what} is another one than that of the bundle {}", bundle.bundle_id);
        let hint =
            "score in the environment of the bundle, or name the revision that it was made from as rev:NAME";
        Some(ErrorBody::new(ErrorSymbol::VersionSkew, message).hint(hint))
    }

    /// The score of one head. That an edit does not fit is the fault of who made it; a server that fails is nobody's.
    async fn episode(&mut self, head: &Scored, terms: &Terms) -> Result<Episode, ErrorBody> {
        let (places, source, tree) = (self.places.clone(), head.source.clone(), self.tree.clone());
        let made =
            blocking_within(self.settings.timeout, GIT, move || source.tree(&places, Some(&tree))).await;
        let made = made.map_err(|failure| failure.into_body(&PathMap::new()))?;
        let after = match made {
            Ok(after) => after,
            Err(Wrong::Named(error)) => return Ok(Episode::failed(&head.name, error, None, terms)),
            Err(Wrong::Unfit(why)) => {
                let error = ErrorBody::new(ErrorSymbol::ApplyConflict, why)
                    .hint("an edit is made to the base: name the base that it was made for");
                return Ok(Episode::failed(&head.name, error, Some(1.0), terms));
            }
        };
        let live = &self.settings.root;
        let looks_past = |tree: &FileTree| reads_live(&self.bench.state.ground, live, tree);
        let warnings: Vec<String> =
            looks_past(&self.tree).or_else(|| looks_past(&after)).into_iter().collect();
        let mut judged = self.judged(&after, terms.preset).await;
        if judged.as_ref().is_err_and(|failure| failure.is_crash() || failure.is_hang()) {
            self.bench.give_up();
            judged = self.judged(&after, terms.preset).await;
        }
        Ok(match judged {
            Ok((judged, left_out)) => {
                Episode { warnings, ..Episode::of(&head.name, &judged, left_out, terms) }
            }
            Err(failure) => {
                self.bench.give_up();
                let body = failure.into_body(&self.bench.state.ground.paths);
                Episode::failed(&head.name, body, None, terms)
            }
        })
    }

    async fn judged(&mut self, after: &FileTree, preset: Preset) -> Result<(Judged, usize), Failure> {
        let base = self.tree.clone();
        let mut difference = base.difference(after);
        let files: Changed<'_> = difference
            .iter()
            .map(|(path, (then, now))| {
                (path.as_str(), (then.map(|bytes| bytes.as_slice()), now.map(|bytes| bytes.as_slice())))
            })
            .collect();
        let config_changed = changed(&self.bench.state.ground, &files);
        let mut head = after.clone();
        if preset == Preset::Guarded && config_changed > 0 {
            // It is looked at as the base is: what the head does besides is still to be told.
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
            FileChange::of_one((*path).clone(), before, now.map(|bytes| bytes.to_vec()))
        });
        let plan = Plan::of(changes.collect());
        if in_place {
            self.shown(&plan, config_changed).await
        } else {
            // Another configuration can have consequences everywhere.
            let everywhere = preset != Preset::Guarded && config_changed > 0;
            self.laid_out(&plan, Arc::new(head), config_changed, everywhere).await
        }
    }

    /// What the server finds in files of the base.
    async fn before(&mut self, files: &BTreeSet<AbsPath>) -> Result<Found, Failure> {
        let there = |path: &&AbsPath| self.bench.state.files.kind(path) == FileKind::File;
        let unknown: Vec<AbsPath> =
            files.iter().filter(there).filter(|path| !self.known.contains_key(*path)).cloned().collect();
        let found = self.bench.diagnostics(&unknown).await?;
        self.known.extend(found);
        Ok(files.iter().filter_map(|path| Some((path.clone(), self.known.get(path)?.clone()))).collect())
    }

    /// Judges a head of which the server is shown the texts.
    async fn shown(&mut self, plan: &Plan, config_changed: u32) -> Result<(Judged, usize), Failure> {
        let asked = self.bench.asking(async |asking| {
            let affected = refactor::affected(asking, plan, &[]).await?;
            let overlay = refactor::Overlay::new(asking, plan);
            let comparison = refactor::Comparison {
                plan,
                overlay: &overlay,
                affected: &affected,
                renamed: None,
                wants_resolved: true,
            };
            refactor::present(asking, &overlay)?;
            let after = refactor::after(asking, &comparison).await?;
            refactor::hide(asking, &overlay)?;
            Ok((affected, after))
        });
        let (affected, after) = asked.await?;
        let refactor::After { found, bare } = after;
        let before = self.before(&affected.files.iter().cloned().collect()).await?;
        let overlay_of = |asking: &crate::orchestrator::ask::Asking<'_>| {
            let overlay = refactor::Overlay::new(asking, plan);
            let shown = Shown {
                disk: &asking.state.files,
                overlay: &overlay,
                before: &before,
                after: &found,
                bare: &bare,
                config_changed,
            };
            let ground = &*asking.state.ground;
            of_edit((ground, ground), asking.places.server_unit, &shown)
        };
        let judged = self.bench.asking(async |asking| {
            let mut judged = overlay_of(asking);
            if judged.is_gain() {
                let overlay = refactor::Overlay::new(asking, plan);
                refactor::present(asking, &overlay)?;
                judged.integrity.any_casts_added += refactor::types_lost(asking, &overlay).await?;
                refactor::hide(asking, &overlay)?;
            }
            Ok(judged)
        });
        Ok((judged.await?, affected.left_out))
    }

    /// Judges a head that is laid out for a server of its own.
    async fn laid_out(
        &mut self,
        plan: &Plan,
        tree: Arc<FileTree>,
        config_changed: u32,
        everywhere: bool,
    ) -> Result<(Judged, usize), Failure> {
        let mut other = Bench::new(self.settings, &tree).await?;
        let measured = self.compared(&mut other, plan, config_changed, everywhere).await;
        other.close().await;
        measured
    }

    async fn compared(
        &mut self,
        other: &mut Bench,
        plan: &Plan,
        config_changed: u32,
        everywhere: bool,
    ) -> Result<(Judged, usize), Failure> {
        let mut scope: BTreeSet<WorkspacePath> = plan.paths().cloned().collect();
        if everywhere {
            scope.extend(self.tree.files.keys().filter(|path| path.is_python()).cloned());
        }
        let mut left_out = 0;
        for bench in [&mut self.bench, &mut *other] {
            let affected = bench.asking(async |asking| refactor::affected(asking, plan, &[]).await).await?;
            left_out = left_out.max(affected.left_out);
            let inside = affected.files.iter().filter_map(|path| path.strip_prefix(&bench.root));
            scope.extend(inside.filter_map(WorkspacePath::new));
        }
        // What no server would look at is not opened: it would be checked all the same.
        let is_seen = |path: &&WorkspacePath| scope_pin::is_checked_name(path.as_str());
        let before: BTreeSet<AbsPath> = scope.iter().map(|path| self.bench.at(path)).collect();
        let before = self.before(&before).await?;
        let there: Vec<AbsPath> = scope.iter().filter(is_seen).map(|path| other.at(path)).collect();
        let there: Vec<AbsPath> =
            there.into_iter().filter(|path| other.state.files.kind(path) == FileKind::File).collect();
        let after = other.diagnostics(&there).await?;
        let touched: Vec<&WorkspacePath> = plan.paths().collect();
        let old: Vec<_> = touched
            .iter()
            .filter_map(|path| self.bench.state.files.read(&self.bench.at(path)).ok())
            .collect();
        let new: Vec<_> =
            touched.iter().filter_map(|path| other.state.files.read(&other.at(path)).ok()).collect();
        let hidden = hidden_by(old.iter().cloned(), new.iter());
        let bare = other.asking(async |asking| {
            let mut bare = Found::new();
            for (document, spans) in &hidden {
                asking.server.open(&Arc::new(without(document, spans)))?;
                let told = asking.server.client.within(asking.time).diagnostics(&document.path).await?;
                let items =
                    told.items.iter().map(|item| diagnose::diagnostic(asking.places, &document.path, item));
                bare.insert(document.path.clone(), items.collect());
                asking.server.open(document)?;
            }
            Ok(bare)
        });
        let bare = bare.await?;
        let unit = other.asking(async |asking| Ok(asking.places.server_unit)).await?;
        let shown = Shown {
            disk: &self.bench.state.files,
            overlay: &other.state.files,
            before: &before,
            after: &after,
            bare: &bare,
            config_changed,
        };
        let grounds = (&*self.bench.state.ground, &*other.state.ground);
        let mut judged = of_edit(grounds, unit, &shown);
        if judged.is_gain() {
            let lost = other.asking(async |asking| types_lost(asking, &old, &new).await).await?;
            judged.integrity.any_casts_added += lost;
        }
        Ok((judged, left_out))
    }
}
