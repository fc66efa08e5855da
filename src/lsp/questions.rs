//! The questions, one method each. A question is in the server's queue when the method returns; the future is the
//! answer, and dropping it cancels the question. So any number can be under way at once, in a known order.
//!
//! A file need not be open to be asked about. Positions are 0-based and count columns in [`Client::encoding`].
//!
//! [`Client::encoding`]: super::client::Client::encoding

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{
    Call, CallItem, CodeAction, Diagnostic, HoverText, Listing, Place, Renamable, ServerCommand, Symbol,
    WorkspaceSymbol,
};
use super::capabilities::{Capabilities, method};
use super::conversation::Memory;
use super::convert;
use super::documents::identifier;
use super::error::LspError;
use super::jsonrpc::Reply;
use super::link::Link;
use super::tape;
use crate::model::edits::WorkspaceEdit;
use crate::path::AbsPath;
use crate::tape::Tape;
use crate::text::{Position, Range};

/// Asks questions, each of which is to be answered within one time.
///
/// Every answer can be any [`LspError`] that says how a call ended; what the server does not offer is
/// [`LspError::Unsupported`] and is not asked.
#[derive(Debug, Clone)]
pub struct Questions {
    link: Arc<Link>,
    capabilities: Capabilities,
    within: Duration,
    /// Our own document on the server, in which nobody uses anything.
    own: AbsPath,
    /// What notes the conversation.
    tape: Tape,
    /// Who may say it again.
    memory: Memory,
}

/// What a question returns: its answer to come.
macro_rules! answer {
    ($item:ty) => { impl Future<Output = Result<$item, LspError>> + Send + use<> };
}

impl Questions {
    pub(super) fn new(link: Arc<Link>, capabilities: Capabilities, within: Duration, own: AbsPath) -> Self {
        Self { link, capabilities, within, own, tape: Tape::off(), memory: Memory::Off }
    }

    /// The same questions, noted on a tape.
    #[must_use]
    pub fn on(mut self, tape: &Tape) -> Self {
        self.tape = tape.clone();
        self
    }

    /// The same questions, with a memory of the conversation.
    #[must_use]
    pub fn with(mut self, memory: &Memory) -> Self {
        self.memory = memory.clone();
        self
    }

    /// Where the name at a position is defined.
    pub fn definition(&self, path: &AbsPath, position: Position) -> answer!(Listing<Place>) {
        self.ask(method::DEFINITION, at(path, position), convert::places)
    }

    /// Where the name at a position is declared.
    pub fn declaration(&self, path: &AbsPath, position: Position) -> answer!(Listing<Place>) {
        self.ask(method::DECLARATION, at(path, position), convert::places)
    }

    /// Where the type of the expression at a position is defined.
    pub fn type_definition(&self, path: &AbsPath, position: Position) -> answer!(Listing<Place>) {
        self.ask(method::TYPE_DEFINITION, at(path, position), convert::places)
    }

    /// Where the method or class at a position is implemented.
    pub fn implementation(&self, path: &AbsPath, position: Position) -> answer!(Listing<Place>) {
        self.ask(method::IMPLEMENTATION, at(path, position), convert::places)
    }

    /// Where the name at a position is used. Complete only after [`Client::ready`].
    ///
    /// [`Client::ready`]: super::client::Client::ready
    pub fn references(
        &self,
        path: &AbsPath,
        position: Position,
        include_declaration: bool,
    ) -> answer!(Listing<Place>) {
        let mut params = at(path, position);
        params["context"] = json!({"includeDeclaration": include_declaration});
        self.without_own(self.ask(method::REFERENCES, params, convert::places), |place| &place.path)
    }

    /// What the server shows about the name at a position; `None` when nothing.
    pub fn hover(&self, path: &AbsPath, position: Position) -> answer!(Option<HoverText>) {
        self.ask(method::HOVER, at(path, position), convert::hover)
    }

    /// The symbols of a document.
    pub fn document_symbols(&self, path: &AbsPath) -> answer!(Vec<Symbol>) {
        self.ask(method::DOCUMENT_SYMBOL, json!({"textDocument": identifier(path)}), convert::symbols)
    }

    /// The symbols of the workspace whose names match, as the server sees a match. Complete only after
    /// [`Client::ready`].
    ///
    /// [`Client::ready`]: super::client::Client::ready
    pub fn workspace_symbols(&self, query: &str) -> answer!(Listing<WorkspaceSymbol>) {
        let symbols = self.ask(method::WORKSPACE_SYMBOL, json!({"query": query}), convert::workspace_symbols);
        self.without_own(symbols, |symbol| &symbol.place.path)
    }

    /// The functions at a position, to ask about their calls.
    pub fn prepare_call_hierarchy(&self, path: &AbsPath, position: Position) -> answer!(Listing<CallItem>) {
        self.ask(method::PREPARE_CALLS, at(path, position), convert::call_items)
    }

    /// Who calls it.
    pub fn incoming_calls(&self, item: &CallItem) -> answer!(Listing<Call>) {
        let calls = self.ask(method::INCOMING_CALLS, json!({"item": item.wire}), convert::calls);
        self.without_own(calls, |call| &call.item.path)
    }

