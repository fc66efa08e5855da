//! The safety options of every command that may write.
//!
//! The strictest value is the default. Flags, the environment and the user's configuration file may loosen it. A workspace's
//! configuration file comes from the author of the code and may only make it stricter.

use clap::{Args, ValueEnum};

use super::config::FileConfig;
use super::globs;
use crate::model::edits::CheckName;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{DirtyPolicy, Guards, Strategy};
use crate::path::AbsPath;

const GUARDS: &str = "Safety options";
const OVERRIDES: &str = "Overrides of failed checks";

/// Options of commands that write or undo: which files they may change.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReachArgs {
    /// Edit only files that match one of these globs
    ///
    /// Such as `src`, `src/*.py` or `**/*.py`, relative to the workspace.
    #[arg(long, value_name = "GLOB", env = "LANSER_ALLOW", hide_env_values = true, help_heading = GUARDS)]
    pub(crate) allow: Vec<String>,

    /// Edit no file that matches one of these globs
    #[arg(long, value_name = "GLOB", env = "LANSER_DENY", hide_env_values = true, help_heading = GUARDS)]
    pub(crate) deny: Vec<String>,

    /// Refuse to write outside of the workspace, also through links [default: true]
    #[arg(long, value_name = "BOOL", env = "LANSER_WORKSPACE_JAIL", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_short_help = true, help_heading = GUARDS)]
    pub(crate) workspace_jail: Option<bool>,

    /// Replace files that have hard links; the other names keep the old content
    #[arg(long, hide_short_help = true, help_heading = GUARDS)]
    pub(crate) allow_hard_links: bool,
}

/// Options of commands that may write.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    pub(crate) reach: ReachArgs,

    /// Apply despite uncommitted changes: `elsewhere` or `all`
    ///
    /// With `elsewhere`, files that are not edited may have uncommitted changes; with `all` or no value, any file. By default,
    /// there must be none.
    #[arg(long, value_name = "WHERE", env = "LANSER_ALLOW_DIRTY", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "all", hide_possible_values = true, help_heading = GUARDS)]
    pub(crate) allow_dirty: Option<DirtArg>,

    /// Refuse to write when the target of the selector is uncertain [default: true]
    #[arg(long, value_name = "BOOL", env = "LANSER_DENY_APPLY_ON_AMBIGUOUS", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_short_help = true, help_heading = GUARDS)]
    pub(crate) deny_apply_on_ambiguous: Option<bool>,

    /// `rename` replaces files, `3way` merges changes
    ///
    /// With `rename`, the default, the files must be as they were when the edit was made. With `3way`, changes since then are
    /// merged as in git.
    #[arg(long, value_name = "HOW", env = "LANSER_STRATEGY", hide_env_values = true, hide_possible_values = true, hide_short_help = true, help_heading = GUARDS)]
    pub(crate) strategy: Option<StrategyArg>,

    /// The same as `--strategy 3way`
    #[arg(long = "3way", hide_short_help = true, help_heading = GUARDS)]
    pub(crate) three_way: bool,

    /// Apply even if the edit introduces diagnostics
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_new_diagnostics: bool,
}

/// Options that override failed checks of a rename.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RenameGuardArgs {
    /// Apply even if the server cannot rename here
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_unprepared: bool,

    /// Apply even if the new name is not an identifier, or is a keyword
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_invalid_name: bool,

    /// Apply even if the new name shadows a builtin or is a soft keyword
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_shadowing: bool,

    /// Apply even if the new name already exists where the old one is bound or used
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_collision: bool,

    /// Apply even if a base class or subclass keeps a member with the old name
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_broken_overrides: bool,

    /// Apply even if some references may be missing
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_incomplete: bool,

    /// Apply even if the server of --agree says otherwise of some places
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_disagreement: bool,

    /// Apply even if the new name does not have exactly the references of the old one
    #[arg(long, hide_short_help = true, help_heading = OVERRIDES)]
    pub(crate) allow_changed_references: bool,
}

