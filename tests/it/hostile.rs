//! Hostile checkouts that try to make lanser run a program, and normal environments created by the real tools.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Project, TestEnv, python, wait_until};

/// A repository with a workspace in one of its folders, and programs that leave a trace when they are run.
struct Checkout {
    env: TestEnv,
    workspace: PathBuf,
}

impl Checkout {
    fn new() -> Self {
        let mut env =
            TestEnv::pyright(&Project::parse("//- /pkg/a.py\ndef f(): ...\nf()\n//- /pkg/pyproject.toml\n"));
        assert_eq!(env.run("git", ["init", "-q"]).code, Some(0));
        let workspace = env.file("pkg");
        env.write("evil.sh", format!("#!/bin/sh\ntouch '{}'\n", env.path("ran").display()));
        std::fs::set_permissions(env.file("evil.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        env.cwd.clone_from(&workspace);
        env.set("LANSER_CACHE_DIR", env.path("test-cache"));
        Self { env, workspace }
    }

    fn evil(&self) -> PathBuf {
        self.workspace.parent().unwrap().join("evil.sh")
    }

    /// A virtual environment in the workspace whose interpreter is a link to `interpreter`.
    fn environment(&self, name: &str, interpreter: &Path) -> PathBuf {
        let folder = self.workspace.join(name);
        self.env.write(&format!("{name}/pyvenv.cfg"), "home = /usr/bin\nversion = 3.11.2\n");
        self.env.write(&format!("{name}/lib/python3.11/site-packages/helper.py"), "def g(): ...\n");
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        for program in ["python", "python3"] {
            symlink(interpreter, folder.join("bin").join(program)).unwrap();
        }
        folder
    }

    fn has_run(&self) -> bool {
        self.env.path("ran").exists()
    }

    /// Runs every command that inspects the environment, and asserts that no program of the checkout ran.
    #[track_caller]
    fn assert_nothing_runs(&self) {
        for args in [
            &["locate", "py://a#f"][..],
            &["refs", "py://a#f"],
            &["diag", "a.py"],
            &["rename", "py://a#f", "g"],
            &["doctor"],
            &["server", "list"],
        ] {
            let output = self.env.lanser(args);
            assert!(!self.has_run(), "{args:?} ran it: {output}");
        }
        let refs = self.env.lanser(["refs", "py://a#f"]);
        assert!(refs.text().contains("2 references, complete"), "{refs}");
    }
}

fn path_with(first: &Path) -> std::ffi::OsString {
    #[expect(clippy::disallowed_methods, reason = "the machine's own programs come after the planted ones")]
    let machine = std::env::var_os("PATH").unwrap();
    std::env::join_paths([first.to_owned()].into_iter().chain(std::env::split_paths(&machine))).unwrap()
}

#[test]
fn an_interpreter_linked_into_the_repository_is_not_run() {
    let checkout = Checkout::new();
    checkout.environment(".venv", Path::new("../../../evil.sh"));
    checkout.assert_nothing_runs();
}

#[test]
fn an_interpreter_linked_anywhere_else_is_not_run() {
    let checkout = Checkout::new();
    let elsewhere = checkout.env.path("elsewhere.sh");
    std::fs::copy(checkout.evil(), &elsewhere).unwrap();
    checkout.environment("some-folder", &elsewhere);
    checkout.assert_nothing_runs();
}

#[test]
fn a_linked_environment_of_the_workspace_is_not_run() {
    let mut checkout = Checkout::new();
    let outside = checkout.env.path("outside");
    std::fs::rename(checkout.environment("made", &checkout.evil()), &outside).unwrap();
    symlink(&outside, checkout.workspace.join(".venv")).unwrap();
    checkout.assert_nothing_runs();
    checkout.env.set("VIRTUAL_ENV", &outside);
    checkout.assert_nothing_runs();
}

#[test]
fn an_active_environment_of_the_checkout_is_read() {
    let mut checkout = Checkout::new();
    let folder = checkout.environment("env", &checkout.evil());
    checkout.env.set("VIRTUAL_ENV", &folder);
    checkout.assert_nothing_runs();
    checkout.env.set("VIRTUAL_ENV", "");
    checkout.env.set("PATH", path_with(&folder.join("bin")));
    checkout.assert_nothing_runs();
    let named = checkout.env.lanser(["refs", "py://a#f", "--python", "env/bin/python"]);
    assert!(named.text().contains("2 references, complete") && !checkout.has_run(), "{named}");
    std::fs::remove_file(folder.join("pyvenv.cfg")).unwrap();
    checkout.env.write("env/conda-meta/python-3.11.2-h1.json", "{}");
    checkout.env.set("CONDA_PREFIX", &folder);
    checkout.assert_nothing_runs();
}

#[test]
fn copies_of_a_checkout_run_nothing_of_it() {
    let mut checkout = Checkout::new();
    let folder = checkout.environment("env", &checkout.evil());
    std::fs::remove_file(folder.join("pyvenv.cfg")).unwrap();
    checkout.env.write("env/conda-meta/python-3.11.2-h1.json", "{}");
    for program in ["node", "git"] {
        std::fs::copy(checkout.evil(), folder.join("bin").join(program)).unwrap();
    }
    checkout.env.set("CONDA_PREFIX", &folder);
    checkout.env.set("PATH", path_with(&folder.join("bin")));
    let head = checkout.env.path("head");
    std::fs::create_dir(&head).unwrap();
    std::fs::write(head.join("a.py"), "def f(): ...\nf(1)\n").unwrap();
    let scored = checkout.env.lanser(["score", "--base", ".", "--head", head.to_str().unwrap(), "--json"]);
    assert!(!checkout.has_run(), "{scored}");
    assert_eq!(scored.code, Some(0), "{scored}");
}

#[test]
fn home_and_pth_files_of_an_environment_do_not_run() {
    let checkout = Checkout::new();
    let python = python().unwrap();
    let folder = checkout.environment(".venv", &python);
    let ran = checkout.env.path("ran").display().to_string();
    let code = format!("import os; os.system('touch {ran}')\n");
    for file in ["x.pth", "sitecustomize.py", "usercustomize.py"] {
        checkout.env.write(&format!(".venv/lib/python3.11/site-packages/{file}"), &code);
    }
    checkout.env.write("ev/lib/python3.11/encodings/__init__.py", &code);
    checkout.env.write("ev/lib/python3.11/os.py", &code);
    checkout.env.write("ev/bin/python3.11", "");
    let home = checkout.workspace.join("ev/bin");
    std::fs::write(folder.join("pyvenv.cfg"), format!("home = {}\nversion = 3.11.2\n", home.display()))
        .unwrap();
    checkout.env.write("sitecustomize.py", &code);
    checkout.assert_nothing_runs();
}

#[test]
fn programs_on_path_linked_into_the_checkout_are_not_run() {
    let mut checkout = Checkout::new();
    let tools = checkout.workspace.parent().unwrap().join("tools");
    std::fs::create_dir(&tools).unwrap();
    for program in ["python3", "python", "git", "node", "npm", "pyright-langserver"] {
        std::fs::copy(checkout.evil(), tools.join(program)).unwrap();
    }
    let link = checkout.env.path("link");
    symlink(&tools, &link).unwrap();
    for first in [tools, link] {
        checkout.env.set("PATH", path_with(&first));
        checkout.assert_nothing_runs();
    }
}

#[test]
fn programs_of_a_repository_run_only_while_it_is_trusted() {
    let checkout = Checkout::new();
    checkout.environment(".venv", Path::new("../../../evil.sh"));
    let top = checkout.workspace.parent().unwrap().display().to_string();
    let trust = |verb: &str| checkout.env.lanser(["trust", verb]).text().to_owned();
    assert_eq!(trust("list"), "no repository is trusted\n");
    assert_eq!(trust("add"), format!("{top} is now trusted: its programs may be run\n"));
    assert_eq!(trust("add"), format!("{top} is already trusted\n"));
    assert_eq!(trust("list"), format!("{top}\n"));
    let located = checkout.env.lanser(["locate", "py://a#f"]);
    assert!(checkout.has_run(), "{located}");
    // It is no interpreter.
    let reason = "the virtual environment .venv is not used: ";
    assert!(located.stderr.contains(reason), "{located}");
    let doctor = checkout.env.lanser(["doctor"]);
    assert!(
        doctor.stdout.lines().any(|line| line.split_whitespace().eq([
            "trust-workspace",
            "true",
            "(lanser",
            "trust)"
        ])),
        "{doctor}"
    );
    std::fs::remove_file(checkout.env.path("ran")).unwrap();
    assert_eq!(trust("remove"), format!("{top} is no longer trusted\n"));
    assert_eq!(trust("remove"), format!("{top} was not trusted\n"));
    checkout.assert_nothing_runs();
    let located = checkout.env.lanser(["locate", "py://a#f", "--trust-workspace"]);
    assert!(checkout.has_run(), "{located}");
}

#[test]
fn git_runs_no_program_configured_by_the_repository() {
    let checkout = Checkout::new();
    let evil = format!("sh -c '{}; cat'", checkout.evil().display());
    for (key, value) in [
        ("filter.x.clean", evil.as_str()),
        ("filter.x.process", &evil),
        ("filter.x.required", "true"),
        ("core.fsmonitor", &evil),
        ("core.sshCommand", &evil),
        ("extensions.partialClone", "origin"),
        ("remote.origin.url", &format!("ext::{}", checkout.evil().display())),
        ("remote.origin.promisor", "true"),
        ("protocol.ext.allow", "always"),
    ] {
        assert_eq!(checkout.env.run("git", ["config", key, value]).code, Some(0));
    }
    checkout.env.write("../.gitattributes", "*.py filter=x\n");
    checkout.env.write("new.py", "x = 1\n");
    checkout.assert_nothing_runs();
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-def f(): ...\n+def f(): pass\n f()\n";
    let applied = checkout.env.lanser_with_input(["apply", "-", "--apply"], patch);
    assert!(!checkout.has_run(), "{applied}");
    assert_eq!(applied.code, Some(77), "what is behind a filter that was not run is not clean: {applied}");
}

/// Git LFS is usually a filter of the user's configuration, and runs programs that the repository's configuration names.
#[test]
fn extensions_of_git_lfs_that_the_repository_configures_are_not_run() {
    let mut checkout = Checkout::new();
    let home = checkout.env.path("home");
    std::fs::create_dir_all(&home).unwrap();
    let clean = "f() { $(git config lfs.extension.x.clean); tr a-z A-Z; }; f";
    std::fs::write(home.join(".gitconfig"), format!("[filter \"lfs\"]\n\tclean = \"{clean}\"\n")).unwrap();
    checkout.env.set("HOME", &home);
    checkout.env.write("../.gitattributes", "*.bin filter=lfs\n");
    checkout.env.write("x.bin", "x");
    for args in [&["add", "-A"][..], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]] {
        assert_eq!(checkout.env.run("git", args).code, Some(0));
    }
    let rename = |checkout: &Checkout| {
        // As if the same content was written again: git has to read it.
        let file = std::fs::File::options().append(true).open(checkout.env.file("x.bin")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        checkout.env.lanser(["rename", "py://a#f", "g"])
    };
    assert_eq!(rename(&checkout).code, Some(0), "the user's own filter is run");
    let evil = checkout.evil().display().to_string();
    assert_eq!(checkout.env.run("git", ["config", "lfs.extension.x.clean", &evil]).code, Some(0));
    let refused = rename(&checkout);
    assert!(!checkout.has_run(), "{refused}");
    assert_eq!(refused.code, Some(77), "what is behind a filter that was not run is not clean: {refused}");
}

/// A shim of a version manager starts the program that the configuration of the current folder names.
#[test]
fn a_shim_of_git_does_not_read_the_checkout() {
    let mut checkout = Checkout::new();
    let git = checkout.env.run("sh", ["-c", "command -v git"]).stdout.trim().to_owned();
    let shims = checkout.env.path("shims");
    std::fs::create_dir(&shims).unwrap();
    let used = checkout.env.path("used");
    let shim = format!(
        "#!/bin/sh\ntouch '{}'\n[ -f .tool-versions ] && exec $(cat .tool-versions)\nexec {git} \"$@\"\n",
        used.display()
    );
    std::fs::write(shims.join("git"), shim).unwrap();
    std::fs::set_permissions(shims.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    for folder in ["", "../"] {
        checkout.env.write(&format!("{folder}.tool-versions"), checkout.evil().display().to_string());
    }
    checkout.env.write("../.gitattributes", "*.py filter=x\n");
    checkout.env.set("PATH", path_with(&shims));
    checkout.assert_nothing_runs();
    assert!(used.exists());
}

#[test]
fn the_memory_of_servers_is_limited() {
    let env = Checkout::new().env;
    let parent = std::process::id().to_string();
    let limited = env.lanser(["__guard", &parent, "/bin/sh", "-c", "ulimit -d"]);
    let kilobytes: u64 = limited.stdout.trim().parse().unwrap();
    assert!(kilobytes <= 8 << 20, "{limited}");
}

#[test]
fn a_piped_diff_applies_with_control_characters() {
    let checkout = Checkout::new();
    let line = "s = '\u{1b}]52;c;aGk=\u{7}\u{1b}[2J \u{8} \u{9b}2J \u{202e} \u{2066}'; old = 1\r\n";
    checkout.env.write("b.py", format!("{line}old = 2\n{line}"));
    for args in [&["add", "-A"][..], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all"]] {
        assert_eq!(checkout.env.run("git", args).code, Some(0));
    }
    let output = checkout.env.lanser(["rename", "py://b#old", "new", "--limit", "1000"]);
    checkout.env.write("../edit.diff", &output.stdout);
    let applied = checkout.env.run("git", ["apply", "--directory=pkg", "../edit.diff"]);
    assert_eq!(applied.code, Some(0), "{applied} {output}");
    let text = std::fs::read_to_string(checkout.env.file("b.py")).unwrap();
    assert_eq!(text, format!("{line}old = 2\n{line}").replace("old", "new"));
}

/// Asserts that an environment created by a real tool is used without a warning.
#[track_caller]
fn assert_used(env: &TestEnv, name: &str) {
    let folder = env.file(name);
    let lib = std::fs::read_dir(folder.join("lib")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(lib.join("site-packages/helper.py"), "def g(): ...\n").unwrap();
    std::fs::write(lib.join("site-packages/own.pth"), format!("{}\n", env.file("src").display())).unwrap();
    let real = env.run(
        folder.join("bin/python").to_str().unwrap(),
        ["-c", "import platform; print(platform.python_version())"],
    );
    let mut ids = std::collections::BTreeSet::new();
    for trust in [&[][..], &["--trust-workspace"]] {
        let output = env.lanser(["def", "m.py:3:8", "--json", "--no-cache"].iter().chain(trust));
        let answer = output.answer();
        let at = answer["facts"]["definitions"][0]["uri"].as_str().unwrap();
        assert!(at.ends_with("site-packages/helper.py"), "{output}");
        assert_eq!(answer["environment"]["python"]["version"], real.stdout.trim(), "{output}");
        assert_eq!(answer["environment"]["python"]["venv"], true);
        assert!(answer.get("warnings").is_none(), "{output}");
        ids.insert(answer["bundleId"].as_str().unwrap().to_owned());
        let output = env.lanser(["def", "m.py:4:5", "--json"].iter().chain(trust));
        assert_eq!(output.answer()["facts"]["definitions"][0]["uri"], "src/inside.py", "{output}");
    }
    assert_eq!(ids.len(), 1, "read or run, it is the same environment");
}

fn honest() -> TestEnv {
    TestEnv::pyright(&Project::parse(
        "//- /m.py\nimport helper\nimport inside\nhelper.g\ninside.h\n//- /src/inside.py\ndef h(): ...\n",
    ))
    .with_network()
}

#[test]
fn environments_of_venv_are_used() {
    let env = honest();
    let python = python().unwrap().display().to_string();
    let made = env.run(&python, ["-m", "venv", "--without-pip", ".venv"]);
    assert_eq!(made.code, Some(0), "{made}");
    assert_used(&env, ".venv");
    std::fs::remove_dir_all(env.file(".venv")).unwrap();
    let made = env.run(&python, ["-m", "venv", "--copies", "--without-pip", "venv"]);
    assert_eq!(made.code, Some(0), "{made}");
    assert_used(&env, "venv");
}

#[test]
fn environments_of_virtualenv_and_uv_are_used() {
    let mut env = honest();
    let python = python().unwrap().display().to_string();
    let tools = env.path("tools");
    let install = ["-m", "pip", "install", "-q", "--target", tools.to_str().unwrap(), "virtualenv", "uv"];
    let installed = env.run(&python, install);
    assert_eq!(installed.code, Some(0), "{installed}");
    env.set("PYTHONPATH", &tools);
    let made = env.run(&python, ["-m", "virtualenv", "-q", "--no-download", ".venv"]);
    assert_eq!(made.code, Some(0), "{made}");
    assert_used(&env, ".venv");
    std::fs::remove_dir_all(env.file(".venv")).unwrap();
    let uv = tools.join("bin/uv").display().to_string();
    let made = env.run(&uv, ["venv", "-q", "--offline", "--python", &python, ".venv"]);
    assert_eq!(made.code, Some(0), "{made}");
    assert_used(&env, ".venv");
}

#[test]
fn editable_installs_are_found_by_path() {
    let env = honest();
    let project = |name: &str| {
        format!(
            "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n[project]\nname = '{name}'\nversion = '1'\n"
        )
    };
    // setuptools installs one by a line in a `.pth` file, and one by an import hook, which type checkers do not follow.
    env.write("../lib/by_path/pyproject.toml", project("by_path"));
    env.write("../lib/by_path/src/helper/__init__.py", "def g(): ...\n");
    env.write("../lib/by_hook/pyproject.toml", project("by_hook"));
    env.write("../lib/by_hook/inside/__init__.py", "def h(): ...\n");
    env.write("../lib/by_hook/other.py", "");
    let hook = format!("{}[tool.setuptools]\npackages = ['inside']\n", project("by_hook"));
    env.write("../lib/by_hook/pyproject.toml", hook);
    std::fs::remove_dir_all(env.file("src")).unwrap();
    let made = env.run(python().unwrap().to_str().unwrap(), ["-m", "venv", ".venv"]);
    assert_eq!(made.code, Some(0), "{made}");
    let own = env.file(".venv/bin/python").display().to_string();
    for name in ["by_path", "by_hook"] {
        let folder = env.file(&format!("../lib/{name}")).display().to_string();
        let installed = env.run(&own, ["-m", "pip", "install", "-q", "-e", &folder]);
        assert_eq!(installed.code, Some(0), "{installed}");
    }
    let mut ids = std::collections::BTreeSet::new();
    for trust in [&[][..], &["--trust-workspace"]] {
        let output = env.lanser(["def", "m.py:3:8", "--json", "--no-cache"].iter().chain(trust));
        let answer = output.answer();
        let at = answer["facts"]["definitions"][0]["uri"].as_str().unwrap();
        assert!(at.ends_with("lib/by_path/src/helper/__init__.py"), "{output}");
        ids.insert(answer["bundleId"].as_str().unwrap().to_owned());
        env.lanser(["def", "m.py:4:8", "--json", "--no-cache"].iter().chain(trust)).error(3, "E/NOT_FOUND");
    }
    assert_eq!(ids.len(), 1, "read or run, it is the same environment");
}

/// `pyenv` is on no registry that this suite installs from; its shims are tested only where the machine has them.
#[test]
fn pyenv_shims_resolve_to_the_user_s_version() {
    let Ok(versions) = std::process::Command::new("pyenv").args(["versions", "--bare"]).output() else {
        return;
    };
    let versions = String::from_utf8(versions.stdout).unwrap();
    let root = std::process::Command::new("pyenv").arg("root").output().unwrap();
    let shims = Path::new(String::from_utf8(root.stdout).unwrap().trim()).join("shims");
    for version in versions.lines().filter(|version| version.starts_with("3.1")).take(2) {
        let mut env = TestEnv::pyright(&Project::parse("//- /m.py\nimport json\njson.dumps\n"));
        env.set("PATH", path_with(&shims)).set("PYENV_VERSION", version);
        env.set("PYENV_ROOT", shims.parent().unwrap());
        // The checkout's choice is not the user's choice.
        env.write(".python-version", "../../../../evil\n");
        let output = env.lanser(["hover", "m.py:2:6", "--json"]);
        assert_eq!(output.answer()["environment"]["python"]["version"], version, "{output}");
    }
}

/// A search path that a checkout names may be the kernel's, where a read of some files never ends, or all of the disk.
#[test]
fn search_paths_of_the_system_are_refused() {
    for path in ["/proc", "/", "/proc/self/root/proc"] {
        let env = TestEnv::ty(&Project::parse(&format!(
            "//- /a.py\ndef f(): ...\nf()\n//- /pyproject.toml\n[tool.ty.environment]\nextra-paths = [\"{path}\"]\n"
        )));
        let output = env.lanser(["locate", "py://a#f", "--timeout", "20"]);
        assert_eq!(output.code, Some(2), "{path}: {output}");
        assert!(output.stderr.contains("cannot be a search path: it is a folder of the system"), "{output}");
    }
}

/// A command in a hint is pasted into a shell: a file name in it is one word there.
#[test]
fn file_names_in_proposed_commands_are_quoted() {
    let env = TestEnv::with(&Project::parse(
        "//- /$(touch${IFS}ran).py\ndef f(): ...\n//- /-rf.py\ndef f(): ...\n",
    ));
    let hint = |args: &[&str]| {
        let output = env.lanser(args);
        output
            .stderr
            .split_once("hint: ")
            .map(|(_, hint)| hint.to_owned())
            .unwrap_or_else(|| panic!("{output}"))
    };
    assert!(hint(&["hover", "$(touch${IFS}ran).py"]).contains("`lanser symbols '$(touch${IFS}ran).py'`"));
    assert!(hint(&["hover", "--", "-rf.py"]).contains("`lanser symbols -- -rf.py`"));
    env.write("t$(x).jsonl", "");
    let shown = env.lanser(["trace", "show", "t$(x).jsonl", "--op", "9"]).to_string();
    assert!(!shown.contains("lanser trace list t$(x)"), "{shown}");
}

#[test]
fn a_named_pipe_in_git_is_bounded_by_the_timeout() {
    let checkout = Checkout::new();
    let env = &checkout.env;
    for (args, pipe) in [
        (&["locate", "py://a#f?v=git:HEAD"][..], "../.git/config"),
        (&["refs", "py://a#f?v=git:HEAD"], "../.git/config"),
        (&["score", "--base", "rev:HEAD", "--head", "rev:HEAD"], "../.git/packed-refs"),
        (&["score", "--base", "rev:HEAD", "--head", "rev:HEAD"], "../.git/config"),
        (&["rename", "py://a#f", "g"], "../.git/config"),
        (&["diag", "a.py", "--new"], "../.git/config"),
    ] {
        let place = env.file(pipe);
        let before = std::fs::read(&place).ok();
        let _ = std::fs::remove_file(&place);
        assert_eq!(env.run("mkfifo", [&place]).code, Some(0));
        let began = std::time::Instant::now();
        let output = env.lanser(args.iter().chain(&["--timeout", "4", "--json"]));
        assert!(began.elapsed().as_secs() < 20, "{args:?} {pipe}: {output}");
        assert_ne!(output.code, Some(0), "{args:?} {pipe}: {output}");
        // Not even a `git` that waits for the pipe.
        let folder = env.path("").to_str().unwrap().trim_end_matches('/').to_owned();
        let is_idle = || env.run("pgrep", ["-f", &folder]).code == Some(1);
        wait_until("nothing runs on the workspace", std::time::Duration::from_secs(10), is_idle);
        std::fs::remove_file(&place).unwrap();
        if let Some(before) = before {
            std::fs::write(&place, before).unwrap();
        }
    }
}

/// Ten folders in each of ten, ten levels deep, are a dozen objects and ten thousand million files.
#[test]
fn a_revision_with_more_files_than_fit_in_memory_is_not_read() {
    let env = TestEnv::ty(&Project::parse("//- /a.py\ndef f(): ...\n//- /pyproject.toml\n"));
    assert_eq!(env.run("git", ["init", "-q"]).code, Some(0));
    let script = r#"
        set -e
        user='-c user.name=a -c user.email=b'
        f=$(git hash-object -w a.py)
        tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '100644 blob %s\tf%s.py\n' $f $i; done | git mktree)
        for level in 1 2 3 4 5 6 7 8 9; do
            tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\td%s\n' $tree $i; done | git mktree)
        done
        all=$( (git ls-tree $tree; printf '100644 blob %s\told.py\n' $f) | git mktree)
        one=$(git $user commit-tree $all -m one)
        git add a.py pyproject.toml
        git update-ref HEAD $(git $user commit-tree $(git write-tree) -p $one -m two)
    "#;
    let made = env.run("sh", ["-c", script]);
    assert_eq!(made.code, Some(0), "{made}");
    let why = "more than 1000000 files";
    let output = env.lanser(["refs", "py://old#f?v=git:HEAD~1", "--timeout", "20"]);
    assert_eq!(output.code, Some(4), "by the selector alone: {output}");
    for args in [
        &["locate", "old.py:1:5?v=git:HEAD~1"][..],
        &["diag", "--base", "HEAD~1", "--new"],
        &["score", "--base", "rev:HEAD~1", "--head", "rev:HEAD"],
    ] {
        let output = env.lanser(args.iter().chain(&["--timeout", "20"]));
        assert!(output.stderr.contains(why), "{args:?}: {output}");
        assert_ne!(output.code, Some(0), "{args:?}: {output}");
    }
    assert_eq!(env.run("git", ["update-ref", "HEAD", "HEAD~1"]).code, Some(0));
    let output = env.lanser(["rename", "py://a#f", "g", "--timeout", "20"]);
    assert!(output.code == Some(77) && output.stderr.contains(why), "{output}");
}

/// A thread cannot be stopped, but the process of a session can.
#[test]
fn a_session_ends_with_work_that_does_not() {
    let env =
        TestEnv::ty(&Project::parse("//- /a.py\ndef f(): ...\nf()\n//- /pyproject.toml\n")).with_sessions();
    assert_eq!(env.run("git", ["init", "-q"]).code, Some(0));
    env.lanser(["refs", "py://a#f"]).text();
    let sessions = || {
        let status: serde_json::Value =
            serde_json::from_str(&env.lanser(["session", "status", "--json"]).stdout).unwrap();
        status.as_array().map_or(0, Vec::len)
    };
    assert_eq!(sessions(), 1);
    std::fs::remove_file(env.file(".git/config")).unwrap();
    assert_eq!(env.run("mkfifo", [&env.file(".git/config")]).code, Some(0));
    let output = env.lanser(["refs", "py://a#f?v=git:HEAD", "--timeout", "4", "--json"]);
    assert_eq!(output.code, Some(64), "{output}");
    wait_until("the session is gone", std::time::Duration::from_secs(20), || sessions() == 0);
    std::fs::remove_file(env.file(".git/config")).unwrap();
    assert_eq!(env.lanser(["refs", "py://a#f"]).code, Some(0));
}

#[test]
fn a_file_above_the_limits_is_reported_and_the_others_are_searched() {
    let env = TestEnv::pyright(&Project::parse(
        "//- /a.py\ndef ff(): ...\nff()\n//- /b.py\nfrom a import ff\nff()\n//- /pyproject.toml\n",
    ));
    env.write("c.py", format!("from a import ff\nff()\nx = [{}]\n", "1,".repeat(2 << 20)));
    let why = "line 3 of c.py has 4194310 bytes, more than the 4194304 that lanser analyzes";
    let refs = env.lanser(["refs", "py://a#ff", "--json"]);
    let answer = refs.answer();
    assert_eq!(answer["facts"]["references"].as_array().unwrap().len(), 6, "{refs}");
    assert_eq!(answer["facts"]["completeness"]["status"], "unknown", "{refs}");
    assert_eq!(env.lanser(["diag", "a.py", "b.py", "--fail-on", "error"]).code, Some(0));
    let diag = env.lanser(["diag", "--fail-on", "error"]);
    assert_eq!(diag.code, Some(1), "{diag}");
    assert!(diag.stdout.contains(&format!("not checked: c.py: {why}")), "{diag}");
    let symbols = env.lanser(["symbols", "c.py"]);
    assert!(symbols.stderr.contains(why), "{symbols}");
    let rename = env.lanser(["rename", "py://a#ff", "gg", "--apply", "--allow-incomplete"]);
    assert!(rename.stderr.contains(why), "{rename}");
    assert_ne!(rename.code, Some(0), "{rename}");
    assert_eq!(std::fs::read_to_string(env.file("b.py")).unwrap(), "from a import ff\nff()\n");
}

/// The scripts of the GitHub Action, in order.
fn action_scripts() -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/action.yml")).unwrap();
    let scripts = text.split("      run: |\n").skip(1);
    scripts
        .map(|rest| {
            rest.lines().map_while(|line| line.strip_prefix("        ")).collect::<Vec<_>>().join("\n")
        })
        .collect()
}

#[test]
fn the_action_runs_nothing_of_the_checkout_and_writes_through_no_link() {
    let mut checkout = Checkout::new();
    let scripts = action_scripts();
    assert_eq!(scripts.len(), 2);
    let temp = checkout.env.path("runner");
    let outside = checkout.env.path("outside");
    std::fs::write(&outside, "before").unwrap();
    checkout.env.set("RUNNER_TEMP", &temp);
    // Without pip and packages, which are not what is tested.
    let create = scripts[0].lines().find(|line| line.contains(" -m venv ")).unwrap();
    let code = format!("import os; os.system('touch {}')\n", checkout.env.path("ran").display());
    for name in ["venv.py", "runpy.py", "os.py", "subprocess.py"] {
        checkout.env.write(name, &code);
    }
    let created = checkout.env.run("bash", ["-e", "-c", &format!("{create} --without-pip")]);
    assert!(created.code == Some(0) && !checkout.has_run(), "{created}");

    let program = temp.join("lanser/bin/lanser");
    std::fs::write(&program, "#!/bin/sh\necho '{}'\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    symlink(&outside, checkout.env.file("lanser.sarif")).unwrap();
    checkout.env.set("BASE", "HEAD").set("FAIL_ON", "error").set("SARIF_FILE", "lanser.sarif");
    checkout.env.set("GITHUB_OUTPUT", checkout.env.path("output"));
    let reported = checkout.env.run("bash", ["-e", "-c", &scripts[1]]);
    assert_eq!(reported.code, Some(0), "{reported}");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "before");
    assert_eq!(std::fs::read_to_string(checkout.env.file("lanser.sarif")).unwrap(), "{}\n");
}

/// Programs outside of the checkout start others by name: a shim of a version manager a shell, git the filters of the user.
#[test]
fn programs_on_path_in_the_checkout_are_not_started_by_others() {
    let mut checkout = Checkout::new();
    let planted = checkout.workspace.join("bin");
    for program in ["bash", "git-lfs"] {
        checkout.env.write(&format!("bin/{program}"), std::fs::read_to_string(checkout.evil()).unwrap());
        std::fs::set_permissions(planted.join(program), PermissionsExt::from_mode(0o755)).unwrap();
    }
    // Written as `git lfs install` does.
    let config = "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n";
    std::fs::write(checkout.env.path("home/.gitconfig"), config).unwrap();
    checkout.env.write(".gitattributes", "*.py filter=lfs\n");
    let off = ["-c", "filter.lfs.clean=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false"];
    let identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    for args in [&["add", "-A"][..], &["commit", "-qm", "x"]] {
        let output = checkout.env.run("git", off.iter().chain(&identity).chain(args));
        assert_eq!(output.code, Some(0), "{output}");
    }
    // Then libgit2 is not sure, and the program is asked.
    checkout.env.write("untracked.txt", "");
    let file = std::fs::File::open(checkout.workspace.join("a.py")).unwrap();
    file.set_modified(std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30)).unwrap();
    let shims = checkout.env.path("shims");
    std::fs::create_dir(&shims).unwrap();
    let shim = format!("#!/usr/bin/env bash\nexec '{}' \"$@\"\n", python().unwrap().display());
    std::fs::write(shims.join("python3"), shim).unwrap();
    std::fs::set_permissions(shims.join("python3"), PermissionsExt::from_mode(0o755)).unwrap();
    let machine = path_with(&shims);
    let first = std::env::join_paths([planted].into_iter().chain(std::env::split_paths(&machine))).unwrap();
    checkout.env.set("PATH", first);
    checkout.assert_nothing_runs();
    // The folder of the checkout named by a relative and by an empty entry.
    let mut last = std::env::split_paths(&machine).collect::<Vec<_>>();
    last.extend(["bin".into(), "".into()]);
    checkout.env.set("PATH", std::env::join_paths(last).unwrap());
    checkout.assert_nothing_runs();
}
