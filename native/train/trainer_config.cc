#include "train/trainer_config.h"

#include "core/error.h"

namespace zerofleet {

void validate(const TrainerConfig& config) {
  validate(config.model);
  const BatchShape& batch = config.batch;
  require(batch.micro_batch_size >= 1 && batch.global_batch_size % batch.micro_batch_size == 0, "micro_batch_not_divisor",
          "micro_batch_size " + std::to_string(batch.micro_batch_size) + " does not divide global_batch_size " +
              std::to_string(batch.global_batch_size));
  require(config.world_size >= 1 && config.rank >= 0 && config.rank < config.world_size, "invalid_argument",
          "rank " + std::to_string(config.rank) + " is outside a world of " + std::to_string(config.world_size));
  require(config.world_size <= batch.num_leaves(), "too_many_ranks",
          std::to_string(config.world_size) + " ranks for " + std::to_string(batch.num_leaves()) +
              " micro-batches per step: at least one rank would never have work");
  require(config.num_threads >= 1, "invalid_argument", "a rank needs at least one thread");
  require(batch.sequence_length >= 1 && batch.sequence_length <= config.model.max_position_embeddings,
          "sequence_longer_than_model",
          "sequence_length " + std::to_string(batch.sequence_length) + " exceeds max_position_embeddings " +
              std::to_string(config.model.max_position_embeddings));
  require(config.model.vocab_size <= 65536, "invalid_model_config", "token files hold 16-bit tokens; vocab_size is larger");
}

}  // namespace zerofleet
