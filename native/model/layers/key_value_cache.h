#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/layers/block.h"

namespace zerofleet {

/// Keys and values of the tokens of one sequence so far, of every layer.
struct KeyValueCache {
  KeyValueCache(const ModelContext& model, std::int64_t capacity);
  std::int64_t capacity() const { return keys.front().view().rows; }

  std::vector<Tensor> keys, values;  // (C, KV) per layer
  std::int64_t length = 0;           // tokens that every layer holds
};

}  // namespace zerofleet
