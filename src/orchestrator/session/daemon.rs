//! A session's two processes, from the caller's `spawn` to the loop of the [`service`].
//!
//! Both are daemons: a process session of their own, the standard streams on `/dev/null`, `/` as the working folder, no
//! descriptor of whoever happened to start them. The supervisor waits for the session proper and does nothing else, so it
//! can clean up after a session that was killed. The session proper holds the end of a pipe whose other end the supervisor
//! has; when that is closed, it leaves in order.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use super::key::{Identity, Key};
use super::place::Place;
use super::service;
use crate::path::AbsPath;

/// What the GNU allocator is told, and others ignore: each pool of memory keeps the most that it was ever asked for at a time,
/// for as long as the session lives, so there is one, and the texts of files are no part of it.
const ALLOCATOR: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "1048576"), ("MALLOC_MMAP_THRESHOLD_", "16384")];

/// The hidden subcommand that a session is started with.
pub const SESSION_COMMAND: &str = "__session";

/// Standing before the other words, what makes of the supervisor's child the session proper.
const PROPER: &str = "proper";

/// What a session is told on its command line.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    /// This program.
    pub(super) executable: AbsPath,
    pub(super) place: Place,
    pub(super) key: Key,
    /// What tells the folders of two sessions of one key apart.
    pub(super) nonce: String,
}

impl Orders {
    /// The command that starts a supervisor, or with `proper` the session itself. The environment is empty: whatever a
    /// session needs of a caller's, the caller tells.
    pub(super) fn command(&self, proper: bool) -> Command {
        let mut command = Command::new(self.executable.as_path());
        command
            .arg(SESSION_COMMAND)
            .args(proper.then_some(PROPER))
            .args([self.place.folder().as_str(), self.key.as_str(), &self.nonce])
            .env_clear()
            .envs(ALLOCATOR);
        command
    }

    fn read(words: &[OsString], executable: Option<AbsPath>) -> Option<Self> {
        let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
        let [folder, key, nonce] = words?[..] else { return None };
        let folder = AbsPath::new(folder).ok()?;
        let fits = !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let nonce = fits.then(|| nonce.to_owned())?;
        Some(Self { executable: executable?, place: Place::at(folder), key: Key::parse(key)?, nonce })
    }
}

/// Becomes a session, with the words that follow [`SESSION_COMMAND`] and a listening socket as standard input. Returns when
/// the session has ended.
///
/// # Errors
/// When this was not called by lanser.
pub fn run(words: &[OsString], executable: Option<AbsPath>) -> io::Result<()> {
    let own_use = || io::Error::other(format!("{SESSION_COMMAND} is for lanser's own use"));
    let (proper, words) = match words.split_first() {
        Some((first, rest)) if first == PROPER => (true, rest),
        _ => (false, words),
    };
    let orders = Orders::read(words, executable).ok_or_else(own_use)?;
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.local_addr().map_err(|_| own_use())?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    if proper {
        let supervisor = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(&nothing)?;
        drop(nothing);
        return service::run(&orders, listener, supervisor);
    }
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    drop(nothing);
    let listener = close_inherited(listener)?;
    // It fails for the leader of a process group, which a caller never makes its child.
    rustix::process::setsid()?;
    rustix::process::chdir("/")?;
    supervise(&orders, listener)
}

/// Closes whatever was inherited besides the standard streams: an agent's pipes would never end while a session has them.
///
/// `listener` comes back under another number. Nothing else may be open that somebody here owns.
fn close_inherited(listener: UnixListener) -> io::Result<UnixListener> {
    // On standard input it is safe while all others go.
    rustix::stdio::dup2_stdin(&listener)?;
    drop(listener);
    let open: Vec<i32> = std::fs::read_dir("/dev/fd")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // Nothing in this process owns one of them: it has only just begun. The list's own is closed already.
        let _ = nix::unistd::close(number);
    }
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::options().read(true).write(true).open("/dev/null")?)?;
    Ok(listener)
}

/// Starts the session proper, waits for its end, and removes what it left.
fn supervise(orders: &Orders, listener: UnixListener) -> io::Result<()> {
    let socket = orders.place.socket(&orders.key);
    let identity = Identity::of(socket.as_path())?;
    let (pipe, held) = io::pipe()?;
    let spawned = orders
        .command(true)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::from(pipe))
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut child) = spawned {
        child.wait()?;
    }
    drop(held);
    clean_up(orders, &identity)
}

/// Removes a session's socket and folder, unless they are another session's by now.
pub(super) fn clean_up(orders: &Orders, socket: &Identity) -> io::Result<()> {
    let home = orders.place.home(&orders.key, &orders.nonce);
    let path = orders.place.socket(&orders.key);
    // Without one of them there is nothing to lock for: the session left in order.
    if !socket.is_at(path.as_path()) && !home.as_path().exists() {
        return Ok(());
    }
    let _lock = orders.place.lock_blocking()?;
    if socket.is_at(path.as_path()) {
        std::fs::remove_file(path.as_path())?;
    }
    match std::fs::remove_dir_all(home.as_path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
