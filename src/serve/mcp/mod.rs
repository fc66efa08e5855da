//! The Model Context Protocol: the commands as tools of an MCP server on standard input and output.
//!
//! The protocol itself is the official SDK's (`rmcp`): it speaks the revision without `initialize` and those with it. What a tool
//! does is the business of a [`ToolSource`], so that tools and command line are one.

mod lines;
mod output;

use std::pin::Pin;
use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{QuitReason, RequestContext, RoleServer, RunningService};
use rmcp::{ErrorData, ServiceExt as _};
use tokio::sync::mpsc;

use crate::digest::Digest;
use crate::engine::Progress;
use crate::model::bundle::Bundle;
use crate::model::request::Command;
use lines::Lines;

/// The longest text of an answer, in bytes. The facts themselves are in `structuredContent`.
const MAX_TEXT_BYTES: usize = 4096;

/// What a bundle's URI as a resource begins with; its `bundleId` follows.
const BUNDLES: &str = "lanser://bundles/";

/// A tool.
pub struct ToolDescription {
    /// The name: that of the verb.
    pub name: &'static str,
    /// What it does, and when to use it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input: JsonObject,
    /// The command that it runs.
    pub command: Command,
    /// Whether it can write to the workspace.
    pub writes: bool,
}

/// The answer of a tool.
pub struct ToolAnswer {
    /// The bundle; the hint of an error names tools.
    pub bundle: Bundle,
    /// The bundle as text.
    pub text: String,
}

/// A future that can be moved to another thread.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the server offers.
pub trait ToolSource: Send + Sync + 'static {
    /// What a model should know about all tools.
    fn instructions(&self) -> String;

    /// The tools, in the order in which they are listed.
    fn tools(&self) -> &[ToolDescription];

    /// Runs a tool; `None` if it does not exist. If `canceled` completes first, the bundle has the error `E/REQUEST_CANCELLED`.
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: JsonObject,
        progress: Arc<dyn Progress>,
        canceled: Answering<'a, ()>,
    ) -> Answering<'a, Option<ToolAnswer>>;

    /// A bundle that was answered before; `None` if it is not stored.
    fn bundle(&self, id: Digest) -> Answering<'_, Option<Bundle>>;
}

/// Serves a client on standard input and output until it closes the connection or `interrupted` completes.
///
/// # Errors
/// If the connection fails before it is established.
pub async fn run(
    source: impl ToolSource,
    interrupted: impl Future<Output = ()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let server = McpServer { source };
    tokio::select! {
        served = serve(server) => served,
        () = interrupted => Ok(()),
    }
}

async fn serve<S: ToolSource>(server: McpServer<S>) -> Result<(), Box<dyn std::error::Error>> {
    let service: RunningService<RoleServer, McpServer<S>> =
        match server.serve(Lines::new(tokio::io::stdin(), tokio::io::stdout())).await {
            Ok(service) => service,
            // A client that sends nothing has no use for an answer.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
    match service.waiting().await? {
        QuitReason::JoinError(error) => Err(error.into()),
        _ => Ok(()),
    }
}

struct McpServer<S> {
    source: S,
}

impl<S: ToolSource> McpServer<S> {
    fn tool(&self, tool: &ToolDescription) -> Tool {
        let annotations = ToolAnnotations::new().read_only(!tool.writes).open_world(false);
        let annotations = match tool.writes {
            // What is written can be undone.
            true => annotations.destructive(true).idempotent(false),
            false => annotations.idempotent(true),
        };
        Tool::new(tool.name, tool.description.clone(), tool.input.clone())
            .with_raw_output_schema(Arc::new(output::schema(tool.command)))
            .with_annotations(annotations)
    }
}

impl<S: ToolSource> ServerHandler for McpServer<S> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("lanser", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.source.instructions())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        refuse_cursor(request)?;
        Ok(ListToolsResult::with_all_items(self.source.tools().iter().map(|tool| self.tool(tool)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (steps, mut reported) = mpsc::unbounded_channel();
        let token = context.meta.get_progress_token();
        let canceled = Box::pin(context.ct.cancelled());
        let arguments = request.arguments.unwrap_or_default();
        let mut answer = self.source.call(&request.name, arguments, Arc::new(ProgressSteps(steps)), canceled);
        let mut count = 0.0;
        let answered = loop {
            tokio::select! {
                biased;
                answered = &mut answer => break answered,
                Some(step) = reported.recv() => {
                    let Some(token) = token.clone() else { continue };
                    count += 1.0;
                    let progress = ProgressNotificationParam::new(token, count).with_message(step);
                    // A client that is gone needs no progress.
                    let _ = context.peer.notify_progress(progress).await;
                }
            }
        };
        let ToolAnswer { bundle, text } = answered
            .ok_or_else(|| ErrorData::invalid_params(format!("unknown tool: {}", request.name), None))?;
        let (facts, is_cut) = output::facts(&bundle);
        let mut content = vec![ContentBlock::text(shortened(text))];
        if is_cut {
            let id = bundle.bundle_id.to_string();
            let uri = format!("{BUNDLES}{id}");
            content.push(ContentBlock::resource_link(rmcp::model::Resource::new(uri, "the whole bundle")));
        }
        let mut result = match bundle.error {
            Some(_) => CallToolResult::error(content),
            None => CallToolResult::success(content),
        };
        result.structured_content = Some(facts);
        Ok(result.into())
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        refuse_cursor(request)?;
        let template = ResourceTemplate::new(format!("{BUNDLES}{{bundleId}}"), "bundle")
            .with_description("An answer as a whole, by the bundleId of an earlier result")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    /// Bundles are read by their id, and not listed.
    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        refuse_cursor(request)?;
        Ok(ListResourcesResult::default())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown =
            || ErrorData::resource_not_found(format!("no bundle is stored as {}", request.uri), None);
        let id = request.uri.strip_prefix(BUNDLES).and_then(Digest::parse).ok_or_else(unknown)?;
        let bundle = self.source.bundle(id).await.ok_or_else(unknown)?;
        let text = serde_json::to_string(&bundle)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// Refuses to list more: every list has one page, so no cursor was given out.
fn refuse_cursor(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(cursor) => Err(ErrorData::invalid_params(format!("unknown cursor: {cursor}"), None)),
        None => Ok(()),
    }
}

/// A text of at most [`MAX_TEXT_BYTES`], cut after a line.
fn shortened(text: String) -> String {
    const CUT: &str = "\n… cut; the facts are in structuredContent";
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let mut end = MAX_TEXT_BYTES - CUT.len();
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').unwrap_or(end);
    format!("{}{CUT}", &text[..end])
}

/// Passes the steps of a request on.
struct ProgressSteps(mpsc::UnboundedSender<String>);

impl Progress for ProgressSteps {
    fn step(&self, text: &str) {
        // The receiver is gone once the answer is there.
        let _ = self.0.send(text.to_owned());
    }

    fn notify(&self, text: &str) {
        self.step(text);
    }

    fn done(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_end_after_a_line() {
        let short = "ü\n".repeat(10);
        assert_eq!(shortened(short.clone()), short);
        for line in ["a line\n".repeat(1000), "ü".repeat(4000)] {
            let text = shortened(line);
            assert!(text.len() <= MAX_TEXT_BYTES && text.contains("structuredContent"), "{text}");
        }
    }
}
