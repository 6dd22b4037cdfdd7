#pragma once

#include <functional>
#include <utility>

#include "comm/communicator.h"
#include "core/device/context.h"
#include "core/device/transfer.h"
#include "model/mlp/expert_exchange.h"

namespace zerofleet {

/// Exchange of expert rows over the communicator of the ranks that together hold all experts. Its rank s holds expert
/// set s.
class ExpertRowsComm final : public ExpertExchange {
 public:
  /// Runs `exchange` in turn with the rank's other exchanges: after all work that the model has queued. Returns when it
  /// is done.
  using InTurn = std::function<void(const std::function<void()>& exchange)>;

  /// `ranks` must outlive the object. By default, exchanges run on the model's thread, once the device has finished the
  /// work that `model` has queued.
  ExpertRowsComm(Communicator& ranks, const Context& model)
      : ranks_(ranks), in_turn_([model](const std::function<void()>& exchange) {
          synchronize(model);
          exchange();
        }) {}

  /// Lets `in_turn` run all further exchanges.
  void run_by(InTurn in_turn) { in_turn_ = std::move(in_turn); }

  int num_sets() const override { return ranks_.world_size(); }
  int set() const override { return ranks_.rank(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Range> send_bytes, std::span<std::byte> recv,
                  std::span<const Range> recv_bytes) override {
    in_turn_([&] { ranks_.all_to_all(send, one_per_rank(send_bytes), recv, one_per_rank(recv_bytes)); });
  }

 private:
  Communicator& ranks_;
  InTurn in_turn_;
};

}  // namespace zerofleet
