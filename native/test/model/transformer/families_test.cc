// Properties of every family: order of gradients, threads, activation checkpointing, dropout.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"
#include "test/model/family_configs.h"
#include "test/model/golden_model.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Loss that RandomModel takes the gradients of.
double total_loss(const LeafResult& result) { return result.loss_sum + 2 * result.aux_loss; }

double squared_norm(const std::vector<std::vector<float>>& values) {
  double sum = 0;
  for (const auto& part : values) {
    for (const float value : part) sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

void add(const std::vector<std::vector<float>>& part, std::vector<std::vector<float>>& sum) {
  if (sum.empty()) sum.resize(part.size());
  for (std::size_t param = 0; param < part.size(); ++param) {
    sum[param].resize(part[param].size());
    for (std::size_t i = 0; i < part[param].size(); ++i) sum[param][i] += part[param][i];
  }
}

/// Puts padding behind the sequences of a model's batch, and gives the result to another model.
void pad(const RandomModel& alone, std::int32_t length, std::int32_t padded_length, RandomModel& padded) {
  padded.lengths = {length, length};
  for (std::size_t i = 0; i < padded.tokens.size(); ++i) {
    const auto sequence = static_cast<std::int32_t>(i) / padded_length,
               position = static_cast<std::int32_t>(i) % padded_length;
    const auto from = static_cast<std::size_t>(sequence * length + position);
    const bool is_padding = position >= length;
    padded.tokens[i] = is_padding ? 0 : alone.tokens[from];
    padded.targets[i] = is_padding ? -100 : alone.targets[from];
    padded.document_starts.push_back(is_padding ? length : 0);
  }
}

}  // namespace

TEST_CASE("families: gradients come once each, in reverse canonical order") {
  Machine machine(best_cpu_isa(), 2);
  for (const auto& [name, config] : family_configs()) {
    CAPTURE(name);
    RandomModel model(machine.ctx, config, DType::kBF16);
    const auto order = model.gradients().order;
    REQUIRE(order.size() == model.specs().size());
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == order.size() - 1 - i);
  }
}

TEST_CASE("families: the same bits for 1, 2 and 3 threads, with everything kept and with little") {
  for (const auto& [name, config] : family_configs()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(name);
      Machine one(best_cpu_isa(), 1);
      const auto expected = RandomModel(one.ctx, config, dtype).gradients();
      for (const int threads : {1, 2, 3}) {
        CAPTURE(threads);
        Machine machine(best_cpu_isa(), threads);
        RandomModel thrifty(machine.ctx, config, dtype,
                            {.checkpoint_activations = true, .weights = WeightUse::kInPlace});
        CHECK(RandomModel(machine.ctx, config, dtype).gradients() == expected);
        CHECK(thrifty.gradients() == expected);
        CHECK(thrifty.gradients() == expected);
      }
    }
  }
}

// Along its own direction the gradient's slope is its squared norm, dropout included, as long as the masks stay. A
// choice of experts that changes is a jump without a slope, so here all are chosen.
DEVICE_TEST_CASE("families: gradients are those of the loss, dropout included") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device, best_cpu_isa(), 2);
    for (auto [name, config] : family_configs()) {
      const bool drops = config.attention_dropout > 0;
      if (device.kind != DeviceKind::kCpu && !drops) continue;  // the golden files check those
      CAPTURE(name);
      config.experts_per_token = config.num_experts;
      RandomModel model(machine.ctx, config, DType::kF32);
      const auto here = model.gradients();
      const double slope = squared_norm(here.gradients), step = 1e-3 / std::sqrt(slope);
      model.move(here.gradients, step);
      const double ahead = total_loss(model.gradients().result);
      model.move(here.gradients, -2 * step);
      const double behind = total_loss(model.gradients().result);
      CHECK((ahead - behind) / (2 * step) == doctest::Approx(slope).epsilon(2e-3));
    }
  }
}

TEST_CASE("families: masks of dropout depend on seed, step and leaf; evaluation drops nothing") {
  Machine machine(best_cpu_isa(), 2);
  for (const auto& [name, config] : family_configs()) {
    if (config.residual_dropout + config.attention_dropout == 0) continue;
    CAPTURE(name);
    RandomModel model(machine.ctx, config, DType::kF32);
    const auto expected = model.gradients({1, 2, 3});
    CHECK(model.gradients({1, 2, 3}) == expected);
    for (const LeafKey key : {LeafKey{2, 2, 3}, LeafKey{1, 1, 3}, LeafKey{1, 2, 4}}) {
      CHECK(model.gradients(key).result.loss_sum != expected.result.loss_sum);
    }
    ModelConfig dry = config;
    dry.embedding_dropout = dry.attention_dropout = dry.residual_dropout = 0;
    RandomModel without(machine.ctx, dry, DType::kF32);
    const double loss = without.gradients().result.loss_sum;
    CHECK(model.model().forward(model.leaf({1, 2, 3})).loss_sum == loss);
    CHECK(expected.result.loss_sum != loss);
  }
}

