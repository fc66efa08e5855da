//! How the program ends.

use std::process::ExitCode;

use crate::model::error::ErrorSymbol;

/// How a command ended. The numbers are part of the contract; `lanser schema commands` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: there is an answer.
    Ok,
    /// 1: there is an answer, and it is the one that `--fail-on` asked to be told.
    Verdict,
    /// The code of the error.
    Failed(ErrorSymbol),
    /// 0: the reader of standard output went away, which is its right.
    ClosedPipe,
}

impl Exit {
    /// How a program ends that printed a bundle with this error and this code.
    pub(crate) const fn of(error: Option<ErrorSymbol>, code: u8) -> Self {
        match error {
            Some(symbol) => Self::Failed(symbol),
            None if code == Self::Verdict.number() => Self::Verdict,
            None => Self::Ok,
        }
    }

    /// The number.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Ok | Self::ClosedPipe => 0,
            Self::Verdict => 1,
            Self::Failed(symbol) => symbol.code(),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}
