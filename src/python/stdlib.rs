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

/// What `dir(builtins)` lists on Python 3.13, dunders left out.
const BUILTINS: &str = "ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError \
BrokenPipeError BufferError BytesWarning ChildProcessError ConnectionAbortedError ConnectionError ConnectionRefusedError \
ConnectionResetError DeprecationWarning EOFError Ellipsis EncodingWarning EnvironmentError Exception ExceptionGroup \
FileExistsError FileNotFoundError FloatingPointError FutureWarning GeneratorExit IOError ImportError ImportWarning \
IndentationError IndexError InterruptedError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError \
ModuleNotFoundError NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError \
PendingDeprecationWarning PermissionError ProcessLookupError PythonFinalizationError RecursionError ReferenceError \
ResourceWarning RuntimeError RuntimeWarning StopAsyncIteration StopIteration SyntaxError SyntaxWarning SystemError \
SystemExit TabError TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError \
UnicodeTranslateError UnicodeWarning UserWarning ValueError Warning ZeroDivisionError abs aiter all anext any ascii bin \
bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits delattr dict dir divmod \
enumerate eval exec exit filter float format frozenset getattr globals hasattr hash help hex id input int isinstance \
issubclass iter len license list locals map max memoryview min next object oct open ord pow print property quit range \
repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip";

/// Whether a dotted name is of a module of the standard library.
pub(crate) fn is_stdlib(module: &str) -> bool {
    let top = module.split('.').next().unwrap_or_default();
    MODULES.split(' ').any(|name| name == top)
}

/// Whether a name is one of `builtins`.
pub(crate) fn is_builtin(name: &str) -> bool {
    BUILTINS.split(' ').any(|builtin| builtin == name)
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
