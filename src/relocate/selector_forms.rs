//! Makes AST and snippet selectors for a span.

use super::anchor::exact;
use crate::python::ast::{follow, path_of};
use crate::python::outline::{Outline, Span};
use crate::selector::anchor::DEFAULT_CONTEXT;
use crate::selector::{AstSpec, AstStep, Construct, ContextHash};

/// The sizes of hashed context, in order: the first that distinguishes a snippet from its other occurrences is used.
const CONTEXT_SIZES: [u32; 4] = [DEFAULT_CONTEXT, 60, 150, 400];
/// The most other occurrences of a snippet that are compared.
const MAX_DUPLICATES: usize = 200;
/// The longest snippet. A truncated snippet would select a different span.
const MAX_SNIPPET_CHARS: usize = 4000;

/// The AST path of the smallest construct that contains a span.
#[must_use]
pub fn ast(text: &str, span: &Span, module: &str) -> Option<AstSpec> {
    let mut path = vec![AstStep::new(Construct::Module, Some(module.to_owned()), None)?];
    path.extend(path_of(text, span).unwrap_or_default());
    Some(AstSpec { path, doc_version: None })
}

/// Whether the steps of a path resolve to exactly this span. An empty span always counts as exact.
#[must_use]
pub fn is_exact(text: &str, span: &Span, path: &AstSpec) -> bool {
    span.is_empty()
        || follow(text, path.path.get(1..).unwrap_or_default()).is_ok_and(|found| found.span == *span)
}

/// A snippet for a span with the size and the hash of its context: the span's text, or, for a single name, the text from it to the
/// end of the line, which is more distinctive. For the name of a class or function it begins with the keyword. `None` for a
/// snippet that is empty or too long.
#[must_use]
pub fn snippet(text: &str, span: &Span) -> Option<(String, u32, ContextHash)> {
    let mut span = span.clone();
    let own = text.get(span.clone())?;
    if own.trim().is_empty() {
        // The whole line, for a span of white space.
        let start = text[..span.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
        let line = text[start..].split(['\n', '\r']).next().unwrap_or_default();
        let from = start + (line.len() - line.trim_start().len());
        span = from..from + line.trim().len();
    } else if own.chars().all(|c| c == '_' || c.is_alphanumeric()) {
        let outline = Outline::parse(text);
        let definition = outline.definitions.iter().find(|definition| definition.name_span == span);
        if let Some(signature) = definition.and_then(|definition| definition.signature.clone()) {
            span.start = signature.start;
        }
        let rest = text.get(span.start..)?;
        let line = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let line = rest[..line].trim_end();
        span.end = span.start + line.len();
    }
    let snippet = text.get(span.clone()).filter(|snippet| !snippet.is_empty())?.to_owned();
    if snippet.chars().nth(MAX_SNIPPET_CHARS).is_some() {
        return None;
    }
    // As much context as it takes to distinguish it from the other occurrences of the same text.
    let duplicates: Vec<Span> =
        exact(text, &snippet).into_iter().filter(|other| *other != span).take(MAX_DUPLICATES).collect();
    let hash = |span: &Span, ctx| ContextHash::of(text, span.clone(), ctx);
    let is_unique = |ctx: &u32| duplicates.iter().all(|other| hash(other, *ctx) != hash(&span, *ctx));
    let ctx = CONTEXT_SIZES.into_iter().find(is_unique).unwrap_or(DEFAULT_CONTEXT);
    Some((snippet, ctx, hash(&span, ctx)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snippet_of_a_name_includes_the_rest_of_the_line() {
        let text = "class A:\n    async def f(self, x):\n        return g(x)\n";
        let quoted = |word: &str| {
            let at = text.find(word).unwrap() + word.len();
            let name = word.rsplit(' ').next().unwrap();
            snippet(text, &(at - name.len()..at)).unwrap().0
        };
        assert_eq!(quoted("class A"), "class A:");
        assert_eq!(quoted("def f"), "async def f(self, x):");
        assert_eq!(quoted("return g"), "g(x)");
        let whole = text.find("return g").unwrap();
        assert_eq!(snippet(text, &(whole..whole + 8)).unwrap().0, "return g");
        assert_eq!(snippet(text, &(12..12)).unwrap().0, "async def f(self, x):");
        assert_eq!(snippet(text, &(text.len()..text.len())), None);
        let long = "x = 1\n".repeat(100);
        assert_eq!(snippet(&long, &(0..500)).unwrap().0, &long[..500]);
        assert_eq!(snippet(&"x = 1\n".repeat(1000), &(0..5000)), None);
    }
}
