#pragma once

#include <string>

// Everything of CUDA's libraries that the core declares itself is compared with the libraries' own headers where these
// are installed, at compile time. Each function returns the version of the header that was compared; empty: it is not
// there.
namespace zerofleet::test {

std::string compared_cuda_header();
std::string compared_cublaslt_header();
std::string compared_cudnn_header();
std::string compared_nccl_header();
std::string compared_nvml_header();

}  // namespace zerofleet::test