/// Whether to write.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WriteArgs {
    /// Write the edit if every check passes
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) apply: bool,

    /// Only show what would be written (the default)
    #[arg(long, hide_short_help = true)]
    pub(crate) dry_run: bool,
}

/// The value of `--allow-dirty`: where uncommitted changes are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirtArg {
    /// Nowhere
    None,
    /// Not in the files that are edited
    Elsewhere,
    /// Anywhere
    All,
}

/// The value of `--strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// Replace files
    Rename,
    /// Merge as git does
    #[value(name = "3way")]
    ThreeWay,
}

impl From<DirtArg> for DirtyPolicy {
    fn from(dirt: DirtArg) -> Self {
        match dirt {
            DirtArg::None => Self::None,
            DirtArg::Elsewhere => Self::Elsewhere,
            DirtArg::All => Self::All,
        }
    }
}

/// The guard settings of the two configuration files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policies {
    /// The file of the workspace.
    pub(crate) workspace: FileConfig,
    /// The file of the user.
    pub(crate) user: FileConfig,
}

impl ReachArgs {
    /// The guards of a request with these options.
    ///
    /// # Errors
    /// If a glob matches nothing inside the workspace.
    pub(crate) fn guards(&self, policies: &Policies, root: &AbsPath) -> Result<Guards, ErrorBody> {
        let Policies { workspace, user } = policies;
        let jail = strictest(self.workspace_jail, user.workspace_jail, workspace.workspace_jail);
        let allow = if self.allow.is_empty() { &user.allow } else { &self.allow };
        // The user's file may deny files of other workspaces.
        let elsewhere =
            |glob: &&String| glob.starts_with('/') && matches!(globs::in_workspace(root, glob), Err(None));
        let by_user: Vec<String> = user.deny.iter().filter(|glob| !elsewhere(glob)).cloned().collect();
        let deny = [self.deny.clone(), by_user, workspace.deny.clone()].concat();
        Ok(Guards {
            allow: globs::read(root, allow)?,
            workspace_allow: globs::read(root, &workspace.allow)?,
            deny: globs::read(root, &deny)?,
            outside: !jail,
            hard_links: self.allow_hard_links,
            ..Guards::default()
        })
    }
}

/// A guard that is on unless the user switches it off, which the workspace may forbid.
fn strictest(flag: Option<bool>, user: Option<bool>, workspace: Option<bool>) -> bool {
    flag.or(user).unwrap_or(true) || workspace == Some(true)
}

impl GuardArgs {
    /// The guards of a request.
    ///
    /// # Errors
    /// If a configuration file has an invalid value.
    pub(crate) fn guards(
        &self,
        renaming: &RenameGuardArgs,
        policies: &Policies,
        root: &AbsPath,
    ) -> Result<Guards, ErrorBody> {
        let Policies { workspace, user } = policies;
        let requested = match (self.allow_dirty, user.allow_dirty.as_deref()) {
            (Some(dirt), _) => dirt.into(),
            (None, Some(text)) => parse_dirt(text)?,
            (None, None) => DirtyPolicy::None,
        };
        let limit = workspace.allow_dirty.as_deref().map(parse_dirt).transpose()?;
        let dirty = limit.map_or(requested, |limit| requested.min(limit));
        let deny_ambiguous = strictest(
            self.deny_apply_on_ambiguous,
            user.deny_apply_on_ambiguous,
            workspace.deny_apply_on_ambiguous,
        );
        let flags = [
            (CheckName::Target, !deny_ambiguous),
            (CheckName::PrepareRename, renaming.allow_unprepared),
            (CheckName::Identifier, renaming.allow_invalid_name),
            (CheckName::Shadowing, renaming.allow_shadowing),
            (CheckName::Collision, renaming.allow_collision),
            (CheckName::Overrides, renaming.allow_broken_overrides),
            (CheckName::Completeness, renaming.allow_incomplete),
            (CheckName::Agreement, renaming.allow_disagreement),
            (CheckName::Diagnostics, self.allow_new_diagnostics),
            (CheckName::RoundTrip, renaming.allow_changed_references),
        ];
        Ok(Guards {
            dirty,
            overrides: flags.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect(),
            strategy: self.strategy()?,
            ..self.reach.guards(policies, root)?
        })
    }

