#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "core/dtype.h"
#include "core/range.h"
#include "zero/exchange/comm_queue.h"
#include "zero/partition/leaf_schedule.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Terms of the gradients' sum for the blocks that a rank owns in a bucket, in the dtype of buckets. They are
/// consecutive in memory, and are added to the gradient shard in this order.
struct GradTerms {
  std::span<const std::byte> bytes;
  int count = 0;           // may be 0
  std::int64_t first = 0;  // number of the first term in its pass
};

/// Brings a bucket of gradients to its owners, on the communication thread.
///
/// The sum of a step is
///   ((0 + T0) + T1) + T2 …
/// where the terms of a pass follow those of the pass before it. Term Tk belongs to group k of G lanes. It is the fp32
/// sum
///   ((0 + g_kG) + g_kG+1) …
/// rounded to the dtype of buckets. With G = 1 a term is a lane's gradient, which is rounded already.
///
/// The job alone determines every addition and rounding. Implementations differ only in which ranks do them.
class GradExchange {
 public:
  virtual ~GradExchange() = default;

  /// `contents`: the whole bucket; empty on a rank without a lane in `round`. Returns the terms that are complete after
  /// this round, valid until the next call. Throws errors of the communicator.
  virtual GradTerms exchange(const LaneRound& round, std::int64_t bucket, std::span<std::byte> contents) = 0;
  virtual std::size_t staging_bytes() const = 0;
};

/// Makes the exchange that sends the fewest bytes between nodes, for use in tasks of `queue`. `schedule`: that of the
/// pass with the most lanes. All other referenced objects must outlive the exchange.
std::unique_ptr<GradExchange> make_grad_exchange(CommQueue& queue, const ShardLayout& layout,
                                                 const LeafSchedule& schedule, Communicator& communicator,
                                                 DType reduce_dtype);

/// Converts a range of a bucket's blocks to bytes in the bucket's buffer, with `width` bytes per element.
Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width);

/// Returns the largest number of blocks that `rank` owns in any bucket.
std::int64_t max_owned_blocks(const ShardLayout& layout, int rank);

}  // namespace zerofleet
