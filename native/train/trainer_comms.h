#pragma once

#include <memory>
#include <utility>

#include "comm/communicator.h"

namespace zerofleet {

/// A rank's communicators. With P = expert_parallel_size sets of experts the rank belongs to three groups. They have
/// separate connections, because CPUs use them at the same time. On CUDA devices they take turns (see
/// ZeroOptimizer::run_exchange()).
struct TrainerComms {
  TrainerComms(std::unique_ptr<Communicator> all_ranks) : world(std::move(all_ranks)) {}  // NOLINT: enough for P = 1

  std::unique_ptr<Communicator> world;
  std::unique_ptr<Communicator> same_experts;  // ranks r, r ± P, …, which hold the same set; null if P is 1
  std::unique_ptr<Communicator> all_experts;   // P neighbouring ranks, which together hold all sets; null if P is 1
};

}  // namespace zerofleet
