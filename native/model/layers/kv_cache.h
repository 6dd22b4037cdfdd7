#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/buffer.h"
#include "kernels/attention/paged_attention.h"
#include "model/common/block.h"

namespace zerofleet {

/// Keys and values of all sequences, in pages of kPageTokens tokens. Page p holds the same tokens in every layer.
struct KvCache {
  KvCache(const ModelContext& model, std::int64_t num_pages);
  std::size_t num_bytes() const;

  std::int64_t num_pages;
  std::vector<Buffer> keys, values;  // by layer
  PagedRows rows;                    // of the current pass
};

}  // namespace zerofleet
