//! Seeded changes of a workspace, like those that people, agents and git make.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 1).unwrap_or_default() % limit.max(1)
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Changes one folder.
pub(crate) struct Mutator {
    root: PathBuf,
    count: usize,
    touched: Option<PathBuf>,
    /// Which of the two revisions is checked out.
    other: bool,
}

impl Mutator {
    /// Copies `from` to `root` and commits two revisions of it, which differ in some dozens of files.
    pub(crate) fn new(from: &Path, root: &Path, random: &mut Random) -> Result<Self, String> {
        copy(from, root).map_err(|error| format!("{}: {error}", from.display()))?;
        let mut this = Self { root: root.to_owned(), count: 0, touched: None, other: false };
        this.git(&["init", "-q", "-b", "one"])?;
        this.commit("one")?;
        this.git(&["checkout", "-q", "-b", "two"])?;
        for _ in 0..40 {
            this.edit(random)?;
        }
        for _ in 0..4 {
            this.create(random)?;
            this.remove_file(random)?;
        }
        this.commit("two")?;
        this.git(&["checkout", "-q", "one"])?;
        Ok(this)
    }

    /// The file that the last change touched.
    pub(crate) fn last_touched(&self) -> Option<&Path> {
        self.touched.as_deref().filter(|path| path.is_file())
    }

