//! The output of a lanser run, and checks that hold for every bundle.

use std::time::Duration;

use serde_json::Value;

/// The result of a run.
#[must_use]
#[derive(Debug)]
pub(crate) struct Output {
    /// The exit code; `None` when a signal ended the program.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
    /// The command line, for failure messages.
    pub(crate) line: String,
}

impl Output {
    /// Asserts success without output on standard error, and returns standard output.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self}");
        assert_eq!(self.stderr, "", "{}: a success prints nothing on standard error", self.line);
        &self.stdout
    }

    /// Asserts a failure with this code and a message only on standard error, and returns the message.
    #[track_caller]
    pub(crate) fn failure(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self}");
        assert_eq!(self.stdout, "", "{}: errors do not go to standard output", self.line);
        assert!(!self.stderr.is_empty(), "{}: an error has a message", self.line);
        &self.stderr
    }

    /// The printed bundle. Asserts that it is a single line, valid against the schema, has the right id and consistent codes, and
    /// that nothing else was printed.
    #[track_caller]
    pub(crate) fn bundle(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one bundle, one line: {self}");
        assert_eq!(self.stderr, "", "{}: with JSON output, nothing goes to standard error", self.line);
        if let Err(problems) = lanser::internal::schema::validate(
            lanser::internal::schema::SchemaKind::Bundle,
            self.stdout.as_bytes(),
        ) {
            panic!("{}: the bundle is not valid: {problems:?}\n{}", self.line, self.stdout);
        }
        let typed: lanser::model::bundle::Bundle = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(
            lanser::internal::bundle::seal::bundle_id(&typed).unwrap(),
            typed.bundle_id,
            "{}",
            self.line
        );
        let bundle: Value = serde_json::from_str(&self.stdout).unwrap();
        let code = bundle["meta"]["exit_code"].as_i64();
        assert_eq!(self.code.map(i64::from), code, "the bundle has the exit code of the program: {self}");
        if bundle["status"] == "error" {
            assert_eq!(bundle["error"]["code"].as_i64(), code, "{self}");
        } else {
            assert_eq!(bundle["error"], Value::Null, "{self}");
            assert!(matches!(self.code, Some(0 | 1)), "{self}");
        }
        bundle
    }

    /// The printed bundle; asserts that it is not an error.
    #[track_caller]
    pub(crate) fn answer(&self) -> Value {
        let bundle = self.bundle();
        assert_ne!(bundle["status"], "error", "{self}");
        bundle
    }

    /// The printed bundle of an edit that was planned; asserts that it is an error exactly if a check stops the edit.
    #[track_caller]
    pub(crate) fn plan(&self) -> Value {
        let bundle = self.bundle();
        let checks =
            bundle["edits"]["safety"].as_array().unwrap_or_else(|| panic!("no edit was planned: {self}"));
        let stops = checks.iter().any(|check| check["passed"] == false && check["overridden"] != true);
        assert_eq!(bundle["status"] == "error", stops, "{self}");
        bundle
    }

    /// The error of the printed bundle; asserts its code and symbol.
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

/// A bundle without `meta.volatile`, as text.
pub(crate) fn portable(bundle: &Value) -> String {
    let mut bundle = bundle.clone();
    bundle["meta"].as_object_mut().unwrap().remove("volatile").unwrap();
    serde_json::to_string_pretty(&bundle).unwrap()
}
