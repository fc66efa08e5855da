//! Reads a Python environment from its files, without running any program in it.
//!
//! Nothing in an untrusted checkout may be run: not its interpreter, which can be a link to any program; not the
//! interpreter that `home` in its `pyvenv.cfg` names, whose standard library runs before the first option is read; and
//! not the code lines of its `.pth` files. A language server needs only the version, the folders and the paths in
//! `.pth` files, and all of them can be read from files.
//!
//! The layouts are those of `venv`, `virtualenv` and `uv` (`pyvenv.cfg`, <https://docs.python.org/3/library/site.html>)
//! and of conda (`conda-meta`).

use super::code_folders::ENVIRONMENT_FILE;
use super::files::{FileKind, Files};
use super::python::{PythonEnvironment, pth_folders};
use crate::path::AbsPath;

/// Whether a folder is an environment.
#[must_use]
pub fn is_environment(files: &dyn Files, folder: &AbsPath) -> bool {
    is_virtual(files, folder) || files.kind(&folder.join("conda-meta")) == FileKind::Folder
}

/// Whether a folder is a virtual environment: it has a `pyvenv.cfg`.
#[must_use]
pub fn is_virtual(files: &dyn Files, folder: &AbsPath) -> bool {
    files.kind(&folder.join(ENVIRONMENT_FILE)) == FileKind::File
}

/// Reads the environment in a folder.
///
/// # Errors
/// A message that says what is missing.
pub fn read(files: &dyn Files, prefix: &AbsPath) -> Result<PythonEnvironment, String> {
    if is_virtual(files, prefix) { virtual_environment(files, prefix) } else { conda(files, prefix) }
}

fn virtual_environment(files: &dyn Files, prefix: &AbsPath) -> Result<PythonEnvironment, String> {
    let file = prefix.join(ENVIRONMENT_FILE);
    let text = files.read(&file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let config = PyvenvConfig::parse(&text.text);
    let version = config.get("version").or_else(|| config.get("version_info")).and_then(version);
    let Some(lib) = library_folder(files, prefix, version.as_deref()) else {
        return Err(format!("{prefix} has no site-packages folder"));
    };
    // Such as `python3.11`, `pypy3.10`.
    let name = lib.file_name().to_owned();
    let short = name.trim_start_matches(|c: char| !c.is_ascii_digit()).to_owned();
    let version =
        version.filter(|version| has_short_version(version, &short)).unwrap_or_else(|| format!("{short}.0"));
    let base_prefix = config.get("home").and_then(|home| AbsPath::new(home).ok()).map(|home| {
        // The interpreter in `home` may be a link to one in another folder.
        let programs = [&name, "python3", "python"].map(|program| files.canonical(&home.join(program)));
        let prefixes = programs.iter().map(|program| program.parent().parent());
        let has_library =
            |prefix: &AbsPath| files.kind(&prefix.join(&format!("lib/{name}/os.py"))) == FileKind::File;
        std::iter::once(home.parent()).chain(prefixes).find(has_library).unwrap_or_else(|| home.parent())
    });
    let base_prefix = base_prefix.unwrap_or_else(|| prefix.join("base"));
    let mut site_packages = site_folders(files, prefix, &name);
    if config.get("include-system-site-packages").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        site_packages.extend(site_folders(files, &base_prefix, &name));
        let shared = [base_prefix.join(&format!("local/lib/{name}")), base_prefix.join("lib/python3")];
        let shared = shared.map(|folder| folder.join("dist-packages"));
        site_packages.extend(shared.into_iter().filter(|folder| files.kind(folder) == FileKind::Folder));
    }
    let implementation = match config.get("implementation") {
        Some(name) => name.to_ascii_lowercase(),
        None if name.starts_with("pypy") => "pypy".to_owned(),
        None => "cpython".to_owned(),
    };
    let found = Layout { prefix, base_prefix, name: &name, version, implementation, site_packages };
    Ok(found.environment(files))
}

/// A conda environment is a complete installation. `conda-meta` lists the installed packages.
fn conda(files: &dyn Files, prefix: &AbsPath) -> Result<PythonEnvironment, String> {
    let packages = files.list(&prefix.join("conda-meta"));
    let version = packages.iter().find_map(|name| {
        let rest = name.strip_prefix("python-")?.strip_suffix(".json")?;
        version(rest.split('-').next()?)
    });
    let version = version.ok_or_else(|| format!("{prefix}/conda-meta does not list Python"))?;
    let short = version.rsplit_once('.').map_or(version.as_str(), |(short, _)| short).to_owned();
    let name = format!("python{short}");
    let site_packages = site_folders(files, prefix, &name);
    let implementation = "cpython".to_owned();
    let base_prefix = prefix.clone();
    let found = Layout { prefix, base_prefix, name: &name, version, implementation, site_packages };
    Ok(found.environment(files))
}

