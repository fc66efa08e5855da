//! What lanser is distributed as: the Python package with its tests, an environment that has the pinned server, npm packages.

use std::path::{Path, PathBuf};

use crate::support::{LANSER, Project, TestEnv, install, which};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_tests_of_the_python_package_pass() {
    let mut env = TestEnv::pyright(&Project::parse("//- /m.py\n"));
    env.set("LANSER_TEST_PROGRAM", LANSER);
    env.set("PYTHONPATH", root().join("python"));
    env.set("PYTHONDONTWRITEBYTECODE", "1");
    let (top, tests) = (root().join("python"), root().join("python/tests"));
    let arguments =
        ["-m", "unittest", "discover", "-t", top.to_str().unwrap(), "-s", tests.to_str().unwrap()];
    let output = env.run("python3", arguments);
    assert_eq!(output.code, Some(0), "{output}");
    let ran = output
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|tests| tests >= 30), "{output}");
    // Without the program under test, the tests of the workspace would be skipped.
    assert!(output.stderr.ends_with("\nOK\n"), "{output}");
}

/// The folder of the pinned Pyright that the tests share.
fn installed_pyright() -> PathBuf {
    let which =
        TestEnv::pyright(&Project::parse("//- /m.py\n")).lanser(["server", "which", "--json", "--offline"]);
    let which: serde_json::Value = serde_json::from_str(which.text()).unwrap();
    Path::new(which["script"].as_str().unwrap()).parent().unwrap().to_owned()
}

#[test]
fn the_server_of_the_own_environment_is_used_without_activation() {
    let mut env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\nf()\n"));
    env.set("LANSER_CACHE_DIR", env.path("cache"));
    let venv = env.path("venv");
    let site = venv.join("lib/python3.12/site-packages/pyright");
    std::fs::create_dir_all(&site).unwrap();
    std::fs::create_dir_all(venv.join("bin")).unwrap();
    std::os::unix::fs::symlink(installed_pyright(), site.join("dist")).unwrap();
    std::fs::copy(LANSER, venv.join("bin/lanser")).unwrap();
    // Neither the environment nor another server is on PATH.
    env.set("PATH", env.path_of(&["node", "python3"]));
    let refused = env.lanser(["refs", "py://m#f", "--offline"]);
    assert_eq!(refused.code, Some(66), "{refused}");
    let own = |arguments: &[&str]| env.run(venv.join("bin/lanser").to_str().unwrap(), arguments);
    let output = own(&["refs", "py://m#f", "--offline"]);
    assert_eq!(output.text(), "m.py:1:5  def f(): ...\nm.py:2:1  f()\n2 references, complete\n", "{output}");
    let shown = own(&["server", "which"]);
    assert!(shown.text().starts_with("pyright 1.1.414 (environment)\n"), "{shown}");
}

/// As `pip install lanser[ty]` makes it: what was installed with lanser is used without being named.
#[test]
fn ty_is_the_default_where_it_is_the_only_server_beside_lanser() {
    install("ty");
    let mut env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\nf()\n"));
    let which = env.lanser(["server", "which", "--server", "ty", "--json", "--offline"]);
    let which: serde_json::Value = serde_json::from_str(which.text()).unwrap();
    let program = Path::new(which["script"].as_str().unwrap());
    env.set("LANSER_CACHE_DIR", env.path("cache"));
    let venv = env.path("venv");
    let metadata = venv.join("lib/python3.12/site-packages/ty-0.0.105.dist-info");
    std::fs::create_dir_all(&metadata).unwrap();
    std::fs::write(metadata.join("METADATA"), "Metadata-Version: 2.3\nName: ty\nVersion: 0.0.105\n").unwrap();
    std::fs::create_dir_all(venv.join("bin")).unwrap();
    std::fs::copy(program, venv.join("bin/ty")).unwrap();
    std::fs::copy(LANSER, venv.join("bin/lanser")).unwrap();
    env.set("PATH", env.path_of(&["python3", "git"]));
    let own = |arguments: &[&str]| env.run(venv.join("bin/lanser").to_str().unwrap(), arguments);
    let output = own(&["refs", "py://m#f", "--offline"]);
    assert_eq!(output.text(), "m.py:1:5  def f(): ...\nm.py:2:1  f()\n2 references, complete\n", "{output}");
    assert!(own(&["server", "which"]).text().starts_with("ty 0.0.105 (environment)\n"));
    assert!(own(&["server", "list"]).text().contains("ty 0.0.105 (default)"));
    assert_eq!(own(&["refs", "py://m#f", "--offline", "--server", "pyright"]).code, Some(66));
}

/// The extras of the wheel are the servers that lanser looks for.
#[test]
fn the_extras_have_the_pinned_versions() {
    let list = TestEnv::new().lanser(["server", "list"]);
    let default = list.text().lines().find(|line| line.starts_with("pyright ") && line.contains("(default)"));
    let version = default.unwrap().split(' ').nth(1).unwrap();
    let ty = list.text().lines().find(|line| line.starts_with("ty ")).unwrap().split(' ').nth(1).unwrap();
    for (file, requirement) in [
        ("pyproject.toml", format!("pyright = [\"pyright[nodejs]=={version}\"]")),
        ("pyproject.toml", format!("ty = [\"ty=={ty}\"]")),
        ("Dockerfile", format!("'pyright[nodejs]=={version}'")),
        (".pre-commit-hooks.yaml", format!("[\"pyright[nodejs]=={version}\"]")),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&requirement), "{file}: {requirement}");
    }
}

#[test]
fn npm_installs_the_program_from_tarballs() {
    assert!(which("npm").is_some(), "the tests need npm");
    let env = TestEnv::with(&Project::parse("//- /m.py\ndef f(): ...\n"));
    let target = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "x64",
    };
    let target = match std::env::consts::OS {
        "macos" => format!("darwin-{target}"),
        _ => format!("linux-{target}-gnu"),
    };
    let out = env.path("packages");
    let script = root().join("npm/pack.mjs");
    let packed = env.run("node", [script.to_str().unwrap(), LANSER, &target, out.to_str().unwrap()]);
    assert_eq!(packed.code, Some(0), "{packed}");
    let mut tarballs: Vec<PathBuf> =
        std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
    tarballs.sort();
    assert_eq!(tarballs.len(), 2, "{tarballs:?}");
    let prefix = env.path("prefix");
    let tarballs = tarballs.iter().map(|path| path.to_str().unwrap());
    let arguments = ["install", "--offline", "--no-audit", "--no-fund", "--prefix", prefix.to_str().unwrap()];
    std::fs::create_dir(&prefix).unwrap();
    let installed = env.run("npm", arguments.into_iter().chain(tarballs));
    assert_eq!(installed.code, Some(0), "{installed}");
    let program = prefix.join("node_modules/.bin/lanser");
    let run = |arguments: &[&str]| env.run(program.to_str().unwrap(), arguments);
    assert_eq!(run(&["locate", "py://m#f"]).text(), env.lanser(["locate", "py://m#f"]).text());
    let missing = run(&["locate", "py://m#g"]);
    assert_eq!(missing.code, Some(3), "{missing}");
    // Without the package of the platform there is an error, not a crash.
    std::fs::remove_dir_all(prefix.join("node_modules/@lanser")).unwrap();
    let broken = run(&["--version"]);
    assert_eq!(broken.code, Some(66), "{broken}");
    assert!(broken.stderr.contains(&format!("@lanser/{target}")), "{broken}");
}
