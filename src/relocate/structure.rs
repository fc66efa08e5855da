//! The structure of one text for relocation: definitions found by indentation, each with the lines that belong to it.

use std::collections::BTreeSet;

use super::lex::{LexToken, LexedText, LogicalLine, TokenKind, lex};
use crate::python::outline::{DefinitionKind, Span};

/// The most nested definitions; a deeper one is read as a plain statement.
const MAX_NESTING: usize = 64;

/// A definition.
#[derive(Debug, Clone)]
pub(crate) struct Def {
    pub(crate) kind: DefinitionKind,
    /// The index of the name token.
    pub(super) name: u32,
    /// The enclosing class or function.
    pub(crate) parent: Option<u32>,
    /// The lines from the first decorator to the end of the block; for a variable its one line.
    pub(super) lines: std::ops::Range<u32>,
    /// The line of `def` or `class`; for a variable its line.
    pub(super) header: u32,
    /// The token after the colon of the header; for a variable the one after its name.
    pub(super) body: u32,
}

/// The tokens, lines and definitions of one text.
#[derive(Debug)]
pub(crate) struct TextStructure<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<LexToken>,
    pub(super) lines: Vec<LogicalLine>,
    /// Classes, functions and variables in source order; a definition comes before those inside it.
    pub(crate) defs: Vec<Def>,
    /// The class or function that each line belongs to; `None` is the module.
    pub(super) owner: Vec<Option<u32>>,
}

impl<'t> TextStructure<'t> {
    /// Reads a text. Never fails.
    pub(crate) fn new(text: &'t str) -> Self {
        let LexedText { tokens, lines } = lex(text);
        let owner = vec![None; lines.len()];
        let mut structure = Self { text, tokens, lines, defs: Vec::new(), owner };
        structure.read();
        structure
    }

