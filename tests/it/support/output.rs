//! What a run of lanser printed, and what must be true of every bundle.

use std::time::Duration;

use serde_json::Value;

/// What became of a run.
#[must_use]
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code; `None` when a signal ended the program.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
    /// The command line, for the words of a failure.
    pub(crate) line: String,
}

impl Output {
    /// Makes sure of success with nothing on standard error, and gives standard output.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self}");
        assert_eq!(self.stderr, "", "{}: a success says nothing on standard error", self.line);
        &self.stdout
    }

    /// Makes sure of a failure with this code that is told on standard error only, and gives what it says.
    #[track_caller]
    pub(crate) fn failure(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self}");
        assert_eq!(self.stdout, "", "{}: an error is no payload", self.line);
        assert!(!self.stderr.is_empty(), "{}: an error says why", self.line);
        &self.stderr
    }

    /// The bundle that was printed. Whatever the command: it is one line, valid against the schema, its id can be computed
    /// again, its codes agree, and nothing stands beside it.
    #[track_caller]
    pub(crate) fn bundle(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one bundle, one line: {self}");
        assert_eq!(self.stderr, "", "{}: whoever reads JSON reads standard output", self.line);
        if let Err(problems) = lanser::schema::validate(lanser::schema::Kind::Bundle, self.stdout.as_bytes())
        {
            panic!("{}: the bundle is not valid: {problems:?}\n{}", self.line, self.stdout);
        }
        let typed: lanser::model::bundle::Bundle = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(lanser::bundle::seal::bundle_id(&typed).unwrap(), typed.bundle_id, "{}", self.line);
        let bundle: Value = serde_json::from_str(&self.stdout).unwrap();
        let code = bundle["meta"]["exit_code"].as_i64();
        assert_eq!(self.code.map(i64::from), code, "the bundle tells the program's code: {self}");
        if bundle["status"] == "error" {
            assert_eq!(bundle["error"]["code"].as_i64(), code, "{self}");
        } else {
            assert_eq!(bundle["error"], Value::Null, "{self}");
            assert!(matches!(self.code, Some(0 | 1)), "{self}");
        }
        bundle
    }

    /// The bundle of an answer.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        let bundle = self.bundle();
        assert_ne!(bundle["status"], "error", "{self}");
        bundle
    }

    /// The error of a bundle with this symbol and code.
    #[track_caller]
    pub(crate) fn error(&self, code: i32, symbol: &str) -> Value {
        let bundle = self.bundle();
        assert_eq!((self.code, &bundle["status"]), (Some(code), &Value::from("error")), "{self}");
        assert_eq!(bundle["error"]["symbol"], symbol, "{self}");
        bundle["error"].clone()
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "lanser {}\ncode: {:?} after {:?}\n-- stdout --\n{}\n-- stderr --\n{}",
            self.line, self.code, self.elapsed, self.stdout, self.stderr
        )
    }
}

/// A bundle without what may differ between two runs, as text.
pub(crate) fn portable(bundle: &Value) -> String {
    let mut bundle = bundle.clone();
    bundle["meta"].as_object_mut().unwrap().remove("volatile").unwrap();
    serde_json::to_string_pretty(&bundle).unwrap()
}
