//! Seals the draft of a bundle, and adds its reward.

use crate::bundle::seal::{BundleDraft, seal};
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::reward::{MeasuredDiagnostics, measured_digest, of_bundle};

/// Seals a draft. A draft that cannot be sealed becomes an internal error.
pub(super) fn sealed(draft: BundleDraft) -> Bundle {
    let request = draft.request.clone();
    seal(draft).unwrap_or_else(|error| {
        let body = ErrorBody::new(ErrorSymbol::Internal, error.to_string());
        seal(BundleDraft::failed(request, body)).expect("an error is made of texts and small integers")
    })
}

/// Seals a draft and adds the reward, which is not part of the hash; the digest of its diagnostics is.
pub(super) fn rewarded(mut draft: BundleDraft, measured: Option<MeasuredDiagnostics>) -> Bundle {
    draft.measured = measured.as_ref().map(measured_digest);
    let mut bundle = sealed(draft);
    bundle.process_reward = Some(of_bundle(&bundle, measured));
    bundle
}
