//! Merges how two servers explain the occurrences of a name.
//!
//! | main server | other server | result |
//! |---|---|---|
//! | symbol | symbol | reference of both |
//! | symbol | not known, or not the symbol by a rule | reference of the main server |
//! | symbol | another definition, nothing else is possible | unresolved: a contradiction |
//! | unresolved | symbol | reference of the other server |
//! | unresolved: the receiver's type is unknown | another definition, nothing else is possible | another symbol |
//! | unresolved | anything else | unresolved |
//! | another definition | symbol | unresolved: a contradiction |
//! | not the symbol by a rule, or not looked at | symbol | reference of the other server |
//! | not looked at | unresolved | unresolved |
//!
//! That a server resolves a name counts for more than a rule about what it does not resolve. A call that reaches the symbol through
//! a base class is resolved to the base class's definition by both, so that is no contradiction. Where the main server resolves an
//! occurrence and a rule leaves it open, such as a use through an interface, what the other server resolves it to proves nothing.

use std::collections::BTreeMap;

use crate::engine::context::RequestContext;
use crate::engine::occurrences::{
    Elsewhere, Evidence, Explained, Token, UNKNOWN_RECEIVER, UnresolvedToken, offset_of,
};
use crate::engine::opinion::{Claim, OccurrenceOpinion, Opinion};
use crate::engine::positions::span_of;
use crate::lsp::LspLocation;
use crate::model::facts::{Agreement, AgreementCounts, UseProvenance};
use crate::model::server::ServerKind;
use crate::path::AbsPath;
use crate::python::occurrences::{OccurrenceKind, occurrences};
use crate::python::outline::Span;
use crate::workspace::files::Files as _;

/// Where two servers do not say the same of a place that is a reference for one of them.
#[derive(Debug, Default)]
pub(in crate::engine) struct Disputes {
    /// The places, sorted.
    pub(in crate::engine) places: Vec<LspLocation>,
    /// Why the first contradiction is one.
    pub(in crate::engine) reason: Option<String>,
}

/// Merges another server's opinion into the explanation of every occurrence.
pub(in crate::engine) fn merge(
    cx: &RequestContext<'_>,
    explained: &mut Explained,
    opinion: &Opinion,
) -> Disputes {
    let (main, other) = (cx.settings.server, other_kind(cx));
    let mut merging = Merging {
        cx,
        main,
        other,
        claims: claims(cx, opinion),
        counts: AgreementCounts::default(),
        disputes: Disputes::default(),
    };
    merging.references(explained);
    merging.unresolved(explained);
    merging.elsewhere(explained);
    merging.rest(explained);
    let Merging { counts, mut disputes, .. } = merging;
    explained.unresolved.sort_by(|a, b| {
        let key = |one: &UnresolvedToken| (one.token.document.path.clone(), one.token.span.start);
        key(a).cmp(&key(b))
    });
    explained.compared = Some(counts);
    disputes.places.sort();
    disputes
}

fn other_kind(cx: &RequestContext<'_>) -> ServerKind {
    cx.request.options.agree.unwrap_or_default()
}

type Claims = BTreeMap<(AbsPath, usize), (usize, Claim)>;

fn claims(cx: &RequestContext<'_>, opinion: &Opinion) -> Claims {
    let of = |one: &OccurrenceOpinion| {
        let path = cx.locations.paths.absolute(&one.uri)?;
        Some(((path, one.span.0), (one.span.1, one.claim.clone())))
    };
    opinion.occurrences.iter().filter_map(of).collect()
}

struct Merging<'m> {
    cx: &'m RequestContext<'m>,
    main: ServerKind,
    other: ServerKind,
    /// How the other server explains the occurrences that are not merged yet.
    claims: Claims,
    counts: AgreementCounts,
    disputes: Disputes,
}

