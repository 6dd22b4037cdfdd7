// Calls and configurations that a training session refuses.
#include <doctest/doctest.h>

#include <functional>

#include "test/error_code.h"
#include "test/train/session/session_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("session: a step without gradients, and calls that do not fit, are refused and change nothing") {
  SessionJob job;
  const PassLoss ppo{PassLossKind::kPpo, 0.2, 0.28}, plain{PassLossKind::kCrossEntropy},
      dpo{PassLossKind::kDpo, 0, 0, 0.3};
  const PassRows rows = random_rows(1, 4, ppo);
  const auto refusals = [&](Trainer& trainer) {
    const auto code_with = [&](const PassLoss& loss, const std::function<void(PassRows&)>& change) {
      PassRows changed = rows;
      change(changed);
      return code_of([&] { trainer.passes().forward_backward(loss, changed); });
    };
    CHECK(code_of([&] { trainer.step(0); }) == "invalid_argument");
    CHECK(code_of([&] { trainer.evaluate(0); }) == "no_evaluation_data");
    CHECK(code_with(ppo, [](PassRows& r) { r.lengths.clear(); }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.lengths[0] = 0; }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.lengths[0] = 18; }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.lengths[0] += 1; }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.targets.pop_back(); }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.tokens[0] = 101; }) == "token_out_of_vocab");
    CHECK(code_with(ppo, [](PassRows& r) { r.tokens[0] = -1; }) == "token_out_of_vocab");
    CHECK(code_with(ppo, [](PassRows& r) { r.targets[0] = 101; }) == "token_out_of_vocab");
    CHECK(code_with(ppo, [](PassRows& r) { r.targets[0] = -1; }) == "token_out_of_vocab");
    CHECK(code_with(ppo, [](PassRows& r) { r.log_probs.clear(); }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.advantages.pop_back(); }) == "invalid_argument");
    CHECK(code_with(ppo, [](PassRows& r) { r.weights = r.advantages; }) == "invalid_argument");
    CHECK(code_with(plain, [](PassRows&) {}) == "invalid_argument");
    CHECK(code_with(kPenalized, [](PassRows&) {}) == "invalid_argument");
    CHECK(code_with({PassLossKind::kPpo, -1, 0}, [](PassRows&) {}) == "invalid_argument");
    CHECK(code_with({PassLossKind::kDpo, 0, 0, 0}, [](PassRows& r) { r.advantages.clear(); }) == "invalid_argument");
    CHECK(code_of([&] { trainer.passes().forward_backward(dpo, random_rows(2, 3, dpo)); }) == "invalid_argument");
    CHECK(code_of([&] { trainer.passes().forward_backward(ppo, random_rows(2, 11, ppo)); }) == "invalid_argument");
    PassRows without_rejected = random_rows(2, 2, dpo);
    std::fill(without_rejected.targets.begin() + without_rejected.lengths[0], without_rejected.targets.end(), -100);
    CHECK(code_of([&] { trainer.passes().forward(dpo, without_rejected); }) == "invalid_argument");
  };
  const auto script = [&](bool refuse) {
    return [&, refuse](Trainer& trainer, SessionRecord& record) {
      if (refuse) CHECK(code_of([&] { trainer.optim_step(1e-2, kUpdate); }) == "no_gradients");
      if (refuse) refusals(trainer);
      trainer.passes().forward_backward(ppo, rows);
      if (refuse) refusals(trainer);
      if (refuse) CHECK(code_of([&] { trainer.optim_step(-1, kUpdate); }) == "invalid_argument");
      if (refuse) CHECK(code_of([&] { trainer.optim_step(1e-2, {1.5}); }) == "invalid_argument");
      record.add(trainer.optim_step(1e-2, kUpdate));
      if (refuse) CHECK(code_of([&] { trainer.optim_step(1e-2, kUpdate); }) == "no_gradients");
      record.add_digest(trainer);
    };
  };
  const auto expected = job.run(1, 1, script(false));
  for (const int world_size : {1, 2}) CHECK(job.run(world_size, 1, script(true)) == expected);
  TinyJob plain_job(DType::kBF16);
  plain_job.on_ranks(1, 1, [](Trainer& trainer) {
    CHECK(code_of([&] { trainer.passes(); }) == "invalid_argument");
    CHECK(code_of([&] { trainer.optim_step(1e-2, kUpdate); }) == "invalid_argument");
    CHECK(code_of([&] { trainer.sample({}); }) == "invalid_argument");
  });
}

TEST_CASE("session: configurations that cannot be are refused") {
  const auto code_with = [](const std::function<void(TrainerConfig&)>& change) {
    SessionJob job;
    change(job.config);
    return code_of([&] { validate(job.config); });
  };
  CHECK(code_with([](TrainerConfig&) {}) == "none");
  CHECK(code_with([](TrainerConfig& c) { c.world_size = 9; }) == "none");
  CHECK(code_with([](TrainerConfig& c) { c.training_files = {{"tokens"}}; }) == "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.evaluation_files = {{"tokens"}}; }) == "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.preference.emplace().reference = ReferenceKind::kInitial; }) ==
        "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.zero.stage = c.zero.lanes = 1; }) == "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.precision = DType::kF16; }) == "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.model.attention_dropout = 0.1; }) == "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.optimizer.type = OptimizerType::kLion; }) == "invalid_argument");
  CHECK(code_with([](TrainerConfig& c) { c.optimizer.ema.decay = 0.9; }) == "invalid_argument");
}
