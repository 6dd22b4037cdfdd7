#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/communicator.h"
#include "core/context.h"
#include "core/dtype.h"
#include "zero/leaf_schedule.h"
#include "zero/shard_layout.h"
#include "zero/zero_options.h"

namespace zerofleet {

/// What has arrived of the blocks that a rank owns of a bucket: pieces that lie one after another, to be added to the
/// gradient shard in that order.
struct GradPieces {
  std::span<const std::byte> bytes;
  int num_pieces = 0;
};

/// How the ranks of a layout bring a bucket of gradients to its owners. On the communication thread.
class GradExchange {
 public:
  virtual ~GradExchange() = default;
  /// `contents` is the whole bucket and may be written to; empty on a rank that has nothing to give, which ranks from
  /// `num_senders` on have not. What is returned is valid until the next call. Throws what a communicator throws.
  virtual GradPieces exchange(std::int64_t bucket, int num_senders, std::span<std::byte> contents) = 0;
  virtual std::size_t staging_bytes() const = 0;
};

/// Blocks of a bucket as a range of bytes in the bucket's buffer, `width` bytes per element.
Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width);

/// `context` is that of the communication thread. All referenced objects must outlive what is returned.
std::unique_ptr<GradExchange> make_grad_exchange(Numerics numerics, const Context& context, const ShardLayout& layout,
                                                 Communicator& communicator, const LeafSchedule& schedule,
                                                 DType reduce_dtype);

}  // namespace zerofleet
