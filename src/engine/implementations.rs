//! `impl`: the subclasses of a class, and the overrides of a member. They are found by an index of the workspace's classes, since
//! Pyright has no such request and no server searches every file; what a server finds beyond that is added.

use std::collections::{BTreeMap, BTreeSet};

use super::completeness;
use super::context::{HandlerOutput, RequestContext};
use super::failure::Failure;
use super::occurrences::{files_with, offset_of};
use super::positions::{by_name, no_result, position};
use super::request_state::RequestTarget;
use crate::bundle::order::sort;
use crate::bundle::page::page;
use crate::lsp::LspLocation;
use crate::model::facts::{Completeness, CompletenessStatus, Facts, Provenance};
use crate::path::{AbsPath, WorkspacePath};
use crate::python::classes::{Class, Classes, Subclasses};
use crate::python::computed_bases::{self, ComputedClass, FileHeads};
use crate::tape::IoKind;
use crate::text::decode_source;
use crate::workspace::files::{Document, read_bytes};
use crate::workspace::parallel::parallel_map;

/// Answers `impl`. The server resolves the definition.
pub(super) async fn implementations(
    cx: &RequestContext<'_>,
    target: &RequestTarget,
) -> Result<HandlerOutput, Failure> {
    let mut capabilities: BTreeMap<String, bool> =
        cx.require("definition", cx.server.client.capabilities().definition)?;
    let offers = cx.server.client.capabilities().implementation;
    capabilities.insert("implementation".to_owned(), offers);
    cx.open([target.document.path.clone()])?;
    let requests = cx.requests();
    let (path, at) = (&target.document.path, position(cx, target));
    let found = by_name(cx, requests.definition(path, at).await?);
    let known = if offers { requests.implementation(path, at).await?.items } else { Vec::new() };
    let classes = Classes::new(&cx.state.files, &cx.state.inputs.roots);
    let mut places = Vec::new();
    let (mut limits, mut without) = (SubclassLimits::default(), None);
    for place in &found.items {
        let Some((document, offset)) = offset_of(cx, place) else { continue };
        let (class, member) = match classes.class_at(&document.path, offset) {
            Some(class) => (class, None),
            None => {
                let Some(defined) = classes.defined_at(&document.path, offset) else { continue };
                let is_abstract = defined.decorators.iter().any(|one| one.ends_with("abstractmethod"));
                let Some(class) = defined.class else { continue };
                if !is_abstract && !classes.is_protocol(&class) {
                    places.push(place.clone());
                }
                (class, Some(defined.name))
            }
        };
        without.get_or_insert_with(|| match &member {
            None => format!("class `{}` has no subclasses", class.name()),
            Some(name) => format!("no subclass of `{}` defines `{name}`", class.name()),
        });
        let below = classes.subclasses(&class, &|name| files_with(cx, name));
        limits.add(cx, &classes, &class, &below, member.as_deref());
        for derived in below.classes {
            places.extend(tokens(cx, &derived, member.as_deref()));
        }
    }
    // A server also returns what it was asked about.
    places.extend(known.into_iter().filter(|place| !found.items.contains(place)));
    places.sort();
    places.dedup();
    if places.is_empty() {
        return Err(match without {
            Some(message) => {
                let hint = limits.reason(cx).unwrap_or_else(|| {
                    "`lanser impl` searches the classes of the workspace; `lanser refs` lists the uses"
                        .to_owned()
                });
                Failure::not_found(format!("{message} in the workspace"), hint)
            }
            None if !found.items.is_empty() => {
                let name = target.name().unwrap_or_default();
                let hint = "`lanser impl` lists the subclasses of a class and the overrides of a method";
                Failure::not_found(format!("`{name}` is not a class or a method"), hint)
            }
            None => no_result(cx, target),
        });
    }
    let mut facts = Facts::new(Provenance::IndexLsp);
    facts.completeness = Some(limits.verdict(cx));
    let mut locations: Vec<_> = places.iter().map(|place| cx.locations.location(place)).collect();
    sort(&mut locations);
    let options = &cx.request.options;
    let (locations, limits) = page(locations, options.limit, options.cursor.as_deref())?;
    facts.implementations = Some(locations);
    Ok(HandlerOutput { facts, limits: Some(limits), capabilities, refactored: None, error: None })
}

