#include "zero/param_gather.h"

namespace zerofleet {

ParamGather::ParamGather(const Context& context, const ShardLayout& layout, Communicator& communicator,
                         CommQueue& queue, DType param_dtype)
    : layout_(layout),
      communicator_(communicator),
      queue_(queue),
      dtype_(param_dtype),
      params_(context.device, static_cast<std::size_t>(layout.padded_numel()) * size_of(param_dtype)) {
  for (std::size_t param = 0; param < layout.num_params(); ++param) {
    const std::int64_t first_element = layout.param_blocks(param).begin * kBlockNumel;
    pointers_.push_back(params_.data() + static_cast<std::size_t>(first_element) * size_of(param_dtype));
  }
}

void ParamGather::gather(std::int64_t bucket) {
  queue_.post([this, bucket](bool failed) {
    if (failed) return;
    const auto block_bytes = kBlockNumel * static_cast<std::int64_t>(size_of(dtype_));
    std::vector<Range> pieces;
    for (int rank = 0; rank < layout_.world_size(); ++rank) {
      const Range owned = layout_.owned_blocks(bucket, rank);
      pieces.push_back({owned.begin * block_bytes, owned.end * block_bytes});
    }
    communicator_.all_gather(flat(), pieces);
  });
}

}  // namespace zerofleet
