// The host's side of cuBLASLt: its calls, their number, and the handling of refused products.
#include "kernels/gemm/cuda/matmuls.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "kernels/backends/numerics.h"
#include "kernels/gemm/cuda/product_library.h"
#include "test/built_files.h"
#include "test/cuda_emulator/cublaslt/fake_cublaslt.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/kernels/host_matrix.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

const std::array<std::string, 1> kFake{ZF_FAKE_CUBLASLT};

struct Product {
  explicit Product(DType dtype, DType c_dtype = DType::kF32, std::int64_t m = 6)
      : a(HostMatrix::random(dtype, m, 8, random)), b(HostMatrix::random(dtype, 8, 4, random)), c(c_dtype, m, 4) {}
  cuda::Matmul matmul() { return {a.view(), false, b.view(), false, c.view(), nullptr, false}; }

  std::mt19937 random{5};
  HostMatrix a, b, c;
};

using EpilogueKind = GemmEpilogue::Kind;

/// A product with GELU in its epilogue; rows of the second matrix are `gap` elements further apart than C's.
struct Activated {
  explicit Activated(DType dtype, std::int64_t gap = 0)
      : a(HostMatrix::random(dtype, 6, 8, random)),
        b(HostMatrix::random(dtype, 8, 16, random)),
        bias(HostMatrix::random(dtype, 1, 16, random)),
        inner(HostMatrix::random(dtype, 6, 16, random, gap)),
        c(dtype, 6, 16) {}
  cuda::Matmul matmul(EpilogueKind kind, const void* added = nullptr) {
    return {a.view(), false, b.view(), false, c.view(), added, false, {kind, GeluKind::kTanh, inner.view()}};
  }

  std::mt19937 random{5};
  HostMatrix a, b, bias, inner, c;
};

}  // namespace

DEVICE_TEST_CASE("an algorithm is chosen once for a shape, its strides, types and alignment in memory") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kFake));
  CHECK(matmuls.library_name() == "cublasLt 130101");
  Product first(DType::kBF16), again(DType::kBF16), longer(DType::kBF16, DType::kF32, 7), fp16(DType::kF16);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  const int before = fake.num_heuristics();
  for (Product* product : {&first, &again, &longer, &fp16, &first}) {
    REQUIRE(matmuls.can_run(product->matmul()));
    matmuls.run(product->matmul());
  }
  synchronize(machine.ctx);
  CHECK(matmuls.num_plans() == 3);
  CHECK(fake.num_heuristics() - before == 3);
  CHECK(first.c == again.c);
}

DEVICE_TEST_CASE("after the first product of a shape nothing is allocated, and the host does not wait") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kFake));
  Product product(DType::kBF16);
  matmuls.run(product.matmul());
  const emulator::Counts before = emulator::counts();
  for (int i = 0; i < 5; ++i) matmuls.run(product.matmul());
  const emulator::Counts after = emulator::counts();
  CHECK(after.allocations == before.allocations);
  CHECK(after.waits == before.waits);
  synchronize(machine.ctx);
}

DEVICE_TEST_CASE("products that the library does not support go to other kernels") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kFake));
  Product mixed(DType::kBF16, DType::kF16);
  CHECK(!matmuls.can_run(mixed.matmul()));
  const std::array<std::string, 2> missing{"libzf-is-not-there.so", "libzf-nor-is-this.so"};
  cuda::Matmuls none(machine.ctx, cublaslt::open_library(missing));
  Product product(DType::kF32);
  CHECK(!none.can_run(product.matmul()));
  CHECK(none.library_name().empty());
}

