//! The options of every command. `-h` omits them; `--help` and `lanser help options` list them.

use clap::Args;

const COMMON: &str = "Common options";
const REWARD: &str = "Reward options";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalArgs {
    /// Workspace folder [default: the nearest project root around the current folder]
    #[arg(
        short = 'C',
        long,
        global = true,
        value_name = "DIR",
        env = "LANSER_WORKSPACE",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) workspace: Option<String>,

    /// Print one JSON bundle on standard output, also on failure
    #[arg(long, global = true, env = "LANSER_JSON", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) json: bool,

    /// Print only these fields of the JSON bundle, such as `facts.references.at,status`
    #[arg(
        long,
        global = true,
        value_name = "PATHS",
        env = "LANSER_FIELDS",
        hide_env_values = true,
        value_delimiter = ',',
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) fields: Vec<String>,

    /// Print absolute paths; in JSON as `meta.volatile.absolute`
    #[arg(long, global = true, env = "LANSER_ABSOLUTE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) absolute: bool,

    /// Language server: `pyright`, `basedpyright` or `ty`, optionally with `@VERSION` [default: pyright, or the one installed with lanser]
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        env = "LANSER_SERVER",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) server: Option<String>,

    /// Path of the server's script, package folder or executable; skips the search for a server
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "LANSER_SERVER_COMMAND",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) server_command: Option<String>,

    /// Python interpreter whose environment is used for the analysis [default: from $VIRTUAL_ENV, .venv or PATH]
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "LANSER_PYTHON",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) python: Option<String>,

    /// Unit of columns: `codepoint` (also `utf-32`), `utf-8` or `utf-16` [default: codepoint]
    #[arg(
        long,
        global = true,
        value_name = "UNIT",
        env = "LANSER_INDEX_IO",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) index_io: Option<String>,

    /// Files to search: all of the `workspace`, or those `configured` for the server [default: workspace]
    #[arg(
        long,
        global = true,
        value_name = "SCOPE",
        env = "LANSER_SCOPE",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) scope: Option<String>,

    /// Seconds to wait for the server's first response; later ones get half of it [default: 60]
    #[arg(long, global = true, value_name = "SECONDS", env = "LANSER_TIMEOUT", hide_env_values = true, value_parser = clap::value_parser!(u64).range(1..=86_400), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) timeout: Option<u64>,

    /// Print at most this many items
    #[arg(long, global = true, value_name = "N", env = "LANSER_LIMIT", hide_env_values = true, value_parser = clap::value_parser!(u32).range(1..=100_000), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) limit: Option<u32>,

    /// Continue a truncated list at this cursor
    #[arg(long, global = true, value_name = "CURSOR", hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) cursor: Option<String>,

    /// Never install anything
    #[arg(long, global = true, env = "LANSER_OFFLINE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) offline: bool,

    /// Allow running programs of the repository: its interpreter, a server in .venv or node_modules, git filters; see
    /// `lanser trust`
    #[arg(long, global = true, env = "LANSER_TRUST_WORKSPACE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) trust_workspace: bool,

    /// Do not read or write the caches of the workspace
    #[arg(long, global = true, env = "LANSER_NO_CACHE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) no_cache: bool,

    /// Append a trace of the request to this file, for `lanser trace replay`; only for requests about a workspace. For `trace`,
    /// the file to read
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "LANSER_TRACE_FILE",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) trace_file: Option<String>,

    /// Answer in this process instead of in a background session [default if CI is set]
    #[arg(long, global = true, env = "LANSER_NO_SESSION", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) no_session: bool,

    /// Seconds without requests after which a background session exits [default: 600]
    #[arg(long, global = true, value_name = "SECONDS", env = "LANSER_SESSION_IDLE", hide_env_values = true, value_parser = clap::value_parser!(u64).range(1..=604_800), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) session_idle: Option<u64>,

    /// Memory in MiB above which a background session restarts its server [default: 4096]
    #[arg(long, global = true, value_name = "MIB", env = "LANSER_SESSION_MEMORY", hide_env_values = true, value_parser = clap::value_parser!(u64).range(64..=1_048_576), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) session_memory: Option<u64>,

    /// How to detect changed files: by `stat` or by `content` [default: stat]
    #[arg(
        long,
        global = true,
        value_name = "PROOF",
        env = "LANSER_FRESHNESS",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = COMMON
    )]
    pub(crate) freshness: Option<String>,

    /// Print more: both coordinate systems in JSON, local names and unresolved occurrences in text
    #[arg(short, long, global = true, env = "LANSER_VERBOSE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(), hide_short_help = true,
        help_heading = COMMON)]
    pub(crate) verbose: bool,

    /// Bundle that the step starts from: a file, or the `bundleId` of a stored bundle
    #[arg(long, global = true, value_name = "BUNDLE", hide_short_help = true,
        help_heading = REWARD)]
    pub(crate) prev: Option<String>,

    /// Reward formula: `rl-csf-v1`, `pr-v1` or `rl-csf-guarded-v1` [default: rl-csf-v1]
    #[arg(
        long,
        visible_alias = "preset",
        global = true,
        value_name = "PRESET",
        env = "LANSER_REWARD",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = REWARD
    )]
    pub(crate) reward: Option<String>,

    /// Weights of diagnostics, safety, confidence and errors, and the discount [default: 0.5,0.4,0.1,0.5,1]
    #[arg(
        long,
        global = true,
        value_name = "wD,wS,wA,wE[,GAMMA]",
        env = "LANSER_WEIGHTS",
        hide_env_values = true,
        hide_short_help = true,
        help_heading = REWARD
    )]
    pub(crate) weights: Option<String>,
}
