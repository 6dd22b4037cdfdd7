#pragma once

#include <string>

namespace zerofleet::cuda {

/// Name of the library that multiplies matrices in this process: "cublaslt13.1.0" with its version, or "plain" for the
/// kernel of our own. Throws Error{"device_unavailable"} where the environment variable ZF_CUBLASLT names a file that
/// can't be opened.
std::string product_library();

}  // namespace zerofleet::cuda
