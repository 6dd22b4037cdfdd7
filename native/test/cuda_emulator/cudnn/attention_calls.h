#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <string>

#include "kernels/attention/cuda/cudnn_attention.h"
#include "test/built_files.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"
#include "test/shared_bytes.h"

// Calls of attention for the test's cuDNN.
namespace zerofleet::test {

/// A Hopper.
struct Machine9 {
  EnvironmentVariable compute{"ZF_EMULATED_COMPUTE", "9"};
  DeviceMachine machine{kFirstGpu};
  const Context& ctx = machine.ctx;
};

/// Attention with random inputs, forward and backward.
struct Calls {
  explicit Calls(const AttentionShape& sizes, DType dtype = DType::kBF16, AttentionOptions with = {})
      : shape(sizes),
        options(with),
        rows(sizes.batch * sizes.sequence_length),
        qkv(HostMatrix::random(dtype, rows, sizes.qkv_size(), random, 8)),
        dout(HostMatrix::random(dtype, rows, sizes.query_size(), random, 16)),
        out(dtype, rows, sizes.query_size(), 8),
        dqkv(dtype, rows, sizes.qkv_size()),
        lse(static_cast<std::size_t>(rows * sizes.num_heads)) {}

  cudnn::Call forward() { return cudnn::call_of(AttentionForward{shape, qkv.view(), out.view(), lse, options}); }
  cudnn::Call backward() {
    return cudnn::call_of(AttentionBackward{shape, qkv.view(), out.view(), lse, dout.view(), dqkv.view(), options});
  }

  AttentionShape shape;
  AttentionOptions options;
  std::int64_t rows;
  std::mt19937 random{5};
  HostMatrix qkv, dout, out, dqkv;
  SharedValues<float> lse;
};

inline const std::array<std::string, 1> kFake{ZF_FAKE_CUDNN};
inline constexpr AttentionShape kShape{2, 64, 4, 2, 16};

inline cudnn::Attention attention_of(const Context& ctx,
                                     std::int64_t max_score_bytes = cudnn::Attention::kMaxScoreBytes) {
  return {ctx, cudnn::open_library(kFake), max_score_bytes};
}

}  // namespace zerofleet::test
