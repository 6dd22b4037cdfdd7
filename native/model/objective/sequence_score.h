#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace zerofleet {

/// Log-probability of the targets of one sequence.
struct SequenceScore {
  double log_prob = 0;           // sum of log p(target) over the targets that count, added in token order; nats
  std::int64_t num_targets = 0;  // targets other than -100
};

/// Returns the log-probabilities alone, as a reference's are given.
inline std::vector<double> log_probs_of(std::span<const SequenceScore> scores) {
  std::vector<double> log_probs;
  for (const SequenceScore& score : scores) log_probs.push_back(score.log_prob);
  return log_probs;
}

/// Returns d loss / d log_prob for each sequence of a leaf.
using SequenceObjective = std::function<std::vector<double>(std::span<const SequenceScore> scores)>;

/// log_probs: (B, T) of the targets, 0 where there is none. Returns d loss / d log_prob, (B, T).
using TargetObjective = std::function<std::vector<double>(std::span<const float> log_probs)>;

}  // namespace zerofleet
