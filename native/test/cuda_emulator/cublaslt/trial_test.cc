// Algorithms of cuBLASLt are tried on ones before they are used: those that add up wrongly are passed over.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/cuda/cuda_runtime.h"
#include "kernels/gemm/cuda/matmuls.h"
#include "test/built_files.h"
#include "test/cuda_emulator/cublaslt/fake_cublaslt.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Kind = GemmEpilogue::Kind;
using ProductFault = FakeCublaslt::Fault;

const std::array<std::string, 1> kLibrary{ZF_FAKE_CUBLASLT};

/// A product of each form that is in use.
struct Form {
  DType c_dtype = DType::kBF16;
  std::int64_t k = 72;
  bool transposed = false, has_bias = false, accumulate = false;
  Kind epilogue = Kind::kNone;
};

constexpr Form kForms[] = {{},
                           {DType::kF32},
                           {DType::kF32, 128, true},
                           {DType::kF32, 70, true, false, true},
                           {DType::kBF16, 50'257},
                           {DType::kF32, 50'257},
                           {DType::kBF16, 8, false, true},
                           {DType::kBF16, 72, false, false, false, Kind::kGelu},
                           {DType::kBF16, 8, false, true, false, Kind::kGelu},
                           {DType::kBF16, 300, false, false, false, Kind::kGeluBackward}};

struct FormedProduct {
  explicit FormedProduct(const Form& source)
      : form(source),
        a(form.transposed ? HostMatrix::random(DType::kBF16, form.k, 6, random, 2)
                          : HostMatrix::random(DType::kBF16, 6, form.k, random, 8 + (8 - form.k % 8) % 8)),
        b(HostMatrix::random(DType::kBF16, form.k, 16, random, 8)),
        bias(HostMatrix::random(form.c_dtype, 1, 16, random)),
        inner(HostMatrix::random(form.c_dtype, 6, 16, random, 8)),
        c(HostMatrix::random(form.c_dtype, 6, 16, random, 8)) {}

  cuda::Matmul matmul() {
    return {a.view(),        form.transposed,
            b.view(),        false,
            c.view(),        form.has_bias ? bias.view().data : nullptr,
            form.accumulate, {form.epilogue, GeluKind::kTanh, inner.view()}};
  }

  Form form;
  std::mt19937 random{7};
  HostMatrix a, b, bias, inner, c;
};

/// C and the second matrix of a product by new Matmuls.
std::array<HostMatrix, 2> result_of(const DeviceMachine& machine, const Form& form) {
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
  FormedProduct product(form);
  REQUIRE(matmuls.can_run(product.matmul()));
  matmuls.run(product.matmul());
  synchronize(machine.ctx);
  return {product.c, product.inner};
}

}  // namespace

DEVICE_TEST_CASE("an algorithm that drops the end of k, or leaves an element, is passed over, whatever the product") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  for (const Form& form : kForms) {
    CAPTURE(form.k);
    CAPTURE(static_cast<int>(form.epilogue));
    fake.have_fault(ProductFault::kNone);
    const auto right = result_of(machine, form);
    CHECK(std::isfinite(right[0].at(5, 15)));
    for (const ProductFault fault : {ProductFault::kDropsEndOfK, ProductFault::kLeavesLastElement}) {
      fake.have_fault(fault);
      CHECK(result_of(machine, form) == right);
    }
  }
}

DEVICE_TEST_CASE(
    "products for which a library has wrong algorithms alone go to other kernels, and are not asked for again") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  for (const Form& form : kForms) {
    fake.have_fault(ProductFault::kDropsEndOfK, true);
    cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
    FormedProduct product(form);
    const int before = fake.num_heuristics();
    CHECK(!matmuls.can_run(product.matmul()));
    CHECK(!matmuls.can_run(product.matmul()));
    CHECK(fake.num_heuristics() - before == 1);
  }
}

