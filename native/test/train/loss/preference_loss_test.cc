// Trainings with preference objectives: the promise of exactness_test.cc, their reports, references and evaluations.
#include "train/loss/preference_loss.h"

#include <doctest/doctest.h>

#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/model/family_configs.h"
#include "test/sanitized.h"
#include "test/train/loss/preference_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kPreferenceSteps = kSanitized ? 2 : 4;

/// Reports of a run, which must be equal on every rank.
struct Reported {
  std::vector<double> losses;
  std::vector<std::int64_t> num_targets;
  std::vector<PreferenceMeans> means;
  EvalResult evaluation;
  std::string digest;

  bool operator==(const Reported& other) const {
    return losses == other.losses && num_targets == other.num_targets && means == other.means &&
           digest == other.digest && evaluation.loss == other.evaluation.loss &&
           evaluation.preference == other.evaluation.preference &&
           evaluation.num_targets == other.evaluation.num_targets;
  }
};

std::vector<Reported> reported(PreferenceJob& job, int world_size, int num_threads) {
  std::vector<Reported> of_ranks;
  Digest128 digest{};
  std::mutex mutex;
  job.on_ranks(world_size, num_threads, [&](Trainer& trainer) {
    trainer.initialize();
    trainer.compute_reference();
    Reported mine;
    for (int step = 0; step < kPreferenceSteps; ++step) {
      const StepResult result = trainer.step(0);
      mine.losses.push_back(result.loss);
      mine.num_targets.push_back(result.num_targets);
      mine.means.push_back(result.preference.value());
    }
    mine.evaluation = trainer.evaluate(0);
    const std::lock_guard lock(mutex);
    digest += trainer.digest_part();
    of_ranks.push_back(mine);
  });
  for (Reported& mine : of_ranks) mine.digest = digest.to_hex();
  return of_ranks;
}

std::vector<ReferenceKind> references_of(const ObjectiveOptions& objective) {
  if (objective.has_reference()) return {ReferenceKind::kBase, ReferenceKind::kInitial};
  return {ReferenceKind::kNone};
}

}  // namespace

TEST_CASE("preferences: digests, metrics and evaluations are equal for 1, 2, 3 and 4 ranks with 1 or 2 threads") {
  for (const ObjectiveCase& objective : objective_cases()) {
    for (const ReferenceKind reference : references_of(objective.options)) {
      for (const DType precision : {DType::kBF16, DType::kF32}) {
        if (kSanitized && precision == DType::kF32) continue;
        CAPTURE(objective.name);
        PreferenceJob job(objective.options, reference, precision);
        const Reported expected = reported(job, 1, 1).front();
        CHECK(expected.losses.front() != expected.losses.back());
        CHECK(expected.num_targets.front() > 0);
        for (const int world_size : {1, 2, 3, 4}) {
          // exactness_test.cc has every number of ranks in both precisions.
          if (precision == DType::kF32 && world_size != 3) continue;
          CAPTURE(world_size);
          for (const Reported& of_rank : reported(job, world_size, 2)) CHECK(of_rank == expected);
        }
      }
    }
  }
}

// With B of zeros the adapted model has the bits of its base, and a sequence's score does not depend on the leaf it is
// in.
TEST_CASE("preferences: with a new adapter the initial model and the base are the same reference, bit by bit") {
  for (const ObjectiveCase& objective : objective_cases()) {
    if (!objective.options.has_reference()) continue;
    for (const DType precision : {DType::kBF16, DType::kF32}) {
      CAPTURE(objective.name);
      PreferenceJob base(objective.options, ReferenceKind::kBase, precision),
          initial(objective.options, ReferenceKind::kInitial, precision);
      initial.add_adapter();
      CHECK(reported(initial, 2, 1).front() == reported(base, 1, 1).front());
    }
  }
}

