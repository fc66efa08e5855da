//! Maps a module's name to its file and back, through the folders that the server searches.
//!
//! The order is Pyright's: the stub folder (for stubs only), the root of the execution environment, its extra paths
//! (`src` if the configuration names none), the standard library, the site-packages and the roots that their `.pth`
//! files name. One difference is intended: a selector selects a *definition*, so a source file is preferred, and the stub
//! that the server reads instead is recorded next to it ([`Module::stub`]).

use serde::{Deserialize, Serialize};

use super::outline::Import;
use crate::path::AbsPath;
use crate::selector::name::is_identifier;
use crate::workspace::files::{FileKind, Files};
use crate::workspace::python::PythonEnvironment;
use crate::workspace::server_config::ServerConfig;

/// Where a search folder comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ModuleOrigin {
    /// The workspace, or the root of an execution environment.
    Workspace,
    /// `extraPaths`, or `src`.
    ExtraPath,
    /// The standard library.
    Stdlib,
    /// Installed packages, and what their `.pth` files name.
    Environment,
    /// A folder of stubs.
    Stubs,
}

/// A folder that modules are searched in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRoot {
    /// The folder.
    pub folder: AbsPath,
    /// Where it comes from.
    pub origin: ModuleOrigin,
}

/// The search folders that apply to the files below one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct View {
    /// The folder of an execution environment; `None` for all other files.
    scope: Option<AbsPath>,
    roots: Vec<ImportRoot>,
}

/// The folders that modules are searched in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRoots {
    /// The view of the workspace first, then those of the execution environments.
    views: Vec<View>,
    /// Shared by all views, after their own roots.
    environment: Vec<ImportRoot>,
    stub_path: Option<AbsPath>,
    typeshed: Option<AbsPath>,
}

/// A module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Its dotted name.
    pub name: String,
    /// The source file.
    pub source: Option<AbsPath>,
    /// The stub that the server reads in place of the source.
    pub stub: Option<AbsPath>,
    /// The folder of submodules, for a package.
    pub folder: Option<AbsPath>,
    /// Where it was found.
    pub origin: ModuleOrigin,
}

impl Module {
    /// The file to look for definitions in: the source, else the stub; a namespace package has none.
    #[must_use]
    pub fn file(&self) -> Option<&AbsPath> {
        self.source.as_ref().or(self.stub.as_ref())
    }
}

impl ImportRoots {
    /// The roots of a workspace. `typeshed` is the folder of the stubs that are bundled with the server.
    #[must_use]
    pub fn new(
        files: &dyn Files,
        workspace: &AbsPath,
        config: &ServerConfig,
        python: Option<&PythonEnvironment>,
        typeshed: Option<AbsPath>,
    ) -> Self {
        let source = workspace.join("src");
        let is_source_root = files.kind(&source) == FileKind::Folder
            && files.kind(&source.join("__init__.py")) != FileKind::File;
        let extra =
            config.extra_paths.clone().unwrap_or_else(|| if is_source_root { vec![source] } else { vec![] });
        let view = |scope: Option<&AbsPath>, extra: &[AbsPath]| {
            let root =
                ImportRoot { folder: scope.unwrap_or(workspace).clone(), origin: ModuleOrigin::Workspace };
            let extra =
                extra.iter().cloned().map(|folder| ImportRoot { folder, origin: ModuleOrigin::ExtraPath });
            View { scope: scope.cloned(), roots: std::iter::once(root).chain(extra).collect() }
        };
        let mut views = vec![view(None, &extra)];
        views.extend(config.execution_environments.iter().map(|environment| {
            view(Some(&environment.root), environment.extra_paths.as_ref().unwrap_or(&extra))
        }));
        let mut environment = Vec::new();
        if let Some(python) = python {
            environment.push(ImportRoot { folder: python.stdlib.clone(), origin: ModuleOrigin::Stdlib });
            let packages = python.site_packages.iter().cloned().chain(python.pth_roots(files));
            environment
                .extend(packages.map(|folder| ImportRoot { folder, origin: ModuleOrigin::Environment }));
        }
        let stub_path = Some(config.stub_path.clone().unwrap_or_else(|| workspace.join("typings")));
        Self { views, environment, stub_path, typeshed }
    }

