// Norms of all widths on devices, whose kernels differ by width and alignment, against those of the CPU.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "kernels/norm/head_norm.h"
#include "kernels/norm/layernorm.h"
#include "kernels/norm/rmsnorm.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr double kEps = 1e-5;

struct NormShape {
  std::int64_t rows, heads, cols, gap;
};

/// Rows of teams from part of a warp to a block, and of one part or many; wider than is held; unaligned; of parts of
/// accesses.
constexpr NormShape kNormShapes[] = {{3, 1, 8, 0},     {1100, 1, 40, 0}, {2100, 1, 128, 8}, {261, 1, 256, 0},
                                     {700, 1, 320, 8}, {67, 1, 512, 0},  {95, 1, 768, 0},   {9, 1, 1024, 0},
                                     {43, 1, 1600, 0}, {70, 1, 2048, 8}, {9, 1, 2056, 0},   {13, 1, 4096, 64},
                                     {7, 1, 5120, 0},  {5, 1, 8192, 0},  {3, 1, 8200, 0},   {11, 1, 2047, 1},
                                     {70, 1, 44, 0},   {66, 1, 48, 1},   {1, 1, 4095, 3}};
constexpr double kOffset = 1;
constexpr NormShape kHeads[] = {{70, 3, 16, 0},  {600, 5, 64, 8}, {131, 16, 128, 0},
                                {33, 2, 256, 8}, {9, 3, 132, 0},  {20, 2, 33, 1}};

struct Result {
  HostMatrix y, sum, dx;
  SharedValues<float> mean, rstd, dweight, dbias;
};

Result result_for(const NormShape& s, DType dtype) {
  const auto stats = static_cast<std::size_t>(s.rows * s.heads), d = static_cast<std::size_t>(s.cols);
  const HostMatrix like(dtype, s.rows, s.heads * s.cols, s.gap);
  return {like,
          like,
          like,
          SharedValues<float>(stats),
          SharedValues<float>(stats),
          SharedValues<float>(d),
          SharedValues<float>(d)};
}

struct Inputs {
  Inputs(const NormShape& s, DType dtype, std::mt19937& random)
      : x(HostMatrix::random(dtype, s.rows, s.heads * s.cols, random, s.gap)),
        delta(HostMatrix::random(dtype, s.rows, s.heads * s.cols, random, s.gap)),
        dy(HostMatrix::random(dtype, s.rows, s.heads * s.cols, random, s.gap)),
        weight(HostMatrix::random(dtype, 1, s.cols, random)),
        bias(HostMatrix::random(dtype, 1, s.cols, random)) {}
  HostMatrix x, delta, dy, weight, bias;
};

enum class NormKind { kRms, kLayer, kHead };

std::span<const NormShape> shapes_of(NormKind kind) {
  return kind == NormKind::kHead ? std::span<const NormShape>(kHeads) : std::span<const NormShape>(kNormShapes);
}

/// The gradient takes the place of the residual's, or of dy. `trained`: with gradients of weights and biases.
Result run(const Context& ctx, NormKind kind, const NormShape& s, DType dtype, Inputs& in, bool trained = true) {
  Result r = result_for(s, dtype);
  const std::span<float> dweight = trained ? std::span<float>(r.dweight) : std::span<float>(),
                         dbias = trained ? std::span<float>(r.dbias) : std::span<float>();
  const void *w = in.weight.view().data, *b = in.bias.view().data;
  if (kind == NormKind::kHead) {
    head_norm(ctx, {in.x.view(), w, s.cols, kEps, r.y.view(), r.rstd, kOffset});
    r.dx = in.dy;
    head_norm_backward(ctx, {r.dx.view(), in.x.view(), w, s.cols, r.rstd, r.dx.view(), dweight, kOffset});
  } else if (kind == NormKind::kRms) {
    rmsnorm(ctx, {in.x.view(), in.delta.view(), r.sum.view(), w, kEps, r.y.view(), r.rstd, kOffset});
    synchronize(ctx);
    r.dx = in.delta;
    rmsnorm_backward(ctx, {in.dy.view(), r.sum.view(), w, r.rstd, r.dx.view(), r.dx.view(), dweight, kOffset});
  } else {
    layernorm(ctx, {in.x.view(), in.delta.view(), r.sum.view(), w, b, kEps, r.y.view(), r.mean, r.rstd});
    synchronize(ctx);
    r.dx = in.delta;
    layernorm_backward(ctx, {in.dy.view(), r.sum.view(), w, r.mean, r.rstd, r.dx.view(), r.dx.view(), dweight, dbias});
  }
  synchronize(ctx);
  return r;
}

void check_close(NormKind kind, const Result& device, const Result& cpu, DType dtype) {
  CHECK(device.sum == cpu.sum);
  CHECK(relative_error(device.y, table_of(cpu.y)) < tolerance(dtype));
  CHECK(relative_error(device.dx, table_of(cpu.dx)) < tolerance(dtype));
  CHECK(relative_error(row_of(device.rstd), table_of(row_of(cpu.rstd))) < 2e-6);
  CHECK(relative_error(row_of(device.dweight), table_of(row_of(cpu.dweight))) < 2e-6);
  if (kind != NormKind::kLayer) return;
  CHECK(relative_error(row_of(device.mean), table_of(row_of(cpu.mean))) < 2e-6);
  CHECK(relative_error(row_of(device.dbias), table_of(row_of(cpu.dbias))) < 2e-6);
}

}  // namespace

DEVICE_TEST_CASE("norms of every width are those of the CPU") {
  Machine cpu(best_cpu_isa(), 2);
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer, NormKind::kHead}) {
      for (const NormShape& shape : shapes_of(kind)) {
        for (const DType dtype : kAllDTypes) {
          if (kSanitized && dtype == DType::kF16) continue;  // bf16's accesses
          CAPTURE(static_cast<int>(kind));
          CAPTURE(name_of(dtype));
          CAPTURE(shape.rows);
          CAPTURE(shape.cols);
          std::mt19937 random(23);
          Inputs inputs(shape, dtype, random);
          const Result on_device = run(machine.ctx, kind, shape, dtype, inputs);
          check_close(kind, on_device, run(cpu.ctx, kind, shape, dtype, inputs), dtype);
          if (!kSanitized) CHECK(run(machine.ctx, kind, shape, dtype, inputs).dx == on_device.dx);
        }
      }
    }
  }
}

DEVICE_TEST_CASE("a norm that is not trained has the same gradient of its input, and none of its own") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer, NormKind::kHead}) {
      for (const NormShape& shape : shapes_of(kind)) {
        CAPTURE(static_cast<int>(kind));
        CAPTURE(shape.rows);
        CAPTURE(shape.cols);
        std::mt19937 random(29);
        Inputs inputs(shape, dtype, random);
        const Result frozen = run(ctx, kind, shape, dtype, inputs, false);
        CHECK(frozen.dx == run(ctx, kind, shape, dtype, inputs).dx);
        CHECK(row_of(frozen.dweight) == HostMatrix(DType::kF32, 1, shape.cols));
        CHECK(row_of(frozen.dbias) == HostMatrix(DType::kF32, 1, shape.cols));
      }
    }
  });
}
