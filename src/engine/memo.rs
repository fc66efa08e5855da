//! The memo: an on-disk cache of bundles, keyed by request and inputs.
//!
//! No cached bundle names a folder of this machine. A key has the path of the checkout unless that is trusted, so that one memo serves
//! all trusted checkouts of the same content, and each of the others by itself (see [`Settings::cache_scope`]). Only successful
//! bundles and plans of edits are cached. A bundle that is read back is used only if its `bundleId` matches its content.

use std::io::{self, BufWriter, Write};

use super::inputs::Inputs;
use super::settings::Settings;
use crate::bundle::seal::bundle_id;
use crate::digest::Digest;
use crate::model::bundle::{Bundle, Volatile};
use crate::model::edits::Edits;
use crate::model::facts::Facts;
use crate::model::request::Request;
use crate::path::{DocUri, WorkspacePath};
use crate::python::entry_points::FILES as ENTRY_POINT_FILES;
use crate::reward::verify;
use crate::selector::PositionSpec;
use crate::toolchain::{ServerSource, program_digest};
use crate::workspace::disk_cache::{DiskCache, DiskCacheStats};
use crate::workspace::files::read_bytes;

/// The maximum size of the memo, in bytes.
const MAX_BYTES: u64 = 512 << 20;

/// The size of the write buffer, in bytes.
const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// The on-disk cache of bundles.
#[derive(Debug)]
pub(super) struct Memo {
    store: DiskCache,
}

/// The key of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoKey {
    request: Digest,
    inputs: Digest,
    /// The inputs of the other server, if the request asks one; `inputs` covers them.
    pub(super) other: Option<Digest>,
}

impl Memo {
    /// The memo in lanser's cache folder; `None` if caching is disabled.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        settings.keep.then(|| Self { store: DiskCache::new(settings.cache.join("memo"), MAX_BYTES) })
    }

    /// Whether the memo has a bundle for this request, for any inputs.
    pub(super) fn has_request(&self, request: &Request) -> bool {
        request_digest(request).is_some_and(|request| self.store.has_group(&request))
    }

    /// Returns the bundle for a key. Blocking.
    pub(super) fn get(&self, key: &MemoKey) -> Option<Bundle> {
        let bundle: Bundle = serde_json::from_slice(&self.store.get(&key.request, &key.inputs)?).ok()?;
        (bundle_id(&bundle).ok()? == bundle.bundle_id && verify(&bundle).is_ok()).then_some(bundle)
    }

    /// Caches a bundle. Blocking.
    pub(super) fn put(&self, key: &MemoKey, bundle: &Bundle) {
        let mut bundle = bundle.clone();
        bundle.meta.volatile = Volatile::default();
        self.store.put(&key.request, &key.inputs, |out| {
            let mut portable =
                BufWriter::with_capacity(WRITE_BUFFER_BYTES, PortableWriter { out, last: Vec::new() });
            serde_json::to_writer(&mut portable, &bundle)?;
            portable.flush()
        });
    }
}

/// A writer that fails if the data names a folder of this machine, which would be useless to another checkout.
struct PortableWriter<'o> {
    out: &'o mut dyn Write,
    /// The last bytes written: one fewer than the searched prefix has.
    last: Vec<u8>,
}

impl Write for PortableWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// The prefix of every such name.
        const PREFIX: &[u8] = b"file:///";
        let has_prefix = |bytes: &[u8]| bytes.windows(PREFIX.len()).any(|window| window == PREFIX);
        const PREFIX_REST: usize = PREFIX.len() - 1;
        self.last.extend(bytes.iter().take(PREFIX_REST));
        if has_prefix(&self.last) || has_prefix(bytes) {
            return Err(io::Error::other("it names a folder of this machine"));
        }
        match bytes.last_chunk::<PREFIX_REST>() {
            Some(last) => self.last = last.to_vec(),
            None => drop(self.last.drain(..self.last.len().saturating_sub(PREFIX_REST))),
        }
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl MemoKey {
    /// The key for an answer that also depends on the programs and configurations with this digest.
    pub(super) fn with(self, analyzers: Digest) -> Self {
        let inputs = Digest::of_fields([&self.inputs.as_bytes()[..], &analyzers.as_bytes()[..]]);
        Self { inputs, ..self }
    }

    /// The key for an answer that also depends on another server, with the inputs of this digest.
    pub(super) fn with_other(self, other: Digest) -> Self {
        Self { other: Some(other), ..self.with(other) }
    }

    /// The key of a request for some inputs. `None` if no server is available that could have answered, if the
    /// request is about a file that the inputs do not cover, or if it names a revision by anything but a commit ID.
    pub(super) fn of(request: &Request, inputs: &Inputs, settings: &Settings) -> Option<Self> {
        // What a revision refers to, and which contents are still cached, is not part of the inputs.
        if request.selector.as_ref().is_some_and(|selector| selector.doc_version().is_some()) {
            return None;
        }
        let names_commit =
            |name: &String| matches!(name.len(), 40 | 64) && name.bytes().all(|c| c.is_ascii_hexdigit());
        if request.options.new && !request.options.base.as_ref().is_some_and(names_commit) {
            return None;
        }
        let found = inputs.tools.found.as_ref().ok()?;
        let about = request.selector.as_ref().and_then(PositionSpec::uri);
        let is_covered = |wanted: &WorkspacePath| {
            let below = format!("{wanted}/");
            let files = inputs.snapshot.files();
            files.contains_key(wanted) || files.keys().any(|path| path.as_str().starts_with(&below))
        };
        if about.is_some_and(|uri| !inputs.covers(uri)) || !request.options.paths.iter().all(is_covered) {
            return None;
        }
        let mut fields = vec![serde_json::to_vec(&inputs.environment).ok()?];
        // Two builds of one version may give different answers.
        fields.push(env!("LANSER_BUILD").as_bytes().to_vec());
        let node = found.program.node().map_or("", |(_, version)| version);
        fields.push(format!("{} {} {node}", found.kind, found.version).into_bytes());
        if found.source == ServerSource::Command {
            // Two programs given by the user may report the same version.
            let main = found.program.main_file();
            fields.push(main.as_str().as_bytes().to_vec());
            fields.push(program_digest(main, &settings.cache).ok()?.as_bytes().to_vec());
        }
        fields.push(settings.cache_scope().into_bytes());
        if request.cmd.edits() {
            // A rename edits entry points.
            let root = inputs.snapshot.root();
            let contents = ENTRY_POINT_FILES.map(|name| read_bytes(&root.join(name)).unwrap_or_default());
            fields.extend(contents);
        }
        fields.extend(inputs.warnings.iter().map(|warning| warning.clone().into_bytes()));
        let outside = inputs.outside().map(|folder| folder.as_str().to_owned());
        let other_names = inputs
            .snapshot
            .unreadable()
            .iter()
            .chain(inputs.snapshot.import_layout())
            .cloned()
            .chain(outside);
        fields.extend(other_names.map(String::into_bytes));
        let inputs = Digest::of_fields(fields.iter().map(Vec::as_slice));
        Some(Self { request: request_digest(request)?, inputs, other: None })
    }
}

