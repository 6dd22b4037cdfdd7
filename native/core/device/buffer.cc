#include "core/device/buffer.h"

#include <sys/mman.h>

#include <string>

#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "core/system/mapping.h"
#include "core/system/touch_pages.h"

namespace zerofleet {
namespace {

constexpr std::size_t kSkewBytes = 17 * std::size_t{4096};

}  // namespace

void ReleaseBytes::operator()(std::byte* data) const noexcept {
  if (source == Source::kCuda) return cuda::release(data);
  if (source == Source::kPinned) cuda::unpin(data);
  release_pages(data - lead_bytes, mapped_bytes);
}

Buffer::Buffer(Device device, std::size_t num_bytes, int skew) : device_(device), num_bytes_(num_bytes) {
  require(skew >= 0 && skew <= 28, "invalid_argument", "the skew of a buffer is 0 to 28");
  if (device.kind == DeviceKind::kCpu) {
    map(skew);
  } else if (num_bytes > 0) {
    data_ = {cuda::allocate(device, num_bytes), ReleaseBytes{0, 0, ReleaseBytes::Source::kCuda}};
  } else {
    cuda::use(device);  // so that a device that isn't there is an error for any size
  }
}

Buffer Buffer::on_host_for(Device user, std::size_t num_bytes, int skew) {
  Buffer buffer(Device{}, num_bytes, skew);
  if (user.kind == DeviceKind::kCuda && num_bytes > 0) {
    cuda::pin(user, buffer.data(), num_bytes);
    buffer.data_.get_deleter().source = ReleaseBytes::Source::kPinned;
  }
  return buffer;
}

Buffer Buffer::of_pages(std::byte* pages, std::size_t num_bytes, std::size_t mapped_bytes) {
  Buffer buffer;
  buffer.num_bytes_ = num_bytes;
  buffer.data_ = {pages, ReleaseBytes{mapped_bytes, 0}};
  return buffer;
}

void Buffer::map(int skew) {
  if (num_bytes_ == 0) return;
  const bool huge = num_bytes_ >= kHugePageBytes;
  const std::size_t skew_bytes = huge ? static_cast<std::size_t>(skew) * kSkewBytes : 0;
  const MappingPlan plan = MappingPlan::of(skew_bytes + num_bytes_, huge, page_bytes());
  std::byte* start = map_pages(plan.asked_bytes);
  const auto own = [this](std::byte* data, std::size_t mapped_bytes, std::size_t lead_bytes) {
    static_cast<void>(data_.release());
    data_ = {data, ReleaseBytes{mapped_bytes, lead_bytes}};
  };
  own(start, plan.asked_bytes, 0);  // before the rest, which may fail
  if (huge) {
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    const std::size_t lead = (kHugePageBytes - address % kHugePageBytes) % kHugePageBytes;
    unmap_pages(start, lead);
    start += lead;
    own(start, plan.asked_bytes - lead, 0);
    unmap_pages(start + plan.bytes, plan.asked_bytes - lead - plan.bytes);
    // Advice only: a system without huge pages refuses it.
    static_cast<void>(::madvise(start, plan.huge_bytes, MADV_HUGEPAGE));
  }
  own(start + skew_bytes, plan.bytes, skew_bytes);
}

}  // namespace zerofleet
