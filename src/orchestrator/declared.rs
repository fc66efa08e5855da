//! What an answer hangs on: names and types that the sources declare, or types that have to be inferred.
//!
//! Nothing new of it is on the tape: what an answer is does not hang on how it is asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use super::ground::Ground;
use super::state::{Outcomes, State};
use crate::model::request::{Command, Request, Scope};
use crate::path::AbsPath;
use crate::resolve::meaning::{Claims, Meaning, decoration, meaning};
use crate::resolve::occurrences::{Occurrence, OccurrenceKind, occurrences};
use crate::workspace::files::{DiskFiles, Document, Files as _};
use crate::workspace::parallel::parallel_map;

/// Whether a question can be asked beside others where no type has to be inferred for it.
///
/// Uses are searched in whatever the server has open, so that all files with the name must be.
pub(super) fn may_be_shared(request: &Request) -> bool {
    match request.cmd {
        Command::Definition | Command::Declaration => true,
        Command::References => request.options.scope != Scope::Configured,
        _ => false,
    }
}

impl State {
    /// What the meaning of the place hangs on.
    fn meaning(&self) -> &Meaning {
        self.meaning.get_or_init(|| match &self.resolved {
            Some(Outcomes::Found(subject)) => {
                meaning(&subject.document, &subject.name_span.clone().unwrap_or_default())
            }
            _ => Meaning::Scoped,
        })
    }

    /// Whether the name at the place stands alone.
    pub(super) fn is_scoped(&self) -> bool {
        matches!(self.meaning(), Meaning::Scoped)
    }

    /// Whether no type has to be inferred for the answer, as far as was looked.
    pub(super) fn is_declared(&self, request: &Request) -> bool {
        let told = || self.is_told.get().copied().unwrap_or_default();
        // In a string or a comment there may be an annotation.
        let is_name = self.subject().is_ok_and(|subject| subject.name_span.is_some());
        match self.meaning() {
            _ if !is_name => false,
            _ if request.cmd == Command::References => told(),
            Meaning::Scoped | Meaning::Declared => true,
            Meaning::Claimed(_) => told(),
            Meaning::Inferred => false,
        }
    }

    /// Looks into the files that the answer may hang on: those that the place's file refers to, and for uses all in which the
    /// name stands. Blocking.
    pub(super) fn look_far(&self, request: &Request) {
        if request.cmd == Command::References {
            let _ = self.is_told.set(self.are_uses_declared());
        } else if let Meaning::Claimed(claims) = self.meaning() {
            let _ = self.is_told.set(self.hold(claims));
        }
    }

    /// Whether each use of the name means something without a type that has to be inferred, whether it is a use of what was
    /// asked about or of something else.
    fn are_uses_declared(&self) -> bool {
        let Ok(subject) = self.subject() else { return false };
        let Some(name) = subject.name() else { return false };
        let (asked_in, asked_at) = subject.asked_for_uses();
        if matches!(self.meaning(), Meaning::Inferred)
            || !self.is_known(asked_in, &(asked_at..asked_at + name.len()))
        {
            return false;
        }
        let snapshot = &self.ground.snapshot;
        // What was asked of the disk already, when the selector was resolved.
        let holding: Vec<AbsPath> =
            self.files_with_word(name).iter().map(|path| snapshot.absolute(path)).collect();
        let found_one = AtomicBool::new(false);
        parallel_map(&holding, self.threads, |path| {
            let Ok(document) = self.files.read(path) else { return };
            let tokens = occurrences(&document.text, document.digest, name);
            let is_told = |found: &Occurrence| {
                if found.kind.is_token() {
                    self.is_known(&document, &found.span())
                } else {
                    !may_be_annotated(&document.text, found)
                }
            };
            if tokens.iter().any(|found| found_one.load(Ordering::Relaxed) || !is_told(found)) {
                found_one.store(true, Ordering::Relaxed);
            }
        });
        !found_one.into_inner()
    }

    /// Whether no type has to be inferred for what a name token means. Blocking.
    fn is_known(&self, document: &Document, name: &std::ops::Range<usize>) -> bool {
        match meaning(document, name) {
            Meaning::Scoped | Meaning::Declared => true,
            Meaning::Claimed(claims) => self.hold(&claims),
            Meaning::Inferred => false,
        }
    }

    /// Whether what is claimed to be declared in other files is. Blocking.
    fn hold(&self, claims: &Claims) -> bool {
        let (Ground { roots, declared, .. }, files) = (&*self.ground, DiskFiles::new());
        let holds = claims.hold(&files, roots, declared);
        let misread =
            files.used().iter().any(|(path, digest)| self.ground.holds(path, *digest) == Some(false));
        if misread {
            // It was found in files that are being written.
            declared.forget();
        }
        holds && !misread
    }

    /// Whether what a decorator makes of a function has to be inferred to tell its definitions. Blocking.
    pub(super) fn is_made_up(&self, document: &Document, offset: usize) -> bool {
        match decoration(document, offset) {
            Meaning::Scoped | Meaning::Declared => false,
            Meaning::Claimed(claims) => !self.hold(&claims),
            Meaning::Inferred => true,
        }
    }
}

/// Whether an occurrence in a string or a comment may be the attribute of something in an annotation: what it means may have
/// to be inferred.
fn may_be_annotated(text: &str, found: &Occurrence) -> bool {
    let (before, after) = (&text[..found.start], &text[found.end..]);
    if !before.trim_end().ends_with('.') {
        return false;
    }
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = after.split('\n').next().unwrap_or_default();
    if found.kind == OccurrenceKind::Comment {
        return before.contains("type:");
    }
    let begun = before.rsplit(['"', '\'']).next().unwrap_or_default();
    let ended = after.split(['"', '\'']).next().unwrap_or_default();
    let words = [begun, &text[found.span()], ended].concat();
    // Words beside each other are no annotation.
    let words = words.replace(", ", ",").replace(" | ", "|").replace(". ", ".");
    words.trim().chars().all(|c| c.is_alphanumeric() || "_.,[]|".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;

    #[test]
    fn an_annotation_in_a_string_is_told_from_prose() {
        let told = |text: &str| {
            let found = occurrences(text, Digest::of(text.as_bytes()), "name");
            found.iter().any(|found| may_be_annotated(text, found))
        };
        for annotated in [
            "x: 'a.name'",
            "x: \"Dict[str, a.name] | None\"",
            "def f() -> '''a.name''': pass",
            "def f(a): # type: (a.name) -> b\n  pass",
            "x: 'a. name'",
        ] {
            assert!(told(annotated), "{annotated}");
        }
        for prose in
            ["'name'", "'see a.name for more'", "# a.name is", "x = 'a name'", "'''\nUse a.name there.\n'''"]
        {
            assert!(!told(prose), "{prose}");
        }
    }
}