    fn strategy(&self) -> Result<Strategy, ErrorBody> {
        match (self.strategy, self.three_way) {
            (Some(StrategyArg::Rename), true) => {
                Err(ErrorBody::new(ErrorSymbol::Usage, "--3way contradicts --strategy rename")
                    .hint("pass one of them; LANSER_STRATEGY sets --strategy too"))
            }
            (_, true) | (Some(StrategyArg::ThreeWay), _) => Ok(Strategy::ThreeWay),
            (Some(StrategyArg::Rename) | None, false) => Ok(Strategy::Rename),
        }
    }
}

impl Policies {
    /// Combines the guards of a batch request with the configuration, as if the request had set them by flags. A value equal
    /// to the default counts as not set.
    ///
    /// # Errors
    /// If a configuration file has an invalid value, or a check is overridden for which there is no option. If files outside of the
    /// workspace may be edited, although the user's configuration says that they may not.
    pub(crate) fn apply_to(&self, requested: &Guards, root: &AbsPath) -> Result<Guards, ErrorBody> {
        if let Some(name) = requested.overrides.iter().find(|name| name.override_option().is_none()) {
            let message = format!("the check {:?} cannot be overridden", name.as_str());
            return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("leave it out of `overrides`"));
        }
        if requested.outside && self.user.workspace_jail == Some(true) {
            let message =
                "the user's configuration has workspace-jail = true, so that `outside` cannot be set";
            return Err(ErrorBody::new(ErrorSymbol::Usage, message).hint("leave it out of `guards`"));
        }
        let overrides = |name| requested.overrides.contains(&name);
        let args = GuardArgs {
            reach: ReachArgs {
                allow: requested.allow.clone(),
                deny: requested.deny.clone(),
                workspace_jail: requested.outside.then_some(false),
                allow_hard_links: requested.hard_links,
            },
            // To override the check is `--allow-dirty`, which a workspace can limit.
            allow_dirty: match requested.dirty {
                _ if overrides(CheckName::Git) => Some(DirtArg::All),
                DirtyPolicy::None => None,
                DirtyPolicy::Elsewhere => Some(DirtArg::Elsewhere),
                DirtyPolicy::All => Some(DirtArg::All),
            },
            deny_apply_on_ambiguous: overrides(CheckName::Target).then_some(false),
            strategy: (requested.strategy == Strategy::ThreeWay).then_some(StrategyArg::ThreeWay),
            three_way: false,
            allow_new_diagnostics: false,
        };
        let mut guards = args.guards(&RenameGuardArgs::default(), self, root)?;
        let rest =
            requested.overrides.iter().filter(|name| !matches!(name, CheckName::Target | CheckName::Git));
        guards.overrides.extend(rest);
        if guards.workspace_allow.is_empty() {
            guards.workspace_allow.clone_from(&requested.workspace_allow);
        }
        Ok(guards)
    }
}

