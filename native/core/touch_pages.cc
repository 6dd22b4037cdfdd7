#include "core/touch_pages.h"

namespace zerofleet {

void touch_pages(std::span<std::byte> memory, const std::stop_token& stop) {
  for (std::size_t at = 0; at < memory.size() && !stop.stop_requested(); at += kPageBytes) {
    // Volatile: the compiler must not see that nobody reads it.
    *static_cast<volatile std::byte*>(memory.data() + at) = std::byte{0};
  }
}

}  // namespace zerofleet
