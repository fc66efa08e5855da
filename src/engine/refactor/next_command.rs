//! The command line that goes on after a refusal. It applies the edit only if the refused one would have.

use crate::model::request::{CheckScope, Command, DirtyPolicy, Guards, Request, Strategy, is_module_path};
use crate::text::shell_quote;

/// The command line of a request, with more options. `server` is the option for a server other than the default.
pub(super) fn next_command(request: &Request, server: Option<&str>, more: &[&str]) -> String {
    let verb = if request.options.module.is_some() { "move" } else { request.cmd.as_str() };
    let mut words = vec!["lanser".to_owned(), verb.to_owned()];
    let mut positional: Vec<String> =
        request.selector.iter().map(|selector| shell_quote(&selector.to_string())).collect();
    positional.extend(request.options.module.as_ref().map(|module| match is_module_path(module) {
        true => shell_quote(module),
        false => format!("py://{module}"),
    }));
    positional.extend(request.new_name.as_ref().map(|name| match request.options.module {
        Some(_) if !is_module_path(name) => format!("py://{name}"),
        _ => shell_quote(name),
    }));
    if request.cmd == Command::Apply {
        positional.push("EDIT".to_owned());
    }
    // What looks like an option, and what follows it, stands last.
    let is_like_option = |word: &String| word.starts_with('-');
    let last = positional.split_off(positional.iter().position(is_like_option).unwrap_or(positional.len()));
    words.extend(positional);
    words.extend(server.map(str::to_owned));
    let options = &request.options;
    words.extend(options.run.as_ref().map(|run| format!("--run {}", shell_quote(run))));
    words.extend(options.family.then(|| "--family".to_owned()));
    words.extend(options.include.iter().map(|place| format!("--include {}", shell_quote(place))));
    words.extend(options.exclude.iter().map(|place| format!("--exclude {}", shell_quote(place))));
    words.extend((options.check == CheckScope::Importers).then(|| "--check importers".to_owned()));
    words.extend(options.agree.map(|server| format!("--agree {server}")));
    add_guards(&mut words, &options.guards);
    for &word in more {
        // Everywhere, and not only elsewhere; what cannot be included is left.
        let replaced = match word {
            "--allow-dirty" => "--allow-dirty=elsewhere",
            "--exclude unresolved" => "--include unresolved",
            _ => word,
        };
        words.retain(|known| known != word && known != replaced);
        words.push(word.to_owned());
    }
    words.extend(request.options.apply.then(|| "--apply".to_owned()));
    if !last.is_empty() {
        words.push("--".to_owned());
        words.extend(last);
    }
    words.join(" ")
}

fn add_guards(words: &mut Vec<String>, guards: &Guards) {
    words.extend(guards.allow.iter().map(|glob| format!("--allow {}", shell_quote(glob))));
    words.extend(guards.deny.iter().map(|glob| format!("--deny {}", shell_quote(glob))));
    words.extend(guards.outside.then(|| "--workspace-jail=false".to_owned()));
    words.extend(guards.hard_links.then(|| "--allow-hard-links".to_owned()));
    words.extend(match guards.dirty {
        DirtyPolicy::None => None,
        DirtyPolicy::Elsewhere => Some("--allow-dirty=elsewhere".to_owned()),
        DirtyPolicy::All => Some("--allow-dirty".to_owned()),
    });
    words.extend((guards.strategy == Strategy::ThreeWay).then(|| "--strategy 3way".to_owned()));
    words.extend(guards.overrides.iter().filter_map(|name| name.override_option()).map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::edits::CheckName;
    use crate::model::request::Options;

    #[test]
    fn every_option_that_was_given_is_repeated() {
        let guards = Guards {
            dirty: DirtyPolicy::Elsewhere,
            overrides: vec![CheckName::Collision],
            deny: vec!["do cs".to_owned()],
            ..Guards::default()
        };
        let options = Options {
            family: true,
            include: vec!["a.py@L1:C2".to_owned()],
            check: CheckScope::Importers,
            apply: true,
            guards,
            ..Options::default()
        };
        let selector = crate::selector::parse("py://m#C.f", crate::text::ColumnUnit::default()).unwrap();
        let request =
            Request { options, new_name: Some("g".to_owned()), ..Request::about(Command::Rename, selector) };
        assert_eq!(
            next_command(&request, Some("--server ty"), &["--allow-shadowing"]),
            "lanser rename 'py://m#C.f' g --server ty --family --include a.py@L1:C2 --check importers --deny 'do cs' \
             --allow-dirty=elsewhere --allow-collision --allow-shadowing --apply"
        );
        let option = Request { new_name: Some("--apply".to_owned()), ..request.clone() };
        let command = next_command(&option, None, &["--allow-invalid-name"]);
        assert!(command.ends_with("--allow-invalid-name --apply -- --apply"), "{command}");
        let everywhere = next_command(&request, None, &["--allow-dirty", "--family"]);
        assert_eq!(everywhere.matches("--allow-dirty").count(), 1, "{everywhere}");
        assert_eq!(everywhere.matches("--family").count(), 1, "{everywhere}");
    }

    #[test]
    fn a_module_is_repeated_in_the_form_in_which_it_was_given() {
        for (from, to, expected) in [
            ("pkg.old", "pkg.new", "lanser move py://pkg.old py://pkg.new --family"),
            ("old.py", "new.py", "lanser move old.py new.py --family"),
            ("src/a b.py", "src/c.py", "lanser move 'src/a b.py' src/c.py --family"),
        ] {
            let options = Options { module: Some(from.to_owned()), ..Options::default() };
            let new_name = Some(to.to_owned());
            let request = Request::new(Command::Rename, None, new_name, options);
            assert_eq!(next_command(&request, None, &["--family"]), expected);
        }
    }
}
