#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/range.h"

namespace zerofleet {

/// Bytes of a buffer that go to rank `peer`, or come from it.
struct Message {
  int peer = 0;
  Range bytes;
};

/// One message for each rank, in order; empty ones allowed.
inline std::vector<Message> one_per_rank(std::span<const Range> bytes) {
  std::vector<Message> messages;
  for (const Range& range : bytes) messages.push_back({static_cast<int>(messages.size()), range});
  return messages;
}

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

  /// Sends and receives messages, each list in the order of peers. The n-th message of rank a to rank b is the n-th that b
  /// receives from a, and has the same size on both; those to the own rank are copied. A pair of ranks may have no
  /// message, or empty ones.
  virtual void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                          std::span<const Message> recvs) = 0;

  /// In place: on entry data[pieces_bytes[rank()]] of each buffer is filled, on return every rank's piece is. Buffers of one
  /// call share its latency.
  virtual void all_gathers(std::span<const Gather> gathers) = 0;
  void all_gather(std::span<std::byte> data, std::span<const Range> pieces_bytes) {
    const Gather one{data, pieces_bytes};
    all_gathers({&one, 1});
  }

  virtual void barrier() = 0;

  /// Returns true if ranks are processes on any hosts, of which those on one host could share memory; the same on every rank.
  virtual bool joins_processes() const { return false; }

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
