//! The journal of a transaction: what is to become of which file, written before anything is done.
//!
//! A journal is one file, a digest and JSON, beside one file with all pre-images one after the other. It never changes:
//! how far the transaction came is the name of its folder ([`super::store`]).
//!
//! Format 1: as below.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::TransactionError;
use super::image::{Content, Image};
use super::tree::Spot;
use crate::digest::{Digest, strict_json};
use crate::path::WorkspacePath;

/// Counted up when a journal can no longer be read as the last one.
const FORMAT: u32 = 1;

/// What a transaction does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    format: u32,
    pub(super) id: String,
    /// Seconds since 1970, as the caller says.
    pub(super) time: u64,
    /// What it is, for people.
    pub(super) what: String,
    /// The transaction that this one undoes.
    pub(super) undoes: Option<String>,
    /// Whether it goes back; what undoes such a one goes forth again.
    pub(super) backwards: bool,
    /// The workspace's folder, relative to the folder that the journals are for; empty for that folder itself.
    pub(super) prefix: String,
    /// One for each file, by spot.
    pub(super) entries: Vec<Entry>,
    /// The folders that it makes, the outermost first, with their modes where these are known.
    pub(super) made: Vec<(Spot, Option<u32>)>,
    /// The folders that go when nothing is left in them, with their modes.
    pub(super) may_go: Vec<(Spot, u32)>,
}

/// What becomes of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// As it was named.
    pub(super) path: WorkspacePath,
    /// Where it is.
    pub(super) spot: Spot,
    /// The name beside it that is the transaction's own.
    pub(super) temp: String,
    /// What is there; `None` for nothing.
    pub(super) before: Option<Image>,
    /// What is to be there; `None` for nothing. One of the two is something.
    pub(super) after: Option<Image>,
    /// Where its bytes begin among the pre-images.
    pub(super) offset: u64,
}

impl Entry {
    /// Whether the name now holds this.
    pub(super) fn holds(image: Option<&Image>, seen: Option<&Content>) -> bool {
        image.map(|image| &image.content) == seen
    }

    /// The other name that is the transaction's own, for what is restored.
    pub(super) fn second_temp(&self) -> String {
        format!("{}-r", self.temp)
    }

    /// The length of its pre-image.
    pub(super) fn pre_image_length(&self) -> u64 {
        match self.before.as_ref().map(|image| &image.content) {
            Some(Content::File { length, .. }) => *length,
            _ => 0,
        }
    }
}

/// What a transaction is called.
pub(super) struct Heading {
    pub(super) time: u64,
    pub(super) what: String,
    pub(super) undoes: Option<String>,
    pub(super) backwards: bool,
    pub(super) prefix: String,
}

impl Journal {
    /// A journal of entries whose temporary names and offsets are still to be given. `taken` says which ids are in use.
    pub(super) fn new(
        heading: Heading,
        mut entries: Vec<Entry>,
        made: Vec<(Spot, Option<u32>)>,
        may_go: BTreeMap<Spot, u32>,
        taken: impl Fn(&str, &[Entry]) -> bool,
    ) -> Self {
        entries.sort_by(|a, b| a.spot.cmp(&b.spot));
        let mut offset = 0;
        for entry in &mut entries {
            entry.offset = offset;
            offset += entry.pre_image_length();
        }
        let content = content_id(&entries);
        // The same change made again has the same content and another number.
        let mut id = content.clone();
        let mut number = 1;
        loop {
            for (index, entry) in entries.iter_mut().enumerate() {
                entry.temp = format!(".lanser-{id}-{index}");
            }
            if !taken(&id, &entries) {
                break;
            }
            number += 1;
            id = format!("{content}-{number}");
        }
        let Heading { time, what, undoes, backwards, prefix } = heading;
        let may_go = may_go.into_iter().collect();
        Self { format: FORMAT, id, time, what, undoes, backwards, prefix, entries, made, may_go }
    }

    /// The bytes of the file.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let json =
            serde_json::to_vec(self).expect("because a journal has string keys and no failing serializer");
        let mut bytes = format!("{}\n", Digest::of(&json).to_hex()).into_bytes();
        bytes.extend_from_slice(&json);
        bytes
    }

    /// Reads the bytes of the file.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (digest, json) = bytes.split_at_checked(64).ok_or("it is cut off")?;
        let json = json.strip_prefix(b"\n").ok_or("it is no journal")?;
        if Digest::of(json).to_hex().as_bytes() != digest {
            return Err("its digest is another".to_owned());
        }
        let journal: Self = strict_json::from_slice(json).map_err(|error| error.to_string())?;
        if journal.format != FORMAT {
            return Err(format!("its format is {}, this lanser reads {FORMAT}", journal.format));
        }
        let spots = journal.entries.iter().map(|entry| &entry.spot);
        let spots = spots.chain(journal.made.iter().map(|(spot, _)| spot));
        for spot in spots.chain(journal.may_go.iter().map(|(spot, _)| spot)) {
            let normal = WorkspacePath::new(&spot.path).is_some() && !touches_git(&spot.path);
            if !normal {
                return Err(format!("it names {spot}"));
            }
        }
        let temps_are_names = journal.entries.iter().all(|entry| {
            entry.temp.starts_with(".lanser-") && !entry.temp.contains('/') && !entry.temp.contains('\0')
        });
        let prefix_is_inside = journal.prefix.is_empty() || WorkspacePath::new(&journal.prefix).is_some();
        if !temps_are_names || !prefix_is_inside {
            return Err("it names what no journal names".to_owned());
        }
        Ok(journal)
    }

    /// Every file it names, as it was named.
    pub(super) fn files(&self) -> Vec<WorkspacePath> {
        let mut files: Vec<WorkspacePath> = self.entries.iter().map(|entry| entry.path.clone()).collect();
        files.sort();
        files
    }
}

/// An id that says what is done to which files, so that the same change has the same id everywhere.
fn content_id(entries: &[Entry]) -> String {
    let side = |image: &Option<Image>| match image.as_ref().map(|image| &image.content) {
        Some(Content::File { digest, .. }) => digest.to_string().into_bytes(),
        Some(Content::Link { target }) => [b"link:", target.as_slice()].concat(),
        Some(Content::Other) | None => Vec::new(),
    };
    let fields: Vec<Vec<u8>> = entries
        .iter()
        .flat_map(|entry| [entry.path.as_str().as_bytes().to_vec(), side(&entry.before), side(&entry.after)])
        .collect();
    Digest::of_fields(fields.iter().map(Vec::as_slice)).to_hex()[..12].to_owned()
}

/// Whether a path has a component that git, on some disk, takes for its own folder.
pub(super) fn touches_git(path: &str) -> bool {
    path.split('/').any(|part| {
        // HFS+ does not see these.
        let seen = part.chars().filter(|c| {
            !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        });
        // NTFS takes the name of a stream, spaces and dots at the end, and the short name, for the same folder.
        let seen: String = seen.collect();
        let name = seen.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
        let is_short = name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("git~"))
            && name[4..].chars().all(|c| c.is_ascii_digit());
        name.eq_ignore_ascii_case(".git") || is_short
    })
}

/// For `map_err` of a journal that cannot be read.
pub(super) fn damaged(place: impl ToString) -> impl FnOnce(String) -> TransactionError {
    let place = place.to_string();
    move |reason| TransactionError::Damaged { place, reason }
}
