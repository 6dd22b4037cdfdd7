#include "test/cuda_emulator/memory_pool.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "test/cuda_emulator/memory.h"

namespace zerofleet::emulator {
namespace {

struct Pool {
  std::mutex mutex;
  std::map<void*, std::size_t> blocks;
  PoolSizes sizes{};
  std::size_t threshold = 0;
};

Pool& pool() {
  static Pool one;
  return one;
}

}  // namespace

void* take_from_pool(std::size_t num_bytes, bool& grew) {
  void* data = take(num_bytes);
  if (data == nullptr) return nullptr;
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  p.blocks[data] = num_bytes;
  p.sizes.in_use += num_bytes;
  p.sizes.peak = std::max(p.sizes.peak, p.sizes.in_use);
  grew = p.sizes.in_use > p.sizes.reserved;
  p.sizes.reserved = std::max(p.sizes.reserved, p.sizes.in_use);
  return data;
}

bool free_in_pool(void* data) {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  const auto found = p.blocks.find(data);
  if (found == p.blocks.end()) return false;
  p.sizes.in_use -= found->second;
  p.blocks.erase(found);
  p.sizes.reserved = std::min(p.sizes.reserved, std::max(p.sizes.in_use, p.threshold));
  return true;
}

void set_pool_threshold(std::size_t num_bytes) {
  const std::lock_guard lock(pool().mutex);
  pool().threshold = num_bytes;
}

void reset_pool_peak() {
  const std::lock_guard lock(pool().mutex);
  pool().sizes.peak = pool().sizes.in_use;
}

PoolSizes pool_sizes() {
  const std::lock_guard lock(pool().mutex);
  return pool().sizes;
}

}  // namespace zerofleet::emulator
