#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "model/objective/pass_loss.h"
#include "model/transformer/transformer.h"
#include "train/session/pass_rows.h"
#include "train/step/step_seconds.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet {

/// Result of a pass, equal on every rank and for any number of ranks.
struct PassResult {
  double loss = 0;  // a sum
  std::int64_t num_targets = 0;
  std::vector<float> log_probs;  // of the targets, as the tokens lie in the rows; NaN where there is none
  std::vector<std::pair<std::string, double>> metrics;  // those of PassResult in native/js/passes.ts; 0 without targets
};

/// Sums over the passes since the last step.
struct PassTotals {
  double loss = 0;
  std::int64_t num_targets = 0;
  StepSeconds seconds;
};

/// Computes the passes of a training session. Leaf v of a pass is B consecutive rows; rank v mod N computes it. All
/// methods must be called on every rank at once. They throw the errors of check(), which change nothing, and errors of
/// the communicator.
class PassRunner {
 public:
  struct Parts {
    Transformer& model;
    ZeroOptimizer& optimizer;
    Communicator& world;
  };

  /// The parts must outlive the object.
  PassRunner(const Parts& parts, const PassLimits& limits) : parts_(parts), limits_(limits) {}

  PassResult forward(const PassLoss& loss, const PassRows& rows);
  /// The same, and adds the gradients to those of the step. On return they are with their owners.
  PassResult forward_backward(const PassLoss& loss, const PassRows& rows);

  const PassTotals& totals() const { return totals_; }
  /// Begins a step anew.
  void clear_totals() { totals_ = {}; }

 private:
  enum class Gradients : std::uint8_t { kNone, kAdded };
  PassResult run(const PassLoss& loss, const PassRows& rows, Gradients gradients);
  /// Of the loaded leaf; empty for a loss without a penalty.
  std::vector<float> base_log_probs(const PassLoss& loss, const PassLeaves& leaves);
  std::vector<float> forward_leaf(const PassLoss& loss, const PassLeaves& leaves, PassSums& sums);
  std::vector<float> backward_leaf(std::int64_t leaf, const PassLoss& loss, const PassLeaves& leaves, PassSums& sums);

  Parts parts_;
  PassLimits limits_;
  PassTotals totals_;
};

}  // namespace zerofleet
