#include "comm/only_rank_here.h"

#include <mutex>
#include <set>

#include "core/error.h"

namespace zerofleet {
namespace {

std::mutex worlds_here_mutex;
std::set<std::string> worlds_here;  // of this process, by their ids

}  // namespace

OnlyRankHere::OnlyRankHere(const nccl::UniqueId& world) : world_(world.bytes, sizeof world.bytes) {
  const std::lock_guard lock(worlds_here_mutex);
  require(worlds_here.insert(world_).second, "invalid_argument",
          "two ranks of one world are in this process: over NCCL each rank needs a process of its own");
}

OnlyRankHere::~OnlyRankHere() {
  const std::lock_guard lock(worlds_here_mutex);
  worlds_here.erase(world_);
}

}  // namespace zerofleet
