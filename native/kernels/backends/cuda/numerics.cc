#include "kernels/backends/cuda/numerics.h"

#include <cctype>

#include "core/cuda/traits.h"
#include "kernels/gemm/cuda/product_library.h"

namespace zerofleet::cuda {
namespace {

/// Raised whenever the result of a CUDA kernel, or of a host computation for it, changes in any bit.
constexpr int kCudaKernelVersion = 6;  // 6: sums of products are not split where k is not a multiple of 64, rows of logits are aligned

/// Returns lower-case letters and digits, with hyphens for all other characters.
std::string slug(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!text.empty() && text.back() != '-') {
      text += '-';
    }
  }
  while (text.ends_with('-')) text.pop_back();
  return text;
}

}  // namespace

std::string numerics(const Device& device, CpuIsa) {
  const Traits its = traits(device);
  const std::string kind = std::to_string(its.compute_major) + std::to_string(its.compute_minor);
  return "cuda-" + slug(its.name) + "-sm_" + kind + "x" + std::to_string(its.num_multiprocessors) + "-" +
         product_library() + "/" + std::to_string(kCudaKernelVersion);
}

}  // namespace zerofleet::cuda
