//! Rule 8: changes that could pass for a repair, found by comparing the texts of both sides. Always reported; under the guarded
//! formula any flag except `tests_touched` caps the reward at 0.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::code::{Code, CodeSymbol};
use super::judge::SideCode;
use super::suppressions;
use crate::model::reward::Integrity;

/// The flags that the texts show. Flags that need more than texts stay 0.
pub(super) fn of(base: &SideCode<'_>, head: &SideCode<'_>, lineage: &BTreeMap<String, String>) -> Integrity {
    let names: BTreeSet<&str> = base.code.keys().chain(head.code.keys()).copied().collect();
    let text = |side: &SideCode<'_>, name: &str| side.view(name).map(|view| view.document.text.clone());
    let touched: Vec<&str> = names.into_iter().filter(|name| text(base, name) != text(head, name)).collect();
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let both = |pick: fn(&Code) -> u32| {
        let sum = |side: &SideCode<'_>| {
            touched.iter().filter_map(|name| side.code.get(name)).map(|code| pick(code)).sum::<u32>()
        };
        sum(head).saturating_sub(sum(base))
    };
    let texts = |side: &SideCode<'_>| -> Vec<(String, String)> {
        touched.iter().filter_map(|name| Some(((*name).to_owned(), text(side, name)?))).collect()
    };
    let (old, new) = (texts(base), texts(head));
    let hidden = suppressions::added(
        old.iter().map(|(_, text)| text.as_str()),
        new.iter().map(|(name, text)| (name.as_str(), text.as_str())),
    );
    Integrity {
        suppressions_added: count(hidden.values().map(Vec::len).sum()),
        symbols_removed: count(symbols_removed(base, head, &touched)),
        bodies_stubbed: count(bodies_stubbed(base, head, &touched)),
        stubs_added: count(stubs_added(base, head, &touched, lineage)),
        annotations_removed: count(
            annotations_removed(base, head, &touched) + bases_removed(base, head, &touched),
        ),
        any_casts_added: both(|code| code.escapes.casts) + count(unchecked_types_added(base, head, &touched)),
        exec_added: both(|code| code.escapes.dynamic),
        tests_touched: count(touched.iter().filter(|name| is_test(name)).count()),
        ..Integrity::default()
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn symbols<'s>(side: &'s SideCode<'_>, touched: &[&str]) -> Vec<(&'s str, &'s CodeSymbol)> {
    let of = |(name, code): (&'s &str, &'s Arc<Code>)| code.symbols.iter().map(move |symbol| (*name, symbol));
    side.code.iter().filter(|(name, _)| touched.contains(name)).flat_map(of).collect()
}

/// Functions and classes that no longer exist, neither elsewhere nor under another name.
fn symbols_removed(base: &SideCode<'_>, head: &SideCode<'_>, touched: &[&str]) -> usize {
    let (old, new) = (symbols(base, touched), symbols(head, touched));
    let names = |list: &[(&str, &CodeSymbol)]| -> BTreeSet<(String, String)> {
        list.iter().map(|(file, symbol)| ((*file).to_owned(), symbol.name.clone())).collect()
    };
    let (were, are) = (names(&old), names(&new));
    let seen = |name: &str| head.view(name).is_some_and(|view| view.seen);
    let key = |file: &str, symbol: &CodeSymbol| (file.to_owned(), symbol.name.clone());
    let gone = old.iter().filter(|(file, symbol)| !seen(file) || !are.contains(&key(file, symbol)));
    let fresh: Vec<_> =
        new.iter().filter(|(file, symbol)| seen(file) && !were.contains(&key(file, symbol))).collect();
    let lives = |file: &str, symbol: &CodeSymbol| {
        fresh.iter().any(|(other, found)| {
            found.is_class == symbol.is_class
                && (last(&found.name) == last(&symbol.name)
                    || share(base, head, (file, symbol), (other, found)) >= 60)
        })
    };
    gone.filter(|(file, symbol)| !lives(file, symbol)).count()
}

