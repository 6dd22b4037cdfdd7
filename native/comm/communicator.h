#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/range.h"

namespace zerofleet {

/// Range of bytes in a buffer that is sent to rank `peer`, or received from it.
struct Message {
  int peer = 0;
  Range bytes;
};

/// Makes one message per rank, in rank order. Ranges may be empty.
inline std::vector<Message> one_per_rank(std::span<const Range> bytes) {
  std::vector<Message> messages;
  for (const Range& range : bytes) messages.push_back({static_cast<int>(messages.size()), range});
  return messages;
}

class QueuedExchanges;

/// A buffer of an all-gather: data[pieces_bytes[r]] is the piece of rank r. Ranges ascend without gaps.
struct Gather {
  std::span<std::byte> data;
  std::span<const Range> pieces_bytes;
};

/// Communicator among ranks that exchange bytes.
///
/// Provides the collectives that the ZeRO core needs. All ranks call them in the same order. A call blocks, unless
/// queue_on() lets it run ahead. There are no sums, because their bits would depend on the world size: owners fold them
/// in leaf order.
///
/// One call at a time per object. A call waits as long as the other ranks live and receive (see ExchangeWatch). A
/// failed call throws Error{"comm_failed"} (a peer is gone) or Error{"comm_timeout"} (a peer is silent). After a
/// failure the object can only be destroyed.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// Sends and receives messages; both lists are in the order of peers. The n-th message of rank a to rank b is the
  /// n-th that b receives from a, and has the same size on both sides. Messages of a rank to itself are copied. A pair
  /// of ranks may have no messages, or empty ones.
  virtual void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                          std::span<const Message> recvs) = 0;

  /// In place: on entry this rank's piece of each buffer is filled, on return all pieces are. The buffers of one call
  /// share its latency.
  virtual void all_gathers(std::span<const Gather> gathers) = 0;
  void all_gather(std::span<std::byte> data, std::span<const Range> pieces_bytes) {
    const Gather one{data, pieces_bytes};
    all_gathers({&one, 1});
  }

  virtual void barrier() = 0;

  /// Returns true if ranks are processes, on one or more hosts, so that ranks of one host could share memory. The same
  /// on every rank.
  virtual bool joins_processes() const { return false; }

  /// Queues all further exchanges of device memory on the stream of `exchanges`. While it runs ahead, calls do not wait
  /// for them; they still wait for exchanges of host memory. Null ends this, and requires an empty queue. Returns
  /// false, without effect, if the communicator works on the host.
  virtual bool queue_on(QueuedExchanges* exchanges) {
    static_cast<void>(exchanges);
    return false;
  }

  /// Makes the call in progress and all later ones fail with "comm_failed", so that no rank waits for one that gives
  /// up. May be called from any thread, also during a call.
  virtual void abort() = 0;
};

}  // namespace zerofleet