/// What was read about an environment.
struct Layout<'l> {
    prefix: &'l AbsPath,
    base_prefix: AbsPath,
    /// The name of the folder in `lib`, such as `python3.11`.
    name: &'l str,
    version: String,
    implementation: String,
    site_packages: Vec<AbsPath>,
}

impl Layout<'_> {
    fn environment(self, files: &dyn Files) -> PythonEnvironment {
        let stdlib = self.base_prefix.join(&format!("lib/{}", self.name));
        let mut search_path = vec![stdlib.clone(), stdlib.join("lib-dynload")];
        search_path.retain(|folder| files.kind(folder) == FileKind::Folder);
        // The order of the `site` module: each site-packages folder, followed by the folders that its `.pth` files list.
        for folder in &self.site_packages {
            for path in std::iter::once(folder.clone()).chain(pth_folders(files, folder)) {
                if !search_path.contains(&path) {
                    search_path.push(path);
                }
            }
        }
        let programs = ["bin/python", "bin/python3"].map(|name| self.prefix.join(name));
        let [python, _] = &programs;
        let interpreter = programs.iter().find(|path| files.kind(path) == FileKind::File).unwrap_or(python);
        PythonEnvironment {
            interpreter: interpreter.clone(),
            version: self.version,
            implementation: self.implementation,
            prefix: self.prefix.clone(),
            base_prefix: self.base_prefix,
            stdlib,
            site_packages: self.site_packages,
            search_path,
        }
    }
}

/// The folder in `lib` that has a `site-packages` folder: the one of this version, otherwise the first.
fn library_folder(files: &dyn Files, prefix: &AbsPath, version: Option<&str>) -> Option<AbsPath> {
    let names: Vec<AbsPath> = ["lib", "lib64"]
        .map(|lib| prefix.join(lib))
        .into_iter()
        .flat_map(|lib| {
            let names = files.list(&lib).into_iter();
            names.filter(|name| is_library(name)).map(move |name| lib.join(&name)).collect::<Vec<_>>()
        })
        .filter(|lib| files.kind(&lib.join("site-packages")) == FileKind::Folder)
        .collect();
    let is_wanted = |lib: &&AbsPath| {
        let short = lib.file_name().trim_start_matches(|c: char| !c.is_ascii_digit());
        version.is_some_and(|version| has_short_version(version, short))
    };
    names.iter().find(is_wanted).or(names.first()).cloned()
}

/// Whether this is the name of a folder in `lib` such as `python3.11`, `python3.13t`, `pypy3.10`.
fn is_library(name: &str) -> bool {
    ["python3.", "pypy3."].iter().any(|start| name.starts_with(start))
}

/// Whether a version such as `3.11.7` belongs to a short one such as `3.11`.
fn has_short_version(version: &str, short: &str) -> bool {
    let short = short.trim_end_matches('t');
    version.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The site-packages folders of an environment. `lib64` is usually a link to `lib`.
fn site_folders(files: &dyn Files, prefix: &AbsPath, name: &str) -> Vec<AbsPath> {
    let mut found: Vec<AbsPath> = Vec::new();
    for lib in ["lib", "lib64"] {
        let folder = prefix.join(&format!("{lib}/{name}/site-packages"));
        let real = files.canonical(&folder);
        if files.kind(&folder) == FileKind::Folder && !found.iter().any(|one| files.canonical(one) == real) {
            found.push(folder);
        }
    }
    found
}

/// The three numbers at the beginning of `3.11.7`, `3.11.7.final.0` and `3.14.0rc1`; `None` when the text is not a
/// version.
fn version(text: &str) -> Option<String> {
    let mut numbers = text.trim().split('.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u16>().ok()
    });
    let (major, minor) = (numbers.next()??, numbers.next()??);
    let patch = numbers.next().flatten().unwrap_or(0);
    Some(format!("{major}.{minor}.{patch}"))
}

/// The lines `key = value` of a `pyvenv.cfg`.
struct PyvenvConfig<'c>(Vec<(String, &'c str)>);

impl<'c> PyvenvConfig<'c> {
    fn parse(text: &'c str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        Self(lines.map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim())).collect())
    }