    /// The text of a token.
    pub(super) fn token(&self, index: u32) -> &'t str {
        self.tokens
            .get(index as usize)
            .and_then(|token| self.text.get(token.start as usize..token.end as usize))
            .unwrap_or_default()
    }

    /// The bytes of the name of a definition.
    pub(crate) fn name_span(&self, def: &Def) -> Span {
        let token = self.tokens[def.name as usize];
        token.start as usize..token.end as usize
    }

    /// The name of a definition.
    pub(crate) fn name(&self, def: &Def) -> &'t str {
        self.token(def.name)
    }

    /// The names from the module down to a definition.
    pub(crate) fn chain(&self, index: u32) -> Vec<&'t str> {
        let mut names = Vec::new();
        let mut at = Some(index);
        while let Some(def) = at.and_then(|at| self.defs.get(at as usize)) {
            names.push(self.name(def));
            at = def.parent;
        }
        names.reverse();
        names
    }

    /// The tokens from the first of the header to the last of the block.
    pub(super) fn token_range(&self, def: &Def) -> std::ops::Range<usize> {
        let first = self.lines[def.header as usize].first as usize;
        let end = self.lines[def.lines.end as usize - 1].end as usize;
        first..end
    }

    /// The bytes of the header, from `def` or `class` to the colon.
    pub(super) fn header_span(&self, def: &Def) -> Span {
        let first = self.lines[def.header as usize].first as usize;
        let last = (def.body as usize - 1).max(first);
        self.tokens[first].start as usize..self.tokens[last].end as usize
    }

    /// The line of a token.
    pub(super) fn line_of(&self, token: u32) -> usize {
        self.lines.partition_point(|line| line.end <= token).min(self.lines.len().saturating_sub(1))
    }

    /// The first token that ends after an offset.
    pub(super) fn token_from(&self, offset: usize) -> usize {
        self.tokens.partition_point(|token| (token.end as usize) <= offset)
    }

    /// The innermost class or function that a token belongs to; its header and decorators belong to it.
    pub(super) fn owner_of(&self, token: u32) -> Option<u32> {
        self.owner.get(self.line_of(token)).copied().flatten()
    }

    /// The names of the parameters with their letters in a symbol id's shape.
    pub(super) fn parameters(&self, def: &Def) -> Vec<(&'t str, char)> {
        let mut found = Vec::new();
        let mut depth = 0_usize;
        let mut expects = false;
        let mut keyword_only = false;
        let mut stars = 0;
        for index in def.name + 1..def.body {
            let text = self.token(index);
            let kind = self.tokens[index as usize].kind;
            match text {
                "(" | "[" | "{" => {
                    // Type parameters come before the parentheses.
                    if depth == 0 && text == "(" {
                        expects = true;
                    }
                    depth += 1;
                }
                ")" | "]" | "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 && text == ")" {
                        break;
                    }
                }
                "," if depth == 1 => {
                    // A bare star.
                    keyword_only |= expects && stars == 1;
                    (expects, stars) = (true, 0);
                }
                "*" | "**" if depth == 1 && expects => stars = text.len(),
                "=" if depth == 1 => {
                    if let Some((_, letter)) = found.last_mut() {
                        *letter = if *letter == 'n' {
                            'm'
                        } else if *letter == 'p' {
                            'd'
                        } else {
                            *letter
                        };
                    }
                }
                _ if depth == 1 && expects && kind == TokenKind::Name => {
                    let letter = match stars {
                        2 => 'k',
                        1 => 'a',
                        _ if keyword_only => 'n',
                        _ => 'p',
                    };
                    keyword_only |= stars == 1;
                    found.push((text, letter));
                    expects = false;
                }
                _ => {}
            }
        }
        found
    }

    /// The letters of the parameters.
    pub(crate) fn shape_letters(&self, def: &Def) -> String {
        if def.kind.is_function() {
            self.parameters(def).iter().map(|(_, letter)| *letter).collect()
        } else {
            String::new()
        }
    }

    fn read(&mut self) {
        // The open blocks: indentation of the header, and the definition.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut decorators: Option<(u32, u32)> = None;
        let mut attributes = BTreeSet::new();
        // The names that a function declares `global`: it defines them in the module.
        let mut globals: BTreeSet<(u32, String)> = BTreeSet::new();
        let mut comments = 0_u32;
        for at in 0..self.lines.len() {
            let line = self.lines[at];
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            if self.tokens[line.first as usize].kind == TokenKind::Comment {
                // A comment belongs to the block of the statement that follows.
                comments += 1;
                continue;
            }
            while open.last().is_some_and(|(indent, _)| line.indent <= *indent) {
                open.pop();
            }
            let parent = open.last().map(|(_, def)| *def);
            for owned in at - comments as usize..=at {
                self.owner[owned] = parent;
            }
            comments = 0;
            // An open block extends to this line.
            for (_, def) in &open {
                self.defs[*def as usize].lines.end = number + 1;
            }
            let first = self.token(line.first);
            if first == "@" {
                decorators = match decorators {
                    Some((start, indent)) if indent == line.indent => Some((start, indent)),
                    _ => Some((number, line.indent)),
                };
                continue;
            }
            let start = decorators.take().filter(|(_, indent)| *indent == line.indent);
            let start = start.map_or(number, |(start, _)| start);
            let keyword = if first == "async" { line.first + 1 } else { line.first };
            let named = keyword + 1 < line.end && self.tokens[keyword as usize + 1].kind == TokenKind::Name;
            match self.token(keyword) {
                "global" => {
                    let names = (keyword + 1..line.end).map(|at| self.token(at).to_owned());
                    globals.extend(
                        parent.into_iter().flat_map(|parent| names.clone().map(move |name| (parent, name))),
                    );
                }
                word @ ("def" | "class") if named && open.len() < MAX_NESTING => {
                    let name = self.token(keyword + 1).to_owned();
                    let home = parent.filter(|parent| !globals.contains(&(*parent, name.clone())));
                    let def = self.add_compound(word, keyword + 1, home, start, number);
                    for owned in start..=number {
                        self.owner[owned as usize] = Some(def);
                    }
                    open.push((line.indent, def));
                }
                _ => self.add_bindings(number, line, parent, &mut attributes),
            }
        }
        // Comments at the end of the text belong to the module.
    }

    fn add_compound(&mut self, word: &str, name: u32, parent: Option<u32>, start: u32, header: u32) -> u32 {
        let in_class = parent.is_some_and(|parent| self.defs[parent as usize].kind == DefinitionKind::Class);
        let is_property = || {
            (start..header).any(|line| {
                let line = self.lines[line as usize];
                let end = (line.first..line.end).find(|&at| self.token(at) == "(").unwrap_or(line.end);
                let last =
                    (line.first..end).rev().find(|&at| self.tokens[at as usize].kind == TokenKind::Name);
                last.is_some_and(|at| {
                    let accessor = matches!(self.token(at), "setter" | "deleter" | "getter");
                    self.token(at).ends_with("property") || (accessor && at > line.first + 1)
                })
            })
        };
        let kind = match word {
            "class" => DefinitionKind::Class,
            _ if in_class && is_property() => DefinitionKind::Property,
            _ if in_class => DefinitionKind::Method,
            _ => DefinitionKind::Function,
        };
        let line = self.lines[header as usize];
        let mut depth = 0_usize;
        let mut body = line.end;
        for at in name + 1..line.end {
            match self.token(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                ":" if depth == 0 => {
                    body = at + 1;
                    break;
                }
                _ => {}
            }
        }
        self.defs.push(Def { kind, name, parent, lines: start..header + 1, header, body });
        u32::try_from(self.defs.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds the names that a statement binds: in a module or class by assignment, `type`, `for`, `with` and `:=`; in a method
    /// the attributes of its first parameter.
    fn add_bindings(
        &mut self,
        number: u32,
        line: LogicalLine,
        parent: Option<u32>,
        attributes: &mut BTreeSet<(u32, &'t str)>,
    ) {
        let scope = parent.map(|parent| self.defs[parent as usize].kind);
        let (receiver, owner) = match scope {
            None | Some(DefinitionKind::Class) => (None, parent),
            Some(DefinitionKind::Method | DefinitionKind::Property) => {
                let method = &self.defs[parent.unwrap_or_default() as usize];
                let first = self.parameters(method).first().map(|(name, _)| *name);
                let Some(receiver) = first else { return };
                (Some(receiver), method.parent)
            }
            Some(_) => return,
        };
        self.add_header_bindings(number, line, owner, receiver, attributes);
        let mut depth = 0_usize;
        let mut target = line.first;
        for at in line.first..line.end {
            match self.token(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "=" | ":" if depth == 0 => {
                    let is_annotation = self.token(at) == ":";
                    // The header of a compound statement binds nothing here.
                    if is_annotation && target + 1 != at && !(receiver.is_some() && target + 3 == at) {
                        return;
                    }
                    self.add_targets(target..at, number, owner, receiver, attributes);
                    target = at + 1;
                    if is_annotation {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the names that `type`, `for` and `with` bind, and `:=` anywhere in a line.
    fn add_header_bindings(
        &mut self,
        number: u32,
        line: LogicalLine,
        owner: Option<u32>,
        receiver: Option<&str>,
        attributes: &mut BTreeSet<(u32, &'t str)>,
    ) {
        let is_name = |structure: &Self, at: u32| structure.tokens[at as usize].kind == TokenKind::Name;
        let text = |structure: &Self, at: u32| if at < line.end { structure.token(at) } else { "" };
        let first = if self.token(line.first) == "async" { line.first + 1 } else { line.first };
        match text(self, first) {
            "type"
                if first + 1 < line.end
                    && is_name(self, first + 1)
                    && matches!(text(self, first + 2), "=" | "[") =>
            {
                self.add_targets(first + 1..first + 2, number, owner, receiver, attributes);
            }
            "for" => {
                let end = (first + 1..line.end).find(|&at| self.token(at) == "in");
                self.add_targets(first + 1..end.unwrap_or(first + 1), number, owner, receiver, attributes);
            }
            "with" => {
                for at in first + 1..line.end {
                    if self.token(at) == "as" {
                        let end = self.target_end(at + 1, line.end);
                        self.add_targets(at + 1..end, number, owner, receiver, attributes);
                    }
                }
            }
            _ => {}
        }
        if receiver.is_none() {
            for at in line.first..line.end.saturating_sub(1) {
                if is_name(self, at) && self.token(at + 1) == ":=" {
                    self.add_targets(at..at + 1, number, owner, receiver, attributes);
                }
            }
        }
    }

    /// The end of the target that starts at a token: a group in brackets, or a dotted name.
    fn target_end(&self, from: u32, end: u32) -> u32 {
        let mut depth = 0_usize;
        for at in from..end {
            match self.token(at) {
                "(" | "[" => depth += 1,
                ")" | "]" if depth == 1 => return at + 1,
                ")" | "]" if depth > 1 => depth -= 1,
                "." => {}
                _ if depth == 0 && self.tokens[at as usize].kind != TokenKind::Name => return at,
                _ => {}
            }
        }
        end
    }

    fn add_targets(
        &mut self,
        span: std::ops::Range<u32>,
        number: u32,
        owner: Option<u32>,
        receiver: Option<&str>,
        attributes: &mut BTreeSet<(u32, &'t str)>,
    ) {
        let mut at = span.start;
        while at < span.end {
            let is_name = self.tokens[at as usize].kind == TokenKind::Name;
            let next = if at + 1 < span.end { self.token(at + 1) } else { "" };
            let name = match (receiver, self.token(at)) {
                (None, _) if is_name && matches!(next, "" | "," | ")" | "]") => Some(at),
                (Some(receiver), text) if text == receiver && next == "." && at + 2 < span.end => {
                    let ends = at + 3 >= span.end || matches!(self.token(at + 3), "," | ")" | "]");
                    let fresh = owner.is_some_and(|class| attributes.insert((class, self.token(at + 2))));
                    at += 2;
                    Some(at).filter(|_| ends && fresh)
                }
                (_, "(" | "[" | "," | "*") => None,
                _ if matches!(next, "," | "") => None,
                // Anything longer is not a name: skip to the next comma.
                _ => {
                    while at < span.end && self.token(at) != "," {
                        at += 1;
                    }
                    None
                }
            };
            if let Some(name) = name {
                let kind = match (receiver, owner) {
                    (Some(_), _) => DefinitionKind::Attribute,
                    (None, Some(_)) => DefinitionKind::Field,
                    (None, None) => DefinitionKind::Variable,
                };
                let lines = number..number + 1;
                self.defs.push(Def { kind, name, parent: owner, lines, header: number, body: name + 1 });
            }
            at += 1;
        }
    }
}

/// Whether this is a class or a function.
pub(crate) const fn is_compound(kind: DefinitionKind) -> bool {
    kind.is_function() || matches!(kind, DefinitionKind::Class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let structure = TextStructure::new(text);
        let of = |index: usize| {
            let def = &structure.defs[index];
            let shape = structure.shape_letters(def);
            let names = structure.chain(u32::try_from(index).unwrap()).join(".");
            format!("{} {names} {shape} {}", def.kind.as_str(), &structure.text[structure.header_span(def)])
        };
        (0..structure.defs.len()).map(of).collect()
    }

    #[test]
    fn definitions_by_indentation() {
        let text = "X, (Y, z.a) = 1, 2\n@d(1)\nclass C(B, metaclass=M):\n    f: int = 3\n    # c\n    def m(self, a, b=1, *c, d, e=2, **k) -> T[a:b]:\n        self.x = self.y = 1\n        self.x = 2\n        def inner(): pass\n    @property\n    def p(self): return 1\n\nif a:\n    async def g[T](x: int, /, *, y): pass\nq: int\n";
        assert_eq!(
            shown(text),
            [
                "variable X  X",
                "variable Y  X, (Y",
                "class C  class C(B, metaclass=M):",
                "field C.f  f",
                "method C.m ppdanmk def m(self, a, b=1, *c, d, e=2, **k) -> T[a:b]:",
                "attribute C.x  self.x",
                "attribute C.y  self.x = self.y",
                "function C.m.inner  def inner():",
                "property C.p p def p(self):",
                "function g pn async def g[T](x: int, /, *, y):",
                "variable q  q",
            ]
        );
        let structure = TextStructure::new(text);
        let class = &structure.defs[2];
        let last = structure.token_range(class).end - 1;
        assert!(structure.text[..structure.tokens[last].end as usize].ends_with("return 1"));
        assert_eq!(class.lines.start, 1);
    }

    #[test]
    fn bindings_of_other_statements() {
        let text = "type A[T] = list[T]\nif (b := f()) and g(c := 1):\n    pass\nfor d, (e, *f) in x:\n    pass\nwith (o(p) as g, q as (h, i)):\n    pass\nclass C:\n    for k in 1, 2:\n        type B = int\n    def m(self):\n        with o() as self.l:\n            for n in 1, 2:\n                type = 3\ntype = 4\n";
        let found: Vec<String> =
            shown(text).iter().map(|line| line.split("  ").next().unwrap().to_owned()).collect();
        assert_eq!(
            found,
            [
                "variable A",
                "variable b",
                "variable c",
                "variable d",
                "variable e",
                "variable f",
                "variable g",
                "variable h",
                "variable i",
                "class C",
                "field C.k",
                "field C.B",
                "method C.m p def m(self):",
                "attribute C.l",
                "variable type",
            ]
        );
    }
}
