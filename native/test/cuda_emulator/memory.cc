#include "test/cuda_emulator/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "test/cuda_emulator/emulator.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace zerofleet::emulator {
namespace {

constexpr std::size_t kAlignment = 256;

struct Block {
  std::size_t num_bytes;   // requested
  std::size_t room_bytes;  // taken
};

struct Memory {
  std::mutex mutex;
  std::map<std::uintptr_t, Block> blocks;        // on the device
  std::map<std::uintptr_t, std::size_t> pinned;  // host memory
  std::size_t used = 0, limit = std::size_t{4} << 30;
};

Memory& memory() {
  static Memory one;
  return one;
}

template <class Blocks>
bool holds(const Blocks& blocks, const void* data, std::size_t num_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return false;
  --next;
  std::size_t size;
  if constexpr (requires { next->second.num_bytes; }) {
    size = next->second.num_bytes;
  } else {
    size = next->second;
  }
  return address + num_bytes <= next->first + size;
}

}  // namespace

bool on_device(const void* data, std::size_t num_bytes) {
  const std::lock_guard lock(memory().mutex);
  return holds(memory().blocks, data, num_bytes);
}

bool is_pinned(const void* data, std::size_t num_bytes) {
  const std::lock_guard lock(memory().mutex);
  return holds(memory().pinned, data, num_bytes);
}

void* take(std::size_t num_bytes) {
  Memory& m = memory();
  const std::size_t room = (num_bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(m.mutex);
  if (num_bytes == 0 || room > m.limit - std::min(m.limit, m.used)) return nullptr;
  void* data = std::aligned_alloc(kAlignment, room);
  if (data == nullptr) return nullptr;
  std::memset(data, 0xff, room);  // NaNs expose reads before the first write
#if defined(__SANITIZE_ADDRESS__)
  __asan_poison_memory_region(static_cast<std::byte*>(data) + num_bytes, room - num_bytes);
#endif
  m.blocks.emplace(reinterpret_cast<std::uintptr_t>(data), Block{num_bytes, room});
  m.used += room;
  return data;
}

bool give_back(void* data) {
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  const auto found = m.blocks.find(reinterpret_cast<std::uintptr_t>(data));
  if (found == m.blocks.end()) return false;
  m.used -= found->second.room_bytes;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(data, found->second.room_bytes);
#endif
  std::memset(data, 0xff, found->second.room_bytes);
  m.blocks.erase(found);
  std::free(data);
  return true;
}

MemorySizes memory_sizes() {
  const std::lock_guard lock(memory().mutex);
  return {std::min(memory().used, memory().limit), memory().limit};
}

void set_memory_bytes(std::size_t num_bytes) {
  const std::lock_guard lock(memory().mutex);
  memory().limit = num_bytes;
}

bool pin(const void* data, std::size_t num_bytes) {
  const std::lock_guard lock(memory().mutex);
  return memory().pinned.emplace(reinterpret_cast<std::uintptr_t>(data), num_bytes).second;
}

bool unpin(const void* data) {
  const std::lock_guard lock(memory().mutex);
  return memory().pinned.erase(reinterpret_cast<std::uintptr_t>(data)) == 1;
}

}  // namespace zerofleet::emulator
