// The host's side of cuBLASLt: what is asked of it, how often, and what happens to what it refuses.
#include "kernels/cuda/matmuls.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "test/built_files.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/kernels/host_matrix.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

const std::array<std::string, 1> kFake{ZF_FAKE_CUBLASLT};

int num_heuristics() {
  void* library = ::dlopen(ZF_FAKE_CUBLASLT, RTLD_NOW);
  return reinterpret_cast<int (*)()>(::dlsym(library, "zf_num_heuristics"))();
}

struct Product {
  explicit Product(DType dtype, DType c_dtype = DType::kF32, std::int64_t m = 6)
      : a(HostMatrix::random(dtype, m, 8, random)), b(HostMatrix::random(dtype, 8, 4, random)), c(c_dtype, m, 4) {}
  cuda::Matmul matmul() { return {a.view(), false, b.view(), false, c.view(), nullptr, false}; }

  std::mt19937 random{5};
  HostMatrix a, b, c;
};

}  // namespace

DEVICE_TEST_CASE("an algorithm is chosen once for a shape, its strides, types and places in memory") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, kFake);
  CHECK(matmuls.library_name() == "cublasLt 130101");
  Product first(DType::kBF16), again(DType::kBF16), longer(DType::kBF16, DType::kF32, 7), fp16(DType::kF16);
  const int before = num_heuristics();
  for (Product* product : {&first, &again, &longer, &fp16, &first}) {
    REQUIRE(matmuls.can_run(product->matmul()));
    matmuls.run(machine.ctx, product->matmul());
  }
  synchronize(machine.ctx);
  CHECK(matmuls.num_plans() == 3);
  CHECK(num_heuristics() - before == 3);
  CHECK(first.c == again.c);
}

DEVICE_TEST_CASE("after the first product of a shape nothing is allocated, and the host does not wait") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, kFake);
  Product product(DType::kBF16);
  matmuls.run(machine.ctx, product.matmul());
  const emulator::Counts before = emulator::counts();
  for (int i = 0; i < 5; ++i) matmuls.run(machine.ctx, product.matmul());
  const emulator::Counts after = emulator::counts();
  CHECK(after.allocations == before.allocations);
  CHECK(after.waits == before.waits);
  synchronize(machine.ctx);
}

DEVICE_TEST_CASE("what the library does not take is left to others") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, kFake);
  Product mixed(DType::kBF16, DType::kF16);
  CHECK(!matmuls.can_run(mixed.matmul()));
  const std::array<std::string, 2> missing{"libzf-is-not-there.so", "libzf-nor-is-this.so"};
  cuda::Matmuls none(machine.ctx, missing);
  Product product(DType::kF32);
  CHECK(!none.can_run(product.matmul()));
  CHECK(none.library_name().empty());
}

DEVICE_TEST_CASE("a library that lacks a function is refused with the function's name") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  const std::array<std::string, 1> other{fake_nccl_file()};
  CHECK(code_of([&] { cuda::Matmuls matmuls(machine.ctx, other); }) == "device_unavailable");
}
