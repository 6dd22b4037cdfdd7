#include "serve/token_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "kernels/loss/draw_weights.h"

namespace zerofleet {
namespace {

constexpr std::size_t kBlock = 512;    // weights are summed by blocks of this many tokens
constexpr float kCutStep = 1.0F / 64;  // ratio of successive thresholds in the search for a nucleus

/// Orders tokens by falling logit. Ties go to the lower token, so that the order is total and the draw reproducible.
auto more_likely(std::span<const float> logits) {
  return [logits](std::int32_t a, std::int32_t b) {
    const float logit_a = logits[static_cast<std::size_t>(a)], logit_b = logits[static_cast<std::size_t>(b)];
    return logit_a != logit_b ? logit_a > logit_b : a < b;
  };
}

double sum_of(std::span<const float> weights) {
  constexpr std::size_t kSums = 8;  // independent sums, because an addition waits for the one before it
  std::array<double, kSums> sums{};
  for (std::size_t i = 0; i < weights.size(); ++i) sums[i % kSums] += static_cast<double>(weights[i]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

std::vector<double> block_sums(std::span<const float> weights) {
  std::vector<double> sums;
  for (std::size_t begin = 0; begin < weights.size(); begin += kBlock) {
    sums.push_back(sum_of(weights.subspan(begin, std::min(kBlock, weights.size() - begin))));
  }
  return sums;
}

/// Returns the first index up to which the weights add up to more than `uniform` times their sum.
std::size_t draw_index(std::span<const float> weights, double uniform) {
  const std::vector<double> blocks = block_sums(weights);
  double left = uniform * std::accumulate(blocks.begin(), blocks.end(), 0.0);
  std::size_t block = 0;
  for (; block + 1 < blocks.size() && left >= blocks[block]; ++block) left -= blocks[block];
  std::size_t index = block * kBlock;
  const std::size_t end = std::min(weights.size(), index + kBlock);
  for (; index + 1 < end && left >= static_cast<double>(weights[index]); ++index) {
    left -= static_cast<double>(weights[index]);
  }
  // Rounding may leave a rest behind the last weight; a token without weight is never drawn.
  while (index > 0 && weights[index] == 0) --index;
  return index;
}

/// Returns the most likely tokens, most likely first, as many as weights of at least `share` take, or more.
std::vector<std::int32_t> nucleus(std::span<const float> logits, std::span<const float> weights, double share) {
  std::vector<std::int32_t> tokens;
  double sum = -1;
  for (float cut = kCutStep; sum < share && tokens.size() < weights.size(); cut *= kCutStep) {
    tokens.clear();
    sum = 0;
    for (std::size_t token = 0; token < weights.size(); ++token) {
      if (weights[token] < cut) continue;
      tokens.push_back(static_cast<std::int32_t>(token));
      sum += static_cast<double>(weights[token]);
    }
  }
  std::ranges::sort(tokens, more_likely(logits));
  return tokens;
}

std::vector<float> weights_of(std::span<const std::int32_t> tokens, std::span<const float> weights) {
  std::vector<float> result(tokens.size());
  std::ranges::transform(tokens, result.begin(),
                         [&](std::int32_t token) { return weights[static_cast<std::size_t>(token)]; });
  return result;
}

/// Returns the fewest first weights that add up to `share`, or all.
std::span<const float> reaching(std::span<const float> weights, double share) {
  double sum = 0;
  std::size_t kept = 0;
  while (kept < weights.size() && sum < share) sum += static_cast<double>(weights[kept++]);
  return weights.first(kept);
}

bool allows(const TokenMask& mask, std::size_t token) {
  return mask.empty() || (token / 32 < mask.size() && (mask[token / 32] >> token % 32 & 1U) != 0);
}

}  // namespace

void validate(const DrawOptions& options) {
  require(options.top_k >= 0, "invalid_argument", "top_k must not be negative");
  require(options.num_tokens >= 0, "invalid_argument", "num_tokens must not be negative");
  require(std::isfinite(options.temperature) && options.temperature >= 0, "invalid_argument",
          "temperature must be finite and not negative");
  require(options.top_p > 0 && options.top_p <= 1, "invalid_argument", "top_p must be above 0 and at most 1");
  const auto is_finite = [](const LogitBias& each) { return std::isfinite(each.bias); };
  require(std::isfinite(options.presence_penalty) && std::isfinite(options.frequency_penalty) &&
              std::ranges::all_of(options.logit_bias, is_finite),
          "invalid_argument", "penalties and biases must be finite");
}

std::span<const float> known_tokens(std::span<const float> logits, const DrawOptions& options) {
  if (options.num_tokens == 0) return logits;
  return logits.first(std::min(logits.size(), static_cast<std::size_t>(options.num_tokens)));
}

bool adjusts_logits(const DrawOptions& options) {
  return options.presence_penalty != 0 || options.frequency_penalty != 0 || !options.logit_bias.empty();
}

std::vector<float> adjusted_logits(std::span<const float> logits, const DrawOptions& options,
                                   std::span<const std::int32_t> drawn, const TokenMask& mask) {
  std::vector<double> changes(logits.size());
  for (const auto& [token, bias] : options.logit_bias) changes[static_cast<std::size_t>(token)] = bias;
  std::vector<std::int32_t> counts(logits.size());
  for (const std::int32_t token : drawn) ++counts[static_cast<std::size_t>(token)];
  std::vector<float> adjusted(logits.begin(), logits.end());
  for (std::size_t token = 0; token < adjusted.size(); ++token) {
    const double penalty =
        counts[token] * options.frequency_penalty + (counts[token] > 0 ? options.presence_penalty : 0);
    adjusted[token] = static_cast<float>(static_cast<double>(adjusted[token]) + changes[token] - penalty);
    if (!allows(mask, token)) adjusted[token] = -std::numeric_limits<float>::infinity();
  }
  return adjusted;
}

std::vector<std::int32_t> most_likely(std::span<const float> logits, std::size_t count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t kept = std::min(count, order.size());
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(kept), more_likely(logits));
  order.resize(kept);
  return order;
}

std::int32_t draw_token(CpuIsa isa, std::span<const float> logits, const DrawOptions& options, std::uint32_t position) {
  logits = known_tokens(logits, options);
  if (options.temperature == 0) return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
  const double uniform = uniform_open(philox(options.seed, {position, 0, 0, 0})[0]);
  const std::vector<float> weights = draw_weights(isa, logits, options.temperature);
  if (options.top_k == 0 && options.top_p == 1) return static_cast<std::int32_t>(draw_index(weights, uniform));
  const std::vector<double> blocks = block_sums(weights);
  double share = options.top_p * std::accumulate(blocks.begin(), blocks.end(), 0.0);
  const std::vector<std::int32_t> tokens = options.top_k > 0
                                               ? most_likely(logits, static_cast<std::size_t>(options.top_k))
                                               : nucleus(logits, weights, share);
  // Logits that are not numbers have no nucleus.
  if (tokens.empty()) return most_likely(logits, 1).front();
  const std::vector<float> falling = weights_of(tokens, weights);
  if (options.top_k > 0) share = options.top_p * sum_of(falling);
  return tokens[draw_index(reaching(falling, share), uniform)];
}

}  // namespace zerofleet
