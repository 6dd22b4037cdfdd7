#include "test/model/random_model.h"

#include <algorithm>
#include <random>

#include "test/devices_here.h"
#include "test/model/is_here.h"

namespace zerofleet::test {

RandomModel::RandomModel(const Context& ctx, const ModelConfig& config, DType dtype, const TransformerOptions& options,
                         const PassShape& shape)
    : ctx_(ctx), specs_(param_specs(config)), model_(ctx, config, dtype, shape.batch, shape.length, options) {
  std::mt19937 random(31);
  std::normal_distribution<float> normal(0.0F, 0.2F);
  for (const ParamSpec& spec : specs_) {
    std::byte* data = params_.emplace_back(static_cast<std::size_t>(spec.numel()) * size_of(dtype)).data();
    const float centre = spec.init == ParamInit::kOnes ? 1.0F : 0.0F;
    for (std::int64_t i = 0; i < spec.numel(); ++i) {
      const float value = centre + normal(random);
      const auto at = static_cast<std::size_t>(i);
      if (dtype == DType::kF32) reinterpret_cast<float*>(data)[at] = value;
      if (dtype == DType::kBF16) reinterpret_cast<bf16*>(data)[at] = to_bf16(value);
      if (dtype == DType::kF16) reinterpret_cast<f16*>(data)[at] = to_f16(value);
    }
    pointers_.push_back(is_here(spec, config, options) ? data : nullptr);
  }
  const auto vocab = static_cast<std::uint32_t>(config.vocab_size);
  for (std::int64_t i = 0; i < shape.rows(); ++i) {
    tokens.push_back(static_cast<std::int32_t>(random() % vocab));
    targets.push_back(static_cast<std::int32_t>(random() % vocab));
  }
  quantized_ = QuantizedParams(ctx, specs_, dtype, pointers_);
  model_.bind_params(pointers_, quantized_.pointers());
  model_.params_changed();
}

RandomModel::Gradients RandomModel::gradients(LeafKey key) {
  Gradients gradients;
  gradients.gradients.resize(specs_.size());
  gradients.result =
      model_.forward_backward(leaf(key), {1.0F, 2.0F}, [&](std::size_t param, std::span<const float> grad) {
        gradients.gradients[param] = fetched(ctx_, grad);
        gradients.order.push_back(param);
      });
  return gradients;
}

std::vector<std::vector<float>> RandomModel::values() const {
  std::vector<std::vector<float>> values;
  for (std::size_t param = 0; param < params_.size(); ++param) {
    const auto* first = reinterpret_cast<const float*>(params_[param].data());
    values.emplace_back(first, first + specs_[param].numel());
  }
  return values;
}

void RandomModel::set(const std::vector<std::vector<float>>& values) {
  for (std::size_t param = 0; param < params_.size(); ++param) {
    std::ranges::copy(values.at(param), reinterpret_cast<float*>(params_[param].data()));
  }
  model_.params_changed();
}

void RandomModel::move(const std::vector<std::vector<float>>& direction, double factor) {
  for (std::size_t param = 0; param < params_.size(); ++param) {
    auto* values = reinterpret_cast<float*>(params_[param].data());
    for (std::size_t i = 0; i < direction[param].size(); ++i) {
      values[i] =
          static_cast<float>(static_cast<double>(values[i]) + factor * static_cast<double>(direction[param][i]));
    }
  }
  model_.params_changed();
}

}  // namespace zerofleet::test