    /// The last value of a key, as in Python.
    fn get(&self, key: &str) -> Option<&'c str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::MemoryFiles;
    use super::*;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn environment(config: &str, more: &[(&str, &str)]) -> Result<PythonEnvironment, String> {
        let own = [
            ("/w/.venv/pyvenv.cfg", config),
            ("/w/.venv/bin/python", ""),
            ("/w/.venv/lib/python3.11/site-packages/six.py", ""),
            ("/w/.venv/lib/python3.11/site-packages/a.pth", "/w/src\nimport os; os.system('x')\n"),
            ("/w/src/own.py", ""),
            ("/opt/py/lib/python3.11/os.py", ""),
            ("/opt/py/lib/python3.11/lib-dynload/x.so", ""),
            ("/opt/py/lib/python3.11/site-packages/pip.py", ""),
        ];
        read(&MemoryFiles::new(own.into_iter().chain(more.iter().copied())), &at("/w/.venv"))
    }

    #[test]
    fn an_environment_is_read_from_its_files() {
        let found = environment("home = /opt/py/bin\nversion = 3.11.7\n", &[]).unwrap();
        assert_eq!(found.version, "3.11.7");
        assert_eq!(found.implementation, "cpython");
        assert_eq!((found.prefix, found.base_prefix), (at("/w/.venv"), at("/opt/py")));
        assert_eq!(found.interpreter, at("/w/.venv/bin/python"));
        assert_eq!(found.site_packages, [at("/w/.venv/lib/python3.11/site-packages")]);
        let path = ["/opt/py/lib/python3.11", "/opt/py/lib/python3.11/lib-dynload"];
        let own = ["/w/.venv/lib/python3.11/site-packages", "/w/src"];
        assert_eq!(found.search_path, [path, own].concat().into_iter().map(at).collect::<Vec<_>>());
    }

    #[test]
    fn other_tools_write_other_lines() {
        let of = |config: &str| environment(config, &[]).map(|found| (found.version, found.implementation));
        let cpython = |version: &str| Ok((version.to_owned(), "cpython".to_owned()));
        assert_eq!(of("implementation = CPython\nversion_info = 3.11.4.final.0\n"), cpython("3.11.4"));
        assert_eq!(of("uv = 0.5\nversion_info = 3.11.9\n"), cpython("3.11.9"));
        assert_eq!(of("VERSION=3.11.2\n"), cpython("3.11.2"));
        // The folder's name wins over a stale line.
        assert_eq!(of("version = 3.9.1\n"), cpython("3.11.0"));
        assert_eq!(of(""), cpython("3.11.0"));
    }

    #[test]
    fn system_site_packages_are_included_on_request() {
        let found = environment("home = /opt/py/bin\ninclude-system-site-packages = true\n", &[]).unwrap();
        let own = ["/w/.venv/lib/python3.11/site-packages", "/opt/py/lib/python3.11/site-packages"];
        assert_eq!(found.site_packages, own.map(at));
    }

    #[test]
    fn a_conda_environment_is_read_from_conda_meta() {
        let files = MemoryFiles::new([
            ("/e/conda-meta/history", ""),
            ("/e/conda-meta/python-3.12.4-h5148396_1.json", ""),
            ("/e/bin/python", ""),
            ("/e/lib/python3.12/os.py", ""),
            ("/e/lib/python3.12/site-packages/x.py", ""),
        ]);
        let found = read(&files, &at("/e")).unwrap();
        assert_eq!((found.version.as_str(), found.prefix == found.base_prefix), ("3.12.4", true));
        assert_eq!(found.search_path, ["/e/lib/python3.12", "/e/lib/python3.12/site-packages"].map(at));
        let files = MemoryFiles::new([("/e/conda-meta/history", "")]);
        assert_eq!(read(&files, &at("/e")).unwrap_err(), "/e/conda-meta does not list Python");
    }

    #[test]
    fn a_folder_without_site_packages_is_not_an_environment() {
        let files = MemoryFiles::new([("/e/pyvenv.cfg", "home = /usr/bin\n")]);
        assert_eq!(read(&files, &at("/e")).unwrap_err(), "/e has no site-packages folder");
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read_or_refused(
            config in "(home|version|version_info|implementation|include-system-site-packages|[a-z=]{0,4})? ?=? ?.{0,24}\n.{0,40}",
            paths in ".{0,40}(\n(import )?.{0,24}){0,3}",
        ) {
            let found = environment(&config, &[("/w/.venv/lib/python3.11/site-packages/b.pth", paths.as_str())]);
            // The folder layout alone makes it an environment, whatever the files contain.
            let found = found.unwrap();
            proptest::prop_assert!(found.version.starts_with("3.11."));
            proptest::prop_assert_eq!(&found.prefix, &at("/w/.venv"));
        }
    }
}
