// The graphs of attention with the real cuDNN, if it is installed. Since 9.8 it lists the engines of a graph for a
// described device, without a GPU. ZF_TEST_CUDNN names its file; libcublasLt and libnvrtc must lie where NVIDIA's
// packages put them, or on LD_LIBRARY_PATH.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/attention/cuda/cudnn_call.h"
#include "kernels/attention/cuda/cudnn_plan.h"

using namespace zerofleet;

namespace {

/// Description of a device, in the form that cuDNN writes itself.
std::string described(int compute, int multiprocessors, int shared_bytes) {
  return R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":)" +
         std::to_string(multiprocessors) +
         R"(,"smCountOrigin":0,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":)" +
         std::to_string(shared_bytes) +
         R"(,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
         R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85000000000,)"
         R"("smClockRateKHz":1700000,"memClockRateKHz":2600000,"l2CacheSize":50000000,"cudaDeviceId":0,"deviceVer":)" +
         std::to_string(compute * 10) + R"(,"driverVer":13000,"deviceName":"a described device"})";
}

cudnn::GraphShape whole(bool is_backward, const AttentionShape& s, std::int64_t window, DType dtype) {
  const std::int64_t gradient_row = is_backward ? 1 : 0;
  return {is_backward,
          dtype,
          s.batch,
          s.num_heads,
          s.num_kv_heads,
          s.sequence_length,
          s.head_dim,
          window,
          s.score_scale(),
          s.num_heads,
          s.qkv_size(),
          s.query_size(),
          gradient_row * s.query_size(),
          gradient_row * s.qkv_size()};
}

struct Shape {
  AttentionShape shape;
  std::int64_t window = 0;
};

// GPT-2 124M and 1.5B, Llamas of 1B and 8B, Mistral; lengths that are no multiple of a tile, and widths between 64 and
// 256.
const std::vector<Shape> kShapes{
    {{16, 1024, 12, 12, 64}},      {{4, 1024, 25, 25, 64}}, {{4, 4096, 32, 8, 64}},    {{2, 4096, 32, 8, 128}},
    {{1, 8192, 32, 8, 128}, 4096}, {{3, 1000, 12, 4, 80}},  {{2, 333, 8, 8, 96}, 100}, {{8, 65, 4, 2, 8}},
    {{1, 2048, 8, 4, 256}},        {{1, 16384, 16, 8, 128}}};

}  // namespace

TEST_CASE("the real cuDNN has deterministic engines for the graphs of attention") {
  const char* file_name = std::getenv("ZF_TEST_CUDNN");
  if (file_name == nullptr) {
    MESSAGE("ZF_TEST_CUDNN is not set: graphs are not compared with a real cuDNN");
    return;
  }
  REQUIRE(::dlopen(ZF_ABSENT_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr);  // found by its name in the file
  const std::array<std::string, 1> file_names{file_name};
  const auto library = cudnn::open_library(file_names);
  REQUIRE(library != nullptr);
  MESSAGE(library->name());
  std::string refusal;
  for (const auto& [compute, json] : {std::pair{80, described(80, 108, 166912)}, {90, described(90, 132, 232448)}}) {
    cudnn::Descriptor device(library, cudnn::kDeviceProperties);
    device.set(cudnn::kDeviceJson, cudnn::kCharType, std::ssize(json), json.data());
    device.finalize();
    try {
      const cudnn::GraphShape narrow = whole(false, {2, 64, 4, 4, 20}, 0, DType::kBF16);
      cudnn::deterministic_configs(library, cudnn::attention_graph(library, narrow, nullptr), &device);
    } catch (const cudnn::Refusal& error) {
      refusal = error.what();
    }
    CHECK(refusal.find("is not a multiple of 8") != std::string::npos);
    for (const Shape& s : kShapes) {
      for (const bool is_backward : {false, true}) {
        if (is_backward && compute != 90) continue;  // is not used
        for (const DType dtype : {DType::kBF16, DType::kF16}) {
          const cudnn::GraphShape part =
              cudnn::part_of(whole(is_backward, s.shape, s.window, dtype), std::int64_t{1} << 30);
          CAPTURE(compute);
          CAPTURE(is_backward);
          CAPTURE(part.length);
          CAPTURE(part.head_dim);
          std::string reason;
          try {
            const cudnn::Graph graph = cudnn::attention_graph(library, part, nullptr);
            const auto configs = cudnn::deterministic_configs(library, graph, &device);
            CHECK(!configs.empty());
            const auto workspace = static_cast<std::size_t>(configs.front().get_int64(cudnn::kConfigWorkspaceBytes));
            CHECK(workspace <= cudnn::max_workspace_bytes(part));
            if (is_backward) CHECK(workspace >= static_cast<std::size_t>(cudnn::score_bytes(part)));
          } catch (const std::exception& error) {
            reason = error.what();
          }
          CHECK(reason == "");
        }
      }
    }
  }
}
