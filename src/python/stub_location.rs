//! Finds the declaration of a definition in the stub that the server reads in place of the source.

use super::lookup::Lookup;
use super::modules::Module;
use super::symbol::StubLocation;
use crate::path::AbsPath;

impl Lookup<'_> {
    /// The declaration of a chain of names in the stub of a module whose source is `file`.
    pub(super) fn stub_location(
        &self,
        module: &Module,
        file: &AbsPath,
        names: &[String],
    ) -> Option<StubLocation> {
        let stub = module.stub.as_ref().filter(|stub| *stub != file)?;
        let source = self.source(module, stub).ok()?;
        let mut at = None;
        for name in names {
            let (index, _) = source.outline.children(at).find(|(_, definition)| definition.name == *name)?;
            at = Some(index);
        }
        let name_span = source.outline.definitions[at?].name_span.clone();
        Some(StubLocation { document: source.document.clone(), name_span })
    }
}
