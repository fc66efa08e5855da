//! The true locations of targets of one release in a later one, by evidence independent of relocation:
//!
//! - the same qualified name, once in the same file of both releases: unchanged, shifted, or edited;
//! - the name is gone from its file, and its body, line by line and with its own name blanked, occurs once in the old release and
//!   once in the new one, in a new definition: moved or renamed;
//! - the same for its docstring, if that is long: moved or renamed, and edited;
//! - no new definition has the name, and hardly any distinctive line of the body is new anywhere in the new release: deleted.
//!
//! Other definitions are not used. For every definition with a known location, some of its statements are cases too, if the line
//! occurs exactly once in the definition before and after.

use std::collections::{BTreeMap, BTreeSet};

use lanser::internal::python::outline::Outline;

use crate::cases::{Case, Seeded, Tree, Truth};

/// A file and a qualified name.
type Place = (String, String);

/// A definition with the data used as evidence.
pub(crate) struct KnownDefinition {
    pub(crate) path: String,
    pub(crate) chain: String,
    pub(crate) name: String,
    pub(crate) name_at: std::ops::Range<usize>,
    pub(crate) span: std::ops::Range<usize>,
    pub(crate) signature: String,
    /// The trimmed lines of the body, with the name blanked.
    pub(crate) body: Vec<String>,
    pub(crate) doc: String,
    pub(crate) is_class: bool,
}

pub(crate) fn definitions(tree: &Tree) -> Vec<KnownDefinition> {
    let mut all = Vec::new();
    for (path, document) in &tree.files {
        let text = &document.text;
        let outline = Outline::parse(text);
        for (index, definition) in outline.definitions.iter().enumerate() {
            let (Some(signature), Some(body)) = (&definition.signature, &definition.body) else { continue };
            if definition.has_error {
                continue;
            }
            let doc = definition.doc.clone().and_then(|doc| text.get(doc)).unwrap_or_default();
            let blank = |line: &str| {
                line.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_')
                    .map(|word| {
                        if word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_')
                            == definition.name
                        {
                            "§"
                        } else {
                            word
                        }
                    })
                    .collect::<String>()
            };
            let without_doc = text[body.clone()].replacen(doc, "", 1);
            let lines = without_doc.lines().map(|line| blank(line.trim())).filter(|line| !line.is_empty());
            all.push(KnownDefinition {
                path: path.clone(),
                chain: outline.names(index).join("."),
                name: definition.name.clone(),
                name_at: definition.name_span.clone(),
                span: definition.span.clone(),
                signature: text[signature.clone()].split_whitespace().collect::<Vec<_>>().join(" "),
                body: lines.filter(|line| !line.starts_with('#')).map(|line| line.to_owned()).collect(),
                doc: doc.split_whitespace().collect::<Vec<_>>().join(" "),
                is_class: text[signature.clone()].starts_with("class"),
            });
        }
    }
    all
}

fn once<'k, K: Ord>(
    known: &'k [KnownDefinition],
    key: impl Fn(&'k KnownDefinition) -> Option<K>,
) -> BTreeMap<K, &'k KnownDefinition> {
    let mut found: BTreeMap<K, Option<&KnownDefinition>> = BTreeMap::new();
    for one in known {
        if let Some(key) = key(one) {
            found.entry(key).and_modify(|other| *other = None).or_insert(Some(one));
        }
    }
    found.into_iter().filter_map(|(key, one)| Some((key, one?))).collect()
}

fn body_key(known: &KnownDefinition) -> Option<(bool, String)> {
    let text = known.body.join("\n");
    (known.body.len() >= 3 && text.len() >= 60).then_some((known.is_class, text))
}

fn doc_key(known: &KnownDefinition) -> Option<(bool, String)> {
    (known.doc.len() >= 60).then(|| (known.is_class, known.doc.clone()))
}

