//! The definitions and names under which a symbol is reached, and the references that the server claims for each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::super::completeness::{self, SearchedFiles};
use super::super::context::RequestContext;
use super::super::failure::Failure;
use super::shadowed::shadowed;
use super::symbol::{Reach, SearchedSymbol};
use super::{Evidence, offset_of};
use crate::lsp::{Listing, LspLocation};
use crate::model::facts::UseProvenance;
use crate::path::AbsPath;
use crate::python::classes::Classes;
use crate::python::outline::{DefinitionKind, Imported, Outline, Span};
use crate::python::roles::{enclosing_class, object_of};
use crate::python::scopes::Scopes;
use crate::python::usage::{TokenUse, Usage};
use crate::tape::IoKind;
use crate::text::Range;
use crate::text::names::{is_private, mangled};
use crate::workspace::files::{Document, Files as _};

/// The most aliases that are followed.
const MAX_ALIASES: usize = 64;

/// What the server claims for a symbol under all its names.
pub(super) struct Closure<'c> {
    cx: &'c RequestContext<'c>,
    classes: &'c Classes<'c>,
    searched: &'c mut SearchedFiles,
    pub(super) references: BTreeMap<LspLocation, Evidence>,
    /// The definitions of the symbol and of its aliases, if its names are variables of modules or functions.
    accepted: Option<BTreeSet<(AbsPath, usize)>>,
    /// What the server claims of other variables.
    pub(super) refuted: BTreeSet<LspLocation>,
    /// Those of the references that the server leaves out when asked for references without declarations.
    pub(super) declarations: BTreeSet<LspLocation>,
    /// The names whose occurrences are to be explained, with the files that bind them as names of a module.
    pub(super) names: BTreeMap<String, BTreeSet<AbsPath>>,
    /// Those of them that are variables of classes or objects.
    pub(super) members: BTreeSet<String>,
    pub(super) skipped: u32,
    pub(super) cut: Option<String>,
    /// Whether the caller's time ended.
    pub(super) is_late: bool,
    /// The stubs of installed modules that the searched files import, with their sources.
    imported_stubs: OnceLock<BTreeMap<AbsPath, AbsPath>>,
}

/// Whether an import or an assignment may bind the name at an offset to another one, judged by its line: most uses are
/// calls, for which the file need not be parsed.
fn may_bind(text: &str, offset: usize, is_callable: bool) -> bool {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let rest = text.get(offset..).unwrap_or_default();
    let after = rest.trim_start_matches(is_word).trim_start_matches([' ', '\t']);
    if after.starts_with("as ") || after.starts_with("as\t") {
        return true;
    }
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rfind('\n').map_or(before, |end| &before[end + 1..]);
    let is_choice = ["if ", "else ", "or ", "and "].iter().any(|word| after.starts_with(word));
    let ends = after.chars().next().is_none_or(|c| matches!(c, '\n' | '\r' | '#' | ';' | ')' | ','));
    let begins = matches!(line.trim(), "" | "else" | "or" | "and" | "(");
    is_callable && (ends || is_choice) && (line.contains('=') || begins)
}

impl<'c> Closure<'c> {
    pub(super) fn new(
        cx: &'c RequestContext<'c>,
        classes: &'c Classes<'c>,
        searched: &'c mut SearchedFiles,
        claimed: Listing<LspLocation>,
    ) -> Self {
        let references = claimed.items.into_iter().map(|place| (place, Evidence::SERVER)).collect();
        Self {
            cx,
            classes,
            searched,
            references,
            accepted: None,
            refuted: BTreeSet::new(),
            declarations: BTreeSet::new(),
            names: BTreeMap::new(),
            members: BTreeSet::new(),
            skipped: claimed.skipped,
            cut: None,
            is_late: false,
            imported_stubs: OnceLock::new(),
        }
    }

