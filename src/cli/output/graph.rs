//! `calls` as a graph, for Mermaid and Graphviz. Edges lead from the caller to the called function.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use super::text::{self, compiler_location};
use super::{Printer, screen};
use crate::model::bundle::Bundle;
use crate::model::facts::{Call, CompletenessStatus, Facts, Symbol, UnresolvedOccurrence};
use crate::model::request::Direction;
use crate::model::resolution::Resolved;
use crate::path::DocUri;
use crate::text::plural;

/// The call graph of a bundle. Nodes are sorted by location, so that their IDs do not depend on the order of edges.
#[derive(Debug, Default)]
pub(super) struct CallGraph {
    nodes: Vec<CallNode>,
    edges: BTreeMap<(usize, usize), CallCount>,
    /// What the graph does not show.
    notes: Vec<String>,
}

/// A function, or a place that may call one.
#[derive(Debug)]
struct CallNode {
    name: String,
    place: String,
    kind: NodeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    /// What the selector refers to.
    Target,
    /// Another function of the workspace.
    Inside,
    /// A function of a library.
    Outside,
    /// A place that may be a call.
    Unresolved,
}

/// How many calls an edge stands for.
#[derive(Debug, Clone, Copy, Default)]
struct CallCount {
    sites: usize,
    is_unresolved: bool,
}

/// Prints the graph. Errors and warnings go where those of the text output go.
pub(super) fn print(
    printer: &Printer,
    bundle: &Bundle,
    write: impl Fn(&CallGraph) -> String,
) -> io::Result<()> {
    let Some(graph) = bundle.facts.as_ref().and_then(|facts| CallGraph::of(bundle, facts)) else {
        return text::print(printer, bundle);
    };
    if !bundle.warnings.is_empty() {
        printer.complain(&format!("warning: {}", screen::quoted(&bundle.warnings.join("; "))));
    }
    screen::write(&write(&graph))?;
    for note in &graph.notes {
        printer.complain(&format!("warning: {}", screen::quoted(note)));
    }
    if let Some(error) = &bundle.error {
        printer.complain(text::error_text(printer, bundle, error).trim_end());
    }
    Ok(())
}

/// What identifies a node: its file, the position of its name, and its name.
type NodeKey = (String, u32, u32, String);

fn key(symbol: &Symbol) -> NodeKey {
    let start = symbol.selection_range.unwrap_or(symbol.range).start;
    (symbol.uri.to_string(), start.line, start.column, symbol.name.clone())
}

impl CallGraph {
    /// The graph of an answer to `calls`; `None` for other answers.
    fn of(bundle: &Bundle, facts: &Facts) -> Option<Self> {
        let calls = facts.calls.as_ref()?;
        let target = calls.iter().find(|call| call.depth == 1).map(|call| match call.direction {
            Direction::Incoming => key(&call.callee),
            Direction::Outgoing => key(&call.caller),
        });
        let mut symbols: BTreeMap<NodeKey, &Symbol> = BTreeMap::new();
        for call in calls {
            symbols.insert(key(&call.caller), &call.caller);
            symbols.insert(key(&call.callee), &call.callee);
        }
        let mut graph = Self::default();
        let mut numbers: BTreeMap<NodeKey, usize> = BTreeMap::new();
        for (key, symbol) in symbols {
            let kind = match &symbol.uri {
                _ if target.as_ref() == Some(&key) => NodeKind::Target,
                DocUri::Workspace(_) => NodeKind::Inside,
                DocUri::Env(_) | DocUri::Server(_) | DocUri::File(_) => NodeKind::Outside,
            };
            numbers.insert(key, graph.nodes.len());
            graph.nodes.push(CallNode { name: text::qualified(symbol), place: place(&symbol.at), kind });
        }
        for call in calls {
            graph.add_call(call, &numbers);
        }
        let resolved = bundle.resolution.as_ref().and_then(|resolution| resolution.resolved.as_ref());
        let mut target = target.map(|target| numbers[&target]);
        if let (None, Some(resolved)) = (target, resolved) {
            target = Some(graph.add_target(resolved));
        }
        graph.add_unresolved(bundle, facts, target);
        graph.note_limits(bundle, facts);
        Some(graph)
    }

    fn add_call(&mut self, call: &Call, numbers: &BTreeMap<NodeKey, usize>) {
        let ends = (numbers[&key(&call.caller)], numbers[&key(&call.callee)]);
        let count = self.edges.entry(ends).or_default();
        count.sites = count.sites.max(call.sites.len());
    }

    fn add_target(&mut self, resolved: &Resolved) -> usize {
        let name = resolved.qualname.clone().unwrap_or_default();
        self.nodes.push(CallNode { name, place: place(&resolved.at), kind: NodeKind::Target });
        self.nodes.len() - 1
    }

    /// Adds the places that may be calls. Of several levels it is not known which function they may call.
    fn add_unresolved(&mut self, bundle: &Bundle, facts: &Facts, target: Option<usize>) {
        let depth = bundle.request.as_ref().and_then(|request| request.options.depth).unwrap_or(1);
        let target = target.filter(|_| depth == 1);
        let items: &[UnresolvedOccurrence] =
            facts.completeness.as_ref().map_or(&[], |verdict| &verdict.unresolved.items);
        for item in items {
            let from = self.nodes.len();
            let name =
                item.receiver.as_ref().map_or_else(|| item.kind.clone(), |receiver| format!("{receiver}.…"));
            self.nodes.push(CallNode {
                name,
                place: compiler_location(&item.at),
                kind: NodeKind::Unresolved,
            });
            if let Some(target) = target {
                self.edges.insert((from, target), CallCount { sites: 1, is_unresolved: true });
            }
        }
    }

