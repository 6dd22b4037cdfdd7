// Products over ranges of rows that only the device knows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/backends/numerics.h"
#include "kernels/gemm/gemm.h"
#include "test/kernels/every_path.h"
#include "test/kernels/gemm/ways.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Products over parts of the same rows, which begin at `first`: on a device that alone knows them, or with a host that
/// does.
class Parts {
 public:
  Parts(DType dtype, DType c_dtype, Way way, std::int64_t cols, const std::vector<std::int32_t>& first)
      : way_(way), first_(first), rows_(first.back()) {
    std::mt19937 random(131);
    const std::int64_t k = way == Way::kWeightGradient ? cols : 40;
    a_ = HostMatrix::random(dtype, rows_, k, random);
    b_ = HostMatrix::random(dtype, way == Way::kWeightGradient ? rows_ : cols, way == Way::kWeightGradient ? 24 : k,
                            random);
    if (way == Way::kInputGradient) b_ = HostMatrix::random(dtype, k, cols, random);
    const bool transposed = way == Way::kWeightGradient;
    for (std::size_t part = 0; part + 1 < first_.size(); ++part) {
      if (transposed || results_.empty())
        results_.emplace_back(c_dtype, transposed ? cols : rows_, transposed ? 24 : cols).set(0, 0, 5.0F);
    }
  }

  std::deque<HostMatrix> run(const Context& ctx, bool only_device_knows) {
    std::deque<HostMatrix> results = results_;
    std::deque<PackedMatrix> packed;
    const SourceOperand source{{b_.view()}, way_ == Way::kForward ? SourceRows::kAlongN : SourceRows::kAlongK};
    std::vector<GemmProblem> problems;
    for (std::size_t part = 0; part + 1 < first_.size(); ++part) {
      const std::int64_t begin = only_device_knows ? 0 : first_[part],
                         end = only_device_knows ? rows_ : first_[part + 1];
      const auto cut = [&](HostMatrix& matrix) {
        const Matrix all = matrix.view();
        return Matrix{all.at(begin, 0), all.dtype, end - begin, all.cols, all.stride};
      };
      if (begin == end) continue;
      GemmProblem problem{cut(a_), nullptr, {}};
      if (way_ == Way::kWeightGradient) {
        packed.emplace_back(ctx, a_.view().dtype, end - begin, 24);
        const PackRequest request[] = {{cut(b_), SourceRows::kAlongK, &packed.back()}};
        pack(ctx, request);
        problem.a_transposed = true;
        problem.b = &packed.back();
        problem.c = results[part].view();
      } else {
        problem.source = &source;
        problem.c = cut(results.front());
      }
      problem.varies = true;
      if (only_device_knows) problem.row_range = first_on_device_.data() + part;
      problems.push_back(problem);
    }
    Scratch scratch(ctx);
    gemm(ctx, scratch, problems);
    synchronize(ctx);
    return results;
  }

  /// Expected contents where there are no rows: zeros for a gradient.
  void clear_empty(std::deque<HostMatrix>& results) const {
    for (std::size_t part = 0; part + 1 < first_.size() && way_ == Way::kWeightGradient; ++part) {
      if (first_[part] == first_[part + 1]) results[part].set(0, 0, 0.0F);
    }
  }

 private:
  Way way_;
  std::vector<std::int32_t> first_;
  SharedValues<std::int32_t> first_on_device_{first_};
  std::int64_t rows_;
  HostMatrix a_{DType::kF32, 1, 1}, b_{DType::kF32, 1, 1};
  std::deque<HostMatrix> results_;
};

/// Returns true if all products of a device run in kernels of our own.
bool has_no_library(const Context& ctx) {
  return numerics_fingerprint(ctx.device, ctx.cpu_isa).find("-plain/") != std::string::npos;
}

// On a real device the products that a host knows are those of the library, where they are not the tensor cores' own.
void check_parts(const Context& ctx, DType dtype, Way way, std::int64_t cols, const std::vector<std::int32_t>& first) {
  Parts parts(dtype, way == Way::kWeightGradient ? DType::kF32 : dtype, way, cols, first);
  std::deque<HostMatrix> expected = parts.run(ctx, false), results = parts.run(ctx, true);
  parts.clear_empty(expected);
  const bool same_kernel = (dtype != DType::kF32 && cols % 8 == 0) || has_no_library(ctx);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Table table = table_of(expected[i]);
    const bool is_zero = std::ranges::all_of(
        table, [](const auto& row) { return std::ranges::all_of(row, [](double value) { return value == 0.0; }); });
    if (same_kernel || is_zero) {
      CHECK(results[i] == expected[i]);
    } else {
      CHECK(relative_error(results[i], table) < tolerance(dtype));
    }
  }
}

}  // namespace

DEVICE_TEST_CASE(
    "gemm: parts of rows that only the device knows give the bits that they give when the host knows them") {
  const std::vector<std::int32_t> few{0, 0, 1, 130, 130, 133, 133};
  std::vector<std::int32_t> many{0};  // more than share a launch
  for (int part = 0; part < 50; ++part) many.push_back(many.back() + part % 4);
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      for (const Way way : kWays) {
        CAPTURE(static_cast<int>(way));
        check_parts(machine.ctx, dtype, way, 136, few);
        check_parts(machine.ctx, dtype, way, 9, few);
        check_parts(machine.ctx, dtype, way, 8, many);
      }
    }
  }
}

TEST_CASE("gemm: a CPU is told its rows by the host") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix a(DType::kF32, 2, 8), b(DType::kF32, 3, 8), c(DType::kF32, 2, 3);
  const SourceOperand source{{b.view()}, SourceRows::kAlongN};
  const std::int32_t range[] = {0, 1};
  GemmProblem problem{a.view(), nullptr, c.view(), false, false, nullptr, &source};
  problem.row_range = range;
  Scratch scratch(machine.ctx);
  CHECK_THROWS_AS(gemm(machine.ctx, scratch, std::span(&problem, 1)), Error);
}
