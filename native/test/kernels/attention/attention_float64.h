#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "test/kernels/elementwise/dropout_mask.h"
#include "test/kernels/host_matrix.h"
#include "test/shared_bytes.h"

namespace zerofleet::test {

/// A shape and the other settings that determine which keys a query sees.
struct AttentionCase {
  AttentionShape shape;
  std::int64_t window = 0;
  std::vector<std::int32_t> document_starts = {};
  double dropout = 0;

  /// `starts`: the document starts where all devices read them.
  AttentionOptions options(const SharedValues<std::int32_t>& starts) const {
    return {window, {document_starts, starts.data()}, {5, 6, 7, 8}, dropout};
  }
  /// Columns between the rows of matrices: in sequences of even length rows are whole pieces of 16 bytes apart.
  std::int64_t gap() const { return shape.sequence_length % 2 == 0 ? 8 : 2; }
  std::string name() const {
    return "T " + std::to_string(shape.sequence_length) + " d " + std::to_string(shape.head_dim) + " window " +
           std::to_string(window) + (document_starts.empty() ? "" : " documents") + (dropout > 0 ? " dropout" : "");
  }
};

/// Documents of lengths that go around in 1, 40, 3, 95, 17 in every sequence.
inline AttentionCase with_documents(AttentionCase c) {
  constexpr std::int32_t kLengths[] = {1, 40, 3, 95, 17};
  std::int32_t start = 0;
  std::size_t next = 0;
  for (std::int64_t row = 0; row < c.shape.batch * c.shape.sequence_length; ++row) {
    const auto position = static_cast<std::int32_t>(row % c.shape.sequence_length);
    if (position == 0) start = 0;
    if (position == start + kLengths[next % 5]) {
      start = position;
      ++next;
    }
    c.document_starts.push_back(start);
  }
  return c;
}

inline double exact_scale(const AttentionShape& shape) {
  return shape.scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.head_dim)) : shape.scale;
}

inline double exact_score(const AttentionShape& shape, double product) {
  const double score = product * exact_scale(shape);
  return shape.soft_cap == 0 ? score : shape.soft_cap * std::tanh(score / shape.soft_cap);
}

struct AttentionProbabilities {
  std::vector<double> slopes;   // the derivative of each score by its product
  std::vector<double> probs;    // of the keys up to the query's own; 0 for hidden ones
  std::vector<double> factors;  // of dropout
};

inline AttentionProbabilities attention_probabilities(const AttentionCase& c, const Table& qkv, std::size_t first_row,
                                                      std::size_t head, std::size_t query) {
  const AttentionShape& shape = c.shape;
  const auto dim = static_cast<std::size_t>(shape.head_dim), heads = static_cast<std::size_t>(shape.num_heads),
             length = static_cast<std::size_t>(shape.sequence_length);
  const std::size_t kv_head = head / static_cast<std::size_t>(shape.num_heads / shape.num_kv_heads);
  const DropoutRule rule = dropout_rule({5, 6, 7, 8}, c.dropout);
  AttentionProbabilities result{std::vector<double>(query + 1), std::vector<double>(query + 1),
                                std::vector<double>(query + 1, 1.0)};
  std::vector<double>& probs = result.probs;
  std::ranges::fill(probs, -INFINITY);  // scores, until all are known
  for (std::size_t key = 0; key <= query; ++key) {
    if (c.window > 0 && query - key >= static_cast<std::size_t>(c.window)) continue;
    if (!c.document_starts.empty() && key < static_cast<std::size_t>(c.document_starts[first_row + query])) continue;
    double score = 0;
    for (std::size_t i = 0; i < dim; ++i)
      score += qkv[first_row + query][head * dim + i] * qkv[first_row + key][(heads + kv_head) * dim + i];
    probs[key] = exact_score(shape, score);
    const double share = shape.soft_cap == 0 ? 0 : probs[key] / shape.soft_cap;
    result.slopes[key] = exact_scale(shape) * (1 - share * share);
    const std::size_t row = (first_row / length * heads + head) * length + query;
    if (c.dropout > 0) result.factors[key] = kept(rule, row * length + key) ? 1 / (1 - c.dropout) : 0;
  }
  const double largest = std::ranges::max(probs);
  double sum = 0;
  for (double& prob : probs) sum += prob = std::exp(prob - largest);
  for (double& prob : probs) prob /= sum;
  return result;
}

inline Table attention_rows(const AttentionCase& c, const Table& qkv) {
  const AttentionShape& shape = c.shape;
  const auto dim = static_cast<std::size_t>(shape.head_dim), heads = static_cast<std::size_t>(shape.num_heads);
  const auto kv_heads = static_cast<std::size_t>(shape.num_kv_heads),
             length = static_cast<std::size_t>(shape.sequence_length);
  Table out(qkv.size(), std::vector<double>(heads * dim));
  for (std::size_t first = 0; first < qkv.size(); first += length) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t value_col = (heads + kv_heads + head / (heads / kv_heads)) * dim;
      for (std::size_t query = 0; query < length; ++query) {
        const AttentionProbabilities at = attention_probabilities(c, qkv, first, head, query);
        for (std::size_t key = 0; key <= query; ++key) {
          const double weight = at.probs[key] * at.factors[key];
          for (std::size_t i = 0; i < dim; ++i)
            out[first + query][head * dim + i] += weight * qkv[first + key][value_col + i];
        }
      }
    }
  }
  return out;
}

/// Gradients in float64, row by row, with F the factors of dropout. The formulas are dV += (P F)ᵀ dO, dP = F (dO Vᵀ),
/// dS = P (dP − Σ P dP), dQ = dS K, dK += dSᵀ Q. Tested against central differences.
inline Table attention_gradient(const AttentionCase& c, const Table& qkv, const Table& dout) {
  const AttentionShape& shape = c.shape;
  const auto dim = static_cast<std::size_t>(shape.head_dim), heads = static_cast<std::size_t>(shape.num_heads);
  const auto kv_heads = static_cast<std::size_t>(shape.num_kv_heads),
             length = static_cast<std::size_t>(shape.sequence_length);
  Table grad(qkv.size(), std::vector<double>(qkv[0].size()));
  for (std::size_t first = 0; first < qkv.size(); first += length) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t q = head * dim, k = (heads + head / (heads / kv_heads)) * dim, v = k + kv_heads * dim;
      for (std::size_t query = 0; query < length; ++query) {
        const auto [slopes, probs, factors] = attention_probabilities(c, qkv, first, head, query);
        std::vector<double> dprobs(probs.size());
        double mean = 0;
        for (std::size_t key = 0; key < probs.size(); ++key) {
          for (std::size_t i = 0; i < dim; ++i) {
            dprobs[key] += factors[key] * dout[first + query][q + i] * qkv[first + key][v + i];
            grad[first + key][v + i] += probs[key] * factors[key] * dout[first + query][q + i];
          }
          mean += probs[key] * dprobs[key];
        }
        for (std::size_t key = 0; key < probs.size(); ++key) {
          const double dscore = probs[key] * (dprobs[key] - mean) * slopes[key];
          for (std::size_t i = 0; i < dim; ++i) {
            grad[first + query][q + i] += dscore * qkv[first + key][k + i];
            grad[first + key][k + i] += dscore * qkv[first + query][q + i];
          }
        }
      }
    }
  }
  return grad;
}

}  // namespace zerofleet::test
