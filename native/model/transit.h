#pragma once

#include <cstdint>
#include <span>

#include "core/buffer.h"
#include "core/context.h"
#include "core/stream.h"
#include "kernels/indices.h"

// What a leaf takes from the host to the device and back. On a CPU both are one place, and nothing moves.
namespace zerofleet {

/// Whole numbers of the host for kernels.
class IndexUpload {
 public:
  /// For at most `capacity` numbers at a time.
  IndexUpload(const Context& ctx, std::int64_t capacity);

  /// `numbers` must stay what they are while the result is used; what an earlier call gave is void.
  Indices upload(const Context& ctx, std::span<const std::int32_t> numbers);

 private:
  Buffer staging_;  // pinned
  Buffer values_;   // on the device
  Event copied_;
};

/// Numbers that kernels write and the host reads later.
class Readback {
 public:
  Readback(const Context& ctx, std::int64_t count);

  std::span<float> on_device() { return values_.as<float>(); }
  /// Queues their way to the host, behind all that the context has queued so far.
  void fetch(const Context& ctx);
  /// Waits for the last fetch().
  std::span<const float> on_host() const;
  /// On the device; on a CPU that is all.
  std::size_t num_bytes() const { return values_.num_bytes(); }

 private:
  Buffer values_;
  Buffer host_;  // pinned, or nothing on a CPU
  Event fetched_;
};

}  // namespace zerofleet
