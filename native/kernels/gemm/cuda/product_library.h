#pragma once

#include <string>

namespace zerofleet::cuda {

/// Returns the name of the library for matrix products in this process: "cublaslt13.1.0" with its version, or "plain"
/// for our own kernel. Throws Error{"device_unavailable"} if the environment variable ZF_CUBLASLT names a file that
/// cannot be opened.
std::string product_library();

}  // namespace zerofleet::cuda