    /// A single folder, without a Python environment and stubs.
    #[must_use]
    pub fn of_folder(folder: AbsPath) -> Self {
        let root = ImportRoot { folder, origin: ModuleOrigin::Workspace };
        Self { views: vec![View { scope: None, roots: vec![root] }], ..Self::default() }
    }

    /// The same, with a folder of the standard library.
    #[cfg(test)]
    pub(super) fn with_stdlib(mut self, folder: AbsPath) -> Self {
        self.environment.push(ImportRoot { folder, origin: ModuleOrigin::Stdlib });
        self
    }

    /// The path of a stub of the standard library, relative to the folder of the standard library. That may be in a folder that
    /// is named by the content.
    fn shipped_name<'f>(&self, file: &'f AbsPath) -> Option<&'f str> {
        let below = file.strip_prefix(self.typeshed.as_ref()?)?;
        below.strip_prefix("stdlib/").or_else(|| below.split_once("/stdlib/").map(|(_, name)| name))
    }

    /// Whether a file is a stub of the standard library that is bundled with the server.
    #[must_use]
    pub fn is_shipped(&self, file: &AbsPath) -> bool {
        self.shipped_name(file).is_some()
    }

    /// The modules of this name: one, unless execution environments have different ones. In the order of the views.
    #[must_use]
    pub fn find(&self, files: &dyn Files, name: &str) -> Vec<Module> {
        let mut found: Vec<Module> = Vec::new();
        for view in &self.views {
            if let Some(module) = self.find_in(files, view, name)
                && !(self.views.len() > 1
                    && module.origin == ModuleOrigin::Environment
                    && self.is_shadowed(files, name))
                && !found.iter().any(|other| other.source == module.source && other.stub == module.stub)
            {
                found.push(module);
            }
        }
        // A namespace package counts only if no other module is found.
        if found.iter().any(|module| module.file().is_some()) {
            found.retain(|module| module.file().is_some());
        }
        found
    }

    /// The module that an import statement of a file names.
    #[must_use]
    pub fn imported(&self, files: &dyn Files, import: &Import, importer: &AbsPath) -> Option<Module> {
        match import.level {
            0 => self.import(files, &import.module, importer),
            level => self.relative(files, level, &import.module, importer),
        }
    }

    /// The module that `import name` means in a file.
    #[must_use]
    pub fn import(&self, files: &dyn Files, name: &str, importer: &AbsPath) -> Option<Module> {
        let view = self.view_of(importer)?;
        if let Some(module) = self.find_in(files, view, name) {
            return Some(module);
        }
        if let Some(stub) = self.imported_by_bundled(files, name, importer) {
            return Some(stub.into_module(name.to_owned(), ModuleOrigin::Stubs));
        }
        // The last resort of the server: the folders from that of the importing file up to the root.
        let root = &view.roots.first()?.folder;
        let mut folder = importer.parent();
        while folder.strip_prefix(root).is_some_and(|rest| !rest.is_empty()) {
            if let Some(found) = find_in_folder(files, &folder, name) {
                return Some(found.into_module(name.to_owned(), ModuleOrigin::Workspace));
            }
            folder = folder.parent();
        }
        None
    }

    /// The name by which the package is imported whose bundled stubs a file is of.
    #[must_use]
    pub fn bundled_package<'f>(&self, file: &'f AbsPath) -> Option<&'f str> {
        let (_, module) = file.strip_prefix(&self.typeshed.as_ref()?.join("stubs"))?.split_once('/')?;
        Some(module.split_once('/').map_or(module, |(package, _)| package).trim_end_matches(".pyi"))
    }

    /// What the bundled stub of a package imports from another one. The packages need not be installed.
    fn imported_by_bundled(&self, files: &dyn Files, name: &str, importer: &AbsPath) -> Option<ModuleFiles> {
        let stubs = self.typeshed.as_ref()?.join("stubs");
        let (own, _) = importer.strip_prefix(&stubs)?.split_once('/')?;
        let others = || files.list(&stubs).into_iter().filter(|package| package != own);
        let find = |package: &str| {
            find_in_folder(files, &stubs.join(package), name).filter(|found| found.stub.is_some())
        };
        find(own).or_else(|| others().find_map(|package| find(&package)))
    }

    /// The module that `from ..name import` means in a file; `level` is the number of dots, `name` may be empty.
    #[must_use]
    pub fn relative(
        &self,
        files: &dyn Files,
        level: usize,
        name: &str,
        importer: &AbsPath,
    ) -> Option<Module> {
        let mut folder = importer.parent();
        for _ in 1..level {
            folder = folder.parent();
        }
        let found =
            if name.is_empty() { package(files, &folder) } else { find_in_folder(files, &folder, name) }?;
        let full = found.source.as_ref().or(found.stub.as_ref()).and_then(|file| self.name_of(file));
        let full = full.or_else(|| self.name_of(&found.folder.as_ref()?.join("__init__.py")));
        let name = full.unwrap_or_else(|| name.to_owned());
        Some(self.with_stub_and_origin(files, found.into_module(name, ModuleOrigin::Workspace)))
    }

    /// A module that was found by its folder, completed with its stub and origin if the roots find the same file.
    fn with_stub_and_origin(&self, files: &dyn Files, module: Module) -> Module {
        let mut seen = self.find(files, &module.name).into_iter();
        seen.find(|other| other.file() == module.file()).unwrap_or(module)
    }

    /// The submodule of a package.
    #[must_use]
    pub fn submodule(&self, files: &dyn Files, package: &Module, name: &str) -> Option<Module> {
        let full = format!("{}.{name}", package.name);
        let found = package.folder.as_ref().and_then(|folder| find_in_folder(files, folder, name));
        match found {
            Some(found) => Some(self.with_stub_and_origin(files, found.into_module(full, package.origin))),
            None => self.find(files, &full).into_iter().next(),
        }
    }

    /// The dotted name of a file, relative to the nearest root above it.
    #[must_use]
    pub fn name_of(&self, file: &AbsPath) -> Option<String> {
        let all = self.all_roots();
        dotted(all.filter_map(|root| file.strip_prefix(root)).min_by_key(|rest| rest.len())?)
    }

    /// The dotted name of a file, which may be a stub that is bundled with the server.
    #[must_use]
    pub fn name_of_any(&self, file: &AbsPath) -> Option<String> {
        let shipped = self.typeshed.as_ref().and_then(|typeshed| {
            let stdlib = self.shipped_name(file);
            // Below `stubs` each package has a separate folder.
            let other = || Some(file.strip_prefix(&typeshed.join("stubs"))?.split_once('/')?.1);
            dotted(stdlib.or_else(other)?)
        });
        shipped.or_else(|| self.name_of(file))
    }

    /// The source files of this module name that a stub may belong to, ignoring shadowing. A stub of the standard library does not
    /// belong to a module of the workspace.
    #[must_use]
    pub fn sources(&self, files: &dyn Files, name: &str, stub: &AbsPath) -> Vec<AbsPath> {
        let is_shipped = self.is_shipped(stub);
        let own = self.views.iter().flat_map(|view| &view.roots).filter(|_| !is_shipped);
        let roots = own.chain(&self.environment).map(|root| &root.folder);
        roots.filter_map(|folder| find_in_folder(files, folder, name)?.source).collect()
    }

    /// Every search folder in order.
    pub fn all_roots(&self) -> impl Iterator<Item = &AbsPath> {
        let views = self.views.iter().flat_map(|view| &view.roots);
        views.chain(&self.environment).map(|root| &root.folder).chain(&self.stub_path)
    }

    /// The folder of the stubs that are bundled with the server.
    #[must_use]
    pub const fn typeshed(&self) -> Option<&AbsPath> {
        self.typeshed.as_ref()
    }

    /// The folders of installed packages, and of the stubs that are bundled with the server. `None` if these are not known.
    #[must_use]
    pub fn installed(&self) -> Option<Vec<&AbsPath>> {
        let packages = self.environment.iter().filter(|root| root.origin == ModuleOrigin::Environment);
        Some(packages.map(|root| &root.folder).chain([self.typeshed.as_ref()?]).collect())
    }

    fn view_of(&self, file: &AbsPath) -> Option<&View> {
        let scoped = self.views.iter().find(|view| {
            view.scope
                .as_ref()
                .is_some_and(|scope| file.strip_prefix(scope).is_some_and(|rest| !rest.is_empty()))
        });
        scoped.or(self.views.first())
    }

    fn find_in(&self, files: &dyn Files, view: &View, name: &str) -> Option<Module> {
        let mut stub = self.stub_path.as_ref().and_then(|folder| find_in_folder(files, folder, name)?.stub);
        let mut namespace = None;
        let mut stub_only = None;
        let mut is_shadowed = false;
        for root in view.roots.iter().chain(&self.environment) {
            if let Some(found) = find_in_folder(files, &root.folder, name) {
                if found.source.is_some() {
                    let mut module = found.into_module(name.to_owned(), root.origin);
                    let bundled = || self.bundled_stub(files, root, name);
                    module.stub = stub
                        .or_else(|| module.stub.take())
                        .or_else(|| stubs_package(files, &root.folder, name))
                        .or_else(bundled);
                    return Some(module);
                }
                match found.stub {
                    Some(_) => {
                        stub = stub.or_else(|| found.stub.clone());
                        stub_only = stub_only.or(Some((found, root.origin)));
                    }
                    None => namespace = namespace.or(Some((found, root.origin))),
                }
            } else if let Some(found) = stubs_package(files, &root.folder, name) {
                stub = stub.or(Some(found));
            }
            if shadows(files, root, name) {
                is_shadowed = true;
                break;
            }
        }
        if !is_shadowed && stub_only.is_none() && stub.is_none() {
            stub = self
                .typeshed
                .as_ref()
                .and_then(|folder| find_in_folder(files, &folder.join("stdlib"), name)?.stub);
        }
        let found = stub_only.or_else(|| {
            let stub = stub.clone()?;
            let folder = stub.file_name().starts_with("__init__.").then(|| stub.parent());
            Some((ModuleFiles { source: None, stub: Some(stub), folder }, ModuleOrigin::Stubs))
        });
        let (found, origin) = found.or(namespace)?;
        Some(found.into_module(name.to_owned(), origin))
    }

    /// Whether a package of the workspace shadows the name, in any view.
    fn is_shadowed(&self, files: &dyn Files, name: &str) -> bool {
        self.views.iter().flat_map(|view| &view.roots).any(|root| shadows(files, root, name))
    }

    /// The bundled stub of a module of the standard library, or of a package without `py.typed`.
    fn bundled_stub(&self, files: &dyn Files, root: &ImportRoot, name: &str) -> Option<AbsPath> {
        let typeshed = self.typeshed.as_ref()?;
        match root.origin {
            ModuleOrigin::Stdlib => find_in_folder(files, &typeshed.join("stdlib"), name)?.stub,
            ModuleOrigin::Environment => {
                let top = name.split('.').next()?;
                if files.kind(&root.folder.join(top).join("py.typed")) == FileKind::File {
                    return None;
                }
                let stubs = typeshed.join("stubs");
                files
                    .list(&stubs)
                    .iter()
                    .find_map(|package| find_in_folder(files, &stubs.join(package), name)?.stub)
            }
            _ => None,
        }
    }
}

