#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/dtype.h"
#include "core/grad_view.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Sums the gradients of a lane's leaves in leaf order: ((0 + g0) + g1) + g2 …, rounded to the dtype of the sum after
/// each leaf. If every lane is a single leaf, gradients pass through unchanged and no memory is used.
class LaneAccumulator {
 public:
  /// `layout` must outlive the object.
  LaneAccumulator(const Context& context, const ShardLayout& layout, const LeafSchedule& schedule, DType sum_dtype);

  void begin_leaf(const ScheduledLeaf& scheduled) { scheduled_ = scheduled; }
  /// Adds a gradient of the leaf. Returns the gradient to exchange: none before the lane's last leaf, then the sum. The
  /// view is valid until the next leaf begins.
  std::optional<GradView> add(std::size_t param, const GradView& grad);

  /// True if gradients pass through unchanged.
  bool is_absent() const { return sums_.empty(); }
  std::size_t num_bytes() const { return sums_.num_bytes(); }

 private:
  std::span<std::byte> sum_of(std::size_t param);

  Context context_;
  const ShardLayout& layout_;
  DType dtype_;
  Buffer sums_;  // flat, as the layout has it
  ScheduledLeaf scheduled_;
};

}  // namespace zerofleet
