//! The journal of a transaction: the old and new state of each file, written before any file is changed.
//!
//! A journal's folder has two files: the journal, which is a digest and JSON, and the concatenated pre-images. They never
//! change. The name of the folder shows the state of the transaction ([`super::store`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::TransactionError;
use super::file_image::{Content, FileImage};
use super::tree::RealPath;
use crate::digest::{Digest, strict_json};
use crate::path::{WorkspacePath, touches_git};

/// The version of the journal's format. Journals with another version are not read.
const FORMAT: u32 = 1;

/// The journal of one transaction.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    format: u32,
    pub(super) id: String,
    /// The time from the caller, in seconds since 1970.
    pub(super) time: u64,
    /// The description for people.
    pub(super) what: String,
    /// The transaction that this one undoes.
    pub(super) undoes: Option<String>,
    /// Whether it is an undo rather than a redo. Undoing an undo is a redo.
    pub(super) backwards: bool,
    /// The workspace's path relative to [`super::journal_dir::JournalDir::top`]; empty for that folder itself.
    pub(super) prefix: String,
    /// One entry for each file, ordered by real path.
    pub(super) entries: Vec<JournalEntry>,
    /// The folders that it creates, outermost first, with their modes if known.
    #[serde(rename = "made")]
    pub(super) new_folders: Vec<(RealPath, Option<u32>)>,
    /// The folders to remove when they are empty, with their modes.
    #[serde(rename = "may_go")]
    pub(super) removable_folders: Vec<(RealPath, u32)>,
}

/// The old and new state of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JournalEntry {
    /// The path in the change.
    pub(super) path: WorkspacePath,
    /// Its real path.
    #[serde(rename = "spot")]
    pub(super) real_path: RealPath,
    /// A temporary name in the same folder.
    pub(super) temp: String,
    /// The old state; `None` when the file does not exist.
    pub(super) before: Option<FileImage>,
    /// The new state; `None` when the file is removed. At least one of the two is `Some`.
    pub(super) after: Option<FileImage>,
    /// The offset of its bytes in the file of pre-images.
    pub(super) offset: u64,
}

impl JournalEntry {
    /// Whether the content that was found is that of `image`; `None` stands for a missing file.
    pub(super) fn matches(image: Option<&FileImage>, found: Option<&Content>) -> bool {
        image.map(|image| &image.content) == found
    }

    /// A second temporary name, for a file that is being restored from its pre-image.
    pub(super) fn restore_temp(&self) -> String {
        format!("{}-r", self.temp)
    }

    /// The length of its pre-image in bytes.
    pub(super) fn pre_image_length(&self) -> u64 {
        match self.before.as_ref().map(|image| &image.content) {
            Some(Content::File { length, .. }) => *length,
            _ => 0,
        }
    }
}

/// The fields of a journal that describe the transaction as a whole.
pub(super) struct JournalHeader {
    pub(super) time: u64,
    pub(super) what: String,
    pub(super) undoes: Option<String>,
    pub(super) backwards: bool,
    pub(super) prefix: String,
}

impl Journal {
    /// Creates a journal and sets the temporary names and offsets of its entries. `taken` returns whether an id is in
    /// use.
    pub(super) fn new(
        header: JournalHeader,
        mut entries: Vec<JournalEntry>,
        new_folders: Vec<(RealPath, Option<u32>)>,
        removable_folders: BTreeMap<RealPath, u32>,
        taken: impl Fn(&str, &[JournalEntry]) -> bool,
    ) -> Self {
        entries.sort_by(|a, b| a.real_path.cmp(&b.real_path));
        let mut offset = 0;
        for entry in &mut entries {
            entry.offset = offset;
            offset += entry.pre_image_length();
        }
        let content = content_id(&entries);
        // A repeated change has the same content id, so its id gets a number.
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
        let JournalHeader { time, what, undoes, backwards, prefix } = header;
        let removable_folders = removable_folders.into_iter().collect();
        Self {
            format: FORMAT,
            id,
            time,
            what,
            undoes,
            backwards,
            prefix,
            entries,
            new_folders,
            removable_folders,
        }
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
        let (digest, json) = bytes.split_at_checked(64).ok_or("it is truncated")?;
        let json = json.strip_prefix(b"\n").ok_or("it is not a journal")?;
        if Digest::of(json).to_hex().as_bytes() != digest {
            return Err("its digest does not match".to_owned());
        }
        let journal: Self = strict_json::from_slice(json).map_err(|error| error.to_string())?;
        if journal.format != FORMAT {
            return Err(format!("its format is {}, but this lanser reads format {FORMAT}", journal.format));
        }
        let real_paths = journal.entries.iter().map(|entry| &entry.real_path);
        let real_paths = real_paths.chain(journal.new_folders.iter().map(|(real_path, _)| real_path));
        for real_path in real_paths.chain(journal.removable_folders.iter().map(|(real_path, _)| real_path)) {
            let normal = WorkspacePath::new(&real_path.path).is_some() && !touches_git(&real_path.path);
            if !normal {
                return Err(format!("it contains the invalid path {real_path}"));
            }
        }
        let temps_are_names = journal.entries.iter().all(|entry| {
            entry.temp.starts_with(".lanser-") && !entry.temp.contains('/') && !entry.temp.contains('\0')
        });
        let prefix_is_inside = journal.prefix.is_empty() || WorkspacePath::new(&journal.prefix).is_some();
        if !temps_are_names || !prefix_is_inside {
            return Err("it contains an invalid temporary name or prefix".to_owned());
        }
        Ok(journal)
    }

    /// The files of all entries, sorted, as paths in the changes.
    pub(super) fn files(&self) -> Vec<WorkspacePath> {
        let mut files: Vec<WorkspacePath> = self.entries.iter().map(|entry| entry.path.clone()).collect();
        files.sort();
        files
    }
}

/// An id made from the paths and their old and new contents, so that the same change has the same id everywhere.
fn content_id(entries: &[JournalEntry]) -> String {
    let side = |image: &Option<FileImage>| match image.as_ref().map(|image| &image.content) {
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

/// For `map_err` of a journal that cannot be read.
pub(super) fn damaged(path: impl ToString) -> impl FnOnce(String) -> TransactionError {
    let path = path.to_string();
    move |reason| TransactionError::Damaged { path, reason }
}