/// The share of one definition's statements that another contains, in percent.
fn share(
    base: &SideCode<'_>,
    head: &SideCode<'_>,
    old: (&str, &CodeSymbol),
    new: (&str, &CodeSymbol),
) -> usize {
    let of = |side: &SideCode<'_>, (file, symbol): (&str, &CodeSymbol)| -> Vec<Vec<String>> {
        let inside = side.code.get(file).into_iter().flat_map(|code| code.statements.iter());
        let inside = inside.filter(|statement| {
            symbol.span.contains(&statement.span.start)
                && statement.kind != "function_definition"
                && statement.kind != "class_definition"
        });
        inside.filter(|statement| !statement.is_empty).map(|statement| statement.tokens.clone()).collect()
    };
    let (own, other) = (of(base, old), of(head, new));
    (own.iter().filter(|tokens| other.contains(tokens)).count() * 100).checked_div(own.len()).unwrap_or(0)
}

/// Functions that lost their body.
fn bodies_stubbed(base: &SideCode<'_>, head: &SideCode<'_>, touched: &[&str]) -> usize {
    let (old, new) = (symbols(base, touched), symbols(head, touched));
    let mut there: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    let mut anywhere: BTreeMap<&str, bool> = BTreeMap::new();
    for (file, symbol) in &new {
        *there.entry((file, &symbol.name)).or_insert(true) &= symbol.is_empty;
        *anywhere.entry(last(&symbol.name)).or_insert(true) &= symbol.is_empty;
    }
    let emptied = |file: &str, symbol: &CodeSymbol| {
        let same = there.get(&(file, symbol.name.as_str()));
        same.or_else(|| anywhere.get(last(&symbol.name))).copied().unwrap_or_default()
    };
    let had = old.iter().filter(|(_, symbol)| !symbol.is_empty && !symbol.is_class);
    had.filter(|(file, symbol)| emptied(file, symbol)).count()
}

/// New stub files, new functions without a body, and new declarations for the checker only.
fn stubs_added(
    base: &SideCode<'_>,
    head: &SideCode<'_>,
    touched: &[&str],
    lineage: &BTreeMap<String, String>,
) -> usize {
    let is_known = |name: &str| base.view(name).is_some() || lineage.values().any(|other| other == name);
    let files =
        touched.iter().filter(|name| name.ends_with(".pyi") && !is_known(name) && head.view(name).is_some());
    let (old, new) = (symbols(base, touched), symbols(head, touched));
    let known: BTreeSet<&str> = old.iter().map(|(_, symbol)| last(&symbol.name)).collect();
    let empty = new.iter().filter(|(file, symbol)| {
        !symbol.is_class
            && symbol.is_empty
            && !symbol.is_declaration
            && !file.ends_with(".pyi")
            && !known.contains(last(&symbol.name))
    });
    let typing_only = |side: &SideCode<'_>| {
        let of = side
            .code
            .iter()
            .filter(|(name, _)| touched.contains(name))
            .flat_map(|(_, code)| &code.statements);
        let typing = of.filter(|statement| {
            statement.is_typing_only
                && !statement.is_empty
                && !matches!(statement.kind.as_str(), "import_statement" | "import_from_statement")
        });
        typing.count()
    };
    files.count() + empty.count() + typing_only(head).saturating_sub(typing_only(base))
}

/// Annotations by definition and slot (parameter, variable or `return`).
type Slots<'s> = BTreeMap<(&'s str, &'s str), Vec<Option<&'s str>>>;

fn slots<'s>(side: &'s SideCode<'_>, touched: &[&str]) -> Slots<'s> {
    let mut all = Slots::new();
    for (_, code) in side.code.iter().filter(|(name, _)| touched.contains(name)) {
        for ((symbol, slot), annotation) in &code.slots {
            all.entry((symbol, slot)).or_default().push(annotation.as_deref());
        }
    }
    all
}

