#include "train/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "core/error.h"
#include "test/comm/worlds.h"
#include "test/error_code.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

std::string code_of_config(const TrainerConfig& config) {
  try {
    validate(config);
  } catch (const Error& error) {
    return error.code();
  }
  return "none";
}

/// Sequences of 17 tokens and the target behind them: two good ones, and five with tokens outside of TinyJob's
/// vocabulary.
std::string mostly_bad_tokens() {
  std::vector<std::uint32_t> tokens(2 * 17 + 1, 1);
  tokens.resize(7 * 17 + 1, 1000);
  return bytes_of(cut_into_sequences(std::move(tokens), 17));
}

/// A seed with which the good sequences are the first leaf.
std::uint64_t seed_of_good_first_leaf(const TrainerConfig& config) {
  LeafBatch batch;
  for (std::uint64_t seed = 0;; ++seed) {
    const BatchSource source(config.training_files, config.batch, config.model.vocab_size, seed);
    if (code_of([&] { source.load(0, 0, batch); }) == "none") return seed;
  }
}

}  // namespace

TEST_CASE("training lowers the loss and reports its steps") {
  TinyJob job(DType::kBF16);
  job.on_ranks(1, 2, [&](Trainer& trainer) {
    trainer.initialize();
    const StepResult first = trainer.step(0);
    CHECK(first.step == 1);
    CHECK(first.num_targets == 14 * 17);
    CHECK(first.loss == doctest::Approx(std::log(101.0)).epsilon(0.02));
    CHECK(first.grad_norm > 0);
    CHECK(first.finite);
    StepResult last = first;
    for (int step = 1; step < 40; ++step) last = trainer.step(0);
    CHECK(last.loss < first.loss - 0.5);
    CHECK(last.step == 40);
    CHECK(trainer.position().optimizer_steps == 40);
  });
}

TEST_CASE("flags of any rank reach all ranks in the same step") {
  TinyJob job(DType::kBF16);
  job.on_ranks(3, 1, [&](Trainer& trainer) {
    trainer.initialize();
    CHECK(trainer.step(0).flags == 0);
    CHECK(trainer.step(trainer.config().rank == 1 ? 2 : trainer.config().rank == 2 ? 4 : 0).flags == 6);
    CHECK(trainer.step(0).flags == 0);
  });
}

TEST_CASE("elements of another rank cannot be loaded") {
  TinyJob job(DType::kBF16);
  job.on_ranks(2, 1, [&](Trainer& trainer) {
    const std::vector<float> values(4, 1.0F);
    for (const OwnedSlice& slice : trainer.slices()) {
      if (slice.elements.size() >= 4) trainer.load(slice.state, slice.param, slice.elements.begin, values);
      CHECK_THROWS_AS(trainer.load(slice.state, slice.param, slice.elements.end - 1, values), Error);
    }
  });
}

TEST_CASE("configurations that cannot train are refused with a code") {
  TinyJob job(DType::kBF16);
  CHECK(code_of_config(job.config) == "none");
  TrainerConfig config = job.config;
  config.batch.micro_batch_size = 4;
  CHECK(code_of_config(config) == "micro_batch_not_divisor");
  config = job.config;
  config.world_size = 8;
  CHECK(code_of_config(config) == "too_many_ranks");
  config = job.config;
  config.batch.sequence_length = 65;
  CHECK(code_of_config(config) == "sequence_longer_than_model");
  config = job.config;
  config.rank = 1;
  CHECK(code_of_config(config) == "invalid_argument");
}

TEST_CASE("a trainer whose step failed is destroyed at once, though another rank has not answered it") {
  constexpr auto kPatience = 60s;
  TinyJob job(DType::kBF16);
  const TemporaryFile tokens(mostly_bad_tokens());
  TrainerConfig config = job.config;
  config.training_files = {{tokens.path()}};
  config.evaluation_files.clear();
  config.num_threads = 1;
  config.world_size = 2;
  config.zero.bucket_bytes = std::int64_t{1} << 24;  // all gradients of a leaf are in transit together
  config.data_seed = seed_of_good_first_leaf(config);
  auto comms = make_thread_comms(2, kPatience);
  std::atomic<bool> is_destroyed = false;
  const auto codes = run_threads(2, [&](int rank) {
    TrainerConfig mine = config;
    mine.rank = rank;
    auto trainer = std::make_unique<Trainer>(mine, TrainerComms(std::move(comms[static_cast<std::size_t>(rank)])));
    trainer->initialize();
    if (rank == 1) return is_destroyed.wait(false);
    CHECK(code_of([&] { trainer->step(0); }) == "token_out_of_vocab");
    const auto start = std::chrono::steady_clock::now();
    trainer.reset();
    CHECK(std::chrono::steady_clock::now() - start < kPatience / 2);
    is_destroyed = true;
    is_destroyed.notify_all();
  });
  CHECK(codes == std::vector<std::string>{"none", "none"});
}

TEST_CASE("an abort ends the step of a rank that waits for another one") {
  TinyJob job(DType::kBF16);
  std::atomic<bool> is_over = false;
  job.on_ranks(2, 1, [&](Trainer& trainer) {
    trainer.initialize();
    if (trainer.config().rank == 1) return is_over.wait(false);
    const std::jthread aborter([&] { trainer.abort(); });  // before the exchange or during it
    CHECK(code_of([&] { trainer.step(0); }) == "comm_failed");
    is_over = true;
    is_over.notify_all();
  });
}
