#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "core/device/context.h"
#include "core/device/host_windows.h"
#include "zero/exchange/comm_queue.h"
#include "zero/exchange/param_gather.h"
#include "zero/offload/offload.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/optimizer/state_shard.h"
#include "zero/step/model_plan.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// Components that all parts of a rank share. All referenced objects must outlive the parts.
struct PartTools {
  Context context;  // of the rank's thread, on the device that computes
  CommQueue& queue;
  StatePlacement& placement;
  HostWindows& windows;
  const OptimizerRule& rule;
  const ZeroOptions& options;
};

/// A trained or frozen part of the model on one rank: all its parameters in compute dtype, and the states of the blocks
/// that the rank owns.
class ModelPart {
 public:
  /// `plan`, and `communicator` of the ranks that hold the part, must outlive the object. Must be called on every rank
  /// at once.
  ModelPart(const PlannedPart& plan, Communicator& communicator, const PartTools& tools);

  const ParamSubset& subset() const { return plan_.subset; }
  const ShardLayout& layout() const { return plan_.layout; }
  int shard() const { return communicator_.rank(); }
  Communicator& communicator() { return communicator_; }
  StateShard& states() { return states_; }
  const StateShard& states() const { return states_; }
  ParamGather& params() { return params_; }
  const ParamGather& params() const { return params_; }

  /// Recomputes all parameters from the master. They are complete once the queue is drained.
  void write_params();
  /// Recomputes the owned master from the parameters. A frozen master is the parameters.
  void refresh_master();

 private:
  const PlannedPart& plan_;
  Communicator& communicator_;
  PartTools tools_;
  ParamGather params_;
  StateShard states_;
};

}  // namespace zerofleet
