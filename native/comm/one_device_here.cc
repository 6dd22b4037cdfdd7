#include "comm/one_device_here.h"

#include <map>
#include <mutex>

#include "core/error.h"

namespace zerofleet {
namespace {

struct Ranks {
  Device device;
  int count = 0;
};

std::mutex worlds_here_mutex;
std::map<std::string, Ranks> worlds_here;  // of this process, by their ids

}  // namespace

OneDeviceHere::OneDeviceHere(const nccl::UniqueId& world, Device device) : world_(world.bytes, sizeof world.bytes) {
  const std::lock_guard lock(worlds_here_mutex);
  Ranks& ranks = worlds_here.try_emplace(world_, Ranks{device}).first->second;
  require(ranks.device == device, "invalid_argument",
          "ranks of one world are on two devices in this process: over NCCL each of them needs a process of its own");
  ++ranks.count;
}

OneDeviceHere::~OneDeviceHere() {
  const std::lock_guard lock(worlds_here_mutex);
  const auto world = worlds_here.find(world_);
  if (--world->second.count == 0) worlds_here.erase(world);
}

}  // namespace zerofleet
