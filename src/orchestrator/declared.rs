//! What an answer hangs on: names and types that the sources declare, or types that have to be inferred.
//!
//! Nothing of it is on the tape: what an answer is does not hang on how it is asked for.

use super::ground::Ground;
use super::state::{Outcomes, State, Subject};
use crate::model::request::{Command, Request};
use crate::resolve::meaning::{Claims, Meaning, decoration, meaning};
use crate::workspace::files::{DiskFiles, Document};

/// Whether a question can be asked beside others where no type has to be inferred for it.
pub(super) const fn may_be_shared(request: &Request) -> bool {
    matches!(request.cmd, Command::Definition | Command::Declaration)
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

    /// Whether no type has to be inferred for the meaning of the place, as far as was looked.
    pub(super) fn is_declared(&self) -> bool {
        match self.meaning() {
            _ if self.subject().is_ok_and(may_be_annotated) => false,
            Meaning::Scoped | Meaning::Declared => true,
            Meaning::Claimed(_) => self.is_told.get().copied().unwrap_or_default(),
            Meaning::Inferred => false,
        }
    }

    /// Looks into the files that the place's file refers to. Blocking.
    pub(super) fn look_far(&self) {
        if let Meaning::Claimed(claims) = self.meaning() {
            let _ = self.is_told.set(self.hold(claims));
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

/// Whether a place that is none of a name, such as one in a string or a comment, may be that of an attribute in an annotation.
fn may_be_annotated(subject: &Subject) -> bool {
    let before = &subject.document.text[..subject.offset];
    let before = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
    subject.name_span.is_none() && before.trim_end().ends_with('.')
}
