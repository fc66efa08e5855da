//! `score`: compares heads with one base, one after the other.

use super::scorer::ScoreHead;
use super::service::{BaseError, ScoreLimits, ScoreService};
use super::source::StateSource;
use crate::engine::failure::cancelled;
use crate::engine::settings::Settings;
use crate::model::analyzer::AnalyzerKind;
use crate::model::error::ErrorBody;
use crate::reward::RewardFormula;
use crate::reward::episode::Episode;

/// Scores heads against a base, one after the other, by the diagnostics of the server and of the analyzers `with`. Each episode
/// is passed to `tell` as soon as it is known. If `interrupted` completes first, the servers are shut down and no more episodes
/// follow.
///
/// # Errors
/// If the base does not exist, no server is available, or the caller interrupted. A head that cannot be loaded is an
/// episode without a score.
pub async fn score(
    settings: &Settings,
    base: &StateSource,
    heads: &[ScoreHead],
    (terms, with): (&RewardFormula, &[AnalyzerKind]),
    interrupted: impl Future<Output = ()>,
    mut tell: impl FnMut(Episode),
) -> Result<(), ErrorBody> {
    let service = ScoreService::new(settings.clone(), ScoreLimits::one_worker());
    let mut interrupted = std::pin::pin!(interrupted);
    let scoring = async {
        let base = match service.open(base, with).await {
            Ok(base) => base,
            Err(BaseError::NotKnown(error)) => {
                heads.iter().for_each(|head| tell(Episode::failed(&head.name, error.clone(), None, terms)));
                return Ok(());
            }
            Err(BaseError::Failed(error)) => return Err(error),
        };
        service.warm_up(&base).await?;
        for head in heads {
            let episode = service.score(&base, head, terms, None).await;
            settings.progress.done();
            tell(episode);
        }
        Ok(())
    };
    let done = tokio::select! {
        done = scoring => done,
        () = &mut interrupted => Err(cancelled()),
    };
    service.close().await;
    done
}
