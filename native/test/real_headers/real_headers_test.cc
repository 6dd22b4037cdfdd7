#include "test/real_headers/real_headers.h"

#include <doctest/doctest.h>

using namespace zerofleet::test;

namespace {

std::string said(const std::string& version) { return version.empty() ? "not installed" : version; }

}  // namespace

TEST_CASE("what the core declares of CUDA's libraries is compared with the headers that are installed") {
  // The comparison was made by the compiler.
  MESSAGE("headers of CUDA: " << said(compared_cuda_header()) << ", cuBLASLt: " << said(compared_cublaslt_header())
                              << ", cuDNN: " << said(compared_cudnn_header()) << ", NCCL: "
                              << said(compared_nccl_header()) << ", NVML: " << said(compared_nvml_header()));
}