/// Annotations that were removed or became less specific, and new catch-all parameters.
fn annotations_removed(base: &SideCode<'_>, head: &SideCode<'_>, touched: &[&str]) -> usize {
    let (old, new) = (slots(base, touched), slots(head, touched));
    let functions: BTreeSet<&str> =
        old.keys().filter(|(_, slot)| *slot == "return").map(|(symbol, _)| *symbol).collect();
    let mut removed = 0;
    for ((symbol, slot), annotations) in &new {
        let of = |list: &[Option<&str>]| list.iter().filter(|one| one.is_some()).count();
        match old.get(&(*symbol, *slot)) {
            Some(before) => {
                removed += of(before).min(annotations.len()).saturating_sub(of(annotations));
                let vaguer = annotations.iter().flatten().any(|now| {
                    before.iter().flatten().any(|then| is_vaguer(now, then)) && !before.contains(&Some(*now))
                });
                removed += usize::from(vaguer);
            }
            None if slot.starts_with("(*") && functions.contains(symbol) => {
                removed += usize::from(annotations.iter().all(|one| one.is_none_or(|one| one == "object")));
            }
            None => {}
        }
    }
    removed
}

/// Classes that lost a base and got no other.
fn bases_removed(base: &SideCode<'_>, head: &SideCode<'_>, touched: &[&str]) -> usize {
    let new = symbols(head, touched);
    // `class C(object)` is `class C`, and `class C[T]` the newer form of `class C(Generic[T])`.
    let parents = |symbol: &CodeSymbol| -> BTreeSet<String> {
        symbol.parents.iter().filter(|base| !matches!(base.as_str(), "object" | "Generic")).cloned().collect()
    };
    // A base may be one of another base.
    let is_inherited = |name: &String, now: &BTreeSet<String>| {
        new.iter().any(|(_, one)| now.contains(last(&one.name)) && one.parents.contains(name))
    };
    let loses = |(file, old): &&(&str, &CodeSymbol)| {
        let mut now = new.iter().filter(|(other, new)| other == file && new.is_class && new.name == old.name);
        old.is_class
            && now.any(|(_, new)| {
                let (then, now) = (parents(old), parents(new));
                now.is_subset(&then) && then.difference(&now).any(|name| !is_inherited(name, &now))
            })
    };
    symbols(base, touched).iter().filter(loses).count()
}

/// New types that nothing checks: overloads of a function that had none, and variables of type `Callable[...]`.
fn unchecked_types_added(base: &SideCode<'_>, head: &SideCode<'_>, touched: &[&str]) -> usize {
    let overloads = |side: &SideCode<'_>| -> Vec<String> {
        let all = symbols(side, touched);
        let declared =
            all.iter().filter(|(_, symbol)| symbol.decorators.iter().any(|(name, _)| name == "overload"));
        declared.map(|(_, symbol)| symbol.name.clone()).collect()
    };
    let known = overloads(base);
    let fresh = overloads(head).iter().filter(|name| !known.contains(name)).count();
    let (old, new) = (slots(base, touched), slots(head, touched));
    let is_variable = |slot: &str| slot != "return" && !slot.starts_with('(');
    let open = |annotation: &Option<&str>| {
        annotation.is_some_and(|text| text.split_whitespace().collect::<String>().contains("Callable[..."))
    };
    let loose = new.iter().filter(|(key, annotations)| {
        is_variable(key.1) && !old.contains_key(*key) && annotations.iter().any(open)
    });
    fresh + loose.count()
}

/// Container types that do not give their item type when used without arguments.
const BARE: [&str; 14] = [
    "dict",
    "list",
    "tuple",
    "set",
    "frozenset",
    "type",
    "Callable",
    "Mapping",
    "Sequence",
    "Iterable",
    "Iterator",
    "Dict",
    "List",
    "Tuple",
];

/// Whether an annotation is less specific than another: the same type without arguments, a bare container, or `object`.
fn is_vaguer(now: &str, then: &str) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>().trim_matches(['"', '\'']).to_owned();
    let (now, then) = (bare(now), bare(then));
    let without = then.starts_with(&format!("{now}[")) || BARE.contains(&last(&now));
    let open = now.contains("[...") && !then.contains("[...");
    // A tuple of two becomes one of any number; `tuple[int]` is mostly meant to be `tuple[int, ...]`.
    let is_fixed = then.contains("uple[") && then.contains(',') && !then.contains(",...]");
    let open = open || now.contains(",...]") && is_fixed;
    now != then && (without || open || last(&now) == "object")
}

