#pragma once

#include "comm/communicator.h"

namespace zerofleet {

/// The groups to which a rank belongs. Ranks without a common group exchange nothing.
struct ZeroComms {
  ZeroComms(Communicator& all_ranks) : world(all_ranks) {}  // NOLINT: a plain job has only the world

  Communicator& world;                     // the N data-parallel ranks
  Communicator* expert = nullptr;          // ranks r, r ± P, …, which hold the same experts; null without expert sets
  Communicator* model_parallel = nullptr;  // ranks that hold the pieces of one model; null: each holds the whole
};

}  // namespace zerofleet
