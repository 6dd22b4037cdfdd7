#include "kernels/gemm/cuda/product_library.h"

#include "kernels/gemm/cuda/cublaslt_library.h"

namespace zerofleet::cuda {

std::string product_library() {
  const auto library = cublaslt::open_default_library();
  if (library == nullptr) return "plain";
  const std::size_t version = library->get_version();  // 130100 for 13.1.0
  return "cublaslt" + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace zerofleet::cuda
