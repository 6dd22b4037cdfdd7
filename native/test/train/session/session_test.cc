// Training sessions: results and states depend on the calls alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "data/batch_source.h"
#include "test/error_code.h"
#include "test/train/session/session_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Three steps of several passes, one for each number of rows.
void train(Trainer& trainer, SessionRecord& record, const PassLoss& loss, const std::vector<std::int64_t>& passes) {
  for (std::uint64_t step = 0; step < 3; ++step) {
    for (const std::int64_t num_rows : passes) {
      const PassRows rows = random_rows(10 * step + static_cast<std::uint64_t>(num_rows), num_rows, loss,
                                        trainer.config().model.vocab_size);
      record.add(trainer.passes().forward(loss, rows));
      record.add(trainer.passes().forward_backward(loss, rows));
    }
    record.add(trainer.optim_step(1e-2, kUpdate));
    record.add_digest(trainer);
  }
}

void check_exact(SessionJob& job, const PassLoss& loss, const std::vector<std::int64_t>& passes,
                 const std::vector<int>& world_sizes) {
  const auto script = [&](Trainer& trainer, SessionRecord& record) { train(trainer, record, loss, passes); };
  const auto expected = job.run(1, 1, script);
  CHECK(expected[expected.size() - 1] != expected[expected.size() - 2]);
  for (const int world_size : world_sizes) {
    CAPTURE(world_size);
    CHECK(job.run(world_size, 2, script) == expected);
  }
}

double loss_of(const PassLoss& loss, const PassRows& rows, const std::vector<float>& log_probs) {
  return evaluate(loss, log_probs,
                  {std::ssize(rows.tokens), rows.targets, rows.weights, rows.log_probs, rows.advantages})
      .sums.loss;
}

}  // namespace

TEST_CASE("session: results and digests of every loss are equal on 1, 2, 3 and 5 ranks, with 1 to 5 leaves a pass") {
  for (const DType precision : {DType::kBF16, DType::kF32}) {
    for (const PassLoss& loss : pass_losses()) {
      CAPTURE(static_cast<int>(loss.kind));
      SessionJob job(precision);
      check_exact(job, loss, {10, 2, 4}, kSanitized ? std::vector{3} : std::vector{2, 3, 5});
      if (!loss.has_pairs()) check_exact(job, loss, {1, 7, 3}, {3});
    }
  }
}

TEST_CASE("session: the same with adapters, quantized bases and groups of lanes") {
  const PassLoss loss{PassLossKind::kPpo, 0.2, 0.28};
  SessionJob adapted, nf4, int8(DType::kF32), grouped;
  adapted.add_adapter();
  nf4.add_adapter(QuantFormat::kNf4);
  int8.add_adapter(QuantFormat::kInt8);
  grouped.config.zero.lane_group = 2;
  for (SessionJob* job : {&adapted, &nf4, &int8, &grouped}) check_exact(*job, loss, {3, 10, 2}, {2, 3});
  for (SessionJob* job : {&adapted, &nf4, &int8}) check_exact(*job, kPenalized, {3, 10, 2}, {2, 3});
}

TEST_CASE("session: the penalty compares with the model without its adapter, from which the training begins") {
  SessionJob job;
  job.add_adapter();
  const PassRows rows = random_rows(1, 6, kPenalized);
  const auto script = [&](Trainer& trainer, SessionRecord& record) {
    const auto kl = [&] { return trainer.passes().forward(kPenalized, rows).metrics.at(2); };
    CHECK(kl() == std::pair<std::string, double>{"kl", 0});
    const std::vector<float> base = trainer.passes().forward_backward(kPenalized, rows).log_probs;
    record.add(trainer.optim_step(1e-2, kUpdate));
    const PassResult result = trainer.passes().forward(kPenalized, rows);
    double sum = 0;
    for (std::size_t at = 0; at < base.size(); ++at) {
      if (rows.targets[at] < 0) continue;
      const auto difference = static_cast<double>(base[at]) - static_cast<double>(result.log_probs[at]);
      const double ratio =
          std::exp(static_cast<double>(result.log_probs[at]) - static_cast<double>(rows.log_probs[at]));
      sum += ratio * (std::exp(difference) - difference - 1);
    }
    CHECK(kl().second > 0);
    CHECK(kl().second == doctest::Approx(sum / static_cast<double>(result.num_targets)));
  };
  job.run(1, 1, script);
}

