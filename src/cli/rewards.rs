//! What the caller wants to know of rewards: the formula, its weights, and the bundle that a step starts from.

use std::time::{Duration, Instant};

use super::context::Context;
use super::settings::Settings;
use crate::bundle::seal::bundle_id;
use crate::digest::{Digest, Score};
use crate::model::bundle::Bundle;
use crate::model::error::{ErrorBody, ErrorSymbol};
use crate::model::reward::{Preset, Weights};
use crate::orchestrator::{self, stored_bundle, supplement};
use crate::reward::{Terms, default_weights, is_fault, recomputed, supplemented};
use crate::workspace::files::read_bytes;

/// How long is waited for a bundle that a session may be just storing.
const STORING: Duration = Duration::from_millis(300);

/// A reward that is not the usual one.
pub(crate) struct Asked {
    terms: Terms,
    previous: Option<Bundle>,
}

impl Asked {
    /// Puts the reward that was asked for into a bundle.
    pub(crate) fn put_into(&self, bundle: &mut Bundle) {
        bundle.process_reward = Some(recomputed(bundle, self.previous.as_ref(), &self.terms));
    }

    /// Puts the reward that was asked for into a bundle that was just made. What only one of the two bundles looked at is measured
    /// for the other one as well.
    pub(crate) async fn put_into_new(&self, bundle: &mut Bundle, settings: &orchestrator::Settings) {
        self.put_into(bundle);
        let Some(previous) = &self.previous else { return };
        match supplement(settings, previous, bundle, &self.terms).await {
            Ok(None) => {}
            Ok(Some(more)) => {
                bundle.process_reward = Some(supplemented(bundle, previous, &more, &self.terms));
            }
            Err(why) => {
                let reason = bundle.process_reward.as_mut().and_then(|reward| reward.reason.as_mut());
                if let Some(reason) = reason {
                    *reason = format!("{reason}, {why}");
                }
            }
        }
        settings.progress.done();
    }
}

/// What `--prev` says for the answers of a batch that each begin where the one before ended.
const LAST: &str = "last";

/// The rewards of many answers in a row.
pub(crate) struct Steps {
    asked: Option<Asked>,
    /// Whether each step begins where the one before ended.
    run: bool,
}

impl Steps {
    /// The rewards that were asked for.
    ///
    /// # Errors
    /// When an option cannot be read, or there is no such bundle.
    pub(crate) fn new(context: &Context, settings: &Settings) -> Result<Self, ErrorBody> {
        if context.global.prev.as_deref() != Some(LAST) {
            return Ok(Self { asked: asked(context, settings)?, run: false });
        }
        let asked = Asked { terms: terms(context, Preset::default())?, previous: None };
        Ok(Self { asked: Some(asked), run: true })
    }

    /// Whether the answers have to come in order.
    pub(crate) const fn is_run(&self) -> bool {
        self.run
    }

    /// Puts the reward of the next step into its bundle.
    pub(crate) fn reward(&mut self, bundle: &mut Bundle) {
        let Some(asked) = &mut self.asked else { return };
        asked.put_into(bundle);
        // What was not the caller's doing is no step to go on from.
        if self.run && !is_fault(bundle) {
            asked.previous = Some(bundle.clone());
        }
    }
}

/// The reward that was asked for; `None` when it is the one that bundles have by themselves.
///
/// # Errors
/// When an option cannot be read, or there is no such bundle.
pub(crate) fn asked(context: &Context, settings: &Settings) -> Result<Option<Asked>, ErrorBody> {
    let global = &context.global;
    if global.prev.is_none() && global.reward.is_none() && global.weights.is_none() {
        return Ok(None);
    }
    let previous = global.prev.as_deref().map(|named| load(named, context, settings)).transpose()?;
    Ok(Some(Asked { terms: terms(context, Preset::default())?, previous }))
}

/// The formula and its weights.
///
/// # Errors
/// When one cannot be read.
pub(crate) fn terms(context: &Context, default: Preset) -> Result<Terms, ErrorBody> {
    let usage = |message: String, hint: &str| ErrorBody::new(ErrorSymbol::Usage, message).hint(hint);
    let preset = match context.global.reward.as_deref() {
        None => default,
        Some(name) => Preset::parse(name).ok_or_else(|| {
            usage(format!("{name:?} is no formula"), "use rl-csf-v1, pr-v1 or rl-csf-guarded-v1")
        })?,
    };
    let usual = default_weights(preset);
    let Some(text) = context.global.weights.as_deref() else { return Ok(Terms { preset, weights: usual }) };
    let wrong = || {
        usage(
            format!("{text:?} are no weights"),
            "give three to five numbers, none negative: wD,wS,wA,wE,GAMMA",
        )
    };
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
            error: rest.first().copied().unwrap_or(usual.error),
            gamma: rest.get(1).copied().unwrap_or(usual.gamma),
        },
        _ => return Err(wrong()),
    };
    if weights.gamma > Score::ONE {
        return Err(wrong());
    }
    Ok(Terms { preset, weights })
}

/// A bundle: a file, or one of the local store by its `bundleId`.
///
/// # Errors
/// When there is none.
pub(crate) fn load(named: &str, context: &Context, settings: &Settings) -> Result<Bundle, ErrorBody> {
    let path = context.env.absolute(named);
    if let Some(id) = identifier(named).filter(|_| !path.as_path().exists()) {
        let began = Instant::now();
        loop {
            if let Some(bundle) = stored_bundle(&settings.cache, &id) {
                return Ok(bundle);
            }
            if began.elapsed() > STORING {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let message = format!("there is no bundle {id} in the local store");
        return Err(ErrorBody::new(ErrorSymbol::NotFound, message)
            .hint("the store keeps the latest; keep bundles that matter in files"));
    }
    let bytes = read_bytes(&path).map_err(|error| {
        let hint = match named {
            LAST => "`last` is the bundle before in `lanser batch`; elsewhere name a file or a bundleId"
                .to_owned(),
            _ if named.starts_with("sha256:") => {
                "a bundleId has 64 hexadecimal digits; give all of them".to_owned()
            }
            _ => "name a file, or the bundleId of a bundle that was answered here".to_owned(),
        };
        ErrorBody::new(ErrorSymbol::NotFound, format!("the bundle {named} cannot be read: {error}"))
            .hint(hint)
    })?;
    read(&bytes).map_err(|why| {
        let hint = "give a bundle as lanser printed it with --json; `lanser schema validate FILE` says more";
        ErrorBody::new(ErrorSymbol::Usage, format!("{named} is no bundle: {why}")).hint(hint)
    })
}

/// Reads a bundle, and sees that it is what its `bundleId` says.
///
/// # Errors
/// With what is wrong.
pub(crate) fn read(bytes: &[u8]) -> Result<Bundle, String> {
    let bundle: Bundle = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if bundle_id(&bundle).ok() == Some(bundle.bundle_id) {
        Ok(bundle)
    } else {
        Err("its content is not what its bundleId says".to_owned())
    }
}

/// A `bundleId`, with its prefix or without.
pub(crate) fn identifier(text: &str) -> Option<Digest> {
    Digest::parse(text).or_else(|| Digest::parse(&format!("sha256:{text}")))
}