/// Whether the code that an answer names is among the inputs. A server may know more: ty searches hidden folders that are no part of
/// the workspace, and another checkout of the same inputs may have other files there.
pub(super) fn is_of_inputs(facts: Option<&Facts>, edits: Option<&Edits>, inputs: &Inputs) -> bool {
    let is_input =
        |uri: &DocUri| uri.workspace_path().is_none_or(|path| !path.is_python() || inputs.covers(uri));
    let facts_are = facts.is_none_or(|facts| {
        // Without `..`, so that a new kind of fact is looked at.
        let Facts {
            definitions,
            declarations,
            type_definitions,
            implementations,
            references,
            symbols,
            calls,
            types,
            diagnostics,
            overrides,
            hover: _,
            renamable: _,
            actions: _,
            transactions: _,
            verdict: _,
            provenance: _,
            completeness: _,
        } = facts;
        let lists = [definitions, declarations, type_definitions, implementations, references];
        let calls = calls.iter().flatten().flat_map(|call| [&call.caller, &call.callee]);
        let types = types.iter().flatten().flat_map(|edge| [&edge.subtype, &edge.supertype]);
        let symbols = symbols.iter().flatten().chain(calls).chain(types);
        lists.into_iter().flatten().flatten().all(|place| is_input(&place.uri))
            && symbols.into_iter().all(|symbol| is_input(&symbol.uri))
            && diagnostics.iter().flat_map(|found| &found.items).all(|one| is_input(&one.uri))
            && overrides.iter().all(|one| is_input(&one.uri))
    });
    facts_are
        && edits.is_none_or(|edits| {
            edits.files.iter().all(|file| is_input(file.from.as_ref().unwrap_or(&file.uri)))
        })
}

/// The digest of what the answer to a request depends on besides the request; `None` if that is not known.
pub(super) fn inputs_digest(request: &Request, inputs: &Inputs, settings: &Settings) -> Option<Digest> {
    MemoKey::of(request, inputs, settings).map(|key| key.inputs)
}

fn request_digest(request: &Request) -> Option<Digest> {
    Some(Digest::of(&serde_json::to_vec(request).ok()?))
}

/// Verifies every bundle of the memo, for `doctor --cache`.
#[must_use]
pub fn verify_memo(settings: &Settings) -> DiskCacheStats {
    DiskCache::new(settings.cache.join("memo"), MAX_BYTES).verify()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The prefix is found however the data is split into writes.
        #[test]
        fn paths_of_this_machine_are_rejected(
            before in "[file:/]{0,9}", inside in prop::option::of("file://[/x]|ile:///"), after in "[file:/]{0,9}",
            lengths in prop::collection::vec(1..12_usize, 1..6),
        ) {
            let text = before + &inside.unwrap_or_default() + &after;
            let mut out = Vec::new();
            let mut portable = PortableWriter { out: &mut out, last: Vec::new() };
            let mut rest = text.as_bytes();
            let mut wrote = Ok(());
            for length in lengths.iter().cycle() {
                let (part, tail) = rest.split_at((*length).min(rest.len()));
                wrote = wrote.and_then(|()| portable.write_all(part));
                rest = tail;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(wrote.is_err(), text.contains("file:///"));
            prop_assert!(wrote.is_err() || out == text.as_bytes());
        }
    }
}
