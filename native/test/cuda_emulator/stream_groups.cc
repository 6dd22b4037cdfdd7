#include "test/cuda_emulator/stream_groups.h"

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "test/cuda_emulator/emulator.h"

namespace zerofleet::emulator {
namespace {

std::mutex mutex;
std::vector<int> parents;
std::atomic<int> num_ranks{0};  // that exchange on the device
thread_local int last_used = -1;

int root_of(int group) {
  while (parents[static_cast<std::size_t>(group)] != group) group = parents[static_cast<std::size_t>(group)];
  return group;
}

}  // namespace

int new_stream_group() {
  const std::lock_guard lock(mutex);
  parents.push_back(static_cast<int>(parents.size()));
  return parents.back();
}

void unite_groups(int a, int b) {
  const std::lock_guard lock(mutex);
  parents[static_cast<std::size_t>(root_of(a))] = root_of(b);
}

void used_by_thread(int group) { last_used = group; }

bool waits_for_group(int group) {
  if (num_ranks == 0 || last_used < 0) return true;
  const std::lock_guard lock(mutex);
  return root_of(group) == root_of(last_used);
}

}  // namespace zerofleet::emulator

void zfRanksOnDevice(int more) { zerofleet::emulator::num_ranks += more; }
