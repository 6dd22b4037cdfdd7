#pragma once

#include <cstdint>
#include <memory>

#include "comm/communicator.h"

namespace zerofleet {

/// Bytes that one rank has sent to other ranks, by purpose. Pieces that stay on the rank are not counted.
struct SentBytes {
  std::int64_t reduced = 0;   // all_to_all: gradients in transit to their owners
  std::int64_t gathered = 0;  // all_gather: parameters and statistics, once per receiving rank
  std::int64_t routed = 0;    // rows of experts; set by the owner, not by CountingComm
};

/// A communicator that counts the traffic of another one. take() must not overlap a collective.
class CountingComm final : public Communicator {
 public:
  explicit CountingComm(std::unique_ptr<Communicator> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override;
  void all_gathers(std::span<const Gather> gathers) override;
  void barrier() override { inner_->barrier(); }
  bool joins_processes() const override { return inner_->joins_processes(); }
  bool queue_on(QueuedExchanges* exchanges) override { return inner_->queue_on(exchanges); }
  void abort() override { inner_->abort(); }

  /// Returns the bytes sent since the last call.
  SentBytes take();

 private:
  std::unique_ptr<Communicator> inner_;
  SentBytes sent_;
};

}  // namespace zerofleet
