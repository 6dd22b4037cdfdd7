#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/queued_exchanges.h"
#include "comm/solo_comm.h"
#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "test/comm/nccl_world.h"
#include "test/devices_here.h"
#include "train/trainer.h"

namespace zerofleet::test {

/// A communicator that fails a call on which real NCCL may hang: an exchange beside one of another communicator of its
/// rank. Those that are queued on one stream follow each other there.
class OneAtATime final : public Communicator {
 public:
  /// Counts over all communicators of a rank.
  struct Rank {
    std::atomic<int> num_calls{0};
    QueuedExchanges* queued = nullptr;
  };

  OneAtATime(std::unique_ptr<Communicator> inner, std::shared_ptr<Rank> of_rank)
      : inner_(std::move(inner)), of_rank_(std::move(of_rank)) {}
  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    const Turn turn(*this);
    inner_->all_to_all(send, sends, recv, recvs);
  }
  void all_gathers(std::span<const Gather> gathers) override {
    const Turn turn(*this);
    inner_->all_gathers(gathers);
  }
  void barrier() override {
    const Turn turn(*this);
    inner_->barrier();
  }
  bool queue_on(QueuedExchanges* exchanges) override {
    is_queued_ = exchanges != nullptr;
    of_rank_->queued = exchanges;
    return inner_->queue_on(exchanges);
  }
  void abort() override { inner_->abort(); }

 private:
  struct Turn {
    explicit Turn(OneAtATime& comm) : num_calls(comm.of_rank_->num_calls) {
      const bool beside_queued =
          !comm.is_queued_ && comm.of_rank_->queued != nullptr && !comm.of_rank_->queued->is_empty();
      if (num_calls.fetch_add(1) != 0 || beside_queued) throw Error("test", "two exchanges of a rank are under way");
    }
    ~Turn() { --num_calls; }
    std::atomic<int>& num_calls;
  };

  std::unique_ptr<Communicator> inner_;
  std::shared_ptr<Rank> of_rank_;
  bool is_queued_ = false;
};

inline NcclBackend fake_nccl_on_device() {
  return {fake_nccl(), [](const std::byte* data) { return cuda::is_device_memory(data); }};
}

/// Runs `body` on ranks that share the device and meet as ranks on GPUs of their own do, one alone without NCCL; the
/// error code of each.
inline std::vector<std::string> on_nccl_ranks(const TrainerConfig& job, int world_size,
                                              const std::function<void(Trainer&)>& body,
                                              std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const NcclBackend backend = fake_nccl_on_device();
  const int num_sets = job.zero.expert_parallel_size;
  RelayedStores stores(world_size);
  return run_threads(world_size, [&](int rank) {
    TrainerConfig config = job;
    config.rank = rank;
    config.world_size = world_size;
    const auto of_rank = std::make_shared<OneAtATime::Rank>();
    const auto connect = [&](const NcclOptions& options) -> std::unique_ptr<Communicator> {
      if (options.world_size == 1) return make_solo_comm();
      return std::make_unique<OneAtATime>(connect_nccl_through(backend, options, stores.store(rank)), of_rank);
    };
    const NcclOptions options{rank, world_size, kFirstGpu, timeout};
    TrainerComms comms(connect(options));
    if (num_sets > 1) {
      comms.same_experts = connect(nccl_group(options, num_sets));
      comms.all_experts = connect(nccl_neighbours(options, num_sets));
    }
    Trainer trainer(config, std::move(comms));
    trainer.initialize();
    body(trainer);
  });
}

}  // namespace zerofleet::test
