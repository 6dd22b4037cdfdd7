#pragma once

#include <stdint.h>

namespace zerofleet::cpu {

/// Rows of an operand, `stride` elements from one to the next. The data of an absent operand is null.
struct ConstRows {
  const void* data = nullptr;
  int64_t stride = 0;
};

struct Rows {
  void* data = nullptr;
  int64_t stride = 0;
};

}  // namespace zerofleet::cpu
