//! The two processes of a session, from the client's `spawn` to the loop of the [`service`].
//!
//! Both are daemons: they have a process session of their own, standard streams on `/dev/null`, the working directory
//! `/`, and no inherited descriptors. The supervisor waits for the service and does nothing else, so that it can
//! clean up when the service is killed. The service holds one end of a pipe whose other end the supervisor has; when
//! that closes, the service shuts down in order.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use super::key::{FileIdentity, SessionKey};
use super::runtime_dir::RuntimeDir;
use super::service;
use crate::path::AbsPath;

/// glibc malloc tuning, ignored by other allocators: one arena, because each keeps its peak size as long as the process
/// lives; trim at 1 MiB; `mmap` from 16 KiB, so that the texts of files are returned to the system.
const MALLOC_TUNING: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "1048576"), ("MALLOC_MMAP_THRESHOLD_", "16384")];

/// The hidden subcommand that runs a session.
pub const SESSION_COMMAND: &str = "__session";

/// The first argument when the supervisor starts the service.
const SERVICE_ARG: &str = "proper";

/// The command line of a session.
#[derive(Debug, Clone)]
pub(super) struct DaemonArgs {
    /// The path of this program.
    pub(super) executable: AbsPath,
    pub(super) runtime_dir: RuntimeDir,
    pub(super) key: SessionKey,
    /// Distinguishes the folders of two sessions with the same key.
    pub(super) nonce: String,
}

impl DaemonArgs {
    /// The command that starts the supervisor, or the service if `is_service`. The environment is cleared: the client
    /// sends the variables that a session needs.
    pub(super) fn command(&self, is_service: bool) -> Command {
        let mut command = Command::new(self.executable.as_path());
        command
            .arg(SESSION_COMMAND)
            .args(is_service.then_some(SERVICE_ARG))
            .args([self.runtime_dir.folder().as_str(), self.key.as_str(), &self.nonce])
            .env_clear()
            .envs(MALLOC_TUNING);
        command
    }

    fn parse(arguments: &[OsString], executable: Option<AbsPath>) -> Option<Self> {
        let arguments: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
        let [folder, key, nonce] = arguments?[..] else { return None };
        let folder = AbsPath::new(folder).ok()?;
        let fits = !nonce.is_empty() && nonce.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let nonce = fits.then(|| nonce.to_owned())?;
        Some(Self {
            executable: executable?,
            runtime_dir: RuntimeDir::from_folder(folder),
            key: SessionKey::parse(key)?,
            nonce,
        })
    }
}

/// Runs a session, with the arguments that follow [`SESSION_COMMAND`] and a listening socket as standard input. Returns
/// when the session has ended.
///
/// # Errors
/// When the arguments or standard input are not those that lanser passes.
pub fn run(arguments: &[OsString], executable: Option<AbsPath>) -> io::Result<()> {
    let not_for_users = || io::Error::other(format!("{SESSION_COMMAND} is for lanser's own use"));
    let (is_service, arguments) = match arguments.split_first() {
        Some((first, rest)) if first == SERVICE_ARG => (true, rest),
        _ => (false, arguments),
    };
    let args = DaemonArgs::parse(arguments, executable).ok_or_else(not_for_users)?;
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    listener.local_addr().map_err(|_| not_for_users())?;
    let dev_null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&dev_null)?;
    if is_service {
        let supervisor = io::stdout().as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdout(&dev_null)?;
        drop(dev_null);
        return service::run(&args, listener, supervisor);
    }
    rustix::stdio::dup2_stdout(&dev_null)?;
    rustix::stdio::dup2_stderr(&dev_null)?;
    drop(dev_null);
    let listener = close_inherited(listener)?;
    // This fails for the leader of a process group; a client never makes its child one.
    rustix::process::setsid()?;
    rustix::process::chdir("/")?;
    supervise(&args, listener)
}

/// Closes inherited descriptors except for the standard streams: an agent's pipes would otherwise stay open as long
/// as the session lives.
///
/// Returns `listener` under another number. The caller must not own any other open descriptor.
fn close_inherited(listener: UnixListener) -> io::Result<UnixListener> {
    // On standard input the listener survives the loop below.
    rustix::stdio::dup2_stdin(&listener)?;
    drop(listener);
    let open: Vec<i32> = std::fs::read_dir("/dev/fd")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in open.into_iter().filter(|number| *number > 2) {
        // No code in this process owns one of them, as it has only just started. The one of the listing is closed
        // already.
        let _ = nix::unistd::close(number);
    }
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::options().read(true).write(true).open("/dev/null")?)?;
    Ok(listener)
}

/// Starts the service, waits for its end, and removes the files that it left.
fn supervise(args: &DaemonArgs, listener: UnixListener) -> io::Result<()> {
    let socket = args.runtime_dir.socket(&args.key);
    let identity = FileIdentity::of(socket.as_path())?;
    let (pipe, exit_notifier) = io::pipe()?;
    let spawned = args
        .command(true)
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::from(pipe))
        .stderr(Stdio::null())
        .spawn();
    if let Ok(mut child) = spawned {
        child.wait()?;
    }
    drop(exit_notifier);
    clean_up(args, &identity)
}

/// Removes a session's socket and folder, unless they belong to another session by now.
pub(super) fn clean_up(args: &DaemonArgs, socket: &FileIdentity) -> io::Result<()> {
    let session_dir = args.runtime_dir.session_dir(&args.key, &args.nonce);
    let path = args.runtime_dir.socket(&args.key);
    // If both are gone, the session shut down in order, and the lock is not needed.
    if !socket.is_at(path.as_path()) && !session_dir.as_path().exists() {
        return Ok(());
    }
    let _lock = args.runtime_dir.lock_blocking()?;
    if socket.is_at(path.as_path()) {
        std::fs::remove_file(path.as_path())?;
    }
    match std::fs::remove_dir_all(session_dir.as_path()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