    /// Follows the symbol to its other definitions, its stub or source, and its aliases.
    pub(super) async fn complete(
        &mut self,
        mut symbol: SearchedSymbol,
        family: &[(Arc<Document>, usize)],
    ) -> Result<SearchedSymbol, Failure> {
        for (document, offset) in family {
            symbol.definitions.insert((document.path.clone(), *offset));
            self.claim(&document.path, *offset, &Evidence::SERVER).await?;
        }
        let home = symbol.definitions.iter().map(|(path, _)| path.clone()).collect();
        self.names.insert(symbol.name.clone(), home);
        if self.cx.request.options.exclude_declaration {
            for (path, offset) in symbol.definitions.clone() {
                self.leave_out(&path, offset).await?;
            }
        }
        match symbol.reach {
            // What a function defines, it may give an object or a module.
            Reach::Local => {
                self.keep_to_scopes(&symbol);
                if symbol.is_callable {
                    self.aliases(&symbol).await?;
                }
                return Ok(symbol);
            }
            Reach::Module => return Ok(symbol),
            _ => {}
        }
        symbol.is_in_stubs =
            self.searched.with_name().any(|document| document.path.as_str().ends_with(".pyi"));
        self.twins(&mut symbol).await?;
        symbol.describe(self.cx, self.classes);
        match symbol.reach {
            Reach::Global => self.keep_to_scopes(&symbol),
            Reach::Member { .. } => self.mangled(&symbol)?,
            _ => {}
        }
        if !matches!(symbol.reach, Reach::Parameter) {
            self.aliases(&symbol).await?;
        }
        Ok(symbol)
    }

    /// Adds the name that a private member has outside of its class: `_C__x` for `__x`, which the servers do not know.
    fn mangled(&mut self, symbol: &SearchedSymbol) -> Result<(), Failure> {
        if !is_private(&symbol.name) {
            return Ok(());
        }
        for (path, offset) in &symbol.definitions {
            let Ok(document) = self.cx.state.files.read(path) else { continue };
            let name = mangled(&symbol.name, enclosing_class(&document.text, *offset).as_deref());
            if name != symbol.name {
                completeness::also_open_files_with_name(self.cx, self.searched, &name)?;
                self.members.insert(name.clone());
                self.names.entry(name).or_default();
            }
        }
        Ok(())
    }

    /// Adds what the server claims at another place of the same symbol.
    async fn claim(&mut self, path: &AbsPath, offset: usize, evidence: &Evidence) -> Result<(), Failure> {
        if self.is_late {
            return Ok(());
        }
        match self.ask(path, offset, evidence).await {
            Err(failure) if self.cx.is_past_deadline(&failure) => self.is_late = true,
            claimed => claimed?,
        }
        Ok(())
    }

    async fn ask(&mut self, path: &AbsPath, offset: usize, evidence: &Evidence) -> Result<(), Failure> {
        let Ok(document) = self.cx.state.files.read(path) else { return Ok(()) };
        self.cx.open([path.clone()])?;
        let at = document.lines.position(&document.text, offset, self.cx.locations.server_unit);
        let found = self.cx.requests_until_deadline().references(path, at, true).await?;
        self.skipped += found.skipped;
        if let Some(accepted) = &mut self.accepted {
            accepted.insert((path.clone(), offset));
        }
        self.add(found.items.into_iter().map(|place| (place, evidence.clone())).collect());
        if self.cx.request.options.exclude_declaration {
            self.leave_out(path, offset).await?;
        }
        Ok(())
    }

    /// Removes the references that are of other variables, now and later.
    fn keep_to_scopes(&mut self, symbol: &SearchedSymbol) {
        // Parameters that request a fixture are uses of it.
        if !symbol.is_fixture {
            self.accepted = Some(symbol.definitions.clone());
            let claimed = std::mem::take(&mut self.references);
            self.add(claimed.into_iter().collect());
        }
    }

    /// Adds references that are not known yet, except those that are of other variables.
    fn add(&mut self, claimed: Vec<(LspLocation, Evidence)>) {
        let new: Vec<_> =
            claimed.into_iter().filter(|(place, _)| !self.references.contains_key(place)).collect();
        let refuted = match &self.accepted {
            Some(accepted) => shadowed(self.cx, self.classes, new.iter().map(|(place, _)| place), accepted),
            None => BTreeSet::new(),
        };
        self.references.extend(new.into_iter().filter(|(place, _)| !refuted.contains(place)));
        self.refuted.extend(refuted);
    }

