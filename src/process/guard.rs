//! The *guard* of a child process. When lanser itself is killed, no destructor runs; so the child is first lanser again, which asks
//! the kernel to kill it with its parent, limits its memory, and then becomes the program ([`exec_guarded`]).

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getppid, getrlimit, setrlimit};

/// The hidden subcommand of lanser that becomes a guarded program.
pub(crate) const GUARD_COMMAND: &str = "__guard";

/// A command that runs a program under lanser's own executable `guard`; without it, the program as it is.
///
/// The thread that starts the command must live as long as the program: the request to the kernel is about that thread, not about
/// the process (`prctl(2)`, `PR_SET_PDEATHSIG`).
pub(crate) fn guarded(guard: Option<&Path>, program: &Path) -> Command {
    let Some(guard) = guard else { return Command::new(program) };
    let mut command = Command::new(guard);
    command.arg(GUARD_COMMAND).arg(std::process::id().to_string()).arg(program);
    command
}

/// The memory of a guarded program, in bytes: twice the heap of Pyright. ty and git take what they need, and a checkout can make them
/// read a file without end (`.gitignore` or `.git/info/attributes` as a link to `/dev/zero`).
const MEMORY_BYTES: u64 = 8 << 30;

/// Limits the memory of this process and of what replaces it. Address space is not limited: V8 reserves much more than it uses.
fn limit_memory() {
    let limit = getrlimit(Resource::Data);
    let least = |value: Option<u64>| Some(value.map_or(MEMORY_BYTES, |value| value.min(MEMORY_BYTES)));
    // It fails only where the operating system has no such limit.
    let _ = setrlimit(Resource::Data, Rlimit { current: least(limit.current), ..limit });
}

/// Replaces this process by a program, after asking the kernel to kill it when `parent` dies. Returns only on failure.
///
/// `parent` is the process that wants the program; if it has exited already, nothing is started.
pub(crate) fn exec_guarded(
    parent: u32,
    program: OsString,
    args: impl IntoIterator<Item = OsString>,
) -> io::Error {
    let orphaned = || getppid().is_none_or(|pid| pid.as_raw_nonzero().get().cast_unsigned() != parent);
    let gone = || io::Error::other(format!("the parent process {parent} has exited"));
    if orphaned() {
        return gone();
    }
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        return error.into();
    }
    // The parent may have died between the first check and the request, which covers only the future.
    if orphaned() {
        return gone();
    }
    limit_memory();
    Command::new(program).args(args).exec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_whose_parent_is_gone_starts_nothing() {
        let error = exec_guarded(u32::MAX, "/bin/false".into(), []);
        assert!(error.to_string().contains("has exited"), "{error}");
    }
}
