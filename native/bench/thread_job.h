#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "train/trainer.h"

namespace zerofleet::bench {

/// Contents of a checkpoint, gathered over all ranks: a full array per state and parameter.
struct SavedState {
  TrainingPosition position;
  std::vector<double> reference;  // Trainer::compute_reference()
  std::vector<std::vector<float>> values[kMaxStates];
  std::string digest;
};

/// A training whose ranks are threads of this process; on a CUDA device all of them share it.
class ThreadJob {
 public:
  explicit ThreadJob(TrainerConfig job_config = {}) : config(std::move(job_config)) {}

  TrainerConfig config;

  /// State digest after each step of a fresh run.
  std::vector<std::string> digests_of_run(int world_size, int num_threads, int num_steps);

  /// Runs on from `from` (from scratch if null) and saves.
  SavedState run_from(const SavedState* from, int world_size, int num_steps);

  /// Runs `body` once per rank, each in its own thread with its own trainer; rethrows the first failure.
  void on_ranks(int world_size, int num_threads, const std::function<void(Trainer&)>& body);
  /// The same, and returns the exception of each rank (null for none).
  std::vector<std::exception_ptr> failures_on_ranks(int world_size, int num_threads,
                                                    const std::function<void(Trainer&)>& body);

  std::chrono::milliseconds timeout{60'000};  // of an exchange
  /// Wraps a rank's communicator to the ranks with all experts; may be empty.
  std::function<std::unique_ptr<Communicator>(int rank, std::unique_ptr<Communicator> inner)> around_all_experts;

 private:
  std::vector<TrainerComms> comms_of(int world_size) const;
  std::unique_ptr<Communicator> on_device(std::unique_ptr<Communicator> comm) const;
};

}  // namespace zerofleet::bench
