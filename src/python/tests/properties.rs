//! Properties of any program: a definition is found by its own name, and any text has an outline.

use std::fmt::Write as _;

use crate::path::AbsPath;
use crate::python::modules::ImportRoots;
use crate::python::outline::Outline;
use crate::python::symbol::{ResolveOutcome, resolve_symbol};
use crate::selector::{ModuleName, QualName, Role, SymbolSpec};
use crate::workspace::files::MemoryFiles;

/// A small program: each pair is a dedent and a kind of statement.
fn program(steps: &[(usize, usize)]) -> String {
    let mut text = String::new();
    let mut depth = 0;
    let mut opened = false;
    for (i, (dedent, kind)) in steps.iter().enumerate() {
        if opened {
            depth += 1;
        } else {
            depth -= depth.min(*dedent);
        }
        let indent = "    ".repeat(depth);
        let (line, opens) = match kind {
            0 => (format!("class C{i}:"), true),
            1 => (format!("def f{i}(self):"), true),
            2 => (format!("if c{i}:"), true),
            3 => (format!("v{i} = 1"), false),
            4 => (format!("async def f{i}(self): self.a{i} = 1"), false),
            _ => (format!("with x as w{i}: pass"), false),
        };
        let _ = writeln!(text, "{indent}{line}");
        opened = opens;
    }
    if opened {
        let _ = writeln!(text, "{}pass", "    ".repeat(depth + 1));
    }
    text
}

proptest::proptest! {
    #[test]
    fn every_definition_is_found_by_its_name(steps in proptest::collection::vec((0usize..4, 0usize..6), 1..30)) {
        let text = program(&steps);
        let files = MemoryFiles::new([("/w/m.py", text.as_str())]);
        let roots = ImportRoots::of_folder(AbsPath::new("/w").unwrap());
        let outline = Outline::parse(&text);
        proptest::prop_assert!(!outline.has_error, "{}", text);
        for (index, definition) in outline.definitions.iter().enumerate() {
            proptest::prop_assert_eq!(&text[definition.name_span.clone()], definition.name.as_str());
            let qualname = QualName::new(ModuleName::new("m").unwrap(), outline.names(index)).unwrap();
            let spec = SymbolSpec { qualname, param: None, role: Role::Def, overload: None, doc_version: None };
            match resolve_symbol(&files, &roots, &spec) {
                ResolveOutcome::Found(target) => proptest::prop_assert_eq!(&target.name_span, &definition.name_span),
                other => proptest::prop_assert!(false, "{:?}\n{}", other, text),
            }
        }
    }

    /// For any text, spans are inside it, the span of a name contains the name, and nothing panics.
    #[test]
    fn any_text_has_an_outline(text in "(class|def|async|if|else|try|with|for|@|a|b|é|self|\\.|:|=|\\(|\\)|\\[|'''|'|\"|#| |    |\n|\t|,|\\*|import|from){0,60}") {
        let outline = Outline::parse(&text);
        for definition in &outline.definitions {
            let at = text.get(definition.name_span.clone());
            proptest::prop_assert_eq!(at, Some(definition.name.as_str()), "{}", text);
            for span in [&definition.signature, &definition.body, &definition.doc].into_iter().flatten() {
                proptest::prop_assert!(text.get(span.clone()).is_some(), "{:?} in {}", span, text);
            }
            proptest::prop_assert!(definition.parent.is_none_or(|parent| parent < outline.definitions.len()));
        }
    }
}
