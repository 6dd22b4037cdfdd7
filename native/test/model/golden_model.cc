#include "test/model/golden_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "kernels/attention/paged_attention.h"
#include "test/devices_here.h"
#include "test/model/is_here.h"

namespace zerofleet::test {

GoldenModel::GoldenModel(const GoldenFile& golden, const Context& ctx, DType dtype, const TransformerOptions& options)
    : golden_(golden),
      ctx_(ctx),
      dtype_(dtype),
      specs_(param_specs(golden.model_config())),
      model_(ctx, golden.model_config(), dtype, golden.integer("batch"), golden.integer("length"), options) {
  for (std::size_t param = 0; param < specs_.size(); ++param) {
    const std::vector<float> values = golden.floats("param." + specs_[param].name);
    REQUIRE(static_cast<std::int64_t>(values.size()) == specs_[param].numel());
    params_.emplace_back(values.size() * size_of(dtype));
    for (std::size_t i = 0; i < values.size(); ++i) put(param, i, values[i]);
    const bool here = is_here(specs_[param], golden.model_config(), options);
    pointers_.push_back(here ? params_.back().data() : nullptr);
  }
  quantized_ = QuantizedParams(ctx, specs_, dtype, pointers_);
  model_.bind_params(pointers_, quantized_.pointers());
  model_.params_changed();
}

void GoldenModel::put(std::size_t param, std::size_t i, float value) {
  switch (dtype_) {
    case DType::kF32:
      reinterpret_cast<float*>(params_[param].data())[i] = value;
      break;
    case DType::kBF16:
      reinterpret_cast<bf16*>(params_[param].data())[i] = to_bf16(value);
      break;
    case DType::kF16:
      reinterpret_cast<f16*>(params_[param].data())[i] = to_f16(value);
      break;
  }
}

void GoldenModel::fill_param(std::size_t param, float value) {
  for (std::int64_t i = 0; i < specs_[param].numel(); ++i) put(param, static_cast<std::size_t>(i), value);
  model_.params_changed();
}

Decoder GoldenModel::decoder(const Context& ctx, const Decoder::Limits& limits) const {
  Decoder decoder(ctx, golden_.model_config(), dtype_, limits);
  decoder.bind_params(pointers_, quantized_.pointers());
  decoder.params_changed();
  return decoder;
}

std::vector<float> GoldenModel::last_logits() const {
  const std::vector<std::int32_t> tokens = golden_.integers("tokens");
  const std::int64_t length = golden_.integer("length");
  std::vector<std::int32_t> pages(static_cast<std::size_t>(length / kPageTokens + 1));
  std::iota(pages.begin(), pages.end(), 0);
  Decoder decoder = this->decoder(ctx_, {length, 1, length, std::ssize(pages)});
  const SequenceRows text[] = {{std::span(tokens).first(static_cast<std::size_t>(length)), 0, pages, true}};
  const std::span<const float> logits = decoder.append(text).front().logits;
  return {logits.begin(), logits.end()};
}

GoldenPass GoldenModel::run(float loss_scale, float grad_factor) {
  GoldenPass pass;
  pass.grads.resize(specs_.size());
  pass.times_emitted.resize(specs_.size());
  const float scale = grad_factor * loss_scale;
  const GradScale grad_scale{scale * static_cast<float>(golden_.number("grad_scale")), scale};
  pass.loss = model_.forward_backward({golden_.integers("tokens"), golden_.integers("targets")}, grad_scale,
                                      [&](std::size_t param, std::span<const float> grad) {
                                        for (const float value : fetched(ctx_, grad))
                                          pass.grads[param].push_back(value / loss_scale);
                                        ++pass.times_emitted[param];
                                      });
  return pass;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  REQUIRE(actual.size() == expected.size());
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = static_cast<double>(actual[i]), e = static_cast<double>(expected[i]);
    difference += (a - e) * (a - e);
    norm += e * e;
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

}  // namespace zerofleet::test
