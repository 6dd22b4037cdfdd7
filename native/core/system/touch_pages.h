#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

namespace zerofleet {

/// Bytes of a page of this machine: 4 KiB on most, 16 or 64 KiB on some with Arm processors.
std::size_t page_bytes();

/// Writes a zero into each page of memory that is zero, fresh from the kernel, so that later writers need not wait for
/// pages to be cleared. Ends early when `stop` is requested.
void touch_pages(std::span<std::byte> memory, const std::stop_token& stop);

}  // namespace zerofleet