TEST_CASE("session: a step over the rows of a training's step has the bits of that step") {
  // Sums and means differ by a power of two, which changes no bit but exponents.
  TinyJob plain(DType::kBF16);
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t i = 0; i < 16 * 40 + 1; ++i) tokens.push_back(i * i % 101);
  const TemporaryFile file(bytes_of(cut_into_sequences(tokens, 16)));
  plain.config.training_files = {{file.path()}};
  plain.config.evaluation_files.clear();
  plain.config.batch = {16, 2, 16};
  plain.config.lr_schedule = {LrScheduleType::kConstant, 1e-2, 0, 0, 20};
  const auto expected = plain.digests_of_run(1, 1, 3);

  SessionJob job;
  job.config.batch = plain.config.batch;
  const OptimizerOptions& options = job.config.optimizer;
  const UpdateSettings settings{options.beta1, options.beta2, options.eps, options.weight_decay,
                                static_cast<double>(job.config.gradient_clipping)};
  const BatchSource source(plain.config.training_files, plain.config.batch, 101, plain.config.data_seed);
  const auto script = [&](Trainer& trainer, SessionRecord& record) {
    for (std::int64_t step = 0; step < 3; ++step) {
      PassRows rows;
      LeafBatch batch;
      for (std::int64_t leaf = 0; leaf < 8; ++leaf) {
        source.load(step, leaf, batch);
        rows.lengths.insert(rows.lengths.end(), 2, 16);
        rows.tokens.insert(rows.tokens.end(), batch.tokens.begin(), batch.tokens.end());
        rows.targets.insert(rows.targets.end(), batch.targets.begin(), batch.targets.end());
      }
      REQUIRE(std::ranges::count(rows.targets, -100) == 0);
      rows.weights.assign(rows.targets.size(), 1.0F / 256);
      trainer.passes().forward_backward({PassLossKind::kCrossEntropy}, rows);
      trainer.optim_step(1e-2, settings);
      record.add_digest(trainer);
    }
  };
  for (const int world_size : {1, 3}) CHECK(job.run(world_size, 1, script) == expected);
}

