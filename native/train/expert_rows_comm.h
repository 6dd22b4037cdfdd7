#pragma once

#include <functional>
#include <utility>

#include "comm/communicator.h"
#include "core/device/context.h"
#include "core/device/transfer.h"
#include "model/mlp/expert_exchange.h"

namespace zerofleet {

/// The model's view of the communicator among ranks that hold all experts together: rank s of it holds set s.
class ExpertRowsComm final : public ExpertExchange {
 public:
  /// Runs an exchange among the others of a rank, after all work of the model so far, and returns when it is done.
  using InTurn = std::function<void(const std::function<void()>& exchange)>;

  /// `ranks` must outlive the object. Exchanges run on the model's thread, when the device is done with what `model` has
  /// queued.
  ExpertRowsComm(Communicator& ranks, const Context& model)
      : ranks_(ranks), in_turn_([model](const std::function<void()>& exchange) {
          synchronize(model);
          exchange();
        }) {}

  /// From now on exchanges are run by `in_turn`.
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
