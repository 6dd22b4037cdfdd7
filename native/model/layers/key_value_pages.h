#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/buffer.h"
#include "kernels/attention/paged_attention.h"
#include "model/common/block.h"

namespace zerofleet {

/// Keys and values of tokens in pages: page p has the same tokens in every layer.
struct KeyValuePages {
  KeyValuePages(const ModelContext& model, std::int64_t count);
  std::size_t num_bytes() const;

  std::int64_t count;
  std::vector<Buffer> keys, values;  // by layer
  PagedRows rows;                    // of the pass in hand
};

}  // namespace zerofleet
