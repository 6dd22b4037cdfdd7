#include "kernels/common/scratch.h"

namespace zerofleet {

Scratch::Scratch(const Context& ctx) : device_(ctx.device), areas_(static_cast<std::size_t>(ctx.pool->num_threads())) {}

void Scratch::reserve(std::size_t num_bytes, std::size_t num_shared_bytes) {
  if (num_bytes > num_bytes_) {
    for (Buffer& area : areas_) area = Buffer(device_, num_bytes);
    num_bytes_ = num_bytes;
  }
  if (num_shared_bytes > shared_.num_bytes()) shared_ = Buffer(device_, num_shared_bytes);
}

}  // namespace zerofleet
