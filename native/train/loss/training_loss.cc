#include "train/loss/training_loss.h"

#include <utility>

#include "core/error.h"
#include "train/loss/preference_loss.h"
#include "train/loss/target_loss.h"

namespace zerofleet {

void TrainingLoss::set_reference(std::vector<double> log_probs) {
  require(log_probs.empty(), "invalid_argument", "the training has no reference of an initial model");
}

std::unique_ptr<TrainingLoss> make_training_loss(const std::optional<PreferenceConfig>& preference, LossParts parts) {
  if (!preference) return std::make_unique<TargetLoss>(std::move(parts));
  return std::make_unique<PreferenceLoss>(std::move(parts), *preference);
}

LeafInput input_of(const LeafBatch& batch, const LeafKey& key) {
  return {batch.tokens, batch.targets, key, batch.documents(), batch.padded_lengths()};
}

}  // namespace zerofleet
