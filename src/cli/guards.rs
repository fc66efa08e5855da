//! The options of every command that may write: what keeps an edit from being made.
//!
//! The strictest value is the default. Flags, environment and the user's own file may loosen it; a workspace's file is written
//! by whoever wrote the code and may only make it stricter, whatever the user says elsewhere.

use clap::{Args, ValueEnum};

use super::config::FileConfig;
use super::globs;
use crate::model::edits::CheckName;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::request::{Dirt, Guards, Strategy};
use crate::path::AbsPath;

const GUARDS: &str = "What keeps an edit from being made";

/// Options of commands that write or take back: which files they may reach.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReachArgs {
    /// Edit only files that one of these globs names: `src`, `src/*.py`, `**/*.py`
    #[arg(long, value_name = "GLOB", env = "LANSER_ALLOW", hide_env_values = true, help_heading = GUARDS)]
    pub(crate) allow: Vec<String>,

    /// Edit no file that one of these globs names
    #[arg(long, value_name = "GLOB", env = "LANSER_DENY", hide_env_values = true, help_heading = GUARDS)]
    pub(crate) deny: Vec<String>,

    /// Write nothing outside of the workspace, also through links [default: true]
    #[arg(long, value_name = "BOOL", env = "LANSER_WORKSPACE_JAIL", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = GUARDS)]
    pub(crate) workspace_jail: Option<bool>,

    /// Replace files that have other names (hard links), which keep the old content
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_hard_links: bool,
}

/// Options of commands that may write.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    pub(crate) reach: ReachArgs,

    /// Let uncommitted changes be where the edit is not (`elsewhere`), or anywhere
    #[arg(long, value_name = "WHERE", env = "LANSER_ALLOW_DIRTY", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "all", help_heading = GUARDS)]
    pub(crate) allow_dirty: Option<DirtArg>,

    /// Write nothing when the selector means its place only perhaps [default: true]
    #[arg(long, value_name = "BOOL", env = "LANSER_DENY_APPLY_ON_AMBIGUOUS", hide_env_values = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = GUARDS)]
    pub(crate) deny_apply_on_ambiguous: Option<bool>,

    /// How to write: `rename` replaces files that are what the edit was made for, `3way` merges what changed since
    #[arg(long, value_name = "HOW", env = "LANSER_STRATEGY", hide_env_values = true, help_heading = GUARDS)]
    pub(crate) strategy: Option<StrategyArg>,

    /// Give up: no diagnostic is new
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_new_diagnostics: bool,
}

/// Options of `rename` besides.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RenameGuardArgs {
    /// Give up: the server says that it renames here
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_unprepared: bool,

    /// Give up: the new name is an identifier and no keyword
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_invalid_name: bool,

    /// Give up: the new name hides no builtin and is no soft keyword
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_shadowing: bool,

    /// Give up: the new name is free wherever the old one is bound or used
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_collision: bool,

    /// Give up: no class above or below keeps a member of the old name
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_broken_overrides: bool,

    /// Give up: every use was found
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_incomplete: bool,

    /// Give up: the new name has exactly the references of the old one
    #[arg(long, help_heading = GUARDS)]
    pub(crate) allow_changed_references: bool,
}

/// Whether to write.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WriteArgs {
    /// Write, when every check passes
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) apply: bool,

    /// Only show what would be written (the default)
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Where uncommitted changes may be, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirtArg {
    /// Nowhere
    None,
    /// Not in the files that are edited
    Elsewhere,
    /// Anywhere
    All,
}

/// How to write, on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// Replace files
    Rename,
    /// Merge as git does
    #[value(name = "3way")]
    ThreeWay,
}

impl From<DirtArg> for Dirt {
    fn from(dirt: DirtArg) -> Self {
        match dirt {
            DirtArg::None => Self::None,
            DirtArg::Elsewhere => Self::Elsewhere,
            DirtArg::All => Self::All,
        }
    }
}

/// What two configuration files say of guards.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policies {
    /// The workspace's own.
    pub(crate) workspace: FileConfig,
    /// The user's.
    pub(crate) user: FileConfig,
}

impl ReachArgs {
    /// The guards of a request that reaches these files.
    ///
    /// # Errors
    /// When a glob is none of the workspace's.
    pub(crate) fn guards(&self, policies: &Policies, root: &AbsPath) -> Result<Guards, ErrorBody> {
        let Policies { workspace, user } = policies;
        let jail = strict(self.workspace_jail, user.workspace_jail, workspace.workspace_jail);
        let allow = if self.allow.is_empty() { &user.allow } else { &self.allow };
        // What a user denies of another workspace is nothing of this one.
        let elsewhere =
            |glob: &&String| glob.starts_with('/') && matches!(globs::in_workspace(root, glob), Err(None));
        let of_user: Vec<String> = user.deny.iter().filter(|glob| !elsewhere(glob)).cloned().collect();
        let deny = [self.deny.clone(), of_user, workspace.deny.clone()].concat();
        Ok(Guards {
            allow: globs::read(root, allow)?,
            within: globs::read(root, &workspace.allow)?,
            deny: globs::read(root, &deny)?,
            outside: !jail,
            hard_links: self.allow_hard_links,
            ..Guards::default()
        })
    }
}

/// A guard that is up unless the user says otherwise, and that a workspace may keep up.
fn strict(flag: Option<bool>, user: Option<bool>, workspace: Option<bool>) -> bool {
    flag.or(user).unwrap_or(true) || workspace == Some(true)
}

