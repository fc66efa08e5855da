//! The memo: answers that were given before on the same ground.
//!
//! An answer is kept by its request and by everything else that it depends on. Unless the user named the server's program,
//! none of that names a folder of this machine: so one memo serves every checkout of the same content, and a folder of it can be copied to another machine.
//! Only what succeeded is kept. What is read back is believed only when its `bundleId` is that of its content.

use std::io::{self, BufWriter, Write};

use super::Settings;
use super::ground::Ground;
use crate::bundle::seal::bundle_id;
use crate::digest::Digest;
use crate::model::bundle::{Bundle, Volatile};
use crate::model::request::Request;
use crate::path::WorkspacePath;
use crate::selector::PositionSpec;
use crate::toolchain::Source;
use crate::workspace::files::read_bytes;
use crate::workspace::kept::{Holding, Kept};

/// The most bytes that the memo takes.
const LIMIT: u64 = 512 << 20;

/// How much of an answer is written at a time, in bytes.
const CHUNK: usize = 64 << 10;

/// The answers that were given before.
#[derive(Debug)]
pub(super) struct Memo {
    kept: Kept,
}

/// What an answer is kept by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    request: Digest,
    ground: Digest,
}

impl Memo {
    /// The memo in lanser's cache; `None` when nothing is to be kept.
    pub(super) fn of(settings: &Settings) -> Option<Self> {
        settings.keep.then(|| Self { kept: Kept::new(settings.cache.join("memo"), LIMIT) })
    }

    /// Whether this was ever asked, on whatever ground.
    pub(super) fn may_know(&self, request: &Request) -> bool {
        request_digest(request).is_some_and(|request| self.kept.has_group(&request))
    }

    /// The answer to a request on a ground. Blocking.
    pub(super) fn get(&self, key: &Key) -> Option<Bundle> {
        let bundle: Bundle = serde_json::from_slice(&self.kept.get(&key.request, &key.ground)?).ok()?;
        (bundle_id(&bundle).ok()? == bundle.bundle_id).then_some(bundle)
    }

    /// Keeps an answer that is one. Blocking.
    pub(super) fn put(&self, key: &Key, bundle: &Bundle) {
        let mut bundle = bundle.clone();
        bundle.meta.volatile = Volatile::default();
        self.kept.put(&key.request, &key.ground, |out| {
            let mut portable = BufWriter::with_capacity(CHUNK, Portable { out, last: Vec::new() });
            serde_json::to_writer(&mut portable, &bundle)?;
            portable.flush()
        });
    }
}

/// A writer that fails at what names a folder of this machine, which is nothing for another checkout.
struct Portable<'o> {
    out: &'o mut dyn Write,
    /// The last bytes that were written, fewer than a name has.
    last: Vec<u8>,
}

impl Write for Portable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// How every such name begins.
        const HERE: &[u8] = b"file:///";
        let is_here = |bytes: &[u8]| bytes.windows(HERE.len()).any(|window| window == HERE);
        const MOST: usize = HERE.len() - 1;
        self.last.extend(bytes.iter().take(MOST));
        if is_here(&self.last) || is_here(bytes) {
            return Err(io::Error::other("it names a folder of this machine"));
        }
        match bytes.last_chunk::<MOST>() {
            Some(last) => self.last = last.to_vec(),
            None => drop(self.last.drain(..self.last.len().saturating_sub(MOST))),
        }
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Key {
    /// The key of a request on a ground; `None` when there is no server that could have answered, when the request is
    /// about a file that is no part of the ground, or when its selector carries a version.
    pub(super) fn of(request: &Request, ground: &Ground) -> Option<Self> {
        // What a revision is, and which contents are still kept, is no part of the ground.
        if request.selector.as_ref().is_some_and(|selector| selector.doc_version().is_some()) {
            return None;
        }
        let found = ground.tools.found.as_ref().ok()?;
        let about = request.selector.as_ref().and_then(PositionSpec::uri);
        let known = |wanted: &WorkspacePath| {
            let below = format!("{wanted}/");
            let files = ground.snapshot.files();
            files.contains_key(wanted) || files.keys().any(|path| path.as_str().starts_with(&below))
        };
        if about.is_some_and(|uri| !ground.covers(uri)) || !request.options.paths.iter().all(known) {
            return None;
        }
        let mut fields = vec![serde_json::to_vec(&ground.environment).ok()?];
        // Two builds of one version may answer differently.
        fields.push(env!("LANSER_BUILD").as_bytes().to_vec());
        fields.push(format!("{} {} {}", found.kind, found.version, found.node_version).into_bytes());
        if found.source == Source::Command {
            // Two programs that somebody named may call themselves by one version.
            fields.push(found.script.as_str().as_bytes().to_vec());
            fields.push(read_bytes(&found.script).ok()?);
        }
        fields.extend(ground.warnings.iter().map(|warning| warning.clone().into_bytes()));
        let outside = ground.outside().map(|folder| folder.as_str().to_owned());
        let more = ground.snapshot.unreadable().iter().chain(ground.snapshot.shape()).cloned().chain(outside);
        fields.extend(more.map(String::into_bytes));
        let ground = Digest::of_fields(fields.iter().map(Vec::as_slice));
        Some(Self { request: request_digest(request)?, ground })
    }
}

fn request_digest(request: &Request) -> Option<Digest> {
    Some(Digest::of(&serde_json::to_vec(request).ok()?))
}

/// Looks into every answer of the memo, for `doctor --cache`.
#[must_use]
pub fn verify_memo(settings: &Settings) -> Holding {
    Kept::new(settings.cache.join("memo"), LIMIT).verify()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However the words are cut into pieces.
        #[test]
        fn what_names_a_folder_of_this_machine_is_found(
            before in "[file:/]{0,9}", inside in prop::option::of("file://[/x]|ile:///"), after in "[file:/]{0,9}",
            pieces in prop::collection::vec(1..12_usize, 1..6),
        ) {
            let words = before + &inside.unwrap_or_default() + &after;
            let mut out = Vec::new();
            let mut portable = Portable { out: &mut out, last: Vec::new() };
            let mut rest = words.as_bytes();
            let mut wrote = Ok(());
            for length in pieces.iter().cycle() {
                let (piece, more) = rest.split_at((*length).min(rest.len()));
                wrote = wrote.and_then(|()| portable.write_all(piece));
                rest = more;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(wrote.is_err(), words.contains("file:///"));
            prop_assert!(wrote.is_err() || out == words.as_bytes());
        }
    }
}