    /// Notes which references of a place are declarations.
    async fn leave_out(&mut self, path: &AbsPath, offset: usize) -> Result<(), Failure> {
        let Ok(document) = self.cx.state.files.read(path) else { return Ok(()) };
        let at = document.lines.position(&document.text, offset, self.cx.locations.server_unit);
        let questions = self.cx.requests();
        let uses: BTreeSet<LspLocation> =
            questions.references(path, at, false).await?.items.into_iter().collect();
        let all = questions.references(path, at, true).await?.items;
        self.declarations.extend(all.into_iter().filter(|place| !uses.contains(place)));
        Ok(())
    }

    /// A source and its stub are one symbol: each definition has its counterpart in the other file of its module, and a stub
    /// may declare what its source imports. So are a property and what methods of subclasses assign to it: the servers take
    /// `self.name = x` for a definition of the subclass, ty 0.0.105 also for the one that all its objects have.
    async fn twins(&mut self, symbol: &mut SearchedSymbol) -> Result<(), Failure> {
        let mut queue: Vec<(AbsPath, usize)> = symbol.definitions.iter().cloned().collect();
        // A server may lead from a stub to the source, and claim only the uses of what it was asked about.
        for (path, offset) in &queue {
            let place = self.place(path, *offset, symbol.name.len());
            let is_unclaimed = place.is_some_and(|place| !self.references.contains_key(&place));
            if is_unclaimed && self.cx.state.is_in_workspace(path) {
                self.claim(path, *offset, &Evidence::rule(UseProvenance::Definition)).await?;
            }
        }
        while let Some((path, offset)) = queue.pop() {
            for twin in self.twins_of(&path, offset, &symbol.name) {
                if !symbol.definitions.insert(twin.clone()) {
                    continue;
                }
                let place = self.place(&twin.0, twin.1, symbol.name.len());
                if self.classes.means_property(&twin.0, twin.1) {
                    // Its uses are explained by their definitions: there may be thousands of such assignments.
                    let rule = Evidence::rule(UseProvenance::Definition);
                    self.add(place.into_iter().map(|place| (place, rule.clone())).collect());
                    continue;
                }
                if place.is_none_or(|place| !self.references.contains_key(&place)) {
                    let is_stub = [&path, &twin.0].iter().any(|path| path.as_str().ends_with(".pyi"));
                    let rule = if is_stub { UseProvenance::Stub } else { UseProvenance::Definition };
                    self.claim(&twin.0, twin.1, &Evidence::rule(rule)).await?;
                }
                queue.push(twin);
            }
        }
        Ok(())
    }

    /// The names of a file that seem to be definitions of a subclass, and mean a property: `self.name = x` in its methods.
    fn meaning_property(
        &self,
        property: (&AbsPath, usize),
        file: &AbsPath,
        name: &str,
    ) -> Vec<(AbsPath, usize)> {
        let is_it = |place: &(AbsPath, usize)| (&place.0, place.1) == property;
        let named = self.classes.definitions_named(file, name).into_iter().map(|(_, at)| (file.clone(), at));
        named.filter(|(file, at)| self.classes.property_at(file, *at).iter().any(is_it)).collect()
    }