// The faulty algorithm would be found out by its trial as well, at the cost of a run.
DEVICE_TEST_CASE(
    "sums are split only where k is a multiple of 64: elsewhere the library is not asked for such an algorithm") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
  for (const std::int64_t k : {63, 64, 65, 50'257}) {
    FormedProduct product({DType::kF32, k});
    const int before = fake.num_products();
    CHECK(matmuls.can_run(product.matmul()));
    CHECK(fake.num_products() - before == 1);
  }
}

DEVICE_TEST_CASE("a trial is one product, leaves what its product reads, and gives its memory back") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
  for (const Form& form : kForms) {
    FormedProduct product(form);
    const FormedProduct before = product;
    const std::size_t in_use = cuda::memory_of(kFirstGpu).in_use;
    const int products = fake.num_products();
    REQUIRE(matmuls.can_run(product.matmul()));
    REQUIRE(matmuls.can_run(product.matmul()));
    CHECK(fake.num_products() - products == 1);
    CHECK(cuda::memory_of(kFirstGpu).in_use == in_use);
    CHECK(product.a == before.a);
    CHECK(product.b == before.b);
    if (form.accumulate) CHECK(product.c == before.c);
    if (form.epilogue != Kind::kGelu) CHECK(product.inner == before.inner);
  }
}

DEVICE_TEST_CASE("a product that adds to C has the algorithm of the one that does not") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
  FormedProduct product({DType::kF32});
  cuda::Matmul added = product.matmul();
  added.accumulate = true;
  REQUIRE(matmuls.can_run(product.matmul()));
  REQUIRE(matmuls.can_run(added));
  CHECK(matmuls.num_plans() == 1);
  matmuls.run(product.matmul());
  synchronize(machine.ctx);
  const double once = product.c.at(5, 15);
  matmuls.run(added);
  synchronize(machine.ctx);
  CHECK(product.c.at(5, 15) == doctest::Approx(2 * once).epsilon(1e-5));
}

DEVICE_TEST_CASE("of a large product's algorithms the fastest with the bits of the first is used") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  std::mt19937 random(3);
  HostMatrix a = HostMatrix::random(DType::kBF16, 256, 40, random),
             b = HostMatrix::random(DType::kBF16, 40, 256, random);
  const HostMatrix bias = HostMatrix::random(DType::kBF16, 1, 256, random);
  for (const Kind kind : {Kind::kNone, Kind::kGelu}) {
    const auto result = [&](bool has_choice) {
      fake.have_choice(has_choice);
      HostMatrix c(DType::kBF16, 256, 256), inner(DType::kBF16, 256, 256), added = bias;
      cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
      const cuda::Matmul matmul{
          a.view(), false, b.view(), false, c.view(), added.view().data, false, {kind, GeluKind::kTanh, inner.view()}};
      REQUIRE(matmuls.can_run(matmul));
      const int slow = fake.num_slow();
      matmuls.run(matmul);
      synchronize(machine.ctx);
      CHECK(fake.num_slow() == slow);
      return std::array{c, inner};
    };
    CHECK(result(true) == result(false));
  }
}

// Between algorithms with other bits the order of the library decides, whatever their speed.
DEVICE_TEST_CASE("an algorithm with other bits is not used, however fast it is") {
  DeviceMachine machine(kFirstGpu);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  std::mt19937 random(3);
  HostMatrix a = HostMatrix::random(DType::kBF16, 256, 40, random),
             b = HostMatrix::random(DType::kBF16, 40, 256, random);
  HostMatrix c(DType::kF32, 256, 256);
  fake.have_choice(true);
  fake.have_fault(ProductFault::kDropsEndOfK, true);  // nor the usual one
  cuda::Matmuls matmuls(machine.ctx, cublaslt::open_library(kLibrary));
  const cuda::Matmul matmul{a.view(), false, b.view(), false, c.view()};
  REQUIRE(matmuls.can_run(matmul));
  const int slow = fake.num_slow();
  matmuls.run(matmul);
  synchronize(machine.ctx);
  CHECK(fake.num_slow() == slow + 1);
}
