// Trainings with preference objectives beside torch: eight steps of AdamW, the reference being the initial model.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/thread_job.h"
#include "test/data/written_tokens.h"
#include "test/golden/golden_file.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

TokenTables golden_preferences(const GoldenFile& golden) {
  TokenTables tables;
  tables.sequence_length = golden.integer("length");
  tables.documents.clear();
  const auto prompts = golden.integers("prompts"), completions = golden.integers("completions"),
             labels = golden.integers("labels");
  for (const std::int32_t token : golden.integers("tokens")) tables.tokens.push_back(static_cast<std::uint32_t>(token));
  for (std::size_t sequence = 0; sequence < prompts.size(); ++sequence) {
    tables.sequences.push_back(tables.counts.size());
    tables.documents.push_back(tables.counts.size());
    for (std::int32_t position = 0; position < prompts[sequence] + completions[sequence]; ++position) {
      tables.counts.push_back(position >= prompts[sequence] || (position == 0 && labels[sequence] == 1));
    }
  }
  return tables;
}

TrainerConfig golden_training(const GoldenFile& golden, const ObjectiveOptions& objective,
                              const std::string& token_file) {
  TrainerConfig config;
  config.model = golden.model_config();
  config.cpu_isa = best_cpu_isa();
  config.precision = config.zero.reduce_dtype = DType::kF32;
  config.batch = {golden.integer("global_batch"), golden.integer("micro_batch"), golden.integer("length")};
  config.preference = PreferenceConfig{objective, ReferenceKind::kInitial};
  config.training_files = {{token_file}};
  config.data_seed = static_cast<std::uint64_t>(golden.integer("data_seed"));
  config.optimizer.beta1 = golden.number("beta1");
  config.optimizer.beta2 = golden.number("beta2");
  config.optimizer.eps = golden.number("eps");
  config.optimizer.weight_decay = golden.number("weight_decay");
  config.gradient_clipping = golden.number("clipping");
  config.lr_schedule = {LrScheduleType::kConstant, golden.number("lr"), 0, 0, golden.integer("steps")};
  return config;
}

void load_golden(const GoldenFile& golden, Trainer& trainer) {
  for (const OwnedSlice& slice : trainer.slices()) {
    if (slice.state != StateId::kMaster) continue;
    const auto values = golden.floats("param." + trainer.params()[slice.param].name);
    trainer.load(slice.state, slice.param, slice.elements.begin,
                 std::span(values).subspan(static_cast<std::size_t>(slice.elements.begin),
                                           static_cast<std::size_t>(slice.elements.size())));
  }
  trainer.finish_load(trainer.position(), Restore::kWeights);
}

void check_step(const GoldenFile& golden, const std::string& step, const StepResult& result) {
  const auto expect = [&](const char* key, std::optional<double> value) {
    CAPTURE(key);
    if (!value) return;
    CHECK(*value == doctest::Approx(golden.number(step + key)).epsilon(1e-5));
  };
  const PreferenceMeans& means = result.preference.value();
  expect("loss", result.loss);
  expect("grad_norm", result.grad_norm);
  expect("accuracy", means.accuracy);
  expect("reward_chosen", means.reward_chosen);
  expect("reward_rejected", means.reward_rejected);
  expect("log_prob_chosen", means.log_prob_chosen);
  expect("log_prob_rejected", means.log_prob_rejected);
}

}  // namespace

TEST_CASE(
    "preferences: losses, rewards and gradient norms of DPO and KTO follow torch's within 1e-5 in each step of AdamW") {
  const GoldenFile golden("preference_training");
  const TemporaryFile tokens(bytes_of(golden_preferences(golden)));
  const ObjectiveOptions dpo{ObjectiveKind::kDpo, golden.number("dpo.beta"), golden.number("dpo.label_smoothing")};
  const ObjectiveOptions kto{ObjectiveKind::kKto,
                             golden.number("kto.beta"),
                             0,
                             0,
                             golden.number("kto.desirable_weight"),
                             golden.number("kto.undesirable_weight")};
  for (const ObjectiveOptions& objective : {dpo, kto}) {
    const std::string name = objective.has_pairs() ? "dpo." : "kto.";
    CAPTURE(name);
    bench::ThreadJob job(golden_training(golden, objective, tokens.path()));
    job.on_ranks(2, 1, [&](Trainer& trainer) {
      load_golden(golden, trainer);
      trainer.compute_reference();
      for (std::int64_t step = 0; step < golden.integer("steps"); ++step) {
        CAPTURE(step);
        const StepResult result = trainer.step(0);
        if (trainer.config().rank == 0) check_step(golden, name + std::to_string(step) + ".", result);
      }
    });
  }
}
