//! From a place to selectors of other forms that mean it.

use super::ast::{follow, path_of};
use super::outline::{Outline, Span};
use super::relocate::anchor::exact;
use crate::selector::anchor::DEFAULT_CONTEXT;
use crate::selector::{AstSpec, AstStep, Construct, ContextHash};

/// How much context is hashed, the least that tells a snippet from its twins.
const CONTEXTS: [u32; 4] = [DEFAULT_CONTEXT, 60, 150, 400];
/// How many other places of a snippet are looked at.
const MAX_TWINS: usize = 200;
/// The longest snippet, in characters. A snippet that is cut would mean another stretch than the one it was made of.
const MAX_SNIPPET: usize = 4000;

/// The AST path of the smallest construct that a span lies in.
#[must_use]
pub fn ast(text: &str, span: &Span, module: &str) -> Option<AstSpec> {
    let mut path = vec![AstStep::new(Construct::Module, Some(module.to_owned()), None)?];
    path.extend(path_of(text, span).unwrap_or_default());
    Some(AstSpec { path, doc_version: None })
}

/// Whether the steps of a path lead to just this span. A place between the words is in its construct.
#[must_use]
pub fn is_exact(text: &str, span: &Span, path: &AstSpec) -> bool {
    span.is_empty()
        || follow(text, path.path.get(1..).unwrap_or_default()).is_ok_and(|found| found.span == *span)
}

/// A snippet for a span with the size and the hash of its context: the span's own text, or, for a single name, the rest of its line,
/// which says more. For the name of a class or function it begins with its keyword. `None` for what is empty or too long.
#[must_use]
pub fn snippet(text: &str, span: &Span) -> Option<(String, u32, ContextHash)> {
    let mut span = span.clone();
    let own = text.get(span.clone())?;
    if own.trim().is_empty() {
        // The whole line, for a place between the words.
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
    if snippet.chars().nth(MAX_SNIPPET).is_some() {
        return None;
    }
    // As much context as it takes to tell it from the other places where the same text stands.
    let twins: Vec<Span> =
        exact(text, &snippet).into_iter().filter(|other| *other != span).take(MAX_TWINS).collect();
    let hash = |span: &Span, ctx| ContextHash::of(text, span.clone(), ctx);
    let tells = |ctx: &u32| twins.iter().all(|twin| hash(twin, *ctx) != hash(&span, *ctx));
    let ctx = CONTEXTS.into_iter().find(tells).unwrap_or(DEFAULT_CONTEXT);
    Some((snippet, ctx, hash(&span, ctx)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_with_its_line() {
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
