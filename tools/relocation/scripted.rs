//! Seeded refactorings of real code, one at a time, so that the truth is known by construction.

use crate::cases::{Case, Seeded, Tree, Truth};
use crate::truth::{KnownDefinition, definitions};

type Change = (Tree, Vec<Case>);
/// A kind of change; `None` where it is not possible.
type Sort = fn(&Tree, &[&KnownDefinition], &KnownDefinition, &mut Seeded) -> Option<Change>;

/// At most `most` changes of each kind.
pub(crate) fn changes(old: &Tree, seed: u64, most: usize) -> Vec<Change> {
    let mut random = Seeded(seed ^ 0x5c21);
    let known = definitions(old);
    let functions: Vec<&KnownDefinition> =
        known.iter().filter(|known| !known.is_class && known.body.len() >= 3).collect();
    let mut changes = Vec::new();
    if functions.is_empty() {
        return changes;
    }
    let sorts: [Sort; 10] = [
        rename,
        rename_and_edit,
        move_out,
        move_out_and_edit,
        swap,
        edit_body,
        edit_signature,
        delete_beside_twin,
        split,
        two_copies,
    ];
    for sort in sorts {
        for _ in 0..most.div_ceil(4) {
            let target = functions[random.below(functions.len())];
            changes.extend(sort(old, &functions, target, &mut random));
        }
    }
    changes
}

fn text<'o>(old: &'o Tree, known: &KnownDefinition) -> &'o str {
    &old.files[&known.path].text
}

/// The whole lines of a definition, decorators included.
fn block(text: &str, known: &KnownDefinition) -> std::ops::Range<usize> {
    let mut start = text[..known.span.start].rfind('\n').map_or(0, |at| at + 1);
    while let Some(above) =
        text[..start].strip_suffix('\n').map(|above| above.rfind('\n').map_or(0, |at| at + 1))
    {
        if !text[above..start].trim_start().starts_with('@') {
            break;
        }
        start = above;
    }
    let end = text[known.span.end..].find('\n').map_or(text.len(), |at| known.span.end + at + 1);
    start..end
}

fn replace_word(text: &str, word: &str, by: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut last = 0;
    for (at, _) in text.match_indices(word) {
        let whole = !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word);
        if whole && at >= last {
            out.push_str(&text[last..at]);
            out.push_str(by);
            last = at + word.len();
        }
    }
    out.push_str(&text[last..]);
    out
}

/// The offset of `def name`, if it occurs exactly once.
fn definition_of(text: &str, name: &str) -> Option<usize> {
    let head = format!("def {name}(");
    let mut found = text.match_indices(&head).map(|(at, _)| at + 4);
    found.next().filter(|_| found.next().is_none())
}

fn with(old: &Tree, path: &str, text: String) -> Tree {
    let mut new = old.clone();
    new.set(path, text);
    new
}

fn case(old: &Tree, known: &KnownDefinition, category: &str, truth: Truth) -> Case {
    Case::new(
        category,
        format!("{}:{}", known.path, known.chain),
        old,
        &known.path,
        known.name_at.clone(),
        truth,
    )
}

fn is_once(old: &Tree, known: &KnownDefinition) -> bool {
    definition_of(text(old, known), &known.name).is_some()
}

fn other_name(name: &str, random: &mut Seeded) -> String {
    let words = ["build", "python", "entry", "handle", "inner", "payload", "collect", "render_all"];
    match random.below(3) {
        0 => format!("_{name}"),
        1 => format!("{name}_{}", words[random.below(words.len())]),
        _ => format!("{}_{}", words[random.below(words.len())], random.below(1000)),
    }
}

/// Edits some lines of a body: adds an argument, deletes a line, inserts a line.
fn edited(block: &str, share: usize, random: &mut Seeded) -> String {
    let mut out = String::new();
    let mut begun = false;
    for line in block.split_inclusive('\n') {
        let plain =
            begun && line.trim_end().ends_with(')') && !line.trim_start().starts_with(['@', '#', '"', '\'']);
        begun |= line.trim_end().ends_with(':');
        if plain && random.below(100) < share {
            let at = line.rfind(')').unwrap_or_default();
            let separator = if line[..at].ends_with(['(', ',']) { "" } else { ", " };
            out.extend([&line[..at], separator, "flag=True", &line[at..]]);
        } else {
            out.push_str(line);
        }
    }
    out
}

