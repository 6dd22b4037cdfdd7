// Rules and kernels of all optimizers against their plain scalar form, bit for bit: one rank with all features off.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "test/sanitized.h"
#include "test/zero/fake_job.h"
#include "test/zero/optimizer_arrays.h"
#include "test/zero/optimizer_types.h"
#include "test/zero/plain_optimizer.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kNumel = 70003, kPadded = 18 * kBlockNumel;
constexpr std::int64_t kSteps = 3;
constexpr float kGradFactor = 0.37F;
// The group in use is not the first one.
constexpr GroupScalars kGroups[] = {{0.5, 0.5}, {3e-2, 0.1}};
constexpr std::size_t kGroup = 1;

/// Every optimizer, with each of its forms.
std::vector<OptimizerOptions> all_forms() {
  std::vector<OptimizerOptions> forms;
  for (const auto type : kOptimizerTypes) {
    forms.emplace_back().type = type;
  }
  forms.back().dampening = 0.25;
  OptimizerOptions form = forms.back();
  form.dampening = 0;
  form.nesterov = true;
  forms.push_back(form);
  form.nesterov = false;
  form.momentum = 0;
  forms.push_back(form);
  form.ema.decay = 0.75;
  forms.push_back(form);
  form = {};
  form.ema.decay = 0.75;
  forms.push_back(form);
  form.type = OptimizerType::kLamb;
  forms.push_back(form);
  form = {};
  form.type = OptimizerType::kAdagrad;
  form.lr_decay = 0.1;
  form.initial_accumulator_value = 0.25;
  forms.push_back(form);
  return forms;
}

/// Numbers of many magnitudes, within fp16; every 16th so small that a state made of it is subnormal, or 0 in fp16.
std::vector<float> numbers(std::uint64_t key) {
  std::vector<float> values(kNumel);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    const auto bits = philox(key, {i, 0, 0, 0});
    const double exponent =
        i % 16 == 0 ? -static_cast<double>(bits[2] % 100) - 50 : static_cast<double>(bits[1] % 16) - 12;
    values[i] = static_cast<float>((uniform_open(bits[0]) - 0.5) * std::exp2(exponent));
  }
  return values;
}

const std::vector<float>& initial_numbers() {
  static const std::vector<float> values = numbers(1);
  return values;
}
const std::vector<float>& grad_numbers(std::int64_t step) {
  static const std::vector<float> values[kSteps] = {numbers(2), numbers(3), numbers(4)};
  return values[step - 1];
}

std::vector<float> padded(std::vector<float> values) {
  values.resize(static_cast<std::size_t>(kPadded), 0.0F);
  return values;
}

/// Result of a plain loop over some steps.
PlainTensor plain_result(const OptimizerOptions& options, const OptimizerRule& rule, const OptimizerDTypes& dtypes) {
  PlainTensor tensor;
  for (const float value : initial_numbers()) tensor.master.push_back(rounded(value, dtypes.master));
  auto states = rule.states().subspan(1);
  if (options.ema.decay > 0) {
    tensor.ema.assign(tensor.master.size(), 0.0F);
    states = states.first(states.size() - 1);
  }
  if (!states.empty()) tensor.first.assign(tensor.master.size(), rule.initial_value(states[0]));
  if (states.size() > 1) tensor.second.assign(tensor.master.size(), rule.initial_value(states[1]));
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    tensor.grad.clear();
    for (const float value : grad_numbers(step)) tensor.grad.push_back(rounded(value, dtypes.grad));
    plain_update(options, {kGroups[kGroup].lr, kGroups[kGroup].weight_decay, kGradFactor, step}, tensor);
    for (float& value : tensor.master) value = rounded(value, dtypes.master);
    plain_average(options, step, tensor);
  }
  return tensor;
}

OptimizerArrays rule_result(const OptimizerRule& rule, const Context& context, const OptimizerDTypes& dtypes,
                            std::span<const Range> cuts, bool with_params) {
  OptimizerArrays arrays(rule, dtypes, padded(initial_numbers()));
  for (auto& state : arrays.states) std::ranges::fill(std::span(state).subspan(kNumel), 0.0F);  // padding
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    arrays.grad = stored(padded(grad_numbers(step)), dtypes.grad);
    std::vector<UpdateSegment> segments;
    for (const Range& cut : cuts) segments.emplace_back(arrays.segment(cut, with_params)).group = kGroup;
    run_rule(rule, context, segments, dtypes, {kGroups, kGradFactor, step});
  }
  return arrays;
}

bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

