#include "serve/token_draw.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

constexpr std::size_t kFirstSorted = 256;  // tokens that a nucleus is looked for in at first

/// Orders tokens by falling logit. Ties go to the lower token, so that the order is total and the draw reproducible.
auto before(std::span<const float> logits) {
  return [logits](std::int32_t a, std::int32_t b) {
    const float of_a = logits[static_cast<std::size_t>(a)], of_b = logits[static_cast<std::size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  };
}

/// Probabilities of tokens but for a common factor.
class Weights {
 public:
  Weights(std::span<const float> logits, double temperature) : logits_(logits), temperature_(temperature), largest_(*std::ranges::max_element(logits)) {}

  double of(std::int32_t token) const {
    return portable::exp((static_cast<double>(logits_[static_cast<std::size_t>(token)]) - static_cast<double>(largest_)) / temperature_);
  }
  /// Sums of the weights of the tokens up to each one.
  std::vector<double> sums(std::span<const std::int32_t> tokens) const {
    std::vector<double> sums;
    sums.reserve(tokens.size());
    double sum = 0;
    for (const std::int32_t token : tokens) sums.push_back(sum += of(token));
    return sums;
  }

 private:
  std::span<const float> logits_;
  double temperature_;
  float largest_;
};

/// Number of the rising sums that it takes to reach `share`, or one more than there are.
std::size_t reaching(std::span<const double> sums, double share) {
  return static_cast<std::size_t>(std::ranges::lower_bound(sums, share) - sums.begin()) + 1;
}

std::int32_t draw_from(std::span<const std::int32_t> tokens, std::span<const double> sums, double uniform) {
  const auto chosen = static_cast<std::size_t>(std::ranges::upper_bound(sums, uniform * sums.back()) - sums.begin());
  return tokens[std::min(chosen, tokens.size() - 1)];
}

/// Draws from the fewest of `tokens` whose weights reach top_p of all. `is_sorted`: they fall already.
std::int32_t draw_from_nucleus(std::span<const float> logits, std::vector<std::int32_t> tokens, bool is_sorted, const Weights& weights,
                               double top_p, double uniform) {
  const double share = top_p * weights.sums(tokens).back();
  std::size_t sorted = is_sorted ? tokens.size() : 0;
  while (true) {
    if (!is_sorted) {
      const std::size_t more = std::min(tokens.size(), std::max(kFirstSorted, 4 * sorted));
      const auto at = [&](std::size_t index) { return tokens.begin() + static_cast<std::ptrdiff_t>(index); };
      std::partial_sort(at(sorted), at(more), tokens.end(), before(logits));
      sorted = more;
    }
    const auto likely = std::span<const std::int32_t>(tokens).first(sorted);
    const std::vector<double> sums = weights.sums(likely);
    const std::size_t kept = reaching(sums, share);
    // The sum in another order may fall short of the share by a rounding error.
    if (kept > sums.size() && sorted < tokens.size()) continue;
    const std::size_t count = std::min(kept, sums.size());
    return draw_from(likely.first(count), std::span(sums).first(count), uniform);
  }
}

}  // namespace

void validate(const DrawOptions& options) {
  require(options.top_k >= 0, "invalid_argument", "top_k must not be negative");
  require(options.num_tokens >= 0, "invalid_argument", "num_tokens must not be negative");
  require(std::isfinite(options.temperature) && options.temperature >= 0, "invalid_argument",
          "temperature must be finite and not negative");
  require(options.top_p > 0 && options.top_p <= 1, "invalid_argument", "top_p must be above 0 and at most 1");
}

std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t kept = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(kept), before(logits));
  order.resize(kept);
  return order;
}

std::int32_t draw_token(std::span<const float> logits, const DrawOptions& options, std::uint32_t place) {
  if (options.num_tokens > 0) {
    logits = logits.first(std::min(logits.size(), static_cast<std::size_t>(options.num_tokens)));
  }
  if (options.temperature == 0) return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  const double uniform = uniform_open(philox(options.seed, {place, 0, 0, 0})[0]);
  const Weights weights(logits, options.temperature);
  const bool is_sorted = options.top_k > 0;
  std::vector<std::int32_t> tokens(logits.size());
  if (is_sorted) {
    tokens = most_likely(logits, static_cast<std::size_t>(options.top_k));
  } else {
    std::iota(tokens.begin(), tokens.end(), 0);
  }
  if (options.top_p < 1) return draw_from_nucleus(logits, std::move(tokens), is_sorted, weights, options.top_p, uniform);
  return draw_from(tokens, weights.sums(tokens), uniform);
}

}  // namespace zerofleet
