#pragma once

#include <cstddef>
#include <span>

#include "core/range.h"

namespace zerofleet {

class QueuedExchanges;

/// A buffer of a gather: data[pieces_bytes[r]] is the piece of rank r. Ranges ascending, no gaps.
struct Gather {
  std::span<std::byte> data;
  std::span<const Range> pieces_bytes;
};

/// Ranks that exchange bytes. Includes: the collectives that the ZeRO core needs, in the same order on every rank, each blocking
/// unless queue_on() has it run ahead. Excludes: sums, whose bits would depend on the world size. They are folded by their owner in leaf order.
/// One call at a time per object. A call waits as long as the other ranks live and take (see ExchangeWatch). Failures throw
/// Error: "comm_failed" (a peer is gone), "comm_timeout" (a peer is silent). After a failure the object can only be destroyed.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// Sends send[send_bytes[d]] to rank d and receives recv[recv_bytes[s]] from rank s, for all d and s; the piece for the
  /// own rank is copied. Ranges have one entry per rank, ascending and without gaps, empty ones allowed; the sizes that
  /// two ranks state for one piece must be equal.
  virtual void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                          std::span<const Range> recv_bytes) = 0;

  /// In place: on entry data[pieces_bytes[rank()]] of each buffer is filled, on return every rank's piece is. Buffers of one
  /// call share its latency.
  virtual void all_gathers(std::span<const Gather> gathers) = 0;
  void all_gather(std::span<std::byte> data, std::span<const Range> pieces_bytes) {
    const Gather one{data, pieces_bytes};
    all_gathers({&one, 1});
  }

  virtual void barrier() = 0;

  /// From now on exchanges of memory of a device are queued on the stream of `exchanges`, in its order, and are not waited for while it
  /// runs ahead; all others still are. Null ends this; none may be queued then. Returns false if the communicator
  /// works on the host: then nothing changes.
  virtual bool queue_on(QueuedExchanges* exchanges) {
    static_cast<void>(exchanges);
    return false;
  }

  /// Makes the call in progress, and all later ones, fail with "comm_failed", so that no rank waits for a rank that
  /// gives up. May be called from any thread, also during a call.
  virtual void abort() = 0;
};

}  // namespace zerofleet