DEVICE_TEST_CASE("GELU in a product: an algorithm for its kind and its second matrix's rows and address") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kFake));
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  Activated first(DType::kBF16), again(DType::kBF16), wider(DType::kBF16, 8), fp16(DType::kF16);
  const int before = fake.num_heuristics(), gelus = fake.num_gelus();
  for (Activated* product : {&first, &again, &wider, &fp16, &first}) {
    for (const EpilogueKind kind : {EpilogueKind::kGelu, EpilogueKind::kGeluBackward}) {
      REQUIRE(matmuls.can_run(product->matmul(kind)));
      matmuls.run(product->matmul(kind));
    }
  }
  REQUIRE(matmuls.can_run(first.matmul(EpilogueKind::kGelu, first.bias.view().data)));
  matmuls.run(first.matmul(EpilogueKind::kGelu, first.bias.view().data));
  synchronize(machine.ctx);
  CHECK(matmuls.num_plans() == 7);
  CHECK(fake.num_heuristics() - before == 7);
  CHECK(fake.num_gelus() - gelus == 11 + 7);  // with the trials
}

DEVICE_TEST_CASE("GELU in a product: epilogues that the library lacks, or must not use, go to other kernels") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kFake));
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  const auto is_refused = [&](Activated& product, EpilogueKind kind, const auto& change) {
    cuda::Matmul matmul = product.matmul(kind);
    change(matmul);
    return !matmuls.can_run(matmul);
  };
  const int before = fake.num_heuristics();
  for (const EpilogueKind kind : {EpilogueKind::kGelu, EpilogueKind::kGeluBackward}) {
    Activated product(DType::kBF16), odd_rows(DType::kBF16, 4), fp32(DType::kF32);
    CHECK(is_refused(product, kind, [](cuda::Matmul& m) { m.epilogue.gelu = GeluKind::kExact; }));
    CHECK(is_refused(product, kind, [](cuda::Matmul& m) { m.accumulate = true; }));
    CHECK(is_refused(product, kind, [](cuda::Matmul& m) { m.epilogue.inner.data = m.epilogue.inner.at(0, 1); }));
    CHECK(is_refused(odd_rows, kind, [](cuda::Matmul&) {}));
    CHECK(is_refused(fp32, kind, [](cuda::Matmul&) {}));
  }
  Activated product(DType::kBF16);
  CHECK(is_refused(product, EpilogueKind::kGeluBackward, [&](cuda::Matmul& m) { m.bias = product.bias.view().data; }));
  CHECK(fake.num_heuristics() == before);
  cuda::Matmul narrow = product.matmul(EpilogueKind::kGelu);
  narrow.epilogue.inner.stride = 8;  // less than its columns: invalid to the library
  CHECK(!matmuls.can_run(narrow));
  fake.have_gelu(false);
  CHECK(!matmuls.can_run(product.matmul(EpilogueKind::kGelu)));
  CHECK(!matmuls.can_run(product.matmul(EpilogueKind::kGelu)));
  CHECK(fake.num_heuristics() == before + 2);
}

DEVICE_TEST_CASE("a file in ZF_CUBLASLT that cannot be opened is an error with its name, where products are made") {
  const EnvironmentVariable wrong("ZF_CUBLASLT", "/nowhere/libcublasLt.so.13");
  const Device device{DeviceKind::kCuda, 0};
  std::string message;
  try {
    cuda::product_library();
  } catch (const Error& error) {
    message = error.code() + ": " + error.what();
  }
  CHECK(message.starts_with("device_unavailable: cuBLASLt cannot be opened; tried /nowhere/libcublasLt.so.13 ("));
  CHECK(message.find("ZF_CUBLASLT names this file: correct it, or unset it") != std::string::npos);
  CHECK(code_of([&] { numerics_fingerprint(device, CpuIsa::kGeneric); }) == "device_unavailable");
  CHECK(code_of([] { numerics_fingerprint(Device{}, CpuIsa::kGeneric); }) == "none");
  DeviceMachine machine(device);
  Product product(DType::kBF16);
  const SourceOperand source{{product.b.view()}, SourceRows::kAlongK};
  const GemmProblem problem{product.a.view(), nullptr, product.c.view(), false, false, nullptr, &source};
  Scratch scratch(machine.ctx);
  CHECK(code_of([&] { gemm(machine.ctx, scratch, {&problem, 1}); }) == "device_unavailable");
}

DEVICE_TEST_CASE("a library that lacks a function is refused with the function's name") {
  const std::array<std::string, 1> other{fake_nccl_file()};
  CHECK(code_of([&] { cublaslt::open_library(other); }) == "device_unavailable");
}