    /// Whom it calls.
    pub fn outgoing_calls(&self, item: &CallItem) -> answer!(Listing<Call>) {
        self.ask(method::OUTGOING_CALLS, json!({"item": item.wire}), convert::calls)
    }

    /// What the server finds wrong in a document. [`Listing::skipped`] counts related places.
    ///
    /// Pyright and its forks look only into open documents: for one that is not open the answer is empty.
    pub fn diagnostics(&self, path: &AbsPath) -> answer!(Listing<Diagnostic>) {
        self.ask(method::DIAGNOSTIC, json!({"textDocument": identifier(path)}), convert::diagnostics)
    }

    /// Whether the name at a position can be renamed.
    pub fn prepare_rename(&self, path: &AbsPath, position: Position) -> answer!(Option<Renamable>) {
        self.ask(method::PREPARE_RENAME, at(path, position), convert::renamable)
    }

    /// What has to be edited so that the name at a position becomes another one. Complete only after [`Client::ready`].
    ///
    /// [`Client::ready`]: super::client::Client::ready
    pub fn rename(
        &self,
        path: &AbsPath,
        position: Position,
        new_name: &str,
    ) -> answer!(Option<WorkspaceEdit>) {
        let mut params = at(path, position);
        params["newName"] = new_name.into();
        self.ask(method::RENAME, params, convert::edit)
    }

    /// What the server proposes to do about a stretch with these diagnostics; `only` of some kinds.
    pub fn code_actions(
        &self,
        path: &AbsPath,
        range: Range,
        diagnostics: &[Diagnostic],
        only: &[String],
    ) -> answer!(Vec<CodeAction>) {
        let diagnostics: Value = diagnostics.iter().map(convert::wire_diagnostic).collect();
        let mut context = json!({"diagnostics": diagnostics, "triggerKind": 1});
        if !only.is_empty() {
            context["only"] = only.into();
        }
        let params = json!({
            "textDocument": identifier(path), "range": convert::wire_range(range), "context": context,
        });
        self.ask(method::CODE_ACTION, params, convert::actions)
    }

    /// An action with what the server had left out.
    pub fn resolve_action(&self, action: &CodeAction) -> answer!(CodeAction) {
        self.ask(method::RESOLVE_ACTION, action.wire.clone(), convert::action)
    }

    /// Lets the server do something. The edits that it wants made meanwhile are the answer.
    pub fn execute(&self, command: &ServerCommand) -> answer!(Vec<WorkspaceEdit>) {
        let params = json!({"command": command.name, "arguments": command.arguments});
        self.link.take_edits();
        let answer = self.ask(method::EXECUTE_COMMAND, params, convert::done);
        let link = self.link.clone();
        async move {
            answer.await?;
            link.take_edits().into_iter().map(read_edit).collect()
        }
    }

    /// A list without what stands in our own document.
    fn without_own<T, F>(
        &self,
        answer: F,
        path: fn(&T) -> &AbsPath,
    ) -> impl Future<Output = Result<Listing<T>, LspError>> + Send + use<T, F>
    where
        T: Send,
        F: Future<Output = Result<Listing<T>, LspError>> + Send,
    {
        let own = self.own.clone();
        async move {
            let mut listing = answer.await?;
            listing.items.retain(|item| *path(item) != own);
            Ok(listing)
        }
    }

    fn ask<T: Send>(
        &self,
        name: &'static str,
        params: Value,
        read: fn(&Reply) -> Result<T, serde_json::Error>,
    ) -> impl Future<Output = Result<T, LspError>> + Send + use<T> {
        let offered = self.capabilities.offers(name) || self.link.is_registered(name);
        let call = offered
            .then(|| tape::call(&self.tape, name, &params))
            .flatten()
            .map(|id| (id, self.tape.clone(), self.link.clone()));
        let said = if offered { self.memory.say(name, &params) } else { None };
        let asked = if offered { self.memory.ask(name, &params) } else { None };
        let answer = (offered && said.is_none()).then(|| self.link.ask(name, params, self.within));
        async move {
            let answer = match (said, answer) {
                (Some(said), _) => said,
                (None, Some(answer)) => answer.await,
                (None, None) => return Err(LspError::Unsupported { method: name.to_owned() }),
            };
            if let Some(asked) = asked {
                asked.answered(&answer);
            }
            if let Some((id, tape, link)) = call {
                let edits = if name == method::EXECUTE_COMMAND { link.edits() } else { Vec::new() };
                tape::answered(&tape, id, &edits, &answer);
            }
            let malformed = |error: serde_json::Error| LspError::Malformed {
                method: name.to_owned(),
                reason: error.to_string(),
            };
            read(&answer?).map_err(malformed)
        }
    }
}

fn read_edit(wire: Value) -> Result<WorkspaceEdit, LspError> {
    serde_json::from_value(wire).map_err(|error| LspError::Malformed {
        method: "workspace/applyEdit".to_owned(),
        reason: error.to_string(),
    })
}

fn at(path: &AbsPath, position: Position) -> Value {
    json!({"textDocument": identifier(path), "position": convert::wire_position(position)})
}