    fn note_limits(&mut self, bundle: &Bundle, facts: &Facts) {
        if let Some(limits) = bundle.meta.limits.as_ref().filter(|limits| limits.truncated) {
            self.notes.push(format!("the graph is cut at {} of {} items", limits.cap, limits.total));
        }
        let partial = facts.completeness.as_ref();
        if let Some(verdict) = partial.filter(|verdict| verdict.status != CompletenessStatus::Complete) {
            let unresolved = plural(verdict.unresolved.count, "unresolved place");
            let reason = verdict.reason.as_deref().unwrap_or_default();
            self.notes.push(format!("the graph is not complete: {unresolved} ({reason})"));
        }
    }
}

/// The file and line of a location.
fn place(at: &str) -> String {
    let location = compiler_location(at);
    location.rsplit_once(':').map_or(location.clone(), |(place, _)| place.to_owned())
}

/// A flowchart of Mermaid.
pub(super) fn write_mermaid(graph: &CallGraph) -> String {
    let mut out = String::from("flowchart LR\n");
    for note in &graph.notes {
        let _ = writeln!(out, "  %% {}", one_line(note));
    }
    for (id, node) in graph.nodes.iter().enumerate() {
        let class = match node.kind {
            NodeKind::Target => ":::target",
            NodeKind::Inside => "",
            NodeKind::Outside => ":::outside",
            NodeKind::Unresolved => ":::unresolved",
        };
        let _ = writeln!(out, "  n{id}[\"{}<br/>{}\"]{class}", mermaid(&node.name), mermaid(&node.place));
    }
    for ((from, to), count) in &graph.edges {
        let arrow = if count.is_unresolved { "-.->" } else { "-->" };
        let label = if count.sites > 1 { format!("|\"{} calls\"|", count.sites) } else { String::new() };
        let _ = writeln!(out, "  n{from} {arrow}{label} n{to}");
    }
    out.push_str("  classDef target stroke-width:3px\n");
    out.push_str("  classDef outside stroke-dasharray:4\n");
    out.push_str("  classDef unresolved stroke-dasharray:2,fill:none\n");
    out
}

/// A directed graph of Graphviz.
pub(super) fn write_dot(graph: &CallGraph) -> String {
    let mut out = String::from("digraph calls {\n  rankdir=LR;\n  node [shape=box];\n");
    for note in &graph.notes {
        let _ = writeln!(out, "  // {}", one_line(note));
    }
    for (id, node) in graph.nodes.iter().enumerate() {
        let style = match node.kind {
            NodeKind::Target => ", penwidth=3",
            NodeKind::Inside => "",
            NodeKind::Outside => ", style=dashed",
            NodeKind::Unresolved => ", style=dotted",
        };
        let _ = writeln!(out, "  n{id} [label=\"{}\\n{}\"{style}];", dot(&node.name), dot(&node.place));
    }
    for ((from, to), count) in &graph.edges {
        let mut attributes = Vec::new();
        if count.sites > 1 {
            attributes.push(format!("label=\"{} calls\"", count.sites));
        }
        if count.is_unresolved {
            attributes.push("style=dotted".to_owned());
        }
        let list =
            if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(", ")) };
        let _ = writeln!(out, "  n{from} -> n{to}{list};");
    }
    out.push_str("}\n");
    out
}

/// A text on one line, without characters that control a terminal.
fn one_line(text: &str) -> String {
    screen::quoted(&text.replace('\n', " ")).into_owned()
}

/// A text in a quoted label of Mermaid. Mermaid reads HTML entities written with `#` instead of `&`.
fn mermaid(text: &str) -> String {
    let mut label = String::new();
    for c in one_line(text).chars() {
        if matches!(c, '"' | '#' | '<' | '>' | '&' | '`' | '\\' | ';' | '|' | '{' | '}' | '[' | ']') {
            let _ = write!(label, "#{};", u32::from(c));
        } else {
            label.push(c);
        }
    }
    label
}

/// A text in a quoted string of the DOT language.
fn dot(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_leave_their_quotes() {
        assert_eq!(mermaid("a\"]<b>#;\n%"), "a#34;#93;#60;b#62;#35;#59; %");
        assert_eq!(dot("a\"\\];\n"), "a\\\"\\\\]; ");
    }

    #[test]
    fn both_forms_draw_the_same_edges() {
        let node = |name: &str, kind| CallNode { name: name.to_owned(), place: "a.py:1".to_owned(), kind };
        let graph = CallGraph {
            nodes: vec![
                node("f", NodeKind::Inside),
                node("g", NodeKind::Target),
                node("print", NodeKind::Outside),
                node("x.…", NodeKind::Unresolved),
            ],
            edges: BTreeMap::from([
                ((0, 1), CallCount { sites: 2, is_unresolved: false }),
                ((1, 2), CallCount { sites: 1, is_unresolved: false }),
                ((3, 1), CallCount { sites: 1, is_unresolved: true }),
            ]),
            notes: vec!["cut".to_owned()],
        };
        assert_eq!(
            write_mermaid(&graph).lines().skip(1).take(8).map(str::trim).collect::<Vec<_>>(),
            [
                "%% cut",
                "n0[\"f<br/>a.py:1\"]",
                "n1[\"g<br/>a.py:1\"]:::target",
                "n2[\"print<br/>a.py:1\"]:::outside",
                "n3[\"x.…<br/>a.py:1\"]:::unresolved",
                "n0 -->|\"2 calls\"| n1",
                "n1 --> n2",
                "n3 -.-> n1",
            ]
        );
        let dot = write_dot(&graph);
        for line in ["n0 -> n1 [label=\"2 calls\"];", "n1 -> n2;", "n3 -> n1 [style=dotted];"] {
            assert!(dot.lines().any(|told| told.trim() == line), "{dot}");
        }
    }
}
