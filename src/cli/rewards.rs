//! The reward options: the formula, its weights, and the bundle that a step starts from.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::context::CliContext;
use super::settings::CliSettings;
use crate::bundle::seal::bundle_id;
use crate::digest::{Digest, Score};
use crate::engine::{self, stored_bundle, supplement};
use crate::model::BUNDLE_VERSION;
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::{Preset, Weights};
use crate::model::trace::{RecordedStep, StepOrigin};
use crate::reward::{self, RewardFormula, default_weights, is_fault, recomputed, supplemented, unmeasured};
use crate::trace::writer::TraceWriter;
use crate::workspace::files::read_bytes;

/// How long to wait for a bundle that a session may be storing at the moment.
const STORE_TIMEOUT: Duration = Duration::from_millis(300);

/// The interval between two lookups during [`STORE_TIMEOUT`].
const STORE_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A reward with other parameters than the default.
pub(crate) struct RewardRequest {
    terms: RewardFormula,
    /// The bundle that the step starts from.
    pub(crate) previous: Option<Bundle>,
}

impl RewardRequest {
    /// Sets the reward of a bundle.
    pub(crate) fn apply_to(&self, bundle: &mut Bundle) {
        bundle.process_reward = Some(recomputed(bundle, self.previous.as_ref(), &self.terms));
    }

    /// Completes the reward of a new bundle: files that only one of the two bundles covers are measured for the other one.
    /// Returns why they cannot be.
    pub(crate) async fn supplement(
        &self,
        bundle: &mut Bundle,
        settings: &engine::Settings,
    ) -> Option<String> {
        let previous = self.previous.as_ref()?;
        let measured = supplement(settings, previous, bundle, &self.terms).await;
        settings.progress.done();
        let (reward, why) = match measured {
            Ok(None) => return None,
            Ok(Some(more)) => (supplemented(bundle, previous, &more, &self.terms), None),
            Err(why) => (unmeasured(bundle, previous, &why, &self.terms), Some(why)),
        };
        bundle.process_reward = Some(reward);
        why
    }
}

/// Records the reward of a bundle in the trace that its operation is in.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn record(
    trace: &TraceWriter,
    bundle: &Bundle,
    previous: Option<StepOrigin>,
    unmeasured: Option<String>,
) -> io::Result<()> {
    let recorded = bundle.meta.volatile.trace_op.zip(bundle.process_reward.clone());
    let Some((op, reward)) = recorded else { return Ok(()) };
    trace.append_step(RecordedStep { bundle: op, previous, reward, unmeasured }).map(drop)
}

/// The value of `--prev` with which each bundle of a batch is a step from the bundle before.
pub(crate) const LAST: &str = "last";

/// The rewards of a batch.
pub(crate) struct StepRewards {
    request: Option<RewardRequest>,
    /// Whether each bundle is a step from the bundle before.
    is_run: bool,
    /// Where the steps are recorded, if anywhere.
    trace: Option<Arc<TraceWriter>>,
}

impl StepRewards {
    /// The rewards that the options request.
    ///
    /// # Errors
    /// If an option is invalid or the bundle of `--prev` does not exist.
    pub(crate) fn new(context: &CliContext, settings: &CliSettings) -> Result<Self, ErrorBody> {
        if context.global.prev.as_deref() != Some(LAST) {
            return Ok(Self {
                request: requested(context, settings)?,
                is_run: false,
                trace: context.trace.clone(),
            });
        }
        let request = RewardRequest { terms: terms(context, Preset::default())?, previous: None };
        Ok(Self { request: Some(request), is_run: true, trace: context.trace.clone() })
    }

    /// Whether the bundles have to come in the order of the requests.
    pub(crate) const fn is_run(&self) -> bool {
        self.is_run
    }

    /// Sets the reward of the next bundle, and records it.
    ///
    /// # Errors
    /// If the trace cannot be written.
    pub(crate) fn reward(&mut self, bundle: &mut Bundle) -> io::Result<()> {
        let Some(request) = &mut self.request else { return Ok(()) };
        request.apply_to(bundle);
        if let Some(trace) = &self.trace {
            let previous = request.previous.as_ref().map(|previous| match previous.meta.volatile.trace_op {
                Some(op) if self.is_run => StepOrigin::Op(op),
                _ => StepOrigin::Bundle(Box::new(previous.clone())),
            });
            record(trace, bundle, previous, None)?;
        }
        // A failure that the caller did not cause is not a state to step from.
        if self.is_run && !is_fault(bundle) {
            request.previous = Some(bundle.clone());
        }
        Ok(())
    }
}

/// The reward that the options request; `None` for the reward that bundles have by default.
///
/// # Errors
/// If an option is invalid or the bundle of `--prev` does not exist.
pub(crate) fn requested(
    context: &CliContext,
    settings: &CliSettings,
) -> Result<Option<RewardRequest>, ErrorBody> {
    let global = &context.global;
    if global.prev.is_none() && global.reward.is_none() && global.weights.is_none() {
        return Ok(None);
    }
    let previous = global.prev.as_deref().map(|named| load(named, context, settings)).transpose()?;
    Ok(Some(RewardRequest { terms: terms(context, Preset::default())?, previous }))
}

