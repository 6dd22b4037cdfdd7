#include "core/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "core/touch_pages.h"

namespace zerofleet {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kSkewBytes = 17 * kPageBytes;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

void ReleaseBytes::operator()(std::byte* data) const noexcept {
  if (source == Source::kCuda) return cuda::release(data);
  if (source == Source::kPinned) cuda::unpin(data);
  ::munmap(data - lead_bytes, mapped_bytes);
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

void Buffer::map(int skew) {
  if (num_bytes_ == 0) return;
  const bool huge = num_bytes_ >= kHugePageBytes;
  const std::size_t skew_bytes = huge ? static_cast<std::size_t>(skew) * kSkewBytes : 0;
  // Anonymous mappings start out zeroed and page-aligned. A large one is mapped with slack, so that its first byte can
  // be moved up to a huge-page boundary; the slack is given back at once. What is left behind the last whole huge page
  // has small ones, unless it nearly fills another: a model has hundreds of arrays of a few MiB, and half a huge page
  // lost in each of them comes to 5 % of all memory.
  const std::size_t needed = round_up(skew_bytes + num_bytes_, kPageBytes);
  const std::size_t in_huge_pages = huge ? (needed + kHugePageBytes / 8) / kHugePageBytes * kHugePageBytes : 0;
  const std::size_t bytes = std::max(needed, in_huge_pages);
  const std::size_t mapped = huge ? bytes + kHugePageBytes : bytes;
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(base != MAP_FAILED, "out_of_memory", "cannot allocate " + std::to_string(num_bytes_) + " bytes");
  auto* start = static_cast<std::byte*>(base);
  if (huge) {
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    const std::size_t lead = round_up(address, kHugePageBytes) - address;
    if (lead > 0) ::munmap(start, lead);
    start += lead;
    if (mapped - lead > bytes) ::munmap(start + bytes, mapped - lead - bytes);
    ::madvise(start, in_huge_pages, MADV_HUGEPAGE);
  }
  data_ = {start + skew_bytes, ReleaseBytes{bytes, skew_bytes}};
}

}  // namespace zerofleet
