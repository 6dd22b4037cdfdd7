#include "bench/thread_job.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "bench/device_ranks.h"
#include "comm/thread_comm.h"

namespace zerofleet::bench {
namespace {

/// Adds per-rank digest shares; the sum over all ranks is the digest of the step.
class DigestSums {
 public:
  explicit DigestSums(int num_steps) : sums_(static_cast<std::size_t>(num_steps)) {}
  void add(std::int64_t step, const Digest128& part) {
    const std::lock_guard lock(mutex_);
    sums_[static_cast<std::size_t>(step - 1)] += part;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Digest128& sum : sums_) texts.push_back(sum.to_hex());
    return texts;
  }

 private:
  std::mutex mutex_;
  std::vector<Digest128> sums_;
};

}  // namespace

void ThreadJob::on_ranks(int world_size, int num_threads, const std::function<void(Trainer&)>& body) {
  for (const auto& failure : failures_on_ranks(world_size, num_threads, body)) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// For ranks that share a CUDA device, through the host's memory.
std::unique_ptr<Communicator> ThreadJob::on_device(std::unique_ptr<Communicator> comm) const {
  if (config.device.kind == DeviceKind::kCpu) return comm;
  return std::make_unique<DeviceRanks>(config.device, std::move(comm));
}

std::vector<TrainerComms> ThreadJob::comms_of(int world_size) const {
  const int num_sets = config.zero.expert_parallel_size;
  std::vector<TrainerComms> comms;
  for (auto& world : make_thread_comms(world_size, timeout)) comms.emplace_back(on_device(std::move(world)));
  if (num_sets == 1) return comms;
  auto same = make_thread_groups(world_size, num_sets, timeout),
       all = make_thread_neighbours(world_size, num_sets, timeout);
  for (int rank = 0; rank < world_size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    comms[index].same_experts = on_device(std::move(same[index]));
    comms[index].all_experts =
        on_device(around_all_experts ? around_all_experts(rank, std::move(all[index])) : std::move(all[index]));
  }
  return comms;
}

std::vector<std::exception_ptr> ThreadJob::failures_on_ranks(int world_size, int num_threads,
                                                             const std::function<void(Trainer&)>& body) {
  auto comms = comms_of(world_size);
  std::vector<std::thread> ranks;
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(world_size));
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto index = static_cast<std::size_t>(rank);
      try {
        TrainerConfig mine = config;
        mine.rank = rank;
        mine.world_size = world_size;
        mine.num_threads = num_threads;
        Trainer trainer(mine, std::move(comms[index]));
        body(trainer);
      } catch (...) {
        failures[index] = std::current_exception();
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  return failures;
}

std::vector<std::string> ThreadJob::digests_of_run(int world_size, int num_threads, int num_steps) {
  DigestSums sums(num_steps);
  on_ranks(world_size, num_threads, [&](Trainer& trainer) {
    trainer.initialize();
    trainer.compute_reference();
    for (int step = 0; step < num_steps; ++step) {
      const StepResult result = trainer.step(0);
      sums.add(result.step, trainer.digest_part());
    }
  });
  return sums.texts();
}

SavedState ThreadJob::run_from(const SavedState* from, int world_size, int num_steps) {
  SavedState saved;
  Digest128 digest{};
  std::mutex mutex;
  for (auto& state : saved.values) {
    for (const ParamSpec& spec : param_specs(config.model)) state.emplace_back(static_cast<std::size_t>(spec.numel()));
  }
  on_ranks(world_size, 1, [&](Trainer& trainer) {
    const auto slices = trainer.slices();
    std::vector<double> reference;
    if (from == nullptr) {
      trainer.initialize();
      reference = trainer.compute_reference();
    } else {
      trainer.initialize_base(config.seed);
      for (const OwnedSlice& slice : slices) {
        const auto& values = from->values[static_cast<std::size_t>(slice.state)][slice.param];
        trainer.load(slice.state, slice.param, slice.elements.begin,
                     std::span(values).subspan(static_cast<std::size_t>(slice.elements.begin),
                                               static_cast<std::size_t>(slice.elements.size())));
      }
      trainer.finish_load(from->position, Restore::kFull);
      reference = from->reference;
      trainer.set_reference(reference);
    }
    for (int step = 0; step < num_steps; ++step) trainer.step(0);
    std::vector<std::byte> copy(trainer.owned_bytes());
    trainer.copy_state(copy);
    const std::lock_guard lock(mutex);
    const float* values = reinterpret_cast<const float*>(copy.data());
    for (const OwnedSlice& slice : slices) {
      auto& target = saved.values[static_cast<std::size_t>(slice.state)][slice.param];
      std::copy_n(values, slice.elements.size(), target.begin() + slice.elements.begin);
      values += slice.elements.size();
    }
    digest += trainer.digest_part();
    saved.position = trainer.position();
    saved.reference = reference;
  });
  saved.digest = digest.to_hex();
  return saved;
}

}  // namespace zerofleet::bench