    /// The counterparts of a definition: in stubs and sources of the workspace, and of a property.
    fn twins_of(&self, path: &AbsPath, offset: usize, name: &str) -> BTreeSet<(AbsPath, usize)> {
        let mut found = BTreeSet::new();
        let Some(defined) = self.classes.defined_at(path, offset) else { return found };
        let chain = &defined.qualname;
        if let Some(twin) = self.classes.stub_or_source(path) {
            found.extend(self.classes.named(&twin, chain).into_iter().map(|at| (twin.clone(), at)));
            // What the stub declares, the source may import from elsewhere.
            if path.as_str().ends_with(".pyi") {
                found.extend(self.classes.resolve(&twin, chain));
            }
        }
        let property = self.classes.property_at(path, offset);
        if property.iter().any(|place| (&place.0, place.1) == (path, offset)) {
            let of_file = |file: &Arc<Document>| self.meaning_property((path, offset), &file.path, name);
            found.extend(self.searched.with_name().flat_map(of_file));
        } else {
            found.extend(property);
        }
        // What a stub declares and its source imports from here.
        let stubs = self.searched.with_name().filter(|document| document.path.as_str().ends_with(".pyi"));
        for stub in stubs.filter(|stub| stub.path != *path) {
            let Some(source) = self.classes.stub_or_source(&stub.path) else { continue };
            for (declared, at) in self.classes.definitions_named(&stub.path, name) {
                if self.classes.resolves_to(&source, &declared, path, offset) {
                    found.insert((stub.path.clone(), at));
                }
            }
        }
        found.retain(|(path, _)| self.cx.state.is_in_workspace(path));
        found.extend(self.installed_stubs_of(path, offset, name));
        found
    }

    /// The declarations of an installed definition in the stubs of modules that the workspace imports, where the source of such a module
    /// imports it from elsewhere: `attrs/__init__.pyi` declares what `attrs/__init__.py` imports from `attr`.
    fn installed_stubs_of(&self, path: &AbsPath, offset: usize, name: &str) -> BTreeSet<(AbsPath, usize)> {
        if self.cx.state.is_in_workspace(path) {
            return BTreeSet::new();
        }
        let find = || {
            let stubs = self.imported_stubs.get_or_init(|| self.find_imported_stubs());
            let mut found = BTreeSet::new();
            for (stub, source) in stubs.iter().filter(|(stub, _)| *stub != path) {
                for (declared, at) in self.classes.definitions_named(stub, name) {
                    if self.classes.resolves_to(source, &declared, path, offset) {
                        found.insert((stub.clone(), at));
                    }
                }
            }
            Some(found).filter(|found| !found.is_empty())
        };
        let query = ("installed stubs", path, offset);
        self.cx.state.tape.query_rare(IoKind::Index, &query, find).unwrap_or_default()
    }

    fn find_imported_stubs(&self) -> BTreeMap<AbsPath, AbsPath> {
        let (files, roots) = (&self.cx.state.files, &self.cx.state.inputs.roots);
        let (mut stubs, mut seen) = (BTreeMap::new(), BTreeSet::new());
        for document in self.searched.with_name() {
            let outline = Outline::parse(&document.text);
            // A relative import leads to the workspace.
            for import in outline.imports.iter().filter(|import| import.level == 0) {
                let taken = match &import.what {
                    Imported::Name(name) => Some(name.clone()),
                    _ => None,
                };
                if !seen.insert((import.module.clone(), taken.clone())) {
                    continue;
                }
                let Some(module) = roots.imported(files, import, &document.path) else { continue };
                let within = taken.and_then(|taken| roots.submodule(files, &module, &taken));
                for module in [Some(module), within].into_iter().flatten() {
                    if let (Some(stub), Some(source)) = (module.stub, module.source) {
                        stubs.insert(stub, source);
                    }
                }
            }
        }
        stubs
    }

