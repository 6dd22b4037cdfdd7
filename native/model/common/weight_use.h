#pragma once

#include <cstdint>

namespace zerofleet {

/// Access to the weights by products; the results are bitwise equal.
enum class WeightUse : std::uint8_t {
  kPackedCopies,  // packed once per change, in both orders: for passes of few rows
  kInPlace,       // packed by each product as it goes, without a copy: for passes of hundreds of rows
};

}  // namespace zerofleet
