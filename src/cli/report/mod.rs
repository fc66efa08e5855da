//! `--html`: rewards as one self-contained page, readable without a network, without scripts and on a phone.
//!
//! Everything in a report may come from code that a model wrote. All text goes through [`Html::text`], and the page's own
//! policy forbids scripts and requests in any case.

mod chart;
mod html;
mod step;

use html::{Html, signed};
pub(crate) use step::ReportStep;

const STYLE: &str = include_str!("style.css");

/// A report.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// What was computed, as a heading.
    pub(crate) title: &'static str,
    /// Facts about the whole, by name.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// Whether the steps follow one another, so that their rewards add up.
    pub(crate) is_run: bool,
    /// The steps of a run, or the heads that were scored.
    pub(crate) steps: Vec<ReportStep>,
}

impl Report {
    /// The page.
    pub(crate) fn to_html(&self) -> String {
        let mut html = Html::default();
        html.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
        html.raw("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n");
        html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
        html.text(self.title);
        html.raw("</title>\n<style>\n")
            .raw(STYLE)
            .raw("</style>\n</head>\n<body>\n<h1>")
            .text(self.title)
            .raw("</h1>\n");
        self.write_facts(&mut html);
        chart::rewards(&mut html, &self.steps, self.is_run);
        chart::diagnostics(&mut html, &self.steps, self.is_run);
        html.raw(if self.is_run { "<h2>Steps</h2>\n" } else { "<h2>Heads</h2>\n" });
        for (index, step) in self.steps.iter().enumerate() {
            step.write(&mut html, index);
        }
        html.raw("</body>\n</html>\n");
        html.finish()
    }

    fn write_facts(&self, html: &mut Html) {
        let scored: Vec<f64> = self.steps.iter().filter_map(|step| step.reward).collect();
        let flagged = self.steps.iter().filter(|step| !step.flags.is_empty()).count();
        let mut facts = self.facts.clone();
        facts.push((if self.is_run { "steps" } else { "heads" }, self.steps.len().to_string()));
        facts.push(("without a reward", (self.steps.len() - scored.len()).to_string()));
        facts.push(("with flags", flagged.to_string()));
        if !self.is_run && !scored.is_empty() {
            let extreme = |pick: fn(f64, f64) -> f64| {
                scored.iter().copied().reduce(pick).map(signed).unwrap_or_default()
            };
            facts.push(("lowest and highest", format!("{} {}", extreme(f64::min), extreme(f64::max))));
        }
        html.raw("<dl class=\"facts\">\n");
        for (name, value) in &facts {
            html.raw("<div><dt>").text(name).raw("</dt><dd>").text(value).raw("</dd></div>\n");
        }
        html.raw("</dl>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an attacker writes into each text.
    const HOSTILE: &str = "</title></pre></details><script src=//evil.example/x.js>alert(1)</script>\" onload='x' <img src=x> \u{202e}&#60;";

    fn hostile_report(is_run: bool) -> Report {
        let text = || HOSTILE.to_owned();
        let step = |reward, diff: Option<String>| ReportStep {
            label: text(),
            request: text(),
            reward,
            reason: Some(text()),
            before: Some(2.0),
            after: Some(1.0),
            parts: vec![("diagnostics", 0.5)],
            flags: vec!["suppressions_added"],
            notes: vec![text()],
            resolved: vec![text()],
            introduced: vec![text(); 60],
            diff,
        };
        let long = format!("--- a\n+++ b\n@@ -1 +1 @@\n-{HOSTILE}\n+{HOSTILE}\n{}", "x\n".repeat(2000));
        let steps = vec![step(Some(0.5), Some(long)), step(Some(-1.0), None), step(None, Some(text()))];
        Report { title: "Rewards of a run", facts: vec![("base", text())], is_run, steps }
    }

    /// The tags of a page in order, without `<!doctype html>`, as written.
    fn tags(page: &str) -> Vec<&str> {
        page.split('<').skip(2).map(|part| part.split_once('>').unwrap().0).collect()
    }

    #[test]
    fn tags_are_closed_in_order_and_nothing_is_loaded() {
        const VOID: [&str; 1] = ["meta"];
        for page in [true, false].map(|is_run| hostile_report(is_run).to_html()) {
            let mut open = Vec::new();
            for tag in tags(&page) {
                let name = tag.split([' ', '\n']).next().unwrap().trim_end_matches('/');
                assert!(
                    !["script", "img", "link", "iframe", "object", "form", "base"].contains(&name),
                    "{tag}"
                );
                assert!(
                    !tag.contains("onload") && !tag.contains("http://") && !tag.contains("src="),
                    "{tag}"
                );
                if let Some(closed) = name.strip_prefix('/') {
                    assert_eq!(open.pop(), Some(closed));
                } else if !VOID.contains(&name) && !tag.ends_with('/') {
                    open.push(name);
                }
            }
            assert_eq!(open, Vec::<&str>::new());
            let links: Vec<&str> =
                page.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
            assert!(links.len() >= 3 && links.iter().all(|link| link.starts_with("#step-")), "{links:?}");
            assert!(!page.contains('\u{202e}') && page.contains("default-src 'none'"));
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let page = hostile_report(true).to_html();
        assert!(page.contains("… and 10 more</li>") && page.contains("… and 1005 more lines"), "{page}");
        assert!(page.contains("There is no diff of this step."));
    }
}
