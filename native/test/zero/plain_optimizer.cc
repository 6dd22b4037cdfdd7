#include "test/zero/plain_optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zerofleet::test {
namespace {

float narrow(double value) { return static_cast<float>(value); }

double to_the(double base, std::int64_t exponent) { return std::pow(base, static_cast<double>(exponent)); }

/// States hold no subnormal numbers.
float flushed(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? 0.0F : x; }

/// Moments of the gradient and of its square.
void move_moments(const OptimizerOptions& o, float g, float& m, float& v) {
  m = flushed(m + (g - m) * narrow(1 - o.beta1));
  v = flushed(v * narrow(o.beta2) + g * g * narrow(1 - o.beta2));
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

void lion(const OptimizerOptions& o, const PlainUpdate& u, PlainTensor& t) {
  for (std::size_t i = 0; i < t.master.size(); ++i) {
    const float g = t.grad[i] * u.grad_factor;
    const float direction = t.first[i] + (g - t.first[i]) * narrow(1 - o.beta1);
    t.first[i] = flushed(t.first[i] + (g - t.first[i]) * narrow(1 - o.beta2));
    const float sign = direction > 0 ? 1.0F : direction < 0 ? -1.0F : 0.0F;
    t.master[i] = t.master[i] * narrow(1 - u.lr * u.weight_decay) - narrow(u.lr) * sign;
  }
}

void adagrad(const OptimizerOptions& o, const PlainUpdate& u, PlainTensor& t) {
  const float step_size = narrow(u.lr / (1 + static_cast<double>(u.step - 1) * o.lr_decay));
  for (std::size_t i = 0; i < t.master.size(); ++i) {
    const float g = t.grad[i] * u.grad_factor + t.master[i] * narrow(u.weight_decay);
    t.first[i] = flushed(t.first[i] + g * g);
    t.master[i] = t.master[i] - step_size * g / (std::sqrt(t.first[i]) + narrow(o.eps));
  }
}

void sgd(const OptimizerOptions& o, const PlainUpdate& u, PlainTensor& t) {
  const float momentum = narrow(o.momentum);
  const float taken = u.step == 1 ? 1.0F : narrow(1 - o.dampening);
  for (std::size_t i = 0; i < t.master.size(); ++i) {
    float g = t.grad[i] * u.grad_factor + t.master[i] * narrow(u.weight_decay);
    if (o.momentum > 0) {
      t.first[i] = flushed(t.first[i] * momentum + g * taken);
      g = o.nesterov ? g + t.first[i] * momentum : t.first[i];
    }
    t.master[i] = t.master[i] - narrow(u.lr) * g;
  }
}

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const double block : block_sums(values)) sum += block;
  return std::sqrt(sum);
}

void lamb(const OptimizerOptions& o, const PlainUpdate& u, PlainTensor& t) {
  const float correction1 = narrow(1 / (1 - to_the(o.beta1, u.step)));
  const float correction2 = narrow(1 / std::sqrt(1 - to_the(o.beta2, u.step)));
  std::vector<float> raw(t.master.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    move_moments(o, t.grad[i] * u.grad_factor, t.first[i], t.second[i]);
    const float denominator = std::sqrt(t.second[i]) * correction2 + narrow(o.eps);
    raw[i] = t.first[i] * correction1 / denominator + t.master[i] * narrow(u.weight_decay);
  }
  const double weight_norm = norm_of(t.master), update_norm = norm_of(raw);
  const bool has_ratio = weight_norm > 0 && update_norm > 0;
  const double ratio = has_ratio ? std::clamp(weight_norm / update_norm, o.min_coeff, o.max_coeff) : 1.0;
  const float step_size = narrow(u.lr) * narrow(ratio);
  for (std::size_t i = 0; i < raw.size(); ++i) t.master[i] = t.master[i] - step_size * raw[i];
}

}  // namespace

std::vector<std::uint8_t> state_ids(const OptimizerOptions& options) {
  switch (options.type) {
    case OptimizerType::kLion:
      return {1};
    case OptimizerType::kSgd:
      return options.momentum > 0 ? std::vector<std::uint8_t>{3} : std::vector<std::uint8_t>{};
    case OptimizerType::kAdagrad:
      return {4};
    default:
      return {1, 2};
  }
}

void plain_update(const OptimizerOptions& options, const PlainUpdate& update, PlainTensor& tensor) {
  switch (options.type) {
    case OptimizerType::kAdamW:
    case OptimizerType::kAdam:
      adam(options, update, tensor);
      break;
    case OptimizerType::kLamb:
      lamb(options, update, tensor);
      break;
    case OptimizerType::kLion:
      lion(options, update, tensor);
      break;
    case OptimizerType::kAdagrad:
      adagrad(options, update, tensor);
      break;
    case OptimizerType::kSgd:
      sgd(options, update, tensor);
      break;
  }
}

void plain_average(const OptimizerOptions& options, std::int64_t step, PlainTensor& tensor) {
  if (options.ema.decay == 0) return;
  const float weight = narrow(1 - options.ema.decay);
  tensor.ema.resize(tensor.master.size());
  for (std::size_t i = 0; i < tensor.ema.size(); ++i) {
    const float moved = tensor.ema[i] + (tensor.master[i] - tensor.ema[i]) * weight;
    tensor.ema[i] = flushed(step == 1 ? tensor.master[i] : moved);
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
