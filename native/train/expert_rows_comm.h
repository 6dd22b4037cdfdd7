#pragma once

#include "comm/communicator.h"
#include "model/expert_exchange.h"

namespace zerofleet {

/// The model's view of the communicator among ranks that hold all experts together: rank s of it holds set s.
class ExpertRowsComm final : public ExpertExchange {
 public:
  /// `ranks` must outlive the object.
  explicit ExpertRowsComm(Communicator& ranks) : ranks_(ranks) {}

  int num_sets() const override { return ranks_.world_size(); }
  int set() const override { return ranks_.rank(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                  std::span<const Range> recv_bytes) override {
    ranks_.all_to_all(send, send_bytes, recv, recv_bytes);
  }

 private:
  Communicator& ranks_;
};

}  // namespace zerofleet