/// The dotted name of a file below a search folder.
fn dotted(relative: &str) -> Option<String> {
    let stem = relative.strip_suffix(".py").or_else(|| relative.strip_suffix(".pyi"))?;
    let stem = stem.strip_suffix("/__init__").unwrap_or(stem);
    let mut parts: Vec<&str> = stem.split('/').collect();
    if let Some(first) = parts.first_mut() {
        *first = first.strip_suffix("-stubs").unwrap_or(first);
    }
    parts.iter().all(|part| is_identifier(part)).then(|| parts.join("."))
}

/// The files of a module in one search folder.
struct ModuleFiles {
    source: Option<AbsPath>,
    stub: Option<AbsPath>,
    folder: Option<AbsPath>,
}

impl ModuleFiles {
    fn into_module(self, name: String, origin: ModuleOrigin) -> Module {
        Module { name, source: self.source, stub: self.stub, folder: self.folder, origin }
    }
}

/// Finds a module by its dotted name below one folder: a package, else a module file, else a folder without `__init__`.
fn find_in_folder(files: &dyn Files, root: &AbsPath, name: &str) -> Option<ModuleFiles> {
    let (above, last) = name.rsplit_once('.').unwrap_or(("", name));
    let above = if above.is_empty() { root.clone() } else { root.join(&above.replace('.', "/")) };
    if last.is_empty() {
        return None;
    }
    let folder = above.join(last);
    let as_package = package(files, &folder);
    if as_package.as_ref().is_some_and(|found| found.source.is_some() || found.stub.is_some()) {
        return as_package;
    }
    let file = |path: AbsPath| (files.kind(&path) == FileKind::File).then_some(path);
    let source = file(above.join(&format!("{last}.py")));
    let stub = file(above.join(&format!("{last}.pyi")));
    if source.is_some() || stub.is_some() {
        return Some(ModuleFiles { source, stub, folder: None });
    }
    as_package
}

