//! A client's life: `initialize`, the documents it opens, the sign that the server knows the workspace, `shutdown`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::callbacks::Callbacks;
use super::capabilities::{self, Capabilities};
use super::connection::Connection;
use super::documents::{self, Documents, FileChange, Note, Text};
use super::error::LspError;
use super::link::Link;
use super::process::ServerProcess;
use super::profile::{Profile, ServerSettings};
use super::questions::Questions;
use super::{renewal, tape};
use crate::model::server::ServerKind;
use crate::path::{AbsPath, FileUri};
use crate::tape::Tape;
use crate::text::{ColumnUnit, Position};

/// What is waited for by [`Client::ready`], in the words of an error.
const ENUMERATION: &str = "the enumeration of source files";

/// How long a killed process may take to be gone.
const KILLED: Duration = Duration::from_secs(2);

/// What a server is told at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InitializeOptions {
    /// The workspace's root, its one folder.
    pub root: AbsPath,
    /// What `workspace/configuration` is answered from.
    pub settings: ServerSettings,
    /// Our process, whose end the server is to notice; `None` when there is no such process, as in a replay.
    pub process_id: Option<u32>,
    /// How long the answer is waited for.
    pub within: Duration,
}

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The server's name.
    pub name: String,
    /// Its version, when it has said it.
    pub version: Option<String>,
}

/// That the server knows the workspace's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// How many source files it found.
    pub files: u32,
}

/// A connected and initialized server. Dropping it kills the server and ends every question with
/// [`LspError::Closed`]; the orderly way is [`Self::shutdown`].
#[derive(Debug)]
pub struct Client {
    link: Arc<Link>,
    listener: JoinHandle<()>,
    process: Option<ServerProcess>,
    kind: ServerKind,
    /// The answer to `initialize`.
    introduction: Value,
    /// From the answer to `initialize`; Pyright sends none.
    server_info: Option<ServerIdentity>,
    capabilities: Capabilities,
    encoding: ColumnUnit,
    documents: Mutex<Documents>,
    /// How many enumerations were over when the last one became necessary.
    stale_enumerations: Mutex<u64>,
    /// Our own document, and how often it was changed.
    renewal: (AbsPath, Mutex<u64>),
}

impl Client {
    /// Introduces the two sides to each other. `process` is the server behind the connection, if it is one of ours;
    /// it lives as long as the client.
    ///
    /// # Errors
    /// When the server does not answer in time or not properly, is another one than the profile's, or counts columns
    /// in an unknown unit. The process is killed then.
    pub async fn initialize(
        connection: Connection,
        process: Option<ServerProcess>,
        profile: &'static Profile,
        options: InitializeOptions,
    ) -> Result<Self, LspError> {
        let root_uri = FileUri::from_path(&options.root).as_str().to_owned();
        let callbacks = Callbacks::new(profile.configuration(&options.settings), root_uri);
        let params = introduction(&options, callbacks.folders());
        let cancellation = process.as_ref().and_then(ServerProcess::cancellation);
        let link = Arc::new(Link::new(connection.sender, callbacks, cancellation));
        let watch = process.as_ref().map(ServerProcess::watch);
        let listener = tokio::spawn(link.clone().listen(connection.receiver, watch));
        let mut client = Self {
            link,
            listener,
            process,
            kind: profile.kind,
            introduction: Value::Null,
            server_info: None,
            capabilities: Capabilities::default(),
            encoding: ColumnUnit::Utf16,
            documents: Mutex::default(),
            stale_enumerations: Mutex::default(),
            renewal: (renewal::place(&options.root), Mutex::default()),
        };
        let answer = client.link.ask("initialize", params, options.within).await?;
        let malformed = |reason: String| LspError::Malformed { method: "initialize".to_owned(), reason };
        let answer: Value = answer.read().map_err(|error| malformed(error.to_string()))?;
        let offered =
            answer.get("capabilities").ok_or_else(|| malformed("it has no `capabilities`".to_owned()))?;
        client.encoding = capabilities::encoding(offered)?;
        client.capabilities = Capabilities::read(offered, profile);
        client.server_info = answer["serverInfo"]["name"].as_str().map(|name| ServerIdentity {
            name: name.to_owned(),
            version: answer["serverInfo"]["version"].as_str().map(str::to_owned),
        });
        client.introduction = answer;
        client.expect(profile.kind)?;
        client.link.tell("initialized", Some(json!({}).into()))?;
        Ok(client)
    }

