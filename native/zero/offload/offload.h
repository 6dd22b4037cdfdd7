#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/flat/fold.h"

namespace zerofleet {

/// Location of master, moments and the gradient shard, and of their update: with the parameters, or in host memory.
enum class Offload : std::uint8_t { kNone, kCpu };

/// Placement of a rank's master, moments and gradient shard: beside the parameters, or in host memory. Users request
/// memory, a context and the transfers from and to the device that computes, and don't know which it is.
class StatePlacement {
 public:
  virtual ~StatePlacement() = default;

  /// For kernels on the states' memory, on the rank's thread.
  virtual const Context& context() const = 0;
  virtual Buffer allocate(std::size_t num_bytes, int skew = 0) const = 0;

  /// Adds pieces of gradients, in memory of the device, to sums in memory of this placement. The bits do not depend on
  /// the placement. On the communication thread.
  virtual void fold(const Fold& fold) = 0;

  /// Returns true if parameters are written where the model reads them, so that windows may have any size.
  virtual bool in_place() const = 0;
  /// Memory in which context() writes new values for `params`, memory of the device. One window is open at a time.
  virtual std::span<std::byte> open_window(std::span<std::byte> params) = 0;
  /// Sends the contents of the open window; another can be opened at once.
  virtual void close_window() = 0;
  /// Waits until all closed windows have arrived. On any thread.
  virtual void wait_for_windows() = 0;

  virtual std::size_t staging_bytes() const = 0;
};

/// `rank` and `comm_thread` are the contexts of the two threads, on the device that computes; objects that they refer
/// to must outlive the placement. With Offload::kCpu on a CPU everything is in host memory already: in place.
std::unique_ptr<StatePlacement> make_state_placement(const Context& rank, const Context& comm_thread, Offload offload);

}  // namespace zerofleet
