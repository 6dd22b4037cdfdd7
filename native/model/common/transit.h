#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "kernels/common/indices.h"
#include "kernels/embedding/embedding.h"

// Transfers of a leaf between host and device. On a CPU both are the same memory, and nothing moves.
namespace zerofleet {

/// Numbers of the host for kernels. At most `capacity` of 4 bytes at a time. They must not change while the result is
/// used; the result of an earlier call becomes invalid.
class Upload {
 public:
  Upload(const Context& ctx, std::int64_t capacity);

  /// Not on a CPU.
  const std::byte* upload(const Context& ctx, std::span<const std::byte> numbers);

 private:
  Buffer staging_;  // pinned
  Buffer values_;   // on the device
  Event copied_;
};

/// An Upload of whole numbers.
class IndexUpload {
 public:
  IndexUpload(const Context& ctx, std::int64_t capacity) : upload_(ctx, capacity) {}
  Indices upload(const Context& ctx, std::span<const std::int32_t> numbers);

 private:
  Upload upload_;
};

/// An Upload of fractions.
class FloatUpload {
 public:
  FloatUpload(const Context& ctx, std::int64_t capacity) : upload_(ctx, capacity) {}
  /// Returns them where kernels read them.
  std::span<const float> upload(const Context& ctx, std::span<const float> numbers);

 private:
  Upload upload_;
};

/// The positions of equal numbers in groups, for kernels that sum over each group.
class GroupUpload {
 public:
  /// For at most `capacity` numbers at a time.
  GroupUpload(const Context& ctx, std::int64_t capacity) : upload_(ctx, 2 * capacity + 1) {}

  /// Invalidates the result of the previous call. On a CPU nothing is done.
  PositionGroups upload(const Context& ctx, const Indices& numbers);

 private:
  IndexUpload upload_;  // the order, and where groups start
  std::vector<std::int32_t> values_;
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