TEST_CASE("session: the bits of a row do not depend on the other rows of its pass, nor on their order") {
  for (const DType precision : {DType::kBF16, DType::kF32}) {
    SessionJob job(precision);
    const PassLoss loss{PassLossKind::kImportanceSampling};
    const PassRows rows = random_rows(3, 9, loss);
    job.run(1, 2, [&](Trainer& trainer, SessionRecord&) {
      const PassResult all = trainer.passes().forward(loss, rows);
      CHECK(all.loss == doctest::Approx(loss_of(loss, rows, all.log_probs)).epsilon(1e-12));
      for (std::size_t token = 0; token < rows.targets.size(); ++token) {
        CHECK(std::isnan(all.log_probs[token]) == (rows.targets[token] < 0));
      }
      std::ptrdiff_t begin = 0;
      for (std::size_t number = 0; number < rows.lengths.size(); ++number) {
        const PassResult alone = trainer.passes().forward(loss, picked_rows(rows, {number}));
        const auto first = all.log_probs.begin() + begin;
        CHECK(std::equal(alone.log_probs.begin(), alone.log_probs.end(), first,
                         [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
        begin += rows.lengths[number];
      }
    });
  }
}

TEST_CASE("session: saved after a step and loaded on other ranks, it goes on with the same bits") {
  SessionJob job;
  const PassLoss loss{PassLossKind::kCispo, 0.2, 0.3};
  const auto step = [&](Trainer& trainer, std::uint64_t number) {
    trainer.passes().forward_backward(loss, random_rows(number, 5, loss));
    trainer.optim_step(1e-2, kUpdate);
  };
  const auto expected = job.run(1, 1, [&](Trainer& trainer, SessionRecord& record) {
    for (std::uint64_t number = 0; number < 3; ++number) step(trainer, number);
    record.add_digest(trainer);
  });
  std::vector<std::vector<float>> states[kMaxStates];
  for (auto& state : states) state.resize(param_specs(job.config.model).size());
  TrainingPosition position;
  const auto elements = [&](const Trainer& trainer, const OwnedSlice& slice) {
    auto& values = states[static_cast<std::size_t>(slice.state)][slice.param];
    values.resize(static_cast<std::size_t>(trainer.params()[slice.param].numel()));
    return std::span(values).subspan(static_cast<std::size_t>(slice.elements.begin),
                                     static_cast<std::size_t>(slice.elements.size()));
  };
  job.run(1, 1, [&](Trainer& trainer, SessionRecord&) {
    step(trainer, 0);
    step(trainer, 1);
    position = trainer.position();
    std::vector<std::byte> copy(trainer.owned_bytes());
    trainer.copy_state(copy);
    const float* values = reinterpret_cast<const float*>(copy.data());
    for (const OwnedSlice& slice : trainer.slices()) {
      const auto target = elements(trainer, slice);
      std::copy_n(values, target.size(), target.begin());
      values += target.size();
    }
  });
  CHECK(position.step == 2);
  for (auto& state : states) {
    for (std::size_t param = 0; param < state.size(); ++param) {
      state[param].resize(static_cast<std::size_t>(param_specs(job.config.model)[param].numel()));
    }
  }
  const auto resumed = job.run(3, 1, [&](Trainer& trainer, SessionRecord& record) {
    trainer.passes().forward_backward(loss, random_rows(77, 9, loss));  // the load drops its gradients
    for (const OwnedSlice& slice : trainer.slices()) {
      trainer.load(slice.state, slice.param, slice.elements.begin, elements(trainer, slice));
    }
    trainer.finish_load(position, Restore::kFull);
    step(trainer, 2);
    record.add_digest(trainer);
  });
  CHECK(resumed == expected);
}

TEST_CASE("session: updates that are not finite are skipped, however many there are, and the session goes on") {
  SessionJob job;
  const PassLoss loss{PassLossKind::kImportanceSampling};
  job.run(2, 1, [&](Trainer& trainer, SessionRecord& record) {
    const PassRows rows = random_rows(1, 3, loss);
    PassRows endless = rows;
    std::ranges::fill(endless.log_probs, -2000.0F);  // a ratio beyond fp64
    const Digest128 before = trainer.digest_part();
    for (int step = 0; step < 102; ++step) {
      CHECK_FALSE(std::isfinite(trainer.passes().forward_backward(loss, endless).loss));
      CHECK_FALSE(trainer.optim_step(1e-2, kUpdate).finite);
    }
    CHECK(trainer.digest_part() == before);
    const PassResult pass = trainer.passes().forward_backward(loss, rows);
    const StepResult result = trainer.optim_step(1e-2, kUpdate);
    CHECK(result.finite);
    CHECK(result.loss == pass.loss);
    CHECK(result.step == 103);
    CHECK(trainer.digest_part() != before);
    record.add(result);
  });
}

TEST_CASE("session: pairs need leaves of whole pairs, and rows without targets have no loss") {
  SessionJob job;
  const PassLoss dpo{PassLossKind::kDpo, 0, 0, 0.3};
  job.config.batch = {10, 1, 17};
  job.run(1, 1, [&](Trainer& trainer, SessionRecord&) {
    CHECK(code_of([&] { trainer.passes().forward(dpo, random_rows(2, 2, dpo)); }) == "invalid_argument");
    for (const PassLoss& loss : pass_losses()) {
      if (loss.has_pairs()) continue;
      PassRows rows = random_rows(2, 3, loss);
      std::ranges::fill(rows.targets, -100);
      const PassResult result = trainer.passes().forward_backward(loss, rows);
      CHECK(result.loss == 0);
      CHECK(result.num_targets == 0);
      for (const auto& [name, value] : result.metrics) CHECK(value == 0);
      const StepResult step = trainer.optim_step(1e-2, kUpdate);
      CHECK(step.finite);
      CHECK(step.grad_norm == 0);
    }
  });
}
