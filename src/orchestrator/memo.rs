//! The memo: answers that were given before on the same ground.
//!
//! An answer is kept by its request and by everything else that it depends on. Unless the user named the server's program,
//! none of that names a folder of this machine: so one memo serves every checkout of the same content, and a folder of it can be copied to another machine.
//! Only what succeeded is kept. What is read back is believed only when its `bundleId` is that of its content.

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
        let bytes = self.kept.get(&key.request, &key.ground)?;
        let bundle: Bundle = serde_json::from_slice(&bytes).ok()?;
        (bundle_id(&bundle).ok()? == bundle.bundle_id).then_some(bundle)
    }

    /// Keeps an answer that is one. Blocking.
    pub(super) fn put(&self, key: &Key, bundle: &Bundle) {
        let mut bundle = bundle.clone();
        bundle.meta.volatile = Volatile::default();
        // What names a folder of this machine is nothing for another checkout.
        let here = |bytes: &[u8]| bytes.windows(8).any(|window| window == b"file:///");
        if let Ok(bytes) = serde_json::to_vec(&bundle)
            && !here(&bytes)
        {
            self.kept.put(&key.request, &key.ground, &bytes);
        }
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