/// The formula and its weights.
///
/// # Errors
/// If one of them is invalid.
pub(crate) fn terms(context: &CliContext, default: Preset) -> Result<RewardFormula, ErrorBody> {
    let usage = |message: String, hint: &str| ErrorBody::new(ErrorSymbol::Usage, message).hint(hint);
    let preset = match context.global.reward.as_deref() {
        None => default,
        Some(name) => Preset::parse(name).ok_or_else(|| {
            usage(format!("unknown reward formula {name:?}"), "use rl-csf-v1, pr-v1 or rl-csf-guarded-v1")
        })?,
    };
    let defaults = default_weights(preset);
    let Some(text) = context.global.weights.as_deref() else {
        return Ok(RewardFormula { preset, weights: defaults });
    };
    let invalid = || {
        usage(
            format!("invalid weights {text:?}"),
            "give three to five non-negative numbers: wD,wS,wA,wE,GAMMA, with GAMMA at most 1",
        )
    };
    if preset == Preset::Pr && text.split(',').count() != 3 {
        let message = format!("invalid weights {text:?}");
        return Err(usage(message, "give the three non-negative numbers of pr-v1: ALPHA,BETA,GAMMA"));
    }
    let read = |text: &str| {
        let number = text.trim().parse::<f64>().ok().and_then(Score::new);
        number.filter(|number| number.get() >= 0.0)
    };
    let numbers: Option<Vec<Score>> = text.split(',').map(read).collect();
    let weights = match numbers.as_deref() {
        Some([diagnostics, safety, confidence, rest @ ..]) if rest.len() <= 2 => Weights {
            diagnostics: *diagnostics,
            safety: *safety,
            confidence: *confidence,
            error: rest.first().copied().unwrap_or(defaults.error),
            gamma: rest.get(1).copied().unwrap_or(defaults.gamma),
        },
        _ => return Err(invalid()),
    };
    if weights.gamma > Score::ONE {
        return Err(invalid());
    }
    Ok(RewardFormula { preset, weights })
}

/// Loads a bundle from a file, or from the local store by its `bundleId`.
///
/// # Errors
/// If it does not exist or is not valid.
pub(crate) fn load(named: &str, context: &CliContext, settings: &CliSettings) -> Result<Bundle, ErrorBody> {
    let path = context.env.absolute(named);
    if let Some(id) = identifier(named).filter(|_| !path.as_path().exists()) {
        let began = Instant::now();
        loop {
            if let Some(bundle) = stored_bundle(&settings.cache, &id) {
                return Ok(bundle);
            }
            if began.elapsed() > STORE_TIMEOUT {
                break;
            }
            std::thread::sleep(STORE_POLL_INTERVAL);
        }
        let message = format!("unknown bundle id {id}: it is not in the local store");
        return Err(ErrorBody::new(ErrorSymbol::NotFound, message)
            .hint("the store keeps only recent bundles; save bundles that you need in files"));
    }
    let bytes = read_bytes(&path).map_err(|error| {
        if named.starts_with("sha256:") && !path.as_path().exists() {
            return ErrorBody::new(ErrorSymbol::NotFound, format!("unknown bundle id {named}"))
                .hint("a bundleId has 64 hexadecimal digits; give all of them");
        }
        let hint = match named {
            LAST => "`last` is only for `lanser batch`; give a file or a bundleId".to_owned(),
            _ => "give a file, or the bundleId of a stored bundle".to_owned(),
        };
        ErrorBody::new(ErrorSymbol::NotFound, format!("cannot read the bundle {named}: {error}")).hint(hint)
    })?;
    read_named(named, &bytes)
}

/// Whether a text is JSON with a `bundleId`, valid or not.
pub(crate) fn claims_to_be_bundle(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Identified {
        bundle_id: Option<IgnoredAny>,
    }
    serde_json::from_slice::<Identified>(bytes).is_ok_and(|identified| identified.bundle_id.is_some())
}

/// Reads a bundle that the user named.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_named(named: &str, bytes: &[u8]) -> Result<Bundle, ErrorBody> {
    read(bytes).map_err(|why| {
        let hint = "give a bundle as printed by --json; `lanser schema validate FILE` shows what is wrong";
        ErrorBody::new(ErrorSymbol::Usage, format!("{named} is not a bundle: {why}")).hint(hint)
    })
}

/// Parses a bundle and verifies its `bundleId`.
///
/// # Errors
/// If it is not valid JSON of a bundle, or its content does not match its `bundleId`.
pub(crate) fn read(bytes: &[u8]) -> Result<Bundle, String> {
    #[derive(Deserialize)]
    struct Versioned {
        version: String,
    }
    // A bundle of another format may lack members.
    if let Ok(Versioned { version }) = serde_json::from_slice(bytes)
        && version != BUNDLE_VERSION
    {
        return Err(format!("it has format {version}, and this lanser reads {BUNDLE_VERSION}"));
    }
    let bundle: Bundle = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if bundle_id(&bundle).ok() != Some(bundle.bundle_id) {
        return Err("its content does not match its bundleId".to_owned());
    }
    reward::verify(&bundle)?;
    Ok(bundle)
}

/// A `bundleId`, with its prefix or without.
pub(crate) fn identifier(text: &str) -> Option<Digest> {
    Digest::parse(text).or_else(|| Digest::parse(&format!("sha256:{text}")))
}
