//! What the caller decides about occurrences that a rename cannot tell: `--include` and `--exclude`.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::engine::context::RequestContext;
use crate::engine::failure::Failure;
use crate::engine::locations::preview;
use crate::engine::request_input::read_selector;
use crate::lsp::LspLocation;
use crate::model::edits::{Decision, PlaceDecision};
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::python::outline::Span;
use crate::workspace::files::Document;

/// The word that stands for every unresolved place.
const ALL: &str = "unresolved";

/// How many places an error names.
const MAX_NAMED: usize = 5;

/// An occurrence that may have to be renamed.
#[derive(Debug, Clone)]
pub(super) struct OpenPlace {
    pub(super) document: Arc<Document>,
    /// The name, in bytes.
    pub(super) span: Span,
    /// A selector of it.
    pub(super) at: String,
    /// Why it is open, to be followed by "in N places".
    pub(super) why: &'static str,
    /// The text in its place if it is renamed; `None` for the new name.
    pub(super) new_text: Option<String>,
}

impl OpenPlace {
    /// Whether a rename can change it: a part of a name that is built at run time stays as it is.
    pub(super) fn can_be_renamed(&self) -> bool {
        self.new_text.as_deref() != Some(&self.document.text[self.span.clone()])
    }
}

/// The open places after the caller's decisions.
#[derive(Debug, Default)]
pub(super) struct DecidedPlaces {
    /// To be renamed.
    pub(super) included: Vec<OpenPlace>,
    /// Neither included nor excluded.
    pub(super) open: Vec<OpenPlace>,
    /// The decisions, sorted by location.
    pub(super) decisions: Vec<PlaceDecision>,
}

impl DecidedPlaces {
    /// What was decided, as the end of a sentence.
    pub(super) fn summary(&self) -> String {
        let included = self.included.len();
        match self.decisions.len() - included {
            0 if included == 0 => String::new(),
            excluded => {
                format!("; unresolved places decided by the caller: {included} renamed, {excluded} not")
            }
        }
    }

    /// The selectors of the places that are left, and their source lines.
    pub(super) fn listed(&self, cx: &RequestContext<'_>) -> (Vec<String>, Vec<String>) {
        let line = |place: &OpenPlace| {
            let text = &place.document.text;
            let (line, _) = place.document.lines.display(text, place.span.start, cx.locations.io_unit);
            preview(&place.document, line - 1).unwrap_or_default()
        };
        self.open.iter().map(|place| (place.at.clone(), line(place))).unzip()
    }
}

/// Applies the caller's decisions. `certain` are the places that are renamed anyway.
pub(super) fn decide(
    cx: &RequestContext<'_>,
    places: Vec<OpenPlace>,
    certain: &[LspLocation],
) -> Result<DecidedPlaces, Failure> {
    let options = &cx.request.options;
    let (include, exclude) = (normalized(cx, &options.include)?, normalized(cx, &options.exclude)?);
    if let Some(both) = include.intersection(&exclude).next() {
        return Err(usage(format!("{both} is both included and excluded"), "give it once".to_owned()));
    }
    let known: BTreeSet<&str> = places.iter().map(|place| place.at.as_str()).collect();
    let unknown = |given: &&String| *given != ALL && !known.contains(given.as_str());
    let certain: BTreeSet<String> =
        certain.iter().map(|place| cx.locations.describe(&place.path, place.range).1).collect();
    if let Some(wrong) = exclude.iter().find(|place| certain.contains(*place)) {
        let message = format!("{wrong} cannot be excluded: it is a reference of the symbol");
        return Err(usage(message, "rename another symbol, or edit the file first".to_owned()));
    }
    let mut all = include.iter().chain(&exclude);
    if let Some(wrong) = all.find(|place| unknown(place) && !certain.contains(*place)) {
        let listed: Vec<&str> = places.iter().map(|place| place.at.as_str()).take(MAX_NAMED).collect();
        let hint = match (listed.as_slice(), places.len().saturating_sub(listed.len())) {
            ([], _) => "every occurrence is explained; there is nothing to decide".to_owned(),
            (some, 0) => format!("the unresolved places are: {}", some.join(", ")),
            (some, more) => format!(
                "the unresolved places are: {} and {more} more, which `lanser refs` lists",
                some.join(", ")
            ),
        };
        return Err(usage(format!("{wrong} is not an unresolved place of this rename"), hint));
    }
    if let Some(place) = places.iter().find(|place| include.contains(&place.at) && !place.can_be_renamed()) {
        let message = format!("{} cannot be renamed: it has only a part of the name", place.at);
        return Err(usage(message, format!("change it by hand, and give --exclude {}", place.at)));
    }
    let mut decided = DecidedPlaces::default();
    for place in places {
        // A place by itself precedes the word for all of them.
        let decision = match (include.contains(&place.at), exclude.contains(&place.at)) {
            (true, _) => Some(Decision::Include),
            (_, true) => Some(Decision::Exclude),
            _ if include.contains(ALL) && place.can_be_renamed() => Some(Decision::Include),
            // What is renamed in any case cannot be left out.
            _ if exclude.contains(ALL) && !certain.contains(&place.at) => Some(Decision::Exclude),
            _ => None,
        };
        decided.decisions.extend(decision.map(|decision| PlaceDecision { at: place.at.clone(), decision }));
        match decision {
            Some(Decision::Include) => decided.included.push(place),
            Some(Decision::Exclude) => {}
            None => decided.open.push(place),
        }
    }
    decided.decisions.sort();
    Ok(decided)
}

/// Whether the caller wants an unresolved place to be renamed.
pub(super) fn is_included(cx: &RequestContext<'_>, at: &str) -> Result<bool, Failure> {
    let options = &cx.request.options;
    let (include, exclude) = (normalized(cx, &options.include)?, normalized(cx, &options.exclude)?);
    Ok(include.contains(at) || (include.contains(ALL) && !exclude.contains(at)))
}

/// Selectors in the form that bundles print.
fn normalized(cx: &RequestContext<'_>, given: &[String]) -> Result<BTreeSet<String>, Failure> {
    let parse = |text: &String| {
        if text == ALL {
            return Ok(text.clone());
        }
        let parsed = read_selector(text, cx.request.options.index_io);
        parsed.map(|selector| selector.to_string()).map_err(|error| {
            Failure::reported(error.hint("a place is PATH:LINE:COL, or `unresolved` for all of them"))
        })
    };
    given.iter().map(parse).collect()
}

fn usage(message: String, hint: String) -> Failure {
    Failure::reported(ErrorBody::new(ErrorSymbol::Usage, message).hint(hint))
}
