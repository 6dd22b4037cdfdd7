#include "kernels/backends/cuda/numerics.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include "core/cuda/cuda_runtime.h"
#include "core/cuda/traits.h"
#include "kernels/attention/cuda/cudnn_attention.h"
#include "kernels/gemm/cuda/product_library.h"

namespace zerofleet::cuda {
namespace {

/// Raised whenever the result of a CUDA kernel, or of a host computation for it, changes in any bit.
constexpr int kCudaKernelVersion = 11;  // 11: with recomputed activations long passes go through weights in parts

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

bool changes_numerics(std::string_view variable) {
  constexpr std::array<std::string_view, 5> kBegins{"NVIDIA_TF32_OVERRIDE=", "CUBLAS", "CUDNN",
                                                    "NCCL_ALGO=", "NCCL_PROTO="};
  return std::ranges::any_of(kBegins, [&](std::string_view begin) { return variable.starts_with(begin); });
}

/// The variables of this process that change what libraries compute, as "-NAME=VALUE" in order of their names.
std::string variables() {
  std::set<std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (changes_numerics(*variable)) found.insert(*variable);
  }
  std::string text;
  for (const std::string& variable : found) text += "-" + variable;
  return text;
}

}  // namespace

std::string numerics(const Device& device, CpuIsa) {
  const Traits its = traits(device);
  const std::string kind = std::to_string(its.compute_major) + std::to_string(its.compute_minor);
  return "cuda-" + slug(its.name) + "-sm_" + kind + "x" + std::to_string(its.num_multiprocessors) + "-cudart" +
         runtime_version() + "-" + product_library() + cudnn::attention_library() + variables() + "/" +
         std::to_string(kCudaKernelVersion);
}

}  // namespace zerofleet::cuda