fn rename_as(
    old: &Tree,
    target: &KnownDefinition,
    random: &mut Seeded,
    share: usize,
    category: &str,
) -> Option<Change> {
    let text = text(old, target);
    if target.name.starts_with("__") || !is_once(old, target) {
        return None;
    }
    let name = other_name(&target.name, random);
    let span = block(text, target);
    let changed =
        format!("{}{}{}", &text[..span.start], edited(&text[span.clone()], share, random), &text[span.end..]);
    let mut new = with(old, &target.path, changed);
    for (path, document) in new.files.clone() {
        if document.text.contains(&target.name) {
            new.set(&path, replace_word(&document.text, &target.name, &name));
        }
    }
    let at = definition_of(new.text(&target.path)?, &name)?;
    let case = case(old, target, category, Truth::At(target.path.clone(), at));
    Some((new, vec![case]))
}

fn rename(
    old: &Tree,
    _: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    rename_as(old, target, random, 0, "renamed")
}

fn rename_and_edit(
    old: &Tree,
    _: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    rename_as(old, target, random, 40, "renamed and edited")
}

fn move_as(
    old: &Tree,
    all: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
    share: usize,
    category: &str,
) -> Option<Change> {
    let text = text(old, target);
    let other = all[random.below(all.len())];
    if target.chain.contains('.') || other.path == target.path || !is_once(old, target) {
        return None;
    }
    let there = old.text(&other.path)?;
    if definition_of(there, &target.name).is_some() {
        return None;
    }
    let span = block(text, target);
    let moved = edited(&text[span.clone()], share, random);
    let rest = format!("{}{}", &text[..span.start], &text[span.end..]);
    let mut new = with(old, &target.path, rest);
    new.set(&other.path, format!("{}\n\n{moved}", there.trim_end()));
    let at = definition_of(new.text(&other.path)?, &target.name)?;
    Some((new, vec![case(old, target, category, Truth::At(other.path.clone(), at))]))
}

fn move_out(
    old: &Tree,
    all: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    move_as(old, all, target, random, 0, "moved across")
}

fn move_out_and_edit(
    old: &Tree,
    all: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    move_as(old, all, target, random, 40, "moved across and edited")
}

/// Swaps the definition with the next one in its scope.
fn swap(old: &Tree, all: &[&KnownDefinition], target: &KnownDefinition, _: &mut Seeded) -> Option<Change> {
    let text = text(old, target);
    let scope = |known: &KnownDefinition| known.chain.rsplit_once('.').map(|(scope, _)| scope.to_owned());
    let next = all.iter().find(|other| {
        other.path == target.path && other.span.start > target.span.end && scope(other) == scope(target)
    })?;
    if !is_once(old, target) {
        return None;
    }
    let (a, b) = (block(text, target), block(text, next));
    if b.start < a.end {
        return None;
    }
    let changed = format!(
        "{}{}{}{}{}",
        &text[..a.start],
        &text[b.clone()],
        &text[a.end..b.start],
        &text[a.clone()],
        &text[b.end..]
    );
    let at = definition_of(&changed, &target.name)?;
    let truth = Truth::At(target.path.clone(), at);
    Some((with(old, &target.path, changed), vec![case(old, target, "moved within", truth)]))
}

fn edit_body(
    old: &Tree,
    _: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    let text = text(old, target);
    let span = block(text, target);
    let changed = edited(&text[span.clone()], 60, random);
    if changed == text[span.clone()] || !is_once(old, target) {
        return None;
    }
    let changed = format!("import x\n{}{changed}{}", &text[..span.start], &text[span.end..]);
    let at = definition_of(&changed, &target.name)?;
    let truth = Truth::At(target.path.clone(), at);
    Some((with(old, &target.path, changed), vec![case(old, target, "body edited", truth)]))
}