TEST_CASE("preferences: rewards are 0 in the first step, and the margin grows with the training") {
  for (const ObjectiveKind kind : {ObjectiveKind::kDpo, ObjectiveKind::kKto}) {
    PreferenceJob job({kind, 0.5}, ReferenceKind::kInitial, DType::kF32);
    job.config.lr_schedule = {LrScheduleType::kConstant, 1e-2, 0, 0, 20};
    std::vector<PreferenceMeans> means;
    double loss = 0;
    job.on_ranks(1, 2, [&](Trainer& trainer) {
      trainer.initialize();
      trainer.compute_reference();
      for (int step = 0; step < (kSanitized ? 3 : 20); ++step) {
        const StepResult result = trainer.step(0);
        if (step == 0) loss = result.loss;
        means.push_back(result.preference.value());
      }
    });
    CHECK(means.front().reward_chosen == 0);
    CHECK(means.front().reward_rejected == 0);
    CHECK(loss == doctest::Approx(kind == ObjectiveKind::kDpo ? 0.693147180559945 : 0.5));
    CHECK(means.back().margin.value() > 0.1);
  }
}

TEST_CASE("preferences: a job that is saved and loaded on 2, 3 and 1 ranks ends like one that never stopped") {
  for (const ObjectiveKind kind : {ObjectiveKind::kIpo, ObjectiveKind::kOrpo, ObjectiveKind::kKto}) {
    for (const ReferenceKind reference : {ReferenceKind::kBase, ReferenceKind::kInitial}) {
      PreferenceJob job({kind, 0.2}, reference, DType::kBF16);
      const auto expected = job.digests_of_run(1, 2, 6).back();
      SavedState state = job.run_from(nullptr, 2, 2);
      state = job.run_from(&state, 3, 3);
      state = job.run_from(&state, 1, 1);
      CHECK(state.digest == expected);
    }
  }
}

TEST_CASE("preferences: stage 1, gradient dtypes and activation checkpointing keep the promise") {
  PreferenceJob job({ObjectiveKind::kDpo, 0.3}, ReferenceKind::kInitial, DType::kBF16);
  job.config.zero.stage = 1;
  job.config.zero.lanes = 3;
  const auto expected = job.digests_of_run(1, 1, 2);
  job.config.activation_checkpointing = true;
  for (const int world_size : {2, 3}) CHECK(job.digests_of_run(world_size, 1, 2) == expected);
}

TEST_CASE("preferences: the stored reference is equal on every number of ranks, and must be there and fit") {
  PreferenceJob job({ObjectiveKind::kKto, 0.2}, ReferenceKind::kInitial, DType::kBF16);
  std::vector<double> expected;
  for (const int world_size : {1, 3, 4}) {
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      CHECK(code_of([&] { trainer.set_reference({1.0}); }) == "invalid_argument");
      const std::vector<double> reference = trainer.compute_reference();
      CHECK(reference.size() == 2 * (34 + 10));
      if (trainer.config().rank == 0 && expected.empty()) expected = reference;
      CHECK(reference == expected);
    });
  }
  job.on_ranks(1, 1, [&](Trainer& trainer) {
    trainer.initialize();
    CHECK(code_of([&] { trainer.step(0); }) == "invalid_argument");
  });
}

TEST_CASE("preferences: an evaluation before the first step has the reference's numbers, and changes nothing") {
  PreferenceJob job({ObjectiveKind::kDpo, 0.2}, ReferenceKind::kBase, DType::kBF16);
  const auto expected = job.digests_of_run(2, 1, 2).back();
  Digest128 digest{};
  std::mutex mutex;
  job.on_ranks(2, 1, [&](Trainer& trainer) {
    trainer.initialize();
    const EvalResult result = trainer.evaluate(0);
    CHECK(result.num_sequences == 10);
    CHECK(result.loss == doctest::Approx(0.693147180559945));
    CHECK(result.preference.value().margin == 0);
    CHECK(result.preference.value().log_prob_chosen.value() < 0);
    for (int step = 0; step < 2; ++step) trainer.step(0);
    const std::lock_guard lock(mutex);
    digest += trainer.digest_part();
  });
  CHECK(digest.to_hex() == expected);
}

