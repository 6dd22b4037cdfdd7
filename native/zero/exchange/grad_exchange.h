#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/dtype.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// Received gradients of the blocks that a rank owns of a bucket: pieces that lie one after another, to be added to the
/// gradient shard in that order.
struct GradPieces {
  std::span<const std::byte> bytes;
  int num_pieces = 0;
};

/// Brings a bucket of gradients to its owners, on the communication thread. All-to-all: every rank sends each owner its
/// piece, and pieces arrive in lane order. Moves the bytes of a ring reduce-scatter, and the sum, which the owner
/// makes, does not depend on the world size.
class GradExchange {
 public:
  /// `context` is that of the communication thread. All referenced objects must outlive this one.
  GradExchange(const Context& context, const ShardLayout& layout, Communicator& communicator, DType reduce_dtype);

  /// `contents` is the whole bucket; empty on a rank that has nothing to send, which are the ranks from `num_senders`
  /// on. The result is valid until the next call. Throws errors of the communicator.
  GradPieces exchange(std::int64_t bucket, int num_senders, std::span<std::byte> contents);
  std::size_t staging_bytes() const { return recv_.num_bytes(); }

 private:
  const ShardLayout& layout_;
  Communicator& communicator_;
  std::size_t width_;  // bytes per element on the way
  Buffer recv_;        // pieces of one bucket, one per sending rank
};

/// Blocks of a bucket as a range of bytes in the bucket's buffer, `width` bytes per element.
Range bytes_in_bucket(const Range& blocks, const Range& bucket, std::size_t width);

}  // namespace zerofleet