    /// Names that are bound to the symbol: by an import under another name, or by an assignment of nothing else.
    async fn aliases(&mut self, symbol: &SearchedSymbol) -> Result<(), Failure> {
        let mut seen: BTreeSet<LspLocation> = BTreeSet::new();
        let mut followed = 0;
        loop {
            let new: Vec<LspLocation> =
                self.references.keys().filter(|place| !seen.contains(*place)).cloned().collect();
            if new.is_empty() {
                return Ok(());
            }
            let mut found: Vec<(AbsPath, Span, UseProvenance)> = Vec::new();
            for file in new.chunk_by(|a, b| a.path == b.path) {
                let path = &file[0].path;
                if !self.cx.state.is_in_workspace(path) {
                    continue;
                }
                let Ok(document) = self.cx.state.files.read(path) else { continue };
                let offsets = file.iter().filter_map(|place| Some(offset_of(self.cx, place)?.1));
                let offsets: Vec<usize> =
                    offsets.filter(|at| may_bind(&document.text, *at, symbol.is_callable)).collect();
                if offsets.is_empty() {
                    continue;
                }
                let usage = Usage::of(&document.text);
                for offset in offsets {
                    match usage.of_token(offset) {
                        TokenUse::Imported(Some(alias)) => {
                            found.push((path.clone(), alias, UseProvenance::ImportAlias));
                        }
                        TokenUse::Assigned(targets) if symbol.is_callable => {
                            found.extend(
                                targets.into_iter().map(|at| (path.clone(), at, UseProvenance::Alias)),
                            );
                        }
                        _ => {}
                    }
                }
            }
            seen.extend(new);
            for (path, span, provenance) in found {
                if followed == MAX_ALIASES {
                    self.cut = Some(format!("more than {MAX_ALIASES} aliases were found"));
                    return Ok(());
                }
                followed += usize::from(self.follow(symbol, &path, &span, provenance).await?);
            }
        }
    }

    /// Follows one alias; returns whether it is one.
    async fn follow(
        &mut self,
        symbol: &SearchedSymbol,
        path: &AbsPath,
        span: &Span,
        provenance: UseProvenance,
    ) -> Result<bool, Failure> {
        let Some(place) = self.place(path, span.start, span.len()) else { return Ok(false) };
        if self.references.contains_key(&place) {
            return Ok(false);
        }
        let Ok(document) = self.cx.state.files.read(path) else { return Ok(false) };
        let name = document.text[span.clone()].to_owned();
        // What Python calls by itself has no uses by name.
        if name == "_" || (name.starts_with("__") && name.ends_with("__")) {
            return Ok(false);
        }
        let is_global = Scopes::of(&document.text, &[&name]).is_bound_by_module(span.start);
        let defined = self.classes.defined_at(path, span.start);
        let is_in_class_body = defined
            .as_ref()
            .is_some_and(|defined| defined.class.is_some() && defined.kind != DefinitionKind::Attribute);
        // `old = new` in a class gives a property another name; anywhere else an assignment takes its value.
        if symbol.is_property && provenance == UseProvenance::Alias && !is_in_class_body {
            return Ok(false);
        }
        let is_member = defined.is_some_and(|defined| defined.class.is_some())
            || object_of(&document.text, span.start).is_some();
        // A class is often the value of a variable that has nothing else to do with it.
        let is_held = is_member && symbol.is_function;
        if is_held {
            self.members.insert(name.clone());
        }
        if is_global || is_held {
            if name != symbol.name {
                completeness::also_open_files_with_name(self.cx, self.searched, &name)?;
            }
            self.names.entry(name.clone()).or_default().insert(path.clone());
        }
        let (_, _, at) = self.cx.locations.span(&document, span.clone());
        let evidence = Evidence::via(provenance, at);
        self.references.insert(place, evidence.clone());
        self.claim(path, span.start, &evidence).await?;
        Ok(true)
    }

    fn place(&self, path: &AbsPath, offset: usize, length: usize) -> Option<LspLocation> {
        let document = self.cx.state.files.read(path).ok()?;
        let range: Range =
            document.lines.range(&document.text, offset..offset + length, self.cx.locations.server_unit);
        Some(LspLocation { path: path.clone(), range })
    }
}

#[cfg(test)]
mod tests {
    use super::may_bind;

    #[test]
    fn lines_that_may_bind_another_name() {
        let check = |text: &str| may_bind(&text.replace('§', ""), text.find('§').unwrap(), true);
        for text in [
            "from m import §f as g",
            "g = §f",
            "self.g = m.§f  # why",
            "g = (\n    §f\n)",
            "x: T = §f",
            "g = §f or h",
        ] {
            assert!(check(text), "{text}");
        }
        for text in
            ["§f(1)", "x = §f(1)", "from m import §f\n", "import m.§f", "return §f", "§f.x = 1", "@§f\n"]
        {
            assert!(!check(text), "{text}");
        }
    }
}
