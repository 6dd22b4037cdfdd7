#pragma once

#include <cstddef>
#include <span>

#include "core/device.h"
#include "core/device/context.h"

namespace zerofleet {

// Access to device memory outside kernels. All calls run in the order of the context's stream. Where host memory takes
// part, the call returns when its bytes have been read or written; between addresses on devices it only queues the
// copy. Errors: Error{"invalid_argument"} for sizes that differ or a CUDA context without a stream, and those of
// core/cuda/cuda_runtime.h.

/// Copies source to target; the two don't overlap.
void copy_bytes(const Context& context, std::span<std::byte> target, Device target_device,
                std::span<const std::byte> source, Device source_device);

/// Both on the context's device.
void copy_bytes(const Context& context, std::span<std::byte> target, std::span<const std::byte> source);

/// Queues a copy between pinned host memory (see Buffer::on_host_for) and memory of the stream's device, in either
/// direction, and does not wait for the copy. The bytes must stay until the stream is done with the copy. On a CPU the
/// copy is done at once.
void queue_copy(Stream& stream, std::span<std::byte> target, std::span<const std::byte> source);

/// Writes zeros to memory of the context's device.
void fill_zero(const Context& context, std::span<std::byte> target);

/// Waits until all work of the context is done; after it other threads and streams may use the results. On a CPU
/// nothing is left to wait for.
void synchronize(const Context& context);

/// The stream of a context on a CUDA device, whose device is made the calling thread's.
Stream& stream_of(const Context& context);

}  // namespace zerofleet
