//! The names of the standard library's modules: which modules exist does not depend on an interpreter or on a server's stubs,
//! and a module that is compiled into the interpreter is in no file.

/// The top-level names of Python 3.10 to 3.14, sorted, with those that earlier versions had.
const MODULES: &str = "\
__future__ _thread _typeshed abc aifc annotationlib antigravity argparse array ast asynchat asyncio \
asyncore atexit audioop base64 bdb binascii binhex bisect builtins bz2 cProfile calendar cgi cgitb \
chunk cmath cmd code codecs codeop collections colorsys compileall compression concurrent \
configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm \
decimal difflib dis distutils doctest email encodings ensurepip enum errno faulthandler fcntl \
filecmp fileinput fnmatch formatter fractions ftplib functools gc genericpath getopt getpass gettext \
glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib inspect io \
ipaddress itertools json keyword lib2to3 linecache locale logging lzma macpath mailbox mailcap \
marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath \
nturl2path numbers opcode operator optparse os ossaudiodev parser pathlib pdb pickle pickletools \
pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile \
pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy \
sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket \
socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep \
struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile \
termios textwrap this threading time timeit tkinter token tokenize tomllib trace traceback \
tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings \
wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib \
zoneinfo";

/// Whether a dotted name is of a module of the standard library.
pub(crate) fn is_stdlib(module: &str) -> bool {
    let top = module.split('.').next().unwrap_or_default();
    MODULES.split(' ').any(|name| name == top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules() {
        assert!(
            ["sys", "os.path", "__future__", "xml.etree.ElementTree", "zoneinfo"]
                .iter()
                .all(|one| is_stdlib(one))
        );
        assert!(!["", "numpy", "site_packages", "o"].iter().any(|one| is_stdlib(one)));
    }
}