/// Compares everything, padding included, which must have stayed zero.
void check_equal(const OptimizerArrays& arrays, const PlainTensor& expected, bool with_params) {
  CHECK(arrays.master == stored(padded(expected.master), arrays.dtypes.master));
  const auto params = with_params ? stored(padded(expected.master), arrays.dtypes.params)
                                  : std::vector<std::byte>(kPadded * size_of(arrays.dtypes.params));
  CHECK(arrays.params == params);
  const std::vector<float>* states[] = {&expected.first, &expected.second};
  for (std::size_t i = 0; i < arrays.states.size(); ++i) {
    const bool average = arrays.ids[i] == StateId::kEma;
    CHECK(equal_bits(arrays.states[i], padded(average ? expected.ema : *states[i])));
  }
}

struct Storage {
  OptimizerDTypes dtypes;
  bool with_params;
};

/// Every storage that an optimizer's arrays can have; under a sanitizer a fifth of them, another one for each `form`.
std::vector<Storage> storages_of(std::size_t form) {
  std::vector<Storage> all;
  for (const DType master : {DType::kF32, DType::kF16}) {
    for (const DType grad : kAllDTypes) {
      for (const DType params : kAllDTypes) all.push_back({{master, grad, params}, true});
      all.push_back({{master, grad, DType::kBF16}, false});
    }
  }
  if (!kSanitized) return all;
  std::vector<Storage> some;
  for (std::size_t i = form % 5; i < all.size(); i += 5) some.push_back(all[i]);
  return some;
}

}  // namespace

TEST_CASE("every optimizer equals its plain form bit for bit: all dtypes, paths, numbers of threads and devices") {
  // Several tasks, segments of whole blocks (LAMB needs those).
  const Range cuts[] = {
      {0, kBlockNumel}, {kBlockNumel, kBlockNumel}, {kBlockNumel, 17 * kBlockNumel}, {17 * kBlockNumel, kPadded}};
  ThreadPool one(1), three(3);
  std::size_t form = 0;
  for (const OptimizerOptions& options : all_forms()) {
    CAPTURE(name_of(options.type));
    const auto rule = make_optimizer_rule(options);
    for (const auto& [dtypes, with_params] : storages_of(form++)) {
      const PlainTensor expected = plain_result(options, *rule, dtypes);
      for (const CpuIsa isa : available_isas()) {
        for (ThreadPool* pool : {&one, &three}) {
          check_equal(rule_result(*rule, {Device{}, pool, isa}, dtypes, cuts, with_params), expected, with_params);
        }
      }
      on_cuda_devices([&](const Context& context) {
        check_equal(rule_result(*rule, context, dtypes, cuts, with_params), expected, with_params);
      });
    }
  }
}

TEST_CASE("element-wise optimizers may be cut anywhere, with odd lengths and unaligned arrays") {
  const Range cuts[] = {{0, 17}, {17, 33000}, {33000, 33001}, {33001, kNumel}, {kNumel, kPadded}};
  ThreadPool pool(2);
  for (const OptimizerOptions& options : all_forms()) {
    const auto rule = make_optimizer_rule(options);
    if (rule->needs_param_norms()) continue;
    for (const OptimizerDTypes& dtypes : {OptimizerDTypes{}, OptimizerDTypes{DType::kF16, DType::kBF16, DType::kF16},
                                          OptimizerDTypes{DType::kF32, DType::kF16, DType::kF32}}) {
      const PlainTensor expected = plain_result(options, *rule, dtypes);
      for (const CpuIsa isa : available_isas()) {
        check_equal(rule_result(*rule, {Device{}, &pool, isa}, dtypes, cuts, true), expected, true);
      }
      on_cuda_devices([&](const Context& context) {
        check_equal(rule_result(*rule, context, dtypes, cuts, true), expected, true);
      });
    }
  }
}

TEST_CASE("states that would be subnormal are zero, on all paths and devices") {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  ThreadPool pool(2);
  for (const OptimizerOptions& options : all_forms()) {
    CAPTURE(name_of(options.type));
    const auto rule = make_optimizer_rule(options);
    const auto check = [&](const Context& context) {
      OptimizerArrays arrays(*rule, {}, std::vector<float>(kBlockNumel));
      for (auto& state : arrays.states) std::ranges::fill(state, kSmallest);
      const std::vector<UpdateSegment> segments{arrays.segment({0, kBlockNumel})};
      run_rule(*rule, context, segments, {}, {kGroups, kGradFactor, 2});
      const float left = options.type == OptimizerType::kAdagrad ? kSmallest : 0.0F;  // its sums never fall
      for (const auto& state : arrays.states) CHECK(state == std::vector<float>(kBlockNumel, left));
    };
    for (const CpuIsa isa : available_isas()) check({Device{}, &pool, isa});
    on_cuda_devices(check);
  }
}
