#include "train/token_draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/philox.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

/// The `count` most likely tokens, the most likely one first. Ties go to the lower token, so that the order is total and
/// the draw reproducible.
std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[static_cast<std::size_t>(token)]; };
  const auto before = [&](std::int32_t a, std::int32_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  };
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(count), before);
  order.resize(count);
  return order;
}

/// Number of the rising sums that it takes to reach `share` of the last one.
std::size_t reaching(std::span<const double> sums, double share) {
  const auto end = std::ranges::lower_bound(sums, share * sums.back());
  return std::min(static_cast<std::size_t>(end - sums.begin()) + 1, sums.size());
}

}  // namespace

void validate(const SampleOptions& options) {
  require(options.max_tokens >= 0, "invalid_argument", "max_tokens must not be negative");
  require(options.top_k >= 0, "invalid_argument", "top_k must not be negative");
  require(options.num_tokens >= 0, "invalid_argument", "num_tokens must not be negative");
  require(std::isfinite(options.temperature) && options.temperature >= 0, "invalid_argument",
          "temperature must be finite and not negative");
  require(options.top_p > 0 && options.top_p <= 1, "invalid_argument", "top_p must be above 0 and at most 1");
}

std::int32_t draw_token(std::span<const float> logits, const SampleOptions& options, std::uint32_t place) {
  if (options.num_tokens > 0) {
    logits = logits.first(std::min(logits.size(), static_cast<std::size_t>(options.num_tokens)));
  }
  if (options.temperature == 0) return most_likely(logits, 1).front();
  const auto kept = options.top_k > 0 ? std::min(logits.size(), static_cast<std::size_t>(options.top_k)) : logits.size();
  const std::vector<std::int32_t> order = most_likely(logits, kept);
  const auto logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  std::vector<double> sums;
  double sum = 0;
  for (const std::int32_t token : order) {
    sum += portable::exp((logit(token) - logit(order.front())) / options.temperature);
    sums.push_back(sum);
  }
  sums.resize(reaching(sums, options.top_p));
  const double point = uniform_open(philox(options.seed, {place, 0, 0, 0})[0]) * sums.back();
  const auto chosen = static_cast<std::size_t>(std::ranges::upper_bound(sums, point) - sums.begin());
  return order[std::min(chosen, sums.size() - 1)];
}

}  // namespace zerofleet
