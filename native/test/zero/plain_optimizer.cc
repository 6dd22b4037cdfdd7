#include "test/zero/plain_optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace zerofleet::test {
namespace {

float narrow(double value) { return static_cast<float>(value); }

double to_the(double base, std::int64_t exponent) { return std::pow(base, static_cast<double>(exponent)); }

/// Moments of the gradient and of its square.
void move_moments(const OptimizerOptions& o, float g, float& m, float& v) {
  m = m + (g - m) * narrow(1 - o.beta1);
  v = v * narrow(o.beta2) + g * g * narrow(1 - o.beta2);
}

void adam(const OptimizerOptions& o, const PlainUpdate& u, PlainTensor& t) {
  const float step_size = narrow(u.lr / (1 - to_the(o.beta1, u.step)));
  const float correction2 = narrow(1 / std::sqrt(1 - to_the(o.beta2, u.step)));
  const bool decoupled = o.type == OptimizerType::kAdamW;
  for (std::size_t i = 0; i < t.master.size(); ++i) {
    float g = t.grad[i] * u.grad_factor;
    if (!decoupled) g = g + t.master[i] * narrow(u.weight_decay);
    move_moments(o, g, t.first[i], t.second[i]);
    const float denominator = std::sqrt(t.second[i]) * correction2 + narrow(o.eps);
    const float kept = decoupled ? t.master[i] * narrow(1 - u.lr * u.weight_decay) : t.master[i];
    t.master[i] = kept - step_size * t.first[i] / denominator;
  }
}

}  // namespace

std::vector<std::uint8_t> state_ids(const OptimizerOptions& options) {
  switch (options.type) {
    case OptimizerType::kLion: return {1};
    case OptimizerType::kSgd: return options.momentum > 0 ? std::vector<std::uint8_t>{3} : std::vector<std::uint8_t>{};
    case OptimizerType::kAdagrad: return {4};
    default: return {1, 2};
  }
}

void plain_update(const OptimizerOptions& options, const PlainUpdate& update, PlainTensor& tensor) {
  switch (options.type) {
    case OptimizerType::kAdamW:
    case OptimizerType::kAdam: adam(options, update, tensor); break;
    default: throw Error("invalid_argument", "there is no plain form of this optimizer");
  }
}

std::vector<double> block_sums(const std::vector<float>& values) {
  constexpr std::size_t kBlock = 4096, kLanes = 32;
  std::vector<double> sums;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    double lanes[kLanes] = {};
    for (std::size_t i = begin; i < std::min(begin + kBlock, values.size()); ++i) {
      lanes[i % kLanes] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    for (std::size_t half = kLanes / 2; half >= 1; half /= 2) {
      for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    }
    sums.push_back(lanes[0]);
  }
  return sums;
}

}  // namespace zerofleet::test