/// The name tokens of a class, or of its own members with a name.
fn tokens(cx: &RequestContext<'_>, class: &Class, member: Option<&str>) -> Vec<LspLocation> {
    let document: &Document = class.document();
    let place = |span: &std::ops::Range<usize>| LspLocation {
        path: document.path.clone(),
        range: document.lines.range(&document.text, span.clone(), cx.locations.server_unit),
    };
    match member {
        Some(name) => class.members(name).map(place).collect(),
        None => vec![place(class.name_span())],
    }
}

/// Why a search for subclasses may miss some.
#[derive(Default)]
pub(super) struct SubclassLimits {
    is_cut: bool,
    is_protocol: bool,
    /// A class that may be a subclass, because its bases are computed.
    computed: Option<ComputedClass>,
}

impl SubclassLimits {
    /// Adds the search for the subclasses of a class, or for those that define a member.
    pub(super) fn add(
        &mut self,
        cx: &RequestContext<'_>,
        classes: &Classes<'_>,
        class: &Class,
        below: &Subclasses,
        member: Option<&str>,
    ) {
        self.is_cut |= below.is_cut;
        self.is_protocol |= classes.is_protocol(class);
        if self.computed.is_none() {
            let files = match member {
                Some(name) => files_with(cx, name),
                None => {
                    // Where stubs cannot be searched, a base of that name is not found.
                    let named = below.names.iter().flat_map(|name| files_with(cx, name));
                    named.chain(files_with_computed_bases(cx)).collect::<BTreeSet<_>>().into_iter().collect()
                }
            };
            let computed = computed_subclasses(cx, classes, (class, below), &files, member);
            self.computed =
                computed.into_iter().min_by_key(|one| (one.document.path.clone(), one.span.start));
        }
    }

    /// The completeness of the answer.
    pub(super) fn verdict(&self, cx: &RequestContext<'_>) -> Completeness {
        let files = cx.state.inputs.snapshot.files().len();
        let mut verdict = completeness::of_documents(cx, files, &completeness::unreadable(cx));
        if let Some(reason) = self.reason(cx).filter(|_| verdict.status == CompletenessStatus::Complete) {
            (verdict.status, verdict.reason) = (CompletenessStatus::Unknown, Some(reason));
        }
        verdict
    }

    /// Why subclasses may be missing.
    fn reason(&self, cx: &RequestContext<'_>) -> Option<String> {
        if self.is_cut {
            Some("there are more subclasses than the search limit".to_owned())
        } else if self.is_protocol {
            let reason =
                "classes that have the members of a protocol without inheriting from it are not listed";
            Some(reason.to_owned())
        } else {
            self.computed.as_ref().map(|class| {
                let (_, _, at) = cx.locations.span(&class.document, class.span.clone());
                format!("the class at {at} may be a subclass: a base is computed, or cannot be found")
            })
        }
    }
}

/// [`Classes::computed_subclasses`], for several files at a time.
pub(super) fn computed_subclasses(
    cx: &RequestContext<'_>,
    classes: &Classes<'_>,
    (class, below): (&Class, &Subclasses),
    files: &[AbsPath],
    member: Option<&str>,
) -> Vec<ComputedClass> {
    if classes.is_closed_enumeration(class) {
        return Vec::new();
    }
    let in_file =
        |file: &AbsPath| classes.computed_subclasses(class, below, std::slice::from_ref(file), member);
    parallel_map(files, cx.settings.threads, in_file).into_iter().flatten().collect()
}

/// The files of the workspace that may have classes with computed bases.
pub(super) fn files_with_computed_bases(cx: &RequestContext<'_>) -> Vec<AbsPath> {
    let snapshot = &cx.state.inputs.snapshot;
    let find = || {
        let files: Vec<&WorkspacePath> = snapshot.files().keys().collect();
        let heads = parallel_map(&files, cx.settings.threads, |path| {
            let bytes = read_bytes(&snapshot.absolute(path)).unwrap_or_default();
            FileHeads::of(&decode_source(bytes).text)
        });
        let selected = computed_bases::files_with_computed_bases(&heads);
        selected.into_iter().map(|index| files[index].clone()).collect::<Vec<WorkspacePath>>()
    };
    let known = || cx.state.inputs.computed_bases.get_or_init(find).clone();
    let found = cx.state.tape.query(IoKind::Index, &"files with computed bases", known, Vec::new);
    found.iter().map(|path| snapshot.absolute(path)).collect()
}
