// Products of a head whose vocabulary is not a multiple of 8, which cuBLASLt's fast kernels don't take whole.
#include "kernels/gemm/cuda/divided_products.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kVocab = 1031, kHidden = 16, kRows = 5;

/// A product of a head, to `c`.
struct HeadProduct {
  HeadProduct(HostMatrix left, HostMatrix right, SourceRows right_rows, HostMatrix result, bool a_transposed = false)
      : a(std::move(left)), b(std::move(right)), c(std::move(result)), operand{right_rows, {b.view()}} {
    problem.a = a.view();
    problem.c = c.view();
    problem.a_transposed = a_transposed;
  }
  std::vector<cuda::Matmul> products() { return cuda::DividedProducts(problem, operand).into(problem.c); }

  HostMatrix a, b, c;
  cuda::RightOperand operand;
  GemmProblem problem;
};

HeadProduct logits() {
  return {{DType::kBF16, kRows, kHidden},
          {DType::kBF16, kVocab, kHidden},
          SourceRows::kAlongN,
          {DType::kF32, kRows, kVocab}};
}
HeadProduct input_gradient(DType dtype) {
  return {{DType::kBF16, kRows, kVocab}, {DType::kBF16, kVocab, kHidden}, SourceRows::kAlongK, {dtype, kRows, kHidden}};
}
HeadProduct weight_gradient() {
  return {{DType::kBF16, kRows, kVocab},
          {DType::kBF16, kRows, kHidden},
          SourceRows::kAlongK,
          {DType::kF32, kVocab, kHidden},
          true};
}

}  // namespace

DEVICE_TEST_CASE("a product is divided in the dimension that is contiguous and not a multiple of 8") {
  const auto shapes = [](const std::vector<cuda::Matmul>& products) {
    std::vector<std::int64_t> found;
    for (const cuda::Matmul& p : products)
      found.insert(found.end(), {p.c.rows, p.a_transposed ? p.a.rows : p.a.cols, p.c.cols});
    return found;
  };
  CHECK(shapes(logits().products()) == std::vector<std::int64_t>{kRows, kHidden, 1024, kRows, kHidden, 7});
  CHECK(shapes(input_gradient(DType::kF32).products()) ==
        std::vector<std::int64_t>{kRows, 1024, kHidden, kRows, 7, kHidden});
  CHECK(shapes(weight_gradient().products()) == std::vector<std::int64_t>{1024, kRows, kHidden, 7, kRows, kHidden});
}

DEVICE_TEST_CASE("a divided product has its operands, its bias and its sums where the whole one has them") {
  HeadProduct forward = logits();
  HostMatrix bias(DType::kF32, 1, kVocab);
  forward.problem.bias = bias.view().data;
  const std::vector<cuda::Matmul> columns = forward.products();
  CHECK(columns[1].b.data == forward.b.view().at(1024, 0));
  CHECK(columns[1].c.data == forward.c.view().at(0, 1024));
  CHECK(columns[0].bias == bias.view().at(0, 0));
  CHECK(columns[1].bias == bias.view().at(0, 1024));
  CHECK((!columns[0].accumulate && !columns[1].accumulate));

  HeadProduct backward = input_gradient(DType::kF32);
  const std::vector<cuda::Matmul> sums = backward.products();
  CHECK(sums[1].a.data == backward.a.view().at(0, 1024));
  CHECK(sums[1].b.data == backward.b.view().at(1024, 0));
  CHECK((!sums[0].accumulate && sums[1].accumulate));

  HeadProduct gradient = weight_gradient();
  gradient.problem.accumulate = true;
  const std::vector<cuda::Matmul> rows = gradient.products();
  CHECK(rows[1].a.data == gradient.a.view().at(0, 1024));
  CHECK(rows[1].c.data == gradient.c.view().at(1024, 0));
  CHECK((rows[0].accumulate && rows[1].accumulate));
}

DEVICE_TEST_CASE("sums over k are not divided where C, of 16 bits, is added to, and small products not at all") {
  HeadProduct product = input_gradient(DType::kBF16);
  CHECK(cuda::DividedProducts(product.problem, product.operand).are_in_parts());
  product.problem.accumulate = true;
  CHECK(!cuda::DividedProducts(product.problem, product.operand).are_in_parts());
  HeadProduct small({DType::kBF16, kRows, 1023}, {DType::kBF16, 1023, 9}, SourceRows::kAlongK, {DType::kF32, kRows, 9});
  CHECK(small.products().size() == 1);
}
