#pragma once

#include <chrono>

namespace zerofleet::bench {

/// By the clock of the host.
template <class Body>
double seconds_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace zerofleet::bench