fn parse_dirt(text: &str) -> Result<DirtyPolicy, ErrorBody> {
    match text {
        "none" => Ok(DirtyPolicy::None),
        "elsewhere" => Ok(DirtyPolicy::Elsewhere),
        "all" => Ok(DirtyPolicy::All),
        other => Err(ErrorBody::new(ErrorSymbol::Usage, format!("invalid value {other:?} for allow-dirty"))
            .hint("use none, elsewhere or all")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guards(args: &GuardArgs, workspace: FileConfig, user: FileConfig) -> Guards {
        let root = AbsPath::new("/w").unwrap();
        args.guards(&RenameGuardArgs::default(), &Policies { workspace, user }, &root).unwrap()
    }

    #[test]
    fn guards_of_a_request_are_treated_like_flags() {
        let strict = FileConfig {
            allow_dirty: Some("elsewhere".to_owned()),
            workspace_jail: Some(true),
            deny_apply_on_ambiguous: Some(true),
            allow: vec!["src".to_owned()],
            deny: vec!["y".to_owned()],
            ..FileConfig::default()
        };
        let user = FileConfig { allow_dirty: Some("all".to_owned()), ..FileConfig::default() };
        let requested = Guards {
            deny: vec!["z".to_owned()],
            workspace_allow: vec!["lib".to_owned()],
            dirty: DirtyPolicy::All,
            outside: true,
            overrides: vec![CheckName::Target, CheckName::Collision],
            strategy: Strategy::ThreeWay,
            ..Guards::default()
        };
        let root = AbsPath::new("/w").unwrap();
        let free = Policies::default().apply_to(&requested, &root).unwrap();
        assert_eq!(free, requested);
        let held = Policies { workspace: strict, user: user.clone() }.apply_to(&requested, &root).unwrap();
        let expected = Guards {
            deny: vec!["y".to_owned(), "z".to_owned()],
            workspace_allow: vec!["src".to_owned()],
            dirty: DirtyPolicy::Elsewhere,
            outside: false,
            overrides: vec![CheckName::Collision],
            ..requested
        };
        assert_eq!(held, expected);
        let by_user =
            Policies { workspace: FileConfig::default(), user }.apply_to(&Guards::default(), &root).unwrap();
        assert_eq!(by_user.dirty, DirtyPolicy::All);
    }

    #[test]
    fn overriding_the_check_of_git_is_limited_like_its_option() {
        let workspace = FileConfig { allow_dirty: Some("none".to_owned()), ..FileConfig::default() };
        let requested = Guards { overrides: vec![CheckName::Git], ..Guards::default() };
        let root = AbsPath::new("/w").unwrap();
        let held = Policies { workspace, user: FileConfig::default() }.apply_to(&requested, &root).unwrap();
        assert_eq!(held, Guards::default());
        let free = Policies::default().apply_to(&requested, &root).unwrap();
        assert_eq!(free, Guards { dirty: DirtyPolicy::All, ..Guards::default() });
    }

    #[test]
    fn a_workspace_tightens_and_never_loosens() {
        let loose = || FileConfig {
            allow: vec!["src".to_owned()],
            deny: vec!["x".to_owned()],
            allow_dirty: Some("all".to_owned()),
            workspace_jail: Some(false),
            deny_apply_on_ambiguous: Some(false),
            ..FileConfig::default()
        };
        let strict = || FileConfig {
            allow_dirty: Some("elsewhere".to_owned()),
            workspace_jail: Some(true),
            deny_apply_on_ambiguous: Some(true),
            deny: vec!["y".to_owned()],
            ..FileConfig::default()
        };
        let none = FileConfig::default;
        // The workspace's loose values have no effect, but the files that it excludes stay excluded.
        let with_workspace = guards(&GuardArgs::default(), loose(), none());
        let expected = Guards {
            workspace_allow: vec!["src".to_owned()],
            deny: vec!["x".to_owned()],
            ..Guards::default()
        };
        assert_eq!(with_workspace, expected);

        let by_user = guards(&GuardArgs::default(), none(), loose());
        assert!(
            by_user.outside && by_user.dirty == DirtyPolicy::All && by_user.overrides == [CheckName::Target]
        );
        let both = guards(&GuardArgs::default(), strict(), loose());
        assert!(!both.outside && both.dirty == DirtyPolicy::Elsewhere && both.overrides.is_empty());
        assert_eq!(both.deny, ["x", "y"]);
        let flags = GuardArgs {
            allow_dirty: Some(DirtArg::All),
            reach: ReachArgs { workspace_jail: Some(false), ..ReachArgs::default() },
            ..GuardArgs::default()
        };
        assert!(guards(&flags, none(), none()).outside);
        assert!(!guards(&flags, strict(), none()).outside);
    }
}