impl Merging<'_> {
    /// What the main server claims.
    fn references(&mut self, explained: &mut Explained) {
        let places: Vec<(LspLocation, Option<UseProvenance>)> =
            explained.references.iter().map(|(place, known)| (place.clone(), known.provenance)).collect();
        for (place, provenance) in places {
            let of_other = offset_of(self.cx, &place)
                .and_then(|(_, offset)| self.claims.remove(&(place.path.clone(), offset)));
            if explained.declarations.contains(&place) {
                continue;
            }
            match of_other {
                Some((_, Claim::Reference { .. })) => {
                    self.counts.both += 1;
                    explained.agreement.insert(place, Agreement::Both);
                }
                Some((_, Claim::Defined { name, certain: true }))
                    if provenance != Some(UseProvenance::Dispatch) =>
                {
                    let Some(token) = self.token_at(&place) else { continue };
                    explained.references.remove(&place);
                    self.contradict(explained, token, self.main, self.other, &name);
                }
                claim => {
                    let is_otherwise = matches!(claim, Some((_, Claim::Defined { .. } | Claim::Otherwise)));
                    if is_otherwise && provenance != Some(UseProvenance::Dispatch) {
                        self.disputes.places.push(place.clone());
                    }
                    self.counts.main += 1;
                    explained.agreement.insert(place, self.main.into());
                }
            }
        }
    }

    /// What the main server leaves open.
    fn unresolved(&mut self, explained: &mut Explained) {
        for one in std::mem::take(&mut explained.unresolved) {
            let at = (one.token.document.path.clone(), one.token.span.start);
            // A contradiction has been taken out of the claims.
            match self.claims.remove(&at) {
                Some((_, claim @ Claim::Reference { .. })) => {
                    self.accept(explained, one.token.place(self.cx), claim);
                }
                Some((_, Claim::Defined { certain: true, .. })) if one.reason == UNKNOWN_RECEIVER => {
                    explained.other += 1;
                    self.counts.other_symbols += 1;
                }
                _ => explained.unresolved.push(one),
            }
        }
    }

    /// What is something else by the main server's answers.
    fn elsewhere(&mut self, explained: &mut Explained) {
        for ((path, start), (end, elsewhere)) in std::mem::take(&mut explained.elsewhere) {
            let Some((_, claim)) = self.claims.remove(&(path.clone(), start)) else { continue };
            let Claim::Reference { provenance, .. } = &claim else { continue };
            let is_dispatch = *provenance == Some(UseProvenance::Dispatch);
            let Some(token) = self.token(&path, start..end) else { continue };
            let place = token.place(self.cx);
            match elsewhere {
                Elsewhere::Defined(_) if is_dispatch => {
                    explained.other -= 1;
                    self.accept(explained, place, claim);
                }
                Elsewhere::Defined(definition) => {
                    explained.other -= 1;
                    self.contradict(explained, token, self.other, self.main, &definition.name);
                }
                Elsewhere::Other => {
                    explained.other -= 1;
                    self.disputes.places.push(place.clone());
                    self.accept(explained, place, claim);
                }
                Elsewhere::Text => {
                    explained.text -= 1;
                    self.disputes.places.push(place.clone());
                    self.accept(explained, place, claim);
                }
                Elsewhere::Related => {}
            }
        }
    }

    /// What only the other server has looked at: names under which the main server does not know the symbol.
    fn rest(&mut self, explained: &mut Explained) {
        for ((path, start), (end, claim)) in std::mem::take(&mut self.claims) {
            let Some(token) = self.token(&path, start..end) else { continue };
            match claim {
                Claim::Reference { .. } => self.accept(explained, token.place(self.cx), claim),
                Claim::Unresolved(reason) => {
                    let reason = format!("{reason} ({})", self.other);
                    explained.unresolved.push(UnresolvedToken::new(token, reason));
                }
                Claim::Defined { .. } | Claim::Otherwise => {}
            }
        }
    }

    /// Adds a reference that only the other server knows.
    fn accept(&mut self, explained: &mut Explained, place: LspLocation, claim: Claim) {
        let Claim::Reference { provenance, via, structural } = claim else { return };
        let provenance = Some(provenance.unwrap_or(UseProvenance::OtherServer));
        let evidence = Evidence { provenance, via, is_structural: structural };
        self.counts.other += 1;
        explained.agreement.insert(place.clone(), self.other.into());
        explained.references.insert(place, evidence);
    }

    /// Lists a place that is the symbol for one server and a named other symbol for the other.
    fn contradict(
        &mut self,
        explained: &mut Explained,
        token: Token,
        claimant: ServerKind,
        opponent: ServerKind,
        name: &str,
    ) {
        let reason = format!("it is the symbol for {claimant}, and {name} for {opponent}");
        self.counts.contradictions += 1;
        self.disputes.places.push(token.place(self.cx));
        self.disputes.reason.get_or_insert_with(|| reason.clone());
        explained.unresolved.push(UnresolvedToken::new(token, reason));
    }

    fn token_at(&self, place: &LspLocation) -> Option<Token> {
        let (document, span) = span_of(self.cx, place)?;
        self.token(&document.path, span)
    }

    fn token(&self, path: &AbsPath, span: Span) -> Option<Token> {
        let document = self.cx.state.files.read(path).ok()?;
        let name = document.text.get(span.clone())?;
        let found = occurrences(&document.text, document.digest, name);
        let kind = found.iter().find(|one| one.span() == span).map(|one| one.kind);
        Some(Token::new(document.clone(), span, kind.unwrap_or(OccurrenceKind::Identifier)))
    }
}
