#pragma once

#include <cstdint>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "kernels/moe/moe_router.h"
#include "model/common/values.h"

namespace zerofleet {

/// Router load of a leaf, added up over its layers on the device: the host reads it at the leaf's end.
class RouterTally {
 public:
  /// num_experts: 0 in models without; nothing is to be added then.
  RouterTally(const Context& ctx, std::int64_t num_experts);

  /// Resets the sums.
  void clear(const Context& ctx);
  /// Adds one layer's tokens.
  void add(const Context& ctx, const RouterChoices& chosen);
  /// (E) the gradient of scale · load_balancing_loss, in memory of the context's device, until the next call.
  std::span<const float> gradient(const Context& ctx, double scale);

  /// Queues the sums' way to the host, behind all that the context has queued so far.
  void fetch(const Context& ctx);
  /// Returns the load at the last fetch(), for which it waits.
  RouterLoad load() const;

 private:
  RouterSums sums();

  std::int64_t num_experts_;
  std::int64_t num_tokens_ = 0;
  Buffer sums_;  // (E) choices, (E) sums of probabilities
  Buffer host_;  // the same, pinned; nothing on a CPU
  Values<float> gradient_;
  Event fetched_;
};

}  // namespace zerofleet
