#pragma once

#include <memory>
#include <utility>

#include "comm/communicator.h"

namespace zerofleet {

/// A rank's communicators. With P = expert_parallel_size sets of experts it is in three groups, which are apart because
/// CPUs use them at the same time. On CUDA devices they take turns (see ZeroOptimizer::run_exchange()).
struct TrainerComms {
  TrainerComms(std::unique_ptr<Communicator> all_ranks) : world(std::move(all_ranks)) {}  // NOLINT: all that P = 1 needs

  std::unique_ptr<Communicator> world;
  std::unique_ptr<Communicator> same_experts;  // ranks r, r ± P, …, with the same set; null where P is 1
  std::unique_ptr<Communicator> all_experts;   // the P ranks next to each other with all sets; null where P is 1
};

}  // namespace zerofleet
