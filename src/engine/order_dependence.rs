//! None of this is recorded on the tape, because it affects only the isolation of the request, not the answer.

use super::inputs::Inputs;
use super::request_state::{RequestState, RequestTarget, SelectorOutcome};
use crate::model::request::{Command, Request};
use crate::python::meaning::{Claims, Meaning, decoration, meaning};
use crate::workspace::files::{DiskFiles, Document};

/// Whether a request of this kind may run concurrently with others if no type has to be inferred for it.
pub(super) const fn may_be_shared(request: &Request) -> bool {
    matches!(request.cmd, Command::Definition | Command::Declaration)
}

impl RequestState {
    /// What the meaning of the target depends on.
    fn meaning(&self) -> &Meaning {
        self.meaning.get_or_init(|| match &self.resolved {
            Some(SelectorOutcome::Found(target)) => {
                meaning(&target.document, &target.name_span.clone().unwrap_or_default())
            }
            _ => Meaning::Scoped,
        })
    }

    /// Whether the target's name is neither an attribute nor a keyword argument.
    pub(super) fn is_scoped(&self) -> bool {
        matches!(self.meaning(), Meaning::Scoped)
    }

    /// Whether the target is known to need no type inference, as far as other files have been read.
    pub(super) fn is_declared(&self) -> bool {
        match self.meaning() {
            _ if self.target().is_ok_and(may_be_annotated) => false,
            Meaning::Scoped | Meaning::Declared => true,
            Meaning::Claimed(_) => self.found_declared.get().copied().unwrap_or_default(),
            Meaning::Inferred => false,
        }
    }

    /// Reads the files that the target's file refers to. Blocking.
    pub(super) fn read_other_files(&self) {
        if let Meaning::Claimed(claims) = self.meaning() {
            let _ = self.found_declared.set(self.are_satisfied(claims));
        }
    }

    /// Whether the requirements on other files are satisfied. Blocking.
    fn are_satisfied(&self, claims: &Claims) -> bool {
        let (Inputs { roots, declared, .. }, files) = (&*self.inputs, DiskFiles::new());
        let satisfied = claims.hold(&files, roots, declared);
        let changed =
            files.used().iter().any(|(path, digest)| self.inputs.holds(path, *digest) == Some(false));
        if changed {
            // The files are being written, so the result is not valid.
            declared.forget();
        }
        satisfied && !changed
    }

    /// Whether the server has to infer what a decorator returns to find the definitions of a function. Blocking.
    pub(super) fn needs_inference(&self, document: &Document, offset: usize) -> bool {
        match decoration(document, offset) {
            Meaning::Scoped | Meaning::Declared => false,
            Meaning::Claimed(claims) => !self.are_satisfied(&claims),
            Meaning::Inferred => true,
        }
    }
}

/// Whether a target that is not a name, such as one in a string or a comment, may be an attribute in an annotation.
fn may_be_annotated(target: &RequestTarget) -> bool {
    let before = &target.document.text[..target.offset];
    let before = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
    target.name_span.is_none() && before.trim_end().ends_with('.')
}
