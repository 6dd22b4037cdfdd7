#include "core/system/touch_pages.h"

#include <unistd.h>

namespace zerofleet {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

void touch_pages(std::span<std::byte> memory, const std::stop_token& stop) {
  for (std::size_t at = 0; at < memory.size() && !stop.stop_requested(); at += page_bytes()) {
    // Volatile: the compiler must not remove a write that is never read.
    *static_cast<volatile std::byte*>(memory.data() + at) = std::byte{0};
  }
}

}  // namespace zerofleet