/// Whether a file is a test, judged by its path.
fn is_test(path: &str) -> bool {
    let name = last_part(path);
    path.split('/').any(|part| matches!(part, "test" | "tests" | "testing"))
        || name.starts_with("test_")
        || name.ends_with("_test.py")
        || name == "conftest.py"
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use crate::reward::testing::Case;

    use crate::model::reward::Integrity;

    fn flags(base: &str, head: &str) -> Integrity {
        Case::of(base, head).judged().integrity
    }

    #[test]
    fn each_trick_sets_exactly_its_flag() {
        let base = "from m import g\ndef f(x: int) -> int:\n    y = g(x)\n    return y\n";
        let with = |old: &str, new: &str| flags(base, &base.replace(old, new));
        let one = |name: &'static str| vec![(name, 1)];
        assert_eq!(flags(base, base).flags(), vec![]);
        assert_eq!(with("y = g(x)", "y = g(x)  # type: ignore").flags(), one("suppressions_added"));
        assert_eq!(with("x: int", "x").flags(), one("annotations_removed"));
        assert_eq!(with("y = g(x)", "y = h.cast(T, g(x))").flags(), vec![]);
        assert_eq!(with("-> int", "-> Any").flags(), one("any_casts_added"));
        assert_eq!(with("y = g(x)", "y = getattr(x, 'g')").flags(), one("exec_added"));
        assert_eq!(with("    y = g(x)\n    return y\n", "    ...\n").flags(), one("bodies_stubbed"));
        assert_eq!(flags(base, "from m import g\n").flags(), one("symbols_removed"));
        let class = "class C(A, B):\n    x: tuple[int, str] = f()\n";
        for (old, new) in [("(A, B)", "(A)"), ("(A, B)", ""), ("[int, str]", "[int | str, ...]")] {
            assert_eq!(flags(class, &class.replace(old, new)).flags(), one("annotations_removed"), "{new}");
        }
        assert_eq!(flags(class, &class.replace("(A, B)", "(D)")).flags(), vec![]);
        for bases in ["(t.A, B)", "(A[int], B, metaclass=M)", "(A, B, object)"] {
            let with = class.replace("(A, B)", bases);
            assert_eq!(flags(&with, class).flags(), vec![], "{bases}");
            assert_eq!(
                flags(&with, &class.replace("(A, B)", "(A, object)")).flags(),
                one("annotations_removed")
            );
        }
        let inherits = "class A(B):\n    pass\nclass C(B, A):\n    pass\n";
        assert_eq!(flags(inherits, &inherits.replace("C(B, A)", "C(A)")).flags(), vec![]);
        let one_part = class.replace("[int, str]", "[int]");
        assert_eq!(flags(&one_part, &class.replace("[int, str]", "[int, ...]")).flags(), vec![]);
        assert_eq!(flags(base, &format!("{base}def h(x: int) -> int: ...\n")).flags(), one("stubs_added"));
    }

    #[test]
    fn an_added_stub_and_an_edited_test_are_reported() {
        let base = || Case::default().base("a.py", "x = 1\n").head("a.py", "x = 1\n");
        assert_eq!(base().head("a.pyi", "x: str\n").judged().integrity.flags(), [("stubs_added", 1)]);
        let test =
            Case::default().base("tests/test_a.py", "x = 1\n").head("tests/test_a.py", "x = 2\n").judged();
        assert_eq!(test.integrity.flags(), [("tests_touched", 1)]);
        assert!(!test.integrity.is_hard());
    }

    #[test]
    fn a_renamed_or_moved_function_is_not_removed() {
        let base = "def f(x):\n    y = g(x)\n    return y\n";
        assert_eq!(flags(base, &base.replace("f(", "ff(")).flags(), vec![]);
        let moved = Case::default().base("a.py", base).head("a.py", "").head("b.py", base).judged();
        assert_eq!(moved.integrity.flags(), vec![]);
    }
}
