#pragma once

#include "comm/communicator.h"

namespace zerofleet {

/// The groups that a rank is a member of. Ranks of a job that don't know each other through a group exchange nothing.
struct ZeroComms {
  ZeroComms(Communicator& all_ranks) : world(all_ranks) {}  // NOLINT: a plain job has only the world

  Communicator& world;                     // the data-parallel ranks, N
  Communicator* expert = nullptr;          // ranks r, r ± P, r ± 2P, …, which hold the same experts; null without sets
  Communicator* model_parallel = nullptr;  // ranks that hold the pieces of one model; null where each holds the whole
};

}  // namespace zerofleet