pub(crate) fn cases(old: &Tree, new: &Tree, seed: u64, most: usize) -> Vec<Case> {
    let (olds, news) = (definitions(old), definitions(new));
    let place = |known: &KnownDefinition| (known.path.clone(), known.chain.clone());
    let (old_places, new_places) =
        (once(&olds, |known| Some(place(known))), once(&news, |known| Some(place(known))));
    let all_old: BTreeSet<_> = olds.iter().map(place).collect();
    let all_new: BTreeSet<_> = news.iter().map(place).collect();
    let (old_bodies, new_bodies) = (once(&olds, body_key), once(&news, body_key));
    let (old_docs, new_docs) = (once(&olds, doc_key), once(&news, doc_key));
    let new_names: BTreeSet<&str> = news
        .iter()
        .filter(|known| !all_old.contains(&place(known)))
        .map(|known| known.name.as_str())
        .collect();
    let lines = |tree: &Tree| -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        for line in tree.files.values().flat_map(|file| file.text.lines()) {
            *lines.entry(line.trim().to_owned()).or_insert(0) += 1;
        }
        lines
    };
    let (old_lines, new_lines) = (lines(old), lines(new));
    // Lines removed with a definition: there are fewer of them.
    let is_gone = |line: &str| {
        let count = |lines: &BTreeMap<String, usize>| lines.get(line).copied().unwrap_or_default();
        count(&new_lines) < count(&old_lines)
    };
    let orders = orders(&olds, &news);
    let mut found: Vec<(String, &KnownDefinition, Option<&KnownDefinition>)> = Vec::new();
    for known in &olds {
        let at = place(known);
        if let (Some(_), Some(&now)) = (old_places.get(&at), new_places.get(&at)) {
            let same = old.files[&known.path].text[known.span.clone()]
                == new.files[&now.path].text[now.span.clone()];
            let category = if orders.contains(&at) && same {
                "moved within"
            } else if same && known.span == now.span {
                "unchanged"
            } else if same {
                "shifted"
            } else if known.signature != now.signature {
                "signature edited"
            } else {
                "body edited"
            };
            found.push((category.to_owned(), known, Some(now)));
            continue;
        }
        if all_new.contains(&at) {
            continue;
        }
        let by_body = body_key(known)
            .filter(|key| old_bodies.contains_key(key))
            .and_then(|key| new_bodies.get(&key).copied());
        let by_doc = doc_key(known)
            .filter(|key| old_docs.contains_key(key))
            .and_then(|key| new_docs.get(&key).copied());
        if let Some(now) = by_body.or(by_doc) {
            if all_old.contains(&place(now)) {
                continue;
            }
            let category = if now.name != known.name {
                "renamed"
            } else if now.path != known.path {
                "moved across"
            } else {
                "moved within"
            };
            let category =
                if by_body.is_some() { category.to_owned() } else { format!("{category} and edited") };
            found.push((category, known, Some(now)));
            continue;
        }
        let telling: Vec<&String> =
            known.body.iter().filter(|line| line.len() >= 20 && !line.contains('§')).collect();
        let left = telling.iter().filter(|line| !is_gone(line)).count();
        if telling.len() >= 3 && left * 10 <= telling.len() && !new_names.contains(known.name.as_str()) {
            found.push(("deleted".to_owned(), known, None));
        }
    }
    let mut random = Seeded(seed);
    let mut by_category: BTreeMap<String, Vec<(&KnownDefinition, Option<&KnownDefinition>)>> =
        BTreeMap::new();
    for (category, known, now) in found {
        by_category.entry(category).or_default().push((known, now));
    }
    let mut cases = Vec::new();
    for (category, mut known) in by_category {
        while known.len() > most {
            known.swap_remove(random.below(known.len()));
        }
        for (was, now) in known {
            let truth = now.map_or(Truth::Gone, |now| Truth::At(now.path.clone(), now.name_at.start));
            let what = format!("{}:{}", was.path, was.chain);
            cases.push(Case::new(&category, what.clone(), old, &was.path, was.name_at.clone(), truth));
            let statements = statements(old, new, was, now, &category, &what, &mut random);
            let known = |case: &Case| now.is_some() || is_gone(case.line.trim());
            cases.extend(statements.into_iter().filter(known));
        }
    }
    cases
}

/// Some statements of a definition.
fn statements(
    old: &Tree,
    new: &Tree,
    was: &KnownDefinition,
    now: Option<&KnownDefinition>,
    category: &str,
    what: &str,
    random: &mut Seeded,
) -> Vec<Case> {
    let lines = |text: &str, span: &std::ops::Range<usize>| -> Vec<(String, usize)> {
        let mut offset = span.start;
        let mut lines = Vec::new();
        for line in text[span.clone()].split_inclusive('\n') {
            let start = offset + (line.len() - line.trim_start().len());
            lines.push((line.trim().to_owned(), start));
            offset += line.len();
        }
        lines
    };
    let before = lines(&old.files[&was.path].text, &was.span);
    let after = now.map(|now| lines(&new.files[&now.path].text, &now.span)).unwrap_or_default();
    let mut cases = Vec::new();
    for _ in 0..2 {
        let (line, start) = &before[random.below(before.len())];
        let count = |lines: &[(String, usize)]| lines.iter().filter(|(other, _)| other == line).count();
        if line.len() < 12 || *start == was.span.start || count(&before) != 1 {
            continue;
        }
        let truth = match now {
            None => Truth::Gone,
            Some(now) if count(&after) == 1 => {
                let at = after.iter().find(|(other, _)| other == line).map(|(_, at)| *at).unwrap_or_default();
                Truth::At(now.path.clone(), at)
            }
            Some(_) => continue,
        };
        let name = format!("{category}: statement");
        cases.push(Case::new(
            &name,
            format!("{what}: {line}"),
            old,
            &was.path,
            *start..start + line.len(),
            truth,
        ));
    }
    cases
}

/// Definitions whose order changed among those of the same scope: those outside of the longest common subsequence.
fn orders(olds: &[KnownDefinition], news: &[KnownDefinition]) -> BTreeSet<Place> {
    let scope = |known: &KnownDefinition| {
        (
            known.path.clone(),
            known.chain.rsplit_once('.').map_or(String::new(), |(scope, _)| scope.to_owned()),
        )
    };
    let mut now: BTreeMap<Place, usize> = BTreeMap::new();
    for (index, known) in news.iter().enumerate() {
        now.insert((known.path.clone(), known.chain.clone()), index);
    }
    let mut scopes: BTreeMap<Place, Vec<(usize, Place)>> = BTreeMap::new();
    for known in olds {
        let key = (known.path.clone(), known.chain.clone());
        if let Some(&index) = now.get(&key) {
            scopes.entry(scope(known)).or_default().push((index, key));
        }
    }
    let mut moved = BTreeSet::new();
    for members in scopes.into_values() {
        let mut best: Vec<(usize, Option<usize>)> = Vec::new();
        for (i, (index, _)) in members.iter().enumerate() {
            let before = (0..i).filter(|&j| members[j].0 < *index).max_by_key(|&j| best[j].0);
            best.push((before.map_or(1, |j| best[j].0 + 1), before));
        }
        let mut at = (0..best.len()).max_by_key(|&i| best[i].0);
        let mut kept = BTreeSet::new();
        while let Some(i) = at {
            kept.insert(i);
            at = best[i].1;
        }
        moved.extend(
            members.into_iter().enumerate().filter(|(i, _)| !kept.contains(i)).map(|(_, (_, key))| key),
        );
    }
    moved
}