    /// Makes a random change, and returns its description.
    pub(crate) fn mutate(&mut self, random: &mut Random) -> Result<&'static str, String> {
        self.count += 1;
        let what = match random.below(20) {
            0..=8 => {
                self.edit(random)?;
                "edit"
            }
            9 => {
                for _ in 0..random.below(12) {
                    self.edit(random)?;
                }
                "edits"
            }
            10 => {
                self.create(random)?;
                "create"
            }
            11 => {
                self.create_package(random)?;
                "create folder"
            }
            12 => {
                self.remove_file(random)?;
                "delete"
            }
            13 => {
                self.move_file(random)?;
                "move file"
            }
            14 => {
                self.move_folder(random)?;
                "move folder"
            }
            15 => {
                let path = random.of(&self.files()).clone();
                let text = fs::read(&path).map_err(|error| error.to_string())?;
                fs::write(&path, text).map_err(|error| error.to_string())?;
                "touch"
            }
            16 => {
                self.configure(random)?;
                "configuration"
            }
            17 => {
                self.git(&["add", "-A"])?;
                self.git(&["commit", "-q", "--allow-empty", "-m", "work"])?;
                self.other = !self.other;
                self.git(&["checkout", "-q", if self.other { "two" } else { "one" }])?;
                "checkout"
            }
            18 => {
                self.shape(random)?;
                "links and compiled modules"
            }
            _ => {
                self.rewrite_as_it_was(random)?;
                "change and change back"
            }
        };
        Ok(what)
    }

    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if path.is_dir() && !name.starts_with('.') && name != "node_modules" {
                    folders.push(path);
                } else if name.ends_with(".py") && fs::read_to_string(&path).is_ok() {
                    found.push(path);
                }
            }
        }
        found.sort();
        found
    }

    fn edit(&mut self, random: &mut Random) -> Result<(), String> {
        let path = random.of(&self.files()).clone();
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let definitions: Vec<usize> = (0..lines.len())
            .filter(|&number| lines[number].trim_start().starts_with("def ") && lines[number].ends_with(':'))
            .collect();
        let number = self.count;
        match random.below(7) {
            0 => lines.insert(0, "# one line more".to_owned()),
            1 => lines.push(format!("\ndef added_{number}(a, b=None):\n    return [a, b, added_{number}]\n")),
            2 => lines.insert(
                0,
                random.of(&["import decimal", "from unittest import mock", "import os.path"]).to_string(),
            ),
            3 => lines.push(format!(
                "class Added{number}(dict):\n    def get(self, key):\n        return self[key]\n"
            )),
            4 if !definitions.is_empty() => {
                let at = *random.of(&definitions);
                lines[at] = lines[at].replacen('(', "_renamed(", 1);
            }
            5 if !definitions.is_empty() => {
                let at = *random.of(&definitions);
                let indent = lines[at].len() - lines[at].trim_start().len();
                lines.insert(at + 1, format!("{}return None", " ".repeat(indent + 4)));
            }
            _ if lines.len() > 2 => {
                lines.remove(random.below(lines.len()));
            }
            _ => lines.push("x = 1".to_owned()),
        }
        self.touched = Some(path.clone());
        fs::write(path, lines.join("\n")).map_err(|error| error.to_string())
    }

    fn create(&mut self, random: &mut Random) -> Result<(), String> {
        let files = self.files();
        let beside = random.of(&files);
        let path = beside.with_file_name(format!("added_{}_{}.py", self.count, random.below(1000)));
        let text = fs::read_to_string(random.of(&files)).map_err(|error| error.to_string())?;
        self.touched = Some(path.clone());
        fs::write(path, text).map_err(|error| error.to_string())
    }

    fn create_package(&mut self, random: &mut Random) -> Result<(), String> {
        let files = self.files();
        let folder = random.of(&files).with_file_name(format!("package_{}", self.count));
        let text = fs::read_to_string(random.of(&files)).map_err(|error| error.to_string())?;
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(folder.join("inner"))?;
            fs::write(folder.join("__init__.py"), "from .one import *\n")?;
            fs::write(folder.join("inner/two.py"), "from ..one import *\n")?;
            fs::write(folder.join("one.py"), text)
        };
        write().map_err(|error| error.to_string())?;
        self.touched = Some(folder.join("one.py"));
        Ok(())
    }

    fn remove_file(&mut self, random: &mut Random) -> Result<(), String> {
        let path = random.of(&self.files()).clone();
        self.touched = None;
        fs::remove_file(path).map_err(|error| error.to_string())
    }

    fn move_file(&mut self, random: &mut Random) -> Result<(), String> {
        let files = self.files();
        let from = random.of(&files);
        let to = random.of(&files).with_file_name(format!("moved_{}.py", self.count));
        self.touched = Some(to.clone());
        fs::rename(from, to).map_err(|error| error.to_string())
    }

    fn move_folder(&mut self, random: &mut Random) -> Result<(), String> {
        let folder = random.of(&self.files()).parent().map(Path::to_owned).unwrap_or_default();
        if folder == self.root {
            return Ok(());
        }
        let to = folder.with_file_name(format!("moved_folder_{}", self.count));
        self.touched = None;
        fs::rename(folder, to).map_err(|error| error.to_string())
    }

    fn configure(&mut self, random: &mut Random) -> Result<(), String> {
        let path = self.root.join("pyrightconfig.json");
        self.touched = None;
        let text = match random.below(4) {
            0 => "{}",
            1 => r#"{"typeCheckingMode": "strict"}"#,
            2 => r#"{"exclude": ["**/tests"], "reportMissingImports": false}"#,
            _ => {
                return if path.exists() {
                    fs::remove_file(path).map_err(|error| error.to_string())
                } else {
                    Ok(())
                };
            }
        };
        fs::write(path, text).map_err(|error| error.to_string())
    }

    /// Changes something other than source code that affects how an import resolves.
    fn shape(&mut self, random: &mut Random) -> Result<(), String> {
        self.touched = None;
        let files = self.files();
        let beside = random.of(&files);
        let which = random.below(3);
        let write = || -> std::io::Result<()> {
            match which {
                0 => fs::write(beside.with_file_name("native.so"), ""),
                1 => fs::write(beside.with_file_name("py.typed"), ""),
                _ => {
                    let folder = beside.parent().unwrap_or(beside);
                    std::os::unix::fs::symlink(folder, self.root.join(format!("linked_{}", self.count)))
                }
            }
        };
        write().map_err(|error| error.to_string())
    }

    /// Changes a file for a moment, then restores it.
    fn rewrite_as_it_was(&mut self, random: &mut Random) -> Result<(), String> {
        let path = random.of(&self.files()).clone();
        let text = fs::read(&path).map_err(|error| error.to_string())?;
        let write = || -> std::io::Result<()> {
            fs::write(&path, "x = 1\n")?;
            fs::write(&path, text)
        };
        write().map_err(|error| error.to_string())?;
        self.touched = Some(path);
        Ok(())
    }

    fn commit(&self, message: &str) -> Result<(), String> {
        self.git(&["add", "-A"])?;
        self.git(&["commit", "-q", "-m", message])
    }

    fn git(&self, words: &[&str]) -> Result<(), String> {
        let identity =
            ["-c", "user.name=differential", "-c", "user.email=differential@localhost", "-c", "gc.auto=0"];
        let output = Command::new("git").args(identity).arg("-C").arg(&self.root).args(words).output();
        let output = output.map_err(|error| format!("git: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)))
    }
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        if name == ".git" {
            continue;
        }
        let to = to.join(name);
        if kind.is_dir() {
            copy(&entry.path(), &to)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
