// Opening cuDNN: its part of the fingerprint, and files that cannot be used.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "core/error.h"
#include "kernels/backends/numerics.h"
#include "kernels/gemm/cuda/cublaslt_library.h"
#include "test/cuda_emulator/cublaslt/fake_cublaslt.h"
#include "test/cuda_emulator/cudnn/attention_calls.h"
#include "test/cuda_emulator/cudnn/fake_cudnn.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

DEVICE_TEST_CASE(
    "cuDNN is in the fingerprint where it computes attention: with cuBLASLt, and unless it is switched off") {
  const auto fingerprint = [] { return numerics_fingerprint(kFirstGpu, CpuIsa::kGeneric); };
  const EnvironmentVariable cudnn("ZF_CUDNN", ZF_FAKE_CUDNN);
  {
    const EnvironmentVariable cublaslt("ZF_CUBLASLT", ZF_FAKE_CUBLASLT);
    CHECK(fingerprint().starts_with("cuda-emulated-device-sm_80x2-cudart13.0-cublaslt13.1.1-cudnn9.24.0/"));
    const EnvironmentVariable off("ZF_CUDNN", "off");
    CHECK(fingerprint().starts_with("cuda-emulated-device-sm_80x2-cudart13.0-cublaslt13.1.1/"));
  }
  if (cublaslt::open_default_library() == nullptr) CHECK(fingerprint().find("cudnn") == std::string::npos);
}

DEVICE_TEST_CASE(
    "a file in ZF_CUDNN that cannot be opened is an error with its name; so is a library that lacks a function") {
  const EnvironmentVariable cublaslt("ZF_CUBLASLT", ZF_FAKE_CUBLASLT), wrong("ZF_CUDNN", "/nowhere/libcudnn.so.9");
  std::string message;
  try {
    cudnn::attention_library();
  } catch (const Error& error) {
    message = error.code() + ": " + error.what();
  }
  CHECK(message.starts_with("device_unavailable: cuDNN cannot be opened; tried /nowhere/libcudnn.so.9 ("));
  CHECK(message.find("ZF_CUDNN names this file: correct it, set it to off, or unset it") != std::string::npos);
  CHECK(code_of([] { numerics_fingerprint(kFirstGpu, CpuIsa::kGeneric); }) == "device_unavailable");
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  const EnvironmentVariable there("ZF_CUDNN", ZF_FAKE_CUDNN);
  CHECK(cudnn::open_default_library() != nullptr);
  fake.set_cuda_version(12090);  // it would open another cuBLASLt, and end the process where there is none
  CHECK(code_of([] { cudnn::open_default_library(); }) == "device_unavailable");
  const std::array<std::string, 1> other{fake_nccl_file()};
  CHECK(code_of([&] { cudnn::open_library(other); }) == "device_unavailable");
  Machine9 m;
  cudnn::Attention none(m.ctx, nullptr);
  Calls calls(kShape);
  CHECK(!none.run(calls.forward()));
  CHECK(none.reason_against(calls.forward()) == "it is not there");
}