fn edit_signature(
    old: &Tree,
    _: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    let text = text(old, target);
    let open = target.name_at.end;
    if !text[open..].starts_with('(') || !is_once(old, target) {
        return None;
    }
    let changed = match random.below(3) {
        0 => format!("{}\n        extra: int = 0,\n        {}", &text[..=open], &text[open + 1..]),
        1 => format!("{}*rest, {}", &text[..=open], &text[open + 1..]),
        _ => {
            let close = target.span.start + text[target.span.clone()].find("):")?;
            format!("{}, *, mode: str = 'x') -> Any:{}", &text[..close], &text[close + 2..])
        }
    };
    let at = definition_of(&changed, &target.name)?;
    let truth = Truth::At(target.path.clone(), at);
    Some((with(old, &target.path, changed), vec![case(old, target, "signature edited", truth)]))
}

/// A near-duplicate existed before; the target is deleted.
fn delete_beside_twin(
    old: &Tree,
    _: &[&KnownDefinition],
    target: &KnownDefinition,
    random: &mut Seeded,
) -> Option<Change> {
    let text = text(old, target);
    if !is_once(old, target) {
        return None;
    }
    let span = block(text, target);
    let twin =
        edited(&replace_word(&text[span.clone()], &target.name, &format!("{}_too", target.name)), 30, random);
    let before = format!("{}{}{twin}{}", &text[..span.start], &text[span.clone()], &text[span.end..]);
    let after = format!("{}{twin}{}", &text[..span.start], &text[span.end..]);
    // The old state has the duplicate too, so this case has its own old text.
    let old = with(old, &target.path, before);
    let mut case = case(&old, target, "deleted beside a twin", Truth::Gone);
    case.old = old.text(&target.path).map(str::to_owned);
    Some((with(&old, &target.path, after), vec![case]))
}

/// Moves the second half of the body into a new function.
fn split(old: &Tree, _: &[&KnownDefinition], target: &KnownDefinition, _: &mut Seeded) -> Option<Change> {
    let text = text(old, target);
    if target.chain.contains('.') || !is_once(old, target) || target.body.len() < 8 {
        return None;
    }
    let span = block(text, target);
    let lines: Vec<&str> = text[span.clone()].split_inclusive('\n').collect();
    let body = |line: &&str| {
        line.starts_with("    ")
            && !line.starts_with("     ")
            && !line.trim_start().starts_with(['"', '\'', ')', '#'])
    };
    let starts: Vec<usize> = (lines.len() / 2..lines.len()).filter(|&at| body(&lines[at])).collect();
    let &cut = starts.first()?;
    if ["elif", "else", "except", "finally"].iter().any(|word| lines[cut].trim_start().starts_with(word))
        || text[span.clone()].contains("\"\"\"")
    {
        return None;
    }
    let rest = format!("_{}_rest", target.name);
    let (head, tail) = (lines[..cut].concat(), lines[cut..].concat());
    let changed = format!(
        "{}{head}    return {rest}()\n\n\ndef {rest}():\n{tail}{}",
        &text[..span.start],
        &text[span.end..]
    );
    let at = definition_of(&changed, &target.name)?;
    let mut cases = vec![case(old, target, "split", Truth::At(target.path.clone(), at))];
    let line = lines[cut].trim();
    if line.len() >= 20 && text.matches(line).count() == 1 {
        let was = text.find(line)?;
        let truth = Truth::At(target.path.clone(), changed.find(line)?);
        cases.push(Case::new(
            "split: statement",
            line.to_owned(),
            old,
            &target.path,
            was..was + line.len(),
            truth,
        ));
    }
    Some((with(old, &target.path, changed), cases))
}

/// Replaces the definition by two equal copies under new names, which is ambiguous.
fn two_copies(
    old: &Tree,
    _: &[&KnownDefinition],
    target: &KnownDefinition,
    _: &mut Seeded,
) -> Option<Change> {
    let text = text(old, target);
    if !is_once(old, target) || target.name.starts_with("__") {
        return None;
    }
    let span = block(text, target);
    let copy = |name: &str| replace_word(&text[span.clone()], &target.name, name);
    let changed = format!(
        "{}{}\n{}{}",
        &text[..span.start],
        copy("first_variant"),
        copy("other_variant"),
        &text[span.end..]
    );
    Some((with(old, &target.path, changed), vec![case(old, target, "ambiguous", Truth::Ambiguous)]))
}
