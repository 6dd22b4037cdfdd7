#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/flat/fold.h"

namespace zerofleet {

/// Location of the master, the moments and the gradient shard, and of their update: beside the parameters, or in host
/// memory.
enum class Offload : std::uint8_t { kNone, kCpu };

/// Placement of a rank's master, moments and gradient shard: beside the parameters, or in host memory. It provides
/// memory, a context and transfers from and to the computing device. Its users do not depend on the location.
class StatePlacement {
 public:
  virtual ~StatePlacement() = default;

  /// Context for kernels on the states' memory, on the rank's thread.
  virtual const Context& context() const = 0;
  virtual Buffer allocate(std::size_t num_bytes, int skew = 0) const = 0;

  /// Adds pieces of gradients in device memory to sums in memory of this placement, on the communication thread. The
  /// bits do not depend on the placement.
  virtual void fold(const Fold& fold) = 0;

  /// True if parameters are written directly where the model reads them. Windows may then have any size.
  virtual bool in_place() const = 0;
  /// Opens a window: memory in which context() writes new values for `params`, which are in device memory. One window
  /// is open at a time.
  virtual std::span<std::byte> open_window(std::span<std::byte> params) = 0;
  /// Sends the contents of the open window. Another window may be opened at once.
  virtual void close_window() = 0;
  /// Waits until all closed windows have arrived. May be called on any thread.
  virtual void wait_for_windows() = 0;

  virtual std::size_t staging_bytes() const = 0;
};

/// `rank`, `comm_thread`: contexts of the two threads on the computing device; the objects that they refer to must
/// outlive the placement. On a CPU Offload::kCpu has no effect, because everything is in host memory.
std::unique_ptr<StatePlacement> make_state_placement(const Context& rank, const Context& comm_thread, Offload offload);

}  // namespace zerofleet