/// Whether a package above `name` is in a root of the workspace and cannot be extended by other folders: Python searches its
/// submodules nowhere else.
fn shadows(files: &dyn Files, root: &ImportRoot, name: &str) -> bool {
    if !matches!(root.origin, ModuleOrigin::Workspace | ModuleOrigin::ExtraPath) {
        return false;
    }
    name.match_indices('.').any(|(end, _)| {
        let init = root.folder.join(&name[..end].replace('.', "/")).join("__init__.py");
        files.kind(&init) == FileKind::File
            // The older ways to distribute a package over several folders.
            && files.read(&init).is_ok_and(|document| {
                !document.text.contains("extend_path") && !document.text.contains("declare_namespace")
            })
    })
}

/// The package of a folder.
fn package(files: &dyn Files, folder: &AbsPath) -> Option<ModuleFiles> {
    if files.kind(folder) != FileKind::Folder {
        return None;
    }
    let file = |name: &str| Some(folder.join(name)).filter(|path| files.kind(path) == FileKind::File);
    Some(ModuleFiles {
        source: file("__init__.py"),
        stub: file("__init__.pyi"),
        folder: Some(folder.clone()),
    })
}

/// The stub in a `top-stubs` package (PEP 561).
fn stubs_package(files: &dyn Files, root: &AbsPath, name: &str) -> Option<AbsPath> {
    let (top, rest) = name.split_once('.').unwrap_or((name, ""));
    let folder = root.join(&format!("{top}-stubs"));
    let found = if rest.is_empty() { package(files, &folder) } else { find_in_folder(files, &folder, rest) };
    found?.stub
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::files::MemoryFiles;
    use crate::workspace::server_config::ExecutionEnvironment;

    fn at(path: &str) -> AbsPath {
        AbsPath::new(path).unwrap()
    }

    fn python() -> PythonEnvironment {
        PythonEnvironment {
            interpreter: at("/e/bin/python"),
            version: "3.11.7".to_owned(),
            implementation: "cpython".to_owned(),
            prefix: at("/e"),
            base_prefix: at("/e"),
            stdlib: at("/e/lib"),
            site_packages: vec![at("/e/lib/site-packages")],
            search_path: Vec::new(),
        }
    }

    fn found(files: &[&str], config: &ServerConfig, name: &str) -> Vec<(Option<String>, Option<String>)> {
        let files = MemoryFiles::new(files.iter().map(|path| (*path, "")));
        let roots = ImportRoots::new(&files, &at("/w"), config, Some(&python()), Some(at("/ts")));
        let text = |path: Option<AbsPath>| path.map(|path| path.as_str().to_owned());
        roots.find(&files, name).into_iter().map(|module| (text(module.source), text(module.stub))).collect()
    }

    #[test]
    fn a_package_of_the_workspace_hides_an_installed_copy() {
        let site = "/e/lib/site-packages";
        let text = |path: &str| match path {
            "/w/spread/__init__.py" => "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n",
            _ => "",
        };
        let mut all: Vec<String> =
            ["/w/src/pkg/__init__.py", "/w/src/pkg/new.py", "/w/space/inner.py", "/w/spread/__init__.py"]
                .map(str::to_owned)
                .into();
        all.extend(["/w/src/only/__init__.pyi", "/w/tests/t.py"].map(str::to_owned));
        for module in
            ["pkg/__init__", "pkg/gone", "space/other", "spread/other", "only/__init__", "only/more"]
        {
            all.push(format!("{site}/{module}.py"));
        }
        let files = MemoryFiles::new(all.iter().map(|path| (path.as_str(), text(path))));
        let environment = ExecutionEnvironment { root: at("/w/tests"), extra_paths: Some(Vec::new()) };
        for environments in [Vec::new(), vec![environment]] {
            let config = ServerConfig { execution_environments: environments, ..ServerConfig::default() };
            let roots = ImportRoots::new(&files, &at("/w"), &config, Some(&python()), None);
            let found = |name: &str| {
                let modules = roots.find(&files, name);
                modules.first().and_then(|module| module.source.as_ref()).map(|path| path.as_str().to_owned())
            };
            assert_eq!(found("pkg.new").as_deref(), Some("/w/src/pkg/new.py"));
            assert_eq!(found("pkg.gone"), None);
            // Namespace packages span several folders; a package with only a stub does not shadow.
            for (name, file) in
                [("space.other", "space/other"), ("spread.other", "spread/other"), ("only.more", "only/more")]
            {
                assert_eq!(found(name), Some(format!("{site}/{file}.py")), "{name}");
            }
        }
    }

    #[test]
    fn files_of_modules() {
        let files = [
            "/w/app.py",
            "/w/src/pkg/__init__.py",
            "/w/src/pkg/mod.py",
            "/w/src/pkg/mod.pyi",
            "/w/typings/lib.pyi",
            "/w/both.py",
            "/w/both/__init__.py",
            "/w/space/inner.py",
            "/w/only.pyi",
            "/e/lib/json/__init__.py",
            "/e/lib/site-packages/json/__init__.py",
            "/e/lib/site-packages/lib.py",
            "/e/lib/site-packages/yaml/__init__.py",
            "/e/lib/site-packages/yaml-stubs/__init__.pyi",
            "/e/lib/site-packages/space/other.py",
            "/e/lib/site-packages/old/__init__.py",
            "/e/lib/site-packages/typed/__init__.py",
            "/e/lib/site-packages/typed/py.typed",
            "/e/lib/site-packages/e.pth",
            "/ts/stdlib/json/__init__.pyi",
            "/ts/stdlib/builtins.pyi",
            "/ts/stubs/types-old/old/__init__.pyi",
            "/ts/stubs/types-typed/typed/__init__.pyi",
        ];
        let table: &[(&str, Option<&str>, Option<&str>)] = &[
            ("app", Some("/w/app.py"), None),
            ("pkg", Some("/w/src/pkg/__init__.py"), None),
            ("src.pkg", Some("/w/src/pkg/__init__.py"), None),
            ("pkg.mod", Some("/w/src/pkg/mod.py"), Some("/w/src/pkg/mod.pyi")),
            ("lib", Some("/e/lib/site-packages/lib.py"), Some("/w/typings/lib.pyi")),
            ("both", Some("/w/both/__init__.py"), None),
            ("space", None, None),
            ("space.inner", Some("/w/space/inner.py"), None),
            ("space.other", Some("/e/lib/site-packages/space/other.py"), None),
            ("only", None, Some("/w/only.pyi")),
            ("json", Some("/e/lib/json/__init__.py"), Some("/ts/stdlib/json/__init__.pyi")),
            (
                "yaml",
                Some("/e/lib/site-packages/yaml/__init__.py"),
                Some("/e/lib/site-packages/yaml-stubs/__init__.pyi"),
            ),
            (
                "old",
                Some("/e/lib/site-packages/old/__init__.py"),
                Some("/ts/stubs/types-old/old/__init__.pyi"),
            ),
            ("typed", Some("/e/lib/site-packages/typed/__init__.py"), None),
            ("builtins", None, Some("/ts/stdlib/builtins.pyi")),
        ];
        for (name, source, stub) in table {
            let expected = (source.map(str::to_owned), stub.map(str::to_owned));
            assert_eq!(found(&files, &ServerConfig::default(), name), [expected], "{name}");
        }
        assert_eq!(found(&files, &ServerConfig::default(), "nothing"), []);
        assert_eq!(found(&files, &ServerConfig::default(), "app.x"), []);
    }

    #[test]
    fn the_configuration_determines_the_roots() {
        let files = ["/w/src/a.py", "/w/lib/b.py", "/w/one/app.py", "/w/two/app.py"];
        let mut config = ServerConfig { extra_paths: Some(vec![at("/w/lib")]), ..ServerConfig::default() };
        assert_eq!(found(&files, &config, "a"), []);
        assert_eq!(found(&files, &config, "b").len(), 1);
        let environment = |root: &str| ExecutionEnvironment { root: at(root), extra_paths: None };
        config.execution_environments = vec![environment("/w/one"), environment("/w/two")];
        let apps = found(&files, &config, "app");
        assert_eq!(
            apps,
            [(Some("/w/one/app.py".to_owned()), None), (Some("/w/two/app.py".to_owned()), None)]
        );
    }

    #[test]
    fn bundled_stubs_import_each_other_also_if_the_package_is_not_installed() {
        let files = ["/ts/stubs/A/a/x.pyi", "/ts/stubs/A/a/y.pyi", "/ts/stubs/B/b.pyi", "/ts/stdlib/re.pyi"];
        let files = MemoryFiles::new(files.into_iter().map(|path| (path, "")));
        let roots = ImportRoots::new(&files, &at("/w"), &ServerConfig::default(), None, Some(at("/ts")));
        let found = |name: &str, importer: &str| roots.import(&files, name, &at(importer))?.stub;
        assert_eq!(found("a.y", "/ts/stubs/A/a/x.pyi"), Some(at("/ts/stubs/A/a/y.pyi")));
        assert_eq!(found("re", "/ts/stubs/A/a/x.pyi"), Some(at("/ts/stdlib/re.pyi")));
        assert_eq!(found("b", "/ts/stubs/A/a/x.pyi"), Some(at("/ts/stubs/B/b.pyi")));
        assert_eq!(found("a.y", "/w/x.py"), None);
        let package = |file: &str| roots.bundled_package(&at(file)).map(str::to_owned);
        assert_eq!(package("/ts/stubs/A/a/x.pyi"), Some("a".to_owned()));
        assert_eq!(package("/ts/stubs/B/b.pyi"), Some("b".to_owned()));
        assert_eq!(package("/ts/stdlib/re.pyi"), None);
    }

    #[test]
    fn imports_of_a_file() {
        let config = ServerConfig {
            execution_environments: vec![ExecutionEnvironment { root: at("/w/two"), extra_paths: None }],
            ..ServerConfig::default()
        };
        let files =
            ["/w/x.py", "/w/two/x.py", "/w/two/p/a.py", "/w/p/q/r.py", "/w/p/q/side.py", "/w/p/__init__.py"];
        let files = MemoryFiles::new(files.into_iter().map(|path| (path, "")));
        let roots = ImportRoots::new(&files, &at("/w"), &config, None, None);
        let source =
            |module: Option<Module>| module.and_then(|module| module.source).map(|path| path.to_string());
        assert_eq!(source(roots.import(&files, "x", &at("/w/two/p/a.py"))).unwrap(), "/w/two/x.py");
        assert_eq!(source(roots.import(&files, "x", &at("/w/p/q/r.py"))).unwrap(), "/w/x.py");
        assert_eq!(source(roots.import(&files, "side", &at("/w/p/q/r.py"))).unwrap(), "/w/p/q/side.py");
        assert_eq!(source(roots.relative(&files, 1, "side", &at("/w/p/q/r.py"))).unwrap(), "/w/p/q/side.py");
        assert_eq!(source(roots.relative(&files, 2, "", &at("/w/p/q/r.py"))).unwrap(), "/w/p/__init__.py");
        assert_eq!(roots.relative(&files, 1, "gone", &at("/w/p/q/r.py")), None);
        let names = ["/w/two/p/a.py", "/w/p/__init__.py", "/w/p/q/r.py", "/w/a-b.py", "/z.py"]
            .map(|path| roots.name_of(&at(path)));
        let expected = [Some("p.a"), Some("p"), Some("p.q.r"), None, None];
        assert_eq!(names.each_ref().map(Option::as_deref), expected);
    }
}
