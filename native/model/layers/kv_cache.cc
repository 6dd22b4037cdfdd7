#include "model/layers/kv_cache.h"

#include "model/layers/attention.h"

namespace zerofleet {

KvCache::KvCache(const ModelContext& model, std::int64_t page_count) : num_pages(page_count) {
  const PageBytes bytes = page_bytes(model.ctx, attention_shape(model.config, {}), model.dtype);
  const auto pages = static_cast<std::size_t>(num_pages);
  for (std::int64_t layer = 0; layer < model.config.num_hidden_layers; ++layer) {
    keys.emplace_back(model.ctx.device, pages * bytes.keys);
    values.emplace_back(model.ctx.device, pages * bytes.values);
  }
}

std::size_t KvCache::num_bytes() const {
  std::size_t num_bytes = 0;
  for (std::size_t layer = 0; layer < keys.size(); ++layer) num_bytes += bytes_of(keys[layer], values[layer]);
  return num_bytes;
}

}  // namespace zerofleet
