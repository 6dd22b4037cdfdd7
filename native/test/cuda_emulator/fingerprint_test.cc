#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "kernels/backends/numerics.h"
#include "test/devices_here.h"

using namespace zerofleet;
using namespace zerofleet::test;

DEVICE_TEST_CASE("the fingerprint of a GPU has CUDA's version, and the variables that change what libraries compute") {
  const auto fingerprint = [] { return numerics_fingerprint(kFirstGpu, CpuIsa::kGeneric); };
  const std::string bare = fingerprint();
  CHECK(bare.starts_with("cuda-emulated-device-sm_80x2-cudart13.0-"));
  ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
  ::setenv("NCCL_DEBUG", "INFO", 1);
  const std::string set = fingerprint(), added = "-CUBLAS_WORKSPACE_CONFIG=:4096:8-NVIDIA_TF32_OVERRIDE=0";
  CHECK(set == bare.substr(0, bare.rfind('/')) + added + bare.substr(bare.rfind('/')));
  for (const char* name : {"NVIDIA_TF32_OVERRIDE", "CUBLAS_WORKSPACE_CONFIG", "NCCL_DEBUG"}) ::unsetenv(name);
  CHECK(fingerprint() == bare);
}
