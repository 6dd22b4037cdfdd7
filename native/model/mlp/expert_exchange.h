#pragma once

#include <cstddef>
#include <span>

#include "core/range.h"

namespace zerofleet {

/// P ranks that together hold all experts of a model, one set of them each, and run their leaves of a round at the same
/// time. Expert e of E belongs to set e / (E / P); the rank that holds set s computes the group's s-th leaf. A model
/// has no other link to other ranks.
class ExpertExchange {
 public:
  virtual ~ExpertExchange() = default;

  virtual int num_sets() const = 0;
  /// The set of this rank.
  virtual int set() const = 0;

  /// Sends send[send_bytes[s]] to the rank of set s and receives recv[recv_bytes[s]] from it, for all s. Ranges have
  /// one entry per set, ascending and without gaps. Memory of a device is read after all that the model has queued
  /// there so far, and what came is there when the call returns. To be called on all P ranks, in the same order; throws
  /// what the transport throws.
  virtual void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                          std::span<const Range> recv_bytes) = 0;
};

}  // namespace zerofleet
