//! The exit status of the program.

use std::process::ExitCode;

use crate::model::error::ErrorSymbol;

/// How a command ended. The exit codes are part of the public interface; `lanser schema commands` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramExit {
    /// 0: success.
    Ok,
    /// 1: success, but the condition of `--fail-on` holds, a validated file is not valid, a change of a schema is breaking, or a client
    /// of `lsp` sent `exit` without `shutdown`.
    CheckFailed,
    /// The exit code of the error.
    Failed(ErrorSymbol),
    /// 0: the reader closed standard output, which is not an error.
    ClosedPipe,
}

impl ProgramExit {
    /// The status after printing a bundle with this error and exit code.
    pub(crate) const fn of(error: Option<ErrorSymbol>, code: u8) -> Self {
        match error {
            Some(symbol) => Self::Failed(symbol),
            None if code == Self::CheckFailed.number() => Self::CheckFailed,
            None => Self::Ok,
        }
    }

    /// The exit code.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Ok | Self::ClosedPipe => 0,
            Self::CheckFailed => 1,
            Self::Failed(symbol) => symbol.code(),
        }
    }
}

impl From<ProgramExit> for ExitCode {
    fn from(exit: ProgramExit) -> Self {
        Self::from(exit.number())
    }
}