    /// Notes on a tape what the server said of itself.
    pub fn introduce(&self, tape: &Tape) {
        if tape.is_recording() {
            let lines: Vec<String> = self.link.heard().lines.into_iter().flatten().collect();
            tape::introduced(tape, &self.introduction, &self.link.registered(), &lines);
        }
    }

    /// Who answers: what the server said of itself, else what its log says, else the profile's name.
    #[must_use]
    pub fn identity(&self) -> ServerIdentity {
        let greeting = || {
            let (kind, version) = self.link.heard().greeting?;
            Some(ServerIdentity { name: kind.as_str().to_owned(), version: Some(version) })
        };
        let unknown = || ServerIdentity { name: self.kind.as_str().to_owned(), version: None };
        self.server_info.clone().or_else(greeting).unwrap_or_else(unknown)
    }

    /// The server's process, when it is one of ours.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::id)
    }

    /// The memory of the server's process, in bytes, where the operating system tells.
    #[must_use]
    pub fn memory(&self) -> Option<u64> {
        self.process.as_ref().and_then(ServerProcess::memory)
    }

    /// Whether it can still be asked.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.link.heard().ended
    }

    /// The unit of every column to and from this server.
    #[must_use]
    pub fn encoding(&self) -> ColumnUnit {
        self.encoding
    }

    /// What the server offers.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Questions that are each to be answered within this time. Retries count towards it.
    #[must_use]
    pub fn within(&self, time: Duration) -> Questions {
        Questions::new(self.link.clone(), self.capabilities, time, self.renewal.0.clone())
    }

    /// Makes the server forget what it inferred, so that what was asked before plays no part any more. What is asked from
    /// now on sees it so.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn renew(&self) -> Result<(), LspError> {
        let (place, count) = &self.renewal;
        let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
        let mut documents = self.documents();
        if *count == 0 {
            // To open a document makes a server forget nothing, only to change it does.
            let note = documents.open(place, Arc::new(renewal::text(0)));
            self.tell(note)?;
        }
        *count += 1;
        let note = documents.open(place, Arc::new(renewal::text(*count)));
        self.tell(note)
    }

    /// Lets the server infer what nearly every question needs. The end is when it has.
    pub fn prepare(&self, within: Duration) -> impl Future<Output = ()> + Send + use<> {
        let (line, column) = renewal::PROBED;
        let hover = self.within(within).hover(&self.renewal.0, Position { line, column });
        // What it says of our document is no matter, nor whether it can say anything.
        async move { drop(hover.await) }
    }

    /// Waits until the server has enumerated the source files: since its start, or since a file was last announced
    /// as new or gone. Before that, what is asked about the whole workspace is answered from the open documents.
    ///
    /// A new file that the workspace's configuration excludes makes the server enumerate nothing and say nothing, so
    /// after an announcement a timeout can mean that too. Where the sign comes, it comes in the time that the first
    /// one took.
    ///
    /// # Errors
    /// [`LspError::Timeout`], or how the connection ended.
    pub async fn ready(&self, within: Duration) -> Result<Readiness, LspError> {
        let stale = *self.stale();
        let heard = self.link.hear(ENUMERATION, within, |heard| heard.enumerations > stale).await?;
        Ok(Readiness { files: heard.files })
    }

    /// Whether [`Self::ready`] would not wait.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let stale = *self.stale();
        self.link.heard().enumerations > stale
    }

    /// Waits until the server has answered every question that was given up, and so works on none of them.
    ///
    /// # Errors
    /// [`LspError::Timeout`], or how the connection ended.
    pub async fn settled(&self, within: Duration) -> Result<(), LspError> {
        self.link.hear("cancelled requests", within, |heard| heard.owed == 0 && !heard.ended).await.map(drop)
    }

    /// Makes `text` what the server believes of a document, which is opened if it is not.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn open(&self, path: &AbsPath, text: Text) -> Result<(), LspError> {
        let mut documents = self.documents();
        let note = documents.open(path, text);
        self.tell(note)
    }

    /// Gives an open document a new text.
    ///
    /// # Errors
    /// [`LspError::NotOpen`], or how the connection ended.
    pub fn change(&self, path: &AbsPath, text: Text) -> Result<(), LspError> {
        let mut documents = self.documents();
        let note = documents.change(path, text).ok_or_else(|| LspError::NotOpen(path.clone()))?;
        self.tell(note)
    }

    /// Closes a document: the server believes the disk again. One that is not open stays so.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn close(&self, path: &AbsPath) -> Result<(), LspError> {
        let mut documents = self.documents();
        documents.close(path).map_or(Ok(()), |note| self.tell(note))
    }

    /// The open documents, in the order of their paths.
    #[must_use]
    pub fn open_documents(&self) -> Vec<AbsPath> {
        let mut paths = self.documents().paths();
        paths.retain(|path| *path != self.renewal.0);
        paths
    }

    /// Announces changes on disk. When a Python file is new or gone, [`Self::ready`] waits for the next enumeration;
    /// so wait for the one that is under way before announcing more, the two signs look the same.
    ///
    /// # Errors
    /// How the connection ended.
    pub fn did_change_watched_files(&self, changes: &[FileChange]) -> Result<(), LspError> {
        if changes.iter().any(FileChange::is_enumerated) {
            *self.stale() = self.link.heard().enumerations;
        }
        self.tell(documents::watched(changes))
    }

    /// Ends the server in order: `shutdown`, `exit`, the end of its input; and kills it when it is not gone in time.
    /// Either way it is gone, with its cancellation folder, when this returns.
    ///
    /// # Errors
    /// When it had to be killed: [`LspError::Timeout`]. When it had ended before: how.
    pub async fn shutdown(mut self, within: Duration) -> Result<(), LspError> {
        let begun = Instant::now();
        let answer = self.link.ask("shutdown", Value::Null, within).await;
        let _ = self.link.tell("exit", None);
        self.link.hang_up();
        if let Some(process) = self.process.take() {
            let left = within.saturating_sub(begun.elapsed());
            if process.wait(left).await.is_none() {
                process.kill();
                process.wait(KILLED).await;
                answer?;
                return Err(LspError::Timeout { method: "exit".to_owned(), after: within });
            }
        }
        answer.map(drop)
    }

    /// Whether who answers is who was expected, as far as it has said so.
    fn expect(&self, kind: ServerKind) -> Result<(), LspError> {
        let found = self.identity().name;
        // Two servers come with a `pyright-langserver`; only other servers that we know are refused by name, because
        // names that we do not know may be a new spelling.
        let other = ServerKind::ALL.into_iter().any(|known| known != kind && known.as_str() == found);
        if other {
            return Err(LspError::OtherServer { expected: kind.as_str().to_owned(), found });
        }
        Ok(())
    }

    fn tell(&self, (method, params): Note) -> Result<(), LspError> {
        self.link.tell(method, Some(params))
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stale(&self) -> MutexGuard<'_, u64> {
        self.stale_enumerations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.link.end(&LspError::Closed);
        self.listener.abort();
    }
}

/// The parameters of `initialize`. The root is given in all three ways because servers differ in which they read,
/// and the locale because messages are otherwise in the language of the environment.
fn introduction(options: &InitializeOptions, folders: Value) -> Value {
    json!({
        "processId": options.process_id,
        "clientInfo": {"name": "lanser", "version": env!("CARGO_PKG_VERSION")},
        "locale": "en",
        "rootPath": options.root.as_str(),
        "rootUri": FileUri::from_path(&options.root).as_str(),
        "workspaceFolders": folders,
        "capabilities": capabilities::declared(),
        "initializationOptions": {},
        "trace": "off",
    })
}
