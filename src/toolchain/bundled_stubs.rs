//! The stubs of the standard library that a server holds in its program, as files. ty has them in a zip archive, and writes those that it
//! refers to below a folder named by typeshed's commit; here all are written there, so that classes and protocols of the standard library
//! are known before the server refers to them.

use std::fs;
use std::io::{self, Read as _, Write as _};

use rawzip::{CompressionMethod, ZipArchive};
use ruzstd::decoding::StreamingDecoder;

use super::package::Package;
use crate::path::AbsPath;
use crate::path::private;

/// The largest program that is searched, in bytes.
const MAX_PROGRAM_BYTES: u64 = 512 << 20;

/// The largest stub that is written, in bytes. The largest of typeshed has 0.2 MB.
const MAX_STUB_BYTES: u64 = 4 << 20;

/// How many stubs are written at most.
const MAX_STUBS: usize = 10_000;

/// What the last record of a zip archive begins with, and its length without a comment.
const END_OF_ARCHIVE: &[u8] = b"PK\x05\x06";
const END_BYTES: usize = 22;

/// A member that every archive of stubs has.
const BUILTINS: &str = "stdlib/builtins.pyi";

/// The member with the hash of typeshed's commit.
const COMMIT: &str = "source_commit.txt";

/// The folder of a server's stubs, which is below `folder`. They are written if they were not. `None` if the program has no stubs that can be
/// read: another version may hold them in another way.
///
/// # Errors
/// If the program cannot be read, or the stubs cannot be written.
pub(super) fn folder_of(package: &Package, cache: &AbsPath, folder: &AbsPath) -> io::Result<Option<AbsPath>> {
    let code = package.known_code(cache)?;
    // Written last, so that what it names is complete.
    let marker = folder.join(&format!(".written-of-{}", code.to_hex()));
    let stubs = |commit: &str| folder.join("ty/vendored/typeshed").join(commit);
    if let Ok(commit) = fs::read_to_string(marker.as_path())
        && is_commit(&commit)
        && stubs(&commit).join(BUILTINS).as_path().is_file()
    {
        return Ok(Some(stubs(&commit)));
    }
    let program = package.main_file();
    if fs::metadata(program.as_path())?.len() > MAX_PROGRAM_BYTES {
        return Ok(None);
    }
    let Some(members) = members(&fs::read(program.as_path())?) else { return Ok(None) };
    let commit = members.iter().find(|(name, _)| name == COMMIT);
    let commit = commit.and_then(|(_, bytes)| std::str::from_utf8(bytes.trim_ascii()).ok());
    let Some(commit) = commit.filter(|commit| is_commit(commit)) else { return Ok(None) };
    private::create(folder.as_path())?;
    for (name, bytes) in &members {
        write(&stubs(commit).join(name), bytes)?;
    }
    write(&marker, commit.as_bytes())?;
    Ok(Some(stubs(commit)))
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Writes a file, as a whole or not at all, unless it has these bytes.
fn write(path: &AbsPath, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path.as_path()).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    let folder = path.parent();
    fs::create_dir_all(folder.as_path())?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder.as_path())?;
    file.write_all(bytes)?;
    file.persist(path.as_path()).map_err(|error| error.error)?;
    Ok(())
}

/// The names and contents of the files in the archive of stubs within a program.
fn members(program: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let ends = memchr::memmem::find_iter(program, END_OF_ARCHIVE);
    ends.filter_map(|at| program.get(..at + END_BYTES)).find_map(members_of)
}

/// The same of the archive that bytes end with; `None` if they end with none, it is not one of stubs, or a member cannot be read.
fn members_of(bytes: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let archive = ZipArchive::from_slice(bytes).ok()?;
    let mut members = Vec::new();
    for entry in archive.entries() {
        let entry = entry.ok()?;
        if entry.is_dir() {
            continue;
        }
        let name = String::from(entry.file_path().try_normalize().ok()?);
        let is_plain = name.split('/').all(|part| !matches!(part, "" | "." | "..")) && !name.contains('\\');
        let size = entry.uncompressed_size_hint();
        if !is_plain || size > MAX_STUB_BYTES || members.len() == MAX_STUBS {
            return None;
        }
        let found = archive.get_entry(entry.wayfinder()).ok()?;
        let mut content = Vec::new();
        let data = found.data();
        let read = match entry.compression_method() {
            CompressionMethod::STORE => found.verifying_reader(data).read_to_end(&mut content),
            CompressionMethod::ZSTD => {
                let decoder = StreamingDecoder::new(data).ok()?.take(MAX_STUB_BYTES);
                found.verifying_reader(decoder).read_to_end(&mut content)
            }
            _ => return None,
        };
        read.ok()?;
        members.push((name, content));
    }
    members.iter().any(|(name, _)| name == BUILTINS).then_some(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that holds stored members in a zip archive, between other bytes.
    fn program(members: &[(&str, &str)]) -> Vec<u8> {
        let mut writer = rawzip::ZipArchiveWriter::new(Vec::new());
        for (name, text) in members {
            let (mut entry, config) = writer.new_file(name).start().unwrap();
            let mut output = config.wrap(&mut entry);
            output.write_all(text.as_bytes()).unwrap();
            let (_, descriptor) = output.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        let archive = writer.finish().unwrap();
        [b"code PK\x05\x06 and more", archive.as_slice(), b"PK\x05\x06 code that goes on after the archive"]
            .concat()
    }

    #[test]
    fn stubs_are_found_within_a_program() {
        let found = members(&program(&[(BUILTINS, "class str: ..."), (COMMIT, "0123")])).unwrap();
        let expected = [(BUILTINS, "class str: ..."), (COMMIT, "0123")];
        assert_eq!(found, expected.map(|(name, text)| (name.to_owned(), text.as_bytes().to_owned())));
        assert_eq!(members(&program(&[("other.txt", "")])), None);
        assert_eq!(members(b"PK\x05\x06"), None);
        for name in ["/etc/x", "../x", "a\\b"] {
            let found = members(&program(&[(BUILTINS, ""), (name, "")]));
            let is_inside =
                |name: &str| !name.starts_with('/') && !name.split(['/', '\\']).any(|part| part == "..");
            assert!(found.is_none_or(|found| found.iter().all(|(name, _)| is_inside(name))), "{name}");
        }
    }

    #[test]
    fn files_are_written_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = AbsPath::new(folder.path()).unwrap().join("a/b.pyi");
        for text in ["one", "one", "two"] {
            write(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(path.as_path()).unwrap(), text);
        }
        assert_eq!(fs::read_dir(path.parent().as_path()).unwrap().count(), 1);
    }
}
