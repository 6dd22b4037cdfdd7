#include "kernels/elementwise/dropout.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/error.h"
#include "core/philox.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
std::uint64_t joined(std::uint32_t low_half, std::uint32_t high_half) {
  return static_cast<std::uint64_t>(high_half) << 32 | low_half;
}

/// The rule for x (M, N), which may have some rows of the mask.
DropoutRule rule_of_rows(const DropoutKey& key, double p, const ConstMatrix& x) {
  require(key.first_row >= 0 && key.first_row % 64 == 0, "invalid_argument",
          "dropout: the first row must be a multiple of 64, not " + std::to_string(key.first_row));
  DropoutRule rule = dropout_rule(key, p);
  rule.first_element = static_cast<std::uint64_t>(key.first_row * x.cols);
  return rule;
}

}  // namespace

DropoutRule dropout_rule(const DropoutKey& key, double p) {
  require(p >= 0 && p < 1, "invalid_argument",
          "dropout: the probability of being dropped must be in [0, 1), not " + std::to_string(p));
  constexpr std::uint32_t kDropout = 0x64726f70;  // "drop": no other use of the seed draws with this counter
  const std::array leaf = philox(key.seed, {low(key.step), high(key.step), low(key.leaf), high(key.leaf)});
  const std::array site = philox(joined(leaf[0], leaf[1]), {key.site, leaf[2] + key.sequence, leaf[3], kDropout});
  const double dropped_below = std::min(p * 0x1p32 + 0.5, 0x1p32 - 1);
  return {joined(site[0], site[1]), static_cast<std::uint32_t>(dropped_below), static_cast<float>(1 / (1 - p))};
}

void dropout(const Context& ctx, const DropoutKey& key, double p, const ConstMatrix& x, const Matrix& y) {
  require(same_shape(x, y), "invalid_argument", "dropout: x and y must have one shape and dtype");
  const DropoutRule rule = rule_of_rows(key, p, x);
  backend_of(ctx).dropout(ctx, rule, x, y);
}

// A dropout of nothing.
void scale(const Context& ctx, double factor, const ConstMatrix& x, const Matrix& y) {
  require(same_shape(x, y), "invalid_argument", "scale: x and y must have one shape and dtype");
  const DropoutRule rule{0, 0, static_cast<float>(factor), false};
  backend_of(ctx).dropout(ctx, rule, x, y);
}

void add(const Context& ctx, const ConstMatrix& x, const Matrix& y) {
  require(same_shape(x, y), "invalid_argument", "add: x and y must have one shape and dtype");
  const DropoutRule rule{0, 0, 1, true};
  backend_of(ctx).dropout(ctx, rule, x, y);
}

void add_dropout(const Context& ctx, const DropoutKey& key, double p, const ConstMatrix& x, const Matrix& y) {
  require(same_shape(x, y), "invalid_argument", "dropout: x and y must have one shape and dtype");
  DropoutRule rule = rule_of_rows(key, p, x);
  rule.adds = true;
  backend_of(ctx).dropout(ctx, rule, x, y);
}

}  // namespace zerofleet