impl GuardArgs {
    /// The guards of a request.
    ///
    /// # Errors
    /// When a file's value is none.
    pub(crate) fn guards(
        &self,
        renaming: &RenameGuardArgs,
        policies: &Policies,
        root: &AbsPath,
    ) -> Result<Guards, ErrorBody> {
        let Policies { workspace, user } = policies;
        let asked = match (self.allow_dirty, user.allow_dirty.as_deref()) {
            (Some(dirt), _) => dirt.into(),
            (None, Some(text)) => dirt(text)?,
            (None, None) => Dirt::None,
        };
        let of_workspace = workspace.allow_dirty.as_deref().map(dirt).transpose()?;
        let dirty = of_workspace.map_or(asked, |most| asked.min(most));
        let certain = strict(
            self.deny_apply_on_ambiguous,
            user.deny_apply_on_ambiguous,
            workspace.deny_apply_on_ambiguous,
        );
        let flags = [
            (CheckName::Target, !certain),
            (CheckName::PrepareRename, renaming.allow_unprepared),
            (CheckName::Identifier, renaming.allow_invalid_name),
            (CheckName::Shadowing, renaming.allow_shadowing),
            (CheckName::Collision, renaming.allow_collision),
            (CheckName::Overrides, renaming.allow_broken_overrides),
            (CheckName::Completeness, renaming.allow_incomplete),
            (CheckName::Diagnostics, self.allow_new_diagnostics),
            (CheckName::RoundTrip, renaming.allow_changed_references),
        ];
        Ok(Guards {
            dirty,
            given_up: flags.into_iter().filter(|(_, given_up)| *given_up).map(|(name, _)| name).collect(),
            strategy: match self.strategy {
                Some(StrategyArg::ThreeWay) => Strategy::ThreeWay,
                Some(StrategyArg::Rename) | None => Strategy::Rename,
            },
            ..self.reach.guards(policies, root)?
        })
    }
}

impl Policies {
    /// The guards of a request that says its own, as flags would: the strictest value says nothing.
    ///
    /// # Errors
    /// When a file's value is none.
    pub(crate) fn over(&self, said: &Guards, root: &AbsPath) -> Result<Guards, ErrorBody> {
        let gives_up = |name| said.given_up.contains(&name);
        let args = GuardArgs {
            reach: ReachArgs {
                allow: said.allow.clone(),
                deny: said.deny.clone(),
                workspace_jail: said.outside.then_some(false),
                allow_hard_links: said.hard_links,
            },
            allow_dirty: match said.dirty {
                Dirt::None => None,
                Dirt::Elsewhere => Some(DirtArg::Elsewhere),
                Dirt::All => Some(DirtArg::All),
            },
            deny_apply_on_ambiguous: gives_up(CheckName::Target).then_some(false),
            strategy: (said.strategy == Strategy::ThreeWay).then_some(StrategyArg::ThreeWay),
            allow_new_diagnostics: false,
        };
        let mut guards = args.guards(&RenameGuardArgs::default(), self, root)?;
        let rest = said.given_up.iter().filter(|name| **name != CheckName::Target);
        guards.given_up.extend(rest);
        if guards.within.is_empty() {
            guards.within.clone_from(&said.within);
        }
        Ok(guards)
    }
}

fn dirt(text: &str) -> Result<Dirt, ErrorBody> {
    match text {
        "none" => Ok(Dirt::None),
        "elsewhere" => Ok(Dirt::Elsewhere),
        "all" => Ok(Dirt::All),
        other => Err(ErrorBody::new(ErrorSymbol::Usage, format!("{other:?} is no value of allow-dirty"))
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
    fn what_a_request_says_is_what_flags_say() {
        let strict = FileConfig {
            allow_dirty: Some("elsewhere".to_owned()),
            workspace_jail: Some(true),
            deny_apply_on_ambiguous: Some(true),
            allow: vec!["src".to_owned()],
            deny: vec!["y".to_owned()],
            ..FileConfig::default()
        };
        let user = FileConfig { allow_dirty: Some("all".to_owned()), ..FileConfig::default() };
        let said = Guards {
            deny: vec!["z".to_owned()],
            within: vec!["lib".to_owned()],
            dirty: Dirt::All,
            outside: true,
            given_up: vec![CheckName::Target, CheckName::Collision],
            strategy: Strategy::ThreeWay,
            ..Guards::default()
        };
        let root = AbsPath::new("/w").unwrap();
        let free = Policies::default().over(&said, &root).unwrap();
        assert_eq!(free, said);
        let held = Policies { workspace: strict, user: user.clone() }.over(&said, &root).unwrap();
        let expected = Guards {
            deny: vec!["y".to_owned(), "z".to_owned()],
            within: vec!["src".to_owned()],
            dirty: Dirt::Elsewhere,
            outside: false,
            given_up: vec![CheckName::Collision],
            ..said
        };
        assert_eq!(held, expected);
        let by_user =
            Policies { workspace: FileConfig::default(), user }.over(&Guards::default(), &root).unwrap();
        assert_eq!(by_user.dirty, Dirt::All);
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
        // What the workspace says loosely is as if it had said nothing, but for the files that it excludes.
        let by_workspace = guards(&GuardArgs::default(), loose(), none());
        let expected =
            Guards { within: vec!["src".to_owned()], deny: vec!["x".to_owned()], ..Guards::default() };
        assert_eq!(by_workspace, expected);
        let by_user = guards(&GuardArgs::default(), none(), loose());
        assert!(by_user.outside && by_user.dirty == Dirt::All && by_user.given_up == [CheckName::Target]);
        let both = guards(&GuardArgs::default(), strict(), loose());
        assert!(!both.outside && both.dirty == Dirt::Elsewhere && both.given_up.is_empty());
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
