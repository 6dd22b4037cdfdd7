// The auxiliary loss in a training: the objective is the mean over targets plus the mean over leaves of the auxiliary
// loss.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/philox.h"
#include "test/data/written_tokens.h"
#include "test/model/family_configs.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kSequences = 6, kLength = 17;

/// A document per sequence, of which all but the first are `length` tokens short of being full; one of `one_in` tokens
/// is a target.
std::string corpus(std::uint32_t one_in, std::int64_t missing) {
  TokenTables tables;
  tables.sequence_length = kLength;
  tables.documents.clear();
  for (std::int64_t sequence = 0; sequence < kSequences; ++sequence) {
    tables.sequences.push_back(tables.tokens.size());
    tables.documents.push_back(tables.tokens.size());
    const std::int64_t num_tokens = kLength + (sequence == 0 ? 0 : -missing);
    for (std::int64_t i = 0; i < num_tokens; ++i) {
      const auto index = static_cast<std::uint32_t>(tables.tokens.size());
      tables.tokens.push_back(philox(5, {index, 0, 0, 0})[0] % 101);
      tables.counts.push_back(index % one_in == 0);
    }
  }
  return bytes_of(tables);
}

/// Mixtral, plain gradient descent, and the whole corpus in every step, each sequence a leaf.
struct AuxJob : TinyJob {
  explicit AuxJob(const std::string& token_file) : TinyJob(DType::kF32) {
    for (const auto& [name, model] : family_configs()) {
      if (name == "mixtral") config.model = model;
    }
    config.model.vocab_size = 101;
    config.model.attention_dropout = 0;
    config.model.router_aux_loss_coef = 20;
    config.optimizer.type = OptimizerType::kSgd;
    config.optimizer.momentum = 0;
    config.optimizer.weight_decay = 0;
    config.gradient_clipping = 0;
    config.batch = {kSequences, 1, kLength};
    config.training_files = {{token_file}};
    config.evaluation_files.clear();
  }

  StepResult first, second;
  void run(double lr) {
    config.lr_schedule = {LrScheduleType::kConstant, lr, 0, 0, 10};
    on_ranks(1, 2, [&](Trainer& trainer) {
      trainer.initialize();
      first = trainer.step(0);
      second = trainer.step(0);
    });
  }
  double objective(const StepResult& result) const { return result.loss + result.aux_loss.value(); }
};

}  // namespace

// Along the gradient an objective falls by the learning rate times the square of the gradient's norm, whatever it is
// made of. With one target in ten, a gradient whose auxiliary part is not weighed as the objective has it falls
// otherwise.
TEST_CASE("auxiliary loss: a step goes down the gradient of the reported loss, with few targets and with padding") {
  for (const std::uint32_t one_in : {1U, 10U}) {
    for (const std::int64_t missing : {0, 9}) {
      CAPTURE(one_in);
      CAPTURE(missing);
      const TemporaryFile tokens(corpus(one_in, missing));
      AuxJob job(tokens.path());
      job.run(1e-5);
      const double slope = (job.objective(job.first) - job.objective(job.second)) / 1e-5;
      CHECK(job.first.aux_loss.value() > 0);
      CHECK(slope == doctest::Approx(job.first.grad_norm * job.first.grad_norm).epsilon(0.03));
    }
  }
}

TEST_CASE("auxiliary loss: the same on any number of ranks, and none without a factor") {
  const TemporaryFile tokens(corpus(10, 9));
  AuxJob job(tokens.path());
  const auto expected = job.digests_of_run(1, 1, 3);
  for (const int world_size : {2, 3}) CHECK(job.digests_of_run(world_size, 1, 3) == expected);
  job.config.model.router_aux_loss_coef = 0;
  job.run(1e-5);
  CHECK_FALSE(job.first.aux_loss.has_value());
  CHECK(job.digests_of_run(1, 1, 3) != expected);
}