// Without another completion z is 0, and before the first step so is the reward.
TEST_CASE("preferences: KTO trains and evaluates on a single sequence, which has no other completion") {
  const TemporaryFile one(bytes_of(preferences(1, 17, 101, 3)));
  for (const ReferenceKind reference : {ReferenceKind::kBase, ReferenceKind::kInitial}) {
    PreferenceJob job({ObjectiveKind::kKto, 0.2}, reference, DType::kF32);
    job.config.training_files = {{one.path()}};
    job.config.evaluation_files = {{one.path()}};
    job.on_ranks(2, 1, [&](Trainer& trainer) {
      trainer.initialize();
      trainer.compute_reference();
      CHECK(trainer.evaluate(0).loss == doctest::Approx(0.5));
      CHECK(trainer.step(0).loss == doctest::Approx(0.5));
    });
  }
}

TEST_CASE("preferences: what cannot be is refused with a typed error") {
  const auto code_with = [](const auto& change) {
    PreferenceJob job({ObjectiveKind::kKto, 0.2}, ReferenceKind::kInitial, DType::kF32);
    change(job.config);
    return code_of([&] { job.on_ranks(1, 1, [](Trainer&) {}); });
  };
  const TemporaryFile odd(bytes_of(preferences(15, 17, 101, 3)));
  CHECK(code_with([](TrainerConfig&) {}) == "none");
  CHECK(code_with([](TrainerConfig& config) { config.preference->reference = ReferenceKind::kBase; }) ==
        "invalid_argument");
  CHECK(code_with([](TrainerConfig& config) { config.preference->reference = ReferenceKind::kNone; }) ==
        "invalid_argument");
  CHECK(code_with([](TrainerConfig& config) { config.preference->objective.beta = 0; }) == "invalid_argument");
  CHECK(code_with([&](TrainerConfig& config) {
          config.preference->objective.kind = ObjectiveKind::kDpo;
          config.training_files = {{odd.path()}};
        }) == "token_file_invalid");
}

TEST_CASE(
    "preferences: experts in two sets, with their auxiliary loss, give equal digests and metrics on 2 and 4 ranks") {
  for (const ObjectiveKind kind : {ObjectiveKind::kDpo, ObjectiveKind::kKto}) {
    PreferenceJob job({kind, 0.3}, ReferenceKind::kInitial, DType::kBF16);
    for (const auto& [name, model] : family_configs()) {
      if (name == "mixtral") job.config.model = model;
    }
    job.config.model.vocab_size = 101;
    job.config.model.num_experts = 4;
    job.config.model.router_aux_loss_coef = 0.1;
    job.config.batch.global_batch_size = 12;
    job.config.zero.expert_parallel_size = 2;
    const Reported expected = reported(job, 2, 1).front();
    for (const Reported& of_rank : reported(job, 4, 1)) CHECK(of_rank == expected);
  }
}

DEVICE_TEST_CASE(
    "CUDA devices: preference objectives report the same on 1 and 3 ranks, and losses that follow the CPU's") {
  for (const Device device : cuda_devices_here()) {
    for (const ObjectiveKind kind : {ObjectiveKind::kDpo, ObjectiveKind::kKto}) {
      PreferenceJob there({kind, 0.3}, ReferenceKind::kBase, DType::kF32),
          here({kind, 0.3}, ReferenceKind::kBase, DType::kF32);
      there.config.device = device;
      for (PreferenceJob* job : {&there, &here}) job->config.batch.global_batch_size = 6;
      const Reported actual = reported(there, 1, 1).front(), expected = reported(here, 1, 1).front();
      for (std::size_t step = 0; step < expected.losses.size(); ++step)
        CHECK(actual.losses[step] == doctest::Approx(expected.losses[step]).epsilon(1e-5));
      CHECK(reported(there, 3, 1).back() == actual);
    }
  }
}