DEVICE_TEST_CASE("families: documents in one sequence are as if each were alone") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device, best_cpu_isa(), 2);
    for (auto [name, config] : family_configs()) {
      CAPTURE(name);
      config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
      config.router_aux_loss_coef = 0;  // is of a whole leaf
      const std::vector<std::int32_t> sizes{7, 1, 11};
      RandomModel packed(machine.ctx, config, DType::kF32, {.checkpoint_activations = true}, {1, 19});
      for (const std::int32_t size : sizes) {
        for (std::int32_t i = 0, start = static_cast<std::int32_t>(packed.document_starts.size()); i < size; ++i) {
          packed.document_starts.push_back(start);
        }
      }
      const auto together = packed.gradients();
      double loss = 0;
      std::vector<std::vector<float>> sum;
      std::size_t begin = 0;
      for (const std::int32_t size : sizes) {
        RandomModel alone(machine.ctx, config, DType::kF32, {}, {1, size});
        const auto count = static_cast<std::size_t>(size);
        std::copy_n(packed.tokens.begin() + static_cast<std::ptrdiff_t>(begin), count, alone.tokens.begin());
        std::copy_n(packed.targets.begin() + static_cast<std::ptrdiff_t>(begin), count, alone.targets.begin());
        const auto part = alone.gradients();
        loss += part.result.loss_sum;
        add(part.gradients, sum);
        begin += count;
      }
      CHECK(together.result.loss_sum == doctest::Approx(loss).epsilon(1e-6));
      for (std::size_t param = 0; param < sum.size(); ++param) {
        CAPTURE(packed.specs()[param].name);
        CHECK(relative_error(together.gradients[param], sum[param]) < 1e-5);
      }
    }
  }
}

DEVICE_TEST_CASE("families: padding behind a sequence changes neither losses nor gradients") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device, best_cpu_isa(), 2);
    for (auto [name, config] : family_configs()) {
      CAPTURE(name);
      config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
      constexpr std::int32_t kLength = 11, kPadded = 61;  // of which a GPU computes 32
      RandomModel alone(machine.ctx, config, DType::kF32, {}, {2, kLength});
      RandomModel padded(machine.ctx, config, DType::kF32, {}, {2, kPadded});
      pad(alone, kLength, kPadded, padded);
      const auto expected = alone.gradients(), here = padded.gradients();
      CHECK(here.result.loss_sum == doctest::Approx(expected.result.loss_sum).epsilon(1e-6));
      CHECK(here.result.aux_loss == doctest::Approx(expected.result.aux_loss).epsilon(1e-6));
      for (std::size_t param = 0; param < here.gradients.size(); ++param) {
        CAPTURE(alone.specs()[param].name);
        CHECK(relative_error(here.gradients[param], expected.gradients[param]) < 1e-5);
      }
    }
  }
}

TEST_CASE("families: a batch has the same bits whatever room for longer sequences there is") {
  for (const CpuIsa isa : available_isas()) {
    Machine machine(isa, 2);
    for (auto [name, config] : family_configs()) {
      for (const DType dtype : kAllDTypes) {
        CAPTURE(name);
        config.attention_dropout = 0.1;
        RandomModel alone(machine.ctx, config, dtype, {}, {2, 13});
        RandomModel some(machine.ctx, config, dtype, {}, {2, 32}), more(machine.ctx, config, dtype, {}, {2, 61});
        pad(alone, 13, 32, some);
        pad(alone, 13, 61, more);
        for (int pass = 0; pass < 2; ++pass) {
          CHECK(some.gradients() == alone.gradients());
          CHECK(more.gradients() == alone.gradients());
        }
      }
    }
  }
}

TEST_CASE("lengths that cannot be are refused") {
  Machine machine(best_cpu_isa(), 1);
  RandomModel model(machine.ctx, config_of("gpt2"), DType::kF32, {}, {2, 4});
  model.targets[7] = -100;
  for (const std::vector<std::int32_t>& lengths : {std::vector<std::int32_t>{4}, {4, 5}, {-1, 4}, {4, 2}}) {
    model.lengths = lengths;
    try {
      model.gradients();
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == "invalid_argument");
      CHECK(std::string(error.what()).find("lengths") != std::string::npos);
    }
  }
  model.lengths = {4, 3};
  CHECK_NOTHROW(model.gradients());
}

TEST_CASE("documents that cannot be are refused") {
  Machine machine(best_cpu_isa(), 1);
  RandomModel model(machine.ctx, config_of("gpt2"), DType::kF32, {}, {1, 4});
  for (const std::vector<std::int32_t>& starts :
       {std::vector<std::int32_t>{0, 0, 0}, {0, 2, 2, 2}, {0, -1, 0, 0}, {0, 1, 0, 0}}) {
    model.document_starts = starts;
    try {
      model.gradients();
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == "invalid_argument");
      CHECK(std::string(error.what()).find("document_starts") != std::string::npos);
    }
  }
}
