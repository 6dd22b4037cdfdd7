// A quantized base in training: the same bits on any number of ranks, of a base from a seed as from elements that come
// in pieces.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/model/family_configs.h"
#include "test/train/tiny_job.h"
#include "zero/partition/param_init.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

void over_quantized_base(ModelConfig& model, QuantFormat format) {
  model.adapter = AdapterConfig{3, 0.75, 0, AdapterInit::kKaimingUniform, adapter_targets(model, 2), {"norm", "ln_f"}};
  model.quantization = format;
}

struct QuantizedJob : TinyJob {
  explicit QuantizedJob(QuantFormat format, DType precision = DType::kBF16) : TinyJob(precision) {
    over_quantized_base(config.model, format);
  }
};

/// The sum of the ranks' shares.
std::string base_digest(TinyJob& job, int world_size) {
  std::mutex mutex;
  Digest128 sum;
  job.on_ranks(world_size, 1, [&](Trainer& trainer) {
    trainer.initialize();
    const std::lock_guard lock(mutex);
    sum += trainer.base_digest_part();
  });
  return sum.to_hex();
}

/// Gives a trainer the base that a seed makes, in pieces of an odd size, the last one first.
void load_in_pieces(Trainer& trainer, std::uint64_t seed) {
  for (const OwnedSlice& slice : trainer.base_slices()) {
    constexpr std::int64_t kPiece = 1001;
    for (std::int64_t end = slice.elements.end; end > slice.elements.begin; end -= kPiece) {
      const std::int64_t begin = std::max(slice.elements.begin, end - kPiece);
      std::vector<float> values(static_cast<std::size_t>(end - begin));
      init_param(trainer.params()[slice.param], seed, slice.param, begin, values);
      trainer.load(StateId::kMaster, slice.param, begin, values);
    }
  }
}

std::size_t params_bytes(const Trainer& trainer) { return trainer.memory().front().num_bytes; }

}  // namespace

TEST_CASE(
    "quantized base: digests are equal for 1, 2 and 3 ranks, 1 and 2 threads, with and without checkpointing, in every "
    "family") {
  for (const auto& [name, model] : family_configs()) {
    for (const QuantFormat format : {QuantFormat::kNf4, QuantFormat::kInt8}) {
      CAPTURE(name);
      TinyJob job(DType::kBF16);
      job.config.model = model;
      over_quantized_base(job.config.model, format);
      const auto expected = job.digests_of_run(1, 1, 4);
      REQUIRE(expected.front() != expected.back());
      CHECK(job.digests_of_run(3, 1, 4) == expected);
      job.config.activation_checkpointing = true;
      CHECK(job.digests_of_run(2, 2, 4) == expected);
      job.config.model.quantization.reset();
      CHECK(job.digests_of_run(2, 2, 4) != expected);
    }
  }
}

TEST_CASE("quantized base: a job that is saved and loaded on 2, 3 and 1 ranks ends like one that never stopped") {
  for (const DType precision : {DType::kBF16, DType::kF16, DType::kF32}) {
    QuantizedJob job(QuantFormat::kNf4, precision);
    const auto expected = job.digests_of_run(1, 2, 6).back();
    SavedState state = job.run_from(nullptr, 2, 2);
    state = job.run_from(&state, 3, 2);
    state = job.run_from(&state, 1, 2);
    CHECK(state.digest == expected);
  }
}

TEST_CASE("quantized base: experts in sets on several ranks have the bits of those on others") {
  TinyJob job(DType::kBF16);
  for (const auto& [name, model] : family_configs())
    if (name == "mixtral") job.config.model = model;
  over_quantized_base(job.config.model, QuantFormat::kNf4);
  job.config.model.num_experts = 4;
  job.config.zero.expert_parallel_size = 2;
  job.config.batch = {16, 2, 17};
  CHECK(job.digests_of_run(2, 1, 3) == job.digests_of_run(4, 1, 3));
}

DEVICE_TEST_CASE("quantized base: one that is loaded in pieces has the bits of one from the seed") {
  for (const Device device : devices_here()) {
    CAPTURE(to_string(device));
    QuantizedJob job(QuantFormat::kInt8);
    job.config.device = device;
    const auto expected = job.digests_of_run(1, 1, 3).back();
    job.on_ranks(1, 1, [&](Trainer& trainer) {
      trainer.initialize();
      const TrainingPosition fresh = trainer.position();
      load_in_pieces(trainer, job.config.seed);
      trainer.finish_load(fresh, Restore::kFull);
      for (int step = 0; step < 3; ++step) trainer.step(0);
      CHECK(trainer.digest_part().to_hex() == expected);
    });
  }
}

TEST_CASE("quantized base: its digest is that of the base that is not quantized, on any number of ranks") {
  QuantizedJob job(QuantFormat::kNf4);
  const std::string expected = base_digest(job, 1);
  CHECK(base_digest(job, 3) == expected);
  job.config.model.quantization.reset();
  CHECK(base_digest(job, 2) == expected);
}

TEST_CASE("quantized base: a matrix of which a piece is missing is refused, and so is a copy of one") {
  QuantizedJob job(QuantFormat::kNf4);
  job.on_ranks(1, 1, [&](Trainer& trainer) {
    trainer.initialize();
    const auto& params = trainer.params();
    const auto quantized =
        std::ranges::find_if(params, [](const ParamSpec& spec) { return spec.quantization.has_value(); });
    const auto param = static_cast<std::size_t>(quantized - params.begin());
    const std::vector<float> piece(100);
    CHECK(code_of([&] { trainer.load(StateId::kExpAvg, param, 0, piece); }) == "slice_not_owned");
    CHECK(code_of([&] { trainer.load(StateId::kMaster, param, quantized->numel() - 99, piece); }) == "slice_not_owned");
    trainer.load(StateId::kMaster, param, 0, piece);
    CHECK(code_of([&] { trainer.finish_load(trainer.position(), Restore::kFull); }) == "invalid_argument");
  });
}

TEST_CASE("quantized base: ranks hold a quarter or half of the bytes of its matrices") {
  QuantizedJob plain(QuantFormat::kNf4), nf4(QuantFormat::kNf4), int8(QuantFormat::kInt8);
  plain.config.model.quantization.reset();
  std::size_t bytes[3] = {};
  const auto measure = [&](TinyJob& job, std::size_t& target) {
    job.on_ranks(1, 1, [&](Trainer& trainer) { target = params_bytes(trainer); });
  };
  measure(plain, bytes[0]);
  measure(nf4, bytes[1]);
  measure(int8, bytes[2]);
  CHECK(bytes[1] < bytes[2]);
  CHECK(bytes[2] < bytes[0]);
}
