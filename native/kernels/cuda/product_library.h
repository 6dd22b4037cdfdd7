#pragma once

#include <string>

namespace zerofleet::cuda {

/// What multiplies matrices in this process: "cublaslt13.1.0" with its version, or "plain" for the kernel of our own.
std::string product_library();

}  // namespace zerofleet::cuda
