// A dense MLP that takes the rows of a pass in parts, beside one that takes all rows at once.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/common/row_part.h"
#include "test/devices_here.h"
#include "test/model/family_configs.h"
#include "test/model/golden_model.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr PassShape kLongPass{2, 67};  // 134 rows: parts of 64, 64 and 6

/// Every dense family, without an adapter and with one of each type.
std::vector<std::pair<std::string, ModelConfig>> dense_models() {
  std::vector<std::pair<std::string, ModelConfig>> models;
  for (const auto& [name, given] : family_configs()) {
    if (given.num_experts > 0) continue;
    ModelConfig config = given;
    config.max_position_embeddings = std::max(config.max_position_embeddings, kLongPass.length);
    models.emplace_back(name, config);
    config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
    config.adapter = AdapterConfig{3, 0.75, 0.3, AdapterInit::kKaimingUniform, adapter_targets(config), {}};
    models.emplace_back(name + " with lora", config);
    config.adapter->type = AdapterType::kDora;
    config.adapter->dropout = 0;
    models.emplace_back(name + " with dora", config);
  }
  return models;
}

RandomModel::Gradients gradients_with(const Context& ctx, const ModelConfig& config, DType dtype,
                                      const TransformerOptions& options) {
  return RandomModel(ctx, config, dtype, options, kLongPass).gradients();
}

}  // namespace

TEST_CASE("parts are equal, of whole units, and no more than rows") {
  CHECK(part_rows(134, 64) == 64);
  CHECK(part_rows(134, 128) == 128);
  CHECK(part_rows(300, 256) == 192);
  CHECK(part_rows(64, 64) == 64);
  CHECK(part_rows(63, 1000) == 63);
  CHECK(part_rows(65, 64) == 64);
}

TEST_CASE("rows in parts: a CPU's gradients have the bits of all rows at once, and take less memory") {
  DeviceMachine machine({}, best_cpu_isa(), 2);
  for (const auto& [name, config] : dense_models()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CAPTURE(name);
      const TransformerOptions whole{.checkpoint_activations = true},
          parts{.checkpoint_activations = true, .max_rows_at_once = 64};
      const auto expected = gradients_with(machine.ctx, config, dtype, {});
      CHECK(gradients_with(machine.ctx, config, dtype, whole) == expected);
      RandomModel in_parts(machine.ctx, config, dtype, parts, kLongPass),
          at_once(machine.ctx, config, dtype, whole, kLongPass);
      CHECK(in_parts.gradients() == expected);
      CHECK(in_parts.gradients() == expected);
      at_once.gradients();
      CHECK(in_parts.model().activation_bytes() < at_once.model().activation_bytes());
    }
  }
}

// A device adds the parts of a gradient in another order than the rows of one product.
DEVICE_TEST_CASE("rows in parts: gradients of all rows") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, config] : dense_models()) {
      CAPTURE(name);
      const auto expected = gradients_with(machine.ctx, config, DType::kF32, {});
      const auto found =
          gradients_with(machine.ctx, config, DType::kF32, {.checkpoint_activations = true, .max_rows_at_once = 64});
      CHECK(found.order == expected.order);
      CHECK(found.result.loss_sum == doctest::Approx(expected.result.loss_sum).epsilon(1e-6));
      for (std::size_t param = 0; param < expected.gradients.size(); ++param)
        CHECK(relative_error(found.gradients[param], expected.gradients[param]) < 1e-5);
    }
  }
}
