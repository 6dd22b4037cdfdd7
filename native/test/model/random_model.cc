#include "test/model/random_model.h"

#include <random>

#include "test/model/is_here.h"

namespace zerofleet::test {

RandomModel::RandomModel(Machine& machine, const ModelConfig& config, DType dtype, const TransformerOptions& options,
                         const PassShape& shape)
    : specs_(param_specs(config)), model_(machine.ctx, config, dtype, shape.batch, shape.length, options) {
  std::mt19937 random(31);
  std::normal_distribution<float> normal(0.0F, 0.2F);
  for (const ParamSpec& spec : specs_) {
    Buffer& buffer = params_.emplace_back(machine.ctx.device, static_cast<std::size_t>(spec.numel()) * size_of(dtype));
    const float centre = spec.init == ParamInit::kOnes ? 1.0F : 0.0F;
    for (std::int64_t i = 0; i < spec.numel(); ++i) {
      const float value = centre + normal(random);
      const auto at = static_cast<std::size_t>(i);
      if (dtype == DType::kF32) buffer.as<float>()[at] = value;
      if (dtype == DType::kBF16) buffer.as<bf16>()[at] = to_bf16(value);
      if (dtype == DType::kF16) buffer.as<f16>()[at] = to_f16(value);
    }
    pointers_.push_back(is_here(spec, config, options) ? buffer.data() : nullptr);
  }
  const auto vocab = static_cast<std::uint32_t>(config.vocab_size);
  for (std::int64_t i = 0; i < shape.rows(); ++i) {
    tokens.push_back(static_cast<std::int32_t>(random() % vocab));
    targets.push_back(static_cast<std::int32_t>(random() % vocab));
  }
  model_.bind_params(pointers_);
  model_.params_changed();
}

RandomModel::Gradients RandomModel::gradients(LeafKey key) {
  Gradients gradients;
  gradients.of.resize(specs_.size());
  gradients.result = model_.forward_backward(leaf(key), {1.0F, 2.0F}, [&](std::size_t param, std::span<const float> grad) {
    gradients.of[param].assign(grad.begin(), grad.end());
    gradients.order.push_back(param);
  });
  return gradients;
}

void RandomModel::move(const std::vector<std::vector<float>>& direction, double factor) {
  for (std::size_t param = 0; param < params_.size(); ++param) {
    const std::span<float> values = params_[param].as<float>();
    for (std::size_t i = 0; i < direction[param].size(); ++i) {
      values[i] = static_cast<float>(static_cast<double>(values[i]) + factor * static_cast<double>(direction[param][i]));
    }
  }
  model_.params_changed();
}

}  // namespace zerofleet::test
