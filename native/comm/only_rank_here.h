#pragma once

#include <string>

#include "comm/nccl_library.h"

namespace zerofleet {

/// A rank's claim to be the only one of its NCCL world in this process, until it is destroyed. Ranks as threads of one process read each
/// other's memory by its address, and memory of a CUDA pool, which all of ours is, is not mapped on other devices.
class OnlyRankHere {
 public:
  /// Throws Error{"invalid_argument"} if the process has another rank of the world.
  explicit OnlyRankHere(const nccl::UniqueId& world);
  ~OnlyRankHere();
  OnlyRankHere(const OnlyRankHere&) = delete;
  OnlyRankHere& operator=(const OnlyRankHere&) = delete;

 private:
  std::string world_;
};

}  // namespace zerofleet
