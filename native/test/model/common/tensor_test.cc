#include "model/common/tensor.h"

#include <doctest/doctest.h>

#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("rows of a tensor begin at multiples of 64 bytes, and not a multiple of 2 KiB apart") {
  Machine machine(best_cpu_isa(), 1);
  const auto stride = [&](DType dtype, std::int64_t cols, Tensor::Rows rows = Tensor::Rows::kPadded) {
    return Tensor(machine.ctx, dtype, 2, cols, rows).view().stride;
  };
  CHECK(stride(DType::kBF16, 50'257) == 50'272);
  CHECK(stride(DType::kF32, 50'257) == 50'272);
  CHECK(stride(DType::kF16, 64) == 64);
  CHECK(stride(DType::kBF16, 2048) == 2048 + 32);
  CHECK(stride(DType::kF32, 1021) == 1024 + 16);
  CHECK(stride(DType::kBF16, 50'257, Tensor::Rows::kContiguous) == 50'257);
}
