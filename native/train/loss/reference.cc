#include "train/loss/reference.h"

#include <string>
#include <utility>

#include "core/error.h"
#include "data/sequence_reader.h"

namespace zerofleet {

std::vector<double> BaseReference::log_probs(const ReferenceRows& rows) {
  return log_probs_of(model_.scores(rows.input, Transformer::Adapters::kOff));
}

StoredReference::StoredReference(std::span<const std::int64_t> sizes) : begins_{0} {
  for (const std::int64_t size : sizes) begins_.push_back(begins_.back() + static_cast<std::size_t>(size));
}

std::vector<double> StoredReference::log_probs(const ReferenceRows& rows) {
  require(!log_probs_.empty(), "invalid_argument", "the reference must be computed or set before it is used");
  std::vector<double> result;
  for (const std::int64_t sequence : rows.sequences) {
    result.push_back(sequence == kNoSequence ? 0
                                             : log_probs_.at(begins_[rows.table] + static_cast<std::size_t>(sequence)));
  }
  return result;
}

void StoredReference::set(std::vector<double> log_probs) {
  require(log_probs.size() == size(), "invalid_argument",
          "the reference has " + std::to_string(log_probs.size()) + " log-probabilities, the data needs " +
              std::to_string(size()));
  log_probs_ = std::move(log_probs);
}

}  // namespace zerofleet
