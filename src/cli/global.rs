//! The options that every command takes.

use clap::Args;

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// Workspace folder [default: found upwards from the current folder]
    #[arg(
        short = 'C',
        long,
        global = true,
        value_name = "DIR",
        env = "LANSER_WORKSPACE",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) workspace: Option<String>,

    /// Print one JSON bundle on standard output, also on failure
    #[arg(long, global = true, env = "LANSER_JSON", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Common options")]
    pub(crate) json: bool,

    /// Print only these parts of the JSON bundle, such as `facts.references.at,status`
    #[arg(
        long,
        global = true,
        value_name = "PATHS",
        env = "LANSER_FIELDS",
        hide_env_values = true,
        value_delimiter = ',',
        help_heading = "Common options"
    )]
    pub(crate) fields: Vec<String>,

    /// Language server: `pyright` or `basedpyright`, or either with `@VERSION` [default: pyright]
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "LANSER_SERVER",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) server: Option<String>,

    /// The server's script, package folder or executable, instead of looking for it
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "LANSER_SERVER_COMMAND",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) server_command: Option<String>,

    /// Python interpreter whose environment the code is looked at in [default: $VIRTUAL_ENV, .venv, PATH]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "LANSER_PYTHON",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) python: Option<String>,

    /// What a column counts: `codepoint`, `utf-8` or `utf-16` [default: codepoint]
    #[arg(
        long,
        global = true,
        value_name = "UNIT",
        env = "LANSER_INDEX_IO",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) index_io: Option<String>,

    /// Files that may be made known to the server: `workspace` or `configured` [default: workspace]
    #[arg(
        long,
        global = true,
        value_name = "SCOPE",
        env = "LANSER_SCOPE",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) scope: Option<String>,

    /// Seconds to wait for a server's first answer; for later ones it is half of that [default: 60]
    #[arg(long, global = true, value_name = "SECONDS", env = "LANSER_TIMEOUT", hide_env_values = true, value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = "Common options")]
    pub(crate) timeout: Option<u64>,

    /// Print at most this many items
    #[arg(long, global = true, value_name = "N", env = "LANSER_LIMIT", hide_env_values = true, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Common options")]
    pub(crate) limit: Option<u32>,

    /// Continue a list that was cut
    #[arg(long, global = true, value_name = "CURSOR", help_heading = "Common options")]
    pub(crate) cursor: Option<String>,

    /// Install nothing
    #[arg(long, global = true, env = "LANSER_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Common options")]
    pub(crate) offline: bool,

    /// Run what the checkout brings: its interpreter, a server in .venv or node_modules, git's filters; see `lanser trust`
    #[arg(long, global = true, env = "LANSER_TRUST_WORKSPACE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Common options")]
    pub(crate) trust_workspace: bool,

    /// Believe nothing that an earlier run learned of the workspace, and keep nothing
    #[arg(long, global = true, env = "LANSER_NO_CACHE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Common options")]
    pub(crate) no_cache: bool,

    /// Append everything that the answer is made from to this file, for `lanser trace replay`: with every command that asks
    /// about a workspace
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LANSER_TRACE_FILE",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) trace_file: Option<String>,

    /// Answer in this process: neither ask a background session nor start one [default with CI set]
    #[arg(long, global = true, env = "LANSER_NO_SESSION", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Common options")]
    pub(crate) no_session: bool,

    /// Seconds after which a background session without questions leaves [default: 600]
    #[arg(long, global = true, value_name = "SECONDS", env = "LANSER_SESSION_IDLE", hide_env_values = true, value_parser = clap::value_parser!(u64).range(1..=604_800), help_heading = "Common options")]
    pub(crate) session_idle: Option<u64>,

    /// Memory above which a background session restarts its language server, in MiB [default: 4096]
    #[arg(long, global = true, value_name = "MIB", env = "LANSER_SESSION_MEMORY", hide_env_values = true, value_parser = clap::value_parser!(u64).range(64..=1_048_576), help_heading = "Common options")]
    pub(crate) session_memory: Option<u64>,

    /// What proves that a file is unchanged: its `stat`, or its `content`
    #[arg(
        long,
        global = true,
        value_name = "PROOF",
        env = "LANSER_FRESHNESS",
        hide_env_values = true,
        help_heading = "Common options"
    )]
    pub(crate) freshness: Option<String>,

    /// Say more: both coordinate systems in JSON, local names and unclaimed places in text
    #[arg(short, long, global = true, env = "LANSER_VERBOSE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), help_heading = "Common options")]
    pub(crate) verbose: bool,

    /// The bundle that this step starts from, for its reward: a file, or the `bundleId` of one that was answered here
    #[arg(long, global = true, value_name = "BUNDLE", help_heading = "Reward")]
    pub(crate) prev: Option<String>,

    /// The formula of the reward: `rl-csf-v1`, `pr-v1` or `rl-csf-guarded-v1` [default: rl-csf-v1]
    #[arg(
        long,
        visible_alias = "preset",
        global = true,
        value_name = "PRESET",
        env = "LANSER_REWARD",
        hide_env_values = true,
        help_heading = "Reward"
    )]
    pub(crate) reward: Option<String>,

    /// The weights of diagnostics, safety, confidence and errors, and the discount [default: 0.5,0.4,0.1,0.5,1]
    #[arg(
        long,
        global = true,
        value_name = "wD,wS,wA,wE[,GAMMA]",
        env = "LANSER_WEIGHTS",
        hide_env_values = true,
        help_heading = "Reward"
    )]
    pub(crate) weights: Option<String>,
}
