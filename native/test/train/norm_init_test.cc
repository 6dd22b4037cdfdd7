// Magnitudes of adapters begin as the norms of matrices that are drawn or loaded, whoever owns them.
#include "train/norm_init.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <span>
#include <vector>

#include "test/devices_here.h"
#include "test/model/adapted_matrices.h"
#include "test/model/family_configs.h"
#include "test/train/tiny_job.h"
#include "zero/partition/param_init.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

ModelConfig with_magnitudes(ModelConfig model) {
  model.adapter =
      AdapterConfig{3, 2, 0, AdapterInit::kKaimingUniform, adapter_targets(model, 2), {}, AdapterType::kDora};
  return model;
}

/// The base of the job's seed times a factor, and what is trained over it.
AllValues values_of(const TrainerConfig& config, const SavedState& state, float factor) {
  AllValues values = state.values[static_cast<std::size_t>(StateId::kMaster)];
  const std::vector<ParamSpec> specs = param_specs(config.model);
  for (std::size_t param = 0; param < specs.size() && specs[param].base; ++param) {
    init_param(specs[param], config.seed, param, 0, values[param]);
    for (float& value : values[param]) value *= factor;
  }
  return values;
}

void check_norms(const ModelConfig& model, const AllValues& values) {
  for (const Adapted& one : adapted_of(model, param_specs(model))) {
    REQUIRE(one.magnitude);
    for (std::int64_t o = 0; o < one.out; ++o) {
      const auto at = static_cast<std::size_t>(o);
      CHECK(static_cast<double>(values[*one.magnitude][at]) ==
            doctest::Approx(norm_of(one, values[one.weight], o)).epsilon(1e-5));
    }
  }
}

}  // namespace

TEST_CASE("magnitudes begin as norms, and digests are equal after each step on 1 to 3 ranks, in every family") {
  for (const auto& [name, family] : family_configs()) {
    CAPTURE(name);
    TinyJob job(DType::kF32);
    job.config.model = with_magnitudes(family);
    check_norms(job.config.model, values_of(job.config, job.run_from(nullptr, 2, 0), 1));
    job.config.precision = DType::kBF16;
    const auto expected = job.digests_of_run(1, 1, 4);
    CHECK(job.digests_of_run(3, 2, 4) == expected);
    SavedState state = job.run_from(nullptr, 2, 2);
    state = job.run_from(&state, 3, 2);
    CHECK(state.digest == expected.back());
  }
}

DEVICE_TEST_CASE(
    "magnitudes begin as norms on CUDA devices, and digests are equal for 1 rank, and for 3 with activation "
    "checkpointing") {
  for (const Device device : cuda_devices_here()) {
    TinyJob job(DType::kBF16);
    job.config.device = device;
    job.config.batch.global_batch_size = 6;
    job.config.model = with_magnitudes(job.config.model);
    const auto expected = job.digests_of_run(1, 1, 2);
    job.config.activation_checkpointing = true;
    CHECK(job.digests_of_run(3, 1, 2) == expected);
    job.config.precision = DType::kF32;
    check_norms(job.config.model, values_of(job.config, job.run_from(nullptr, 2, 0), 1));
  }
}

TEST_CASE("over a loaded base magnitudes are its norms, unless they are loaded as well") {
  TinyJob job(DType::kF32);
  job.config.model = with_magnitudes(config_of("gpt2"));
  const std::vector<ParamSpec> specs = param_specs(job.config.model);
  std::size_t num_base = 0;
  while (specs[num_base].base) ++num_base;
  const AllValues values = values_of(job.config, job.run_from(nullptr, 1, 0), 1.5F);
  for (const bool all : {false, true}) {
    for (const int world_size : {1, 3}) {
      AllValues after = values;
      std::mutex writing;
      job.on_ranks(world_size, 1, [&](Trainer& trainer) {
        trainer.initialize(num_base);
        std::vector<OwnedSlice> loaded = trainer.base_slices();
        if (all) std::ranges::copy(trainer.slices(), std::back_inserter(loaded));
        for (const OwnedSlice& slice : loaded) {
          if (slice.state != StateId::kMaster) continue;
          const auto begin = static_cast<std::size_t>(slice.elements.begin),
                     numel = static_cast<std::size_t>(slice.elements.size());
          trainer.load(slice.state, slice.param, slice.elements.begin,
                       std::span(values[slice.param]).subspan(begin, numel));
        }
        trainer.finish_load({}, Restore::kWeights);
        std::vector<std::byte> bytes(trainer.owned_bytes());
        trainer.copy_state(bytes);
        const auto* element = reinterpret_cast<const float*>(bytes.data());
        const std::lock_guard lock(writing);
        for (const OwnedSlice& slice : trainer.slices()) {
          if (slice.state == StateId::kMaster)
            std::copy_n(element, slice.elements.size(), after[slice.param].begin() + slice.elements.begin);
          element += slice.elements.size();
        }
      });
      if (all) CHECK(after == values);
      if (!all) check_norms(job.config.model, after);
    }
  }
}
