#pragma once

#include <memory>

#include "core/device/context.h"
#include "kernels/attention/cuda/cudnn_call.h"

namespace zerofleet::cudnn {

/// A call of attention whose results are known, to try an engine on. The inputs of the given call are replaced by
/// temporary memory with the same strides. In this memory queries, keys and values are one, and NaNs lie between rows.
/// The call writes to its own outputs. All visible keys of a query then have the same score √d, so that each of its n
/// keys has the probability 1/n:
///
/// Forward: O = 1, stats = √d + ln n. Backward, from dO = 1 and O = 0, which makes dO · O zero: dS = √d / n; so dQ =
/// √d. With H the sum of 1/n over the queries that see a key: dV = H and dK = √d H, both times the query heads of a key
/// head.
///
/// A key that is left out, or seen by a query too many, changes stats or H; a tile that is left out leaves NaNs.
class AttentionTrial {
 public:
  AttentionTrial(const Context& ctx, const Call& given);
  ~AttentionTrial();
  AttentionTrial(const AttentionTrial&) = delete;
  AttentionTrial& operator=(const AttentionTrial&) = delete;

  const Call& call() const { return call_; }
  /// Queues the preparation of what the call writes: before each run.
  void prepare();
  /// Waits for the call; returns true if all that it wrote is right.
  bool is_right();

 private:
  struct Operands;

  Context ctx_;
  Call call_;
  std::unique_ptr<Operands> operands_;
};

}  // namespace zerofleet::cudnn
