// Flat passes over arrays of more than 2^32 elements, which no index of 32 bits reaches, by grids of more than 65,535
// blocks. The ends of the arrays have the bits that the CPU gives for the ends alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/flat/block_hash.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/fold.h"
#include "kernels/optimizer/formulas/all.h"
#include "kernels/optimizer/optimizer_update.h"
#include "test/cuda_emulator/emulator.h"
#include "test/cuda_emulator/far_memory.h"
#include "test/kernels/on_host.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::size_t kTail = 4096;  // elements that are compared; one block of hashes and statistics
constexpr std::size_t kNumel = (std::size_t{1} << 32) + 2 * kTail;
constexpr unsigned kBlocks = kTail / 1024;  // blocks of threads that have them, at most

/// An array of kNumel elements, whose last ones are those of a short one.
class FarArray {
 public:
  FarArray(DType dtype, std::uint64_t key, std::size_t count = 1)
      : near_(random_array(kTail * count, dtype, key)), width_(size_of(dtype)), memory_(kNumel * count * width_) {
    for (std::size_t i = 0; i < count; ++i)
      std::memcpy(memory_.data() + ((i + 1) * kNumel - kTail) * width_, near_.data() + i * kTail * width_,
                  kTail * width_);
  }

  std::byte* far() { return memory_.data(); }
  std::span<std::byte> whole() { return {memory_.data(), memory_.num_bytes()}; }
  Bytes& near() { return near_; }
  bool end_is_near() { return std::ranges::equal(whole().last(near_.size()), near_); }

 private:
  Bytes near_;
  std::size_t width_;
  FarMemory memory_;
};

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

DEVICE_TEST_CASE("arrays beyond 2^32 elements: casts and folds") {
  DeviceMachine machine(kFirstGpu);
  const emulator::LastBlocks end(kBlocks);
  FarArray wide(DType::kF32, 1), narrow(DType::kBF16, 2);
  cast_from_f32(machine.ctx, floats(wide.whole()), DType::kBF16, narrow.whole(), 0.3F);
  synchronize(machine.ctx);
  cast_from_f32(cpu_context(), floats(wide.near()), DType::kBF16, narrow.near(), 0.3F);
  CHECK(narrow.end_is_near());
  cast_to_f32(machine.ctx, narrow.whole(), DType::kBF16, floats(wide.whole()));
  synchronize(machine.ctx);
  cast_to_f32(cpu_context(), narrow.near(), DType::kBF16, floats(wide.near()));
  CHECK(wide.end_is_near());

  FarArray pieces(DType::kBF16, 3, 2);
  Fold fold{.pieces = pieces.whole(), .piece_dtype = DType::kBF16, .num_pieces = 2, .sum = wide.whole()};
  fold_pieces(machine.ctx, fold);
  synchronize(machine.ctx);
  fold.pieces = pieces.near();
  fold.sum = wide.near();
  fold_pieces(cpu_context(), fold);
  CHECK(wide.end_is_near());
}

DEVICE_TEST_CASE("arrays beyond 2^32 elements: hashes and statistics of blocks") {
  DeviceMachine machine(kFirstGpu);
  const emulator::LastBlocks end(1);
  constexpr std::size_t kNumBlocks = kNumel / kTail;
  FarArray values(DType::kF32, 4);
  std::vector<Hash128> hashes(kNumBlocks), last_hash(1);
  hash_blocks(machine.ctx, values.whole(), 7, hashes);
  hash_blocks(cpu_context(), values.near(), 7 + kNumBlocks - 1, last_hash);
  CHECK(hashes.back() == last_hash[0]);
  std::vector<double> squares(kNumBlocks), last_squares(1);
  std::vector<float> largest(kNumBlocks), last_largest(1);
  block_stats(machine.ctx, values.whole(), DType::kF32, kTail, squares, largest);
  block_stats(cpu_context(), values.near(), DType::kF32, kTail, last_squares, last_largest);
  CHECK(squares.back() == last_squares[0]);
  CHECK(largest.back() == last_largest[0]);
}

DEVICE_TEST_CASE("arrays beyond 2^32 elements: an optimizer's update") {
  DeviceMachine machine(kFirstGpu);
  const emulator::LastBlocks end(kBlocks);
  FarArray master(DType::kF32, 5), m(DType::kF32, 6), v(DType::kF32, 7), grad(DType::kBF16, 8), params(DType::kBF16, 9),
      average(DType::kF32, 10);
  for (float& value : floats(v.near())) value = value * value;  // second moments are not negative
  std::ranges::copy(v.near(), v.whole().last(v.near().size()).begin());
  const auto segment = [&](auto at, std::size_t numel) {
    const auto as_floats = [&](FarArray& array) { return reinterpret_cast<float*>(at(array)); };
    return std::array{OptimizerSegment{at(master),
                                       {as_floats(m), as_floats(v)},
                                       at(grad),
                                       at(params),
                                       static_cast<std::int64_t>(numel),
                                       0,
                                       {as_floats(average), 0.25F}}};
  };
  const OptimizerDTypes dtypes{DType::kF32, DType::kBF16, DType::kBF16};
  const std::array scalars{AdamWScalars{0.5F, 0.1F, 0.99F, 0.01F, 1e-6F, 0.9F, 0.25F, 1.5F}};
  optimizer_update<AdamWUpdate>(machine.ctx, segment([](FarArray& array) { return array.far(); }, kNumel), dtypes,
                                scalars);
  synchronize(machine.ctx);
  optimizer_update<AdamWUpdate>(cpu_context(), segment([](FarArray& array) { return array.near().data(); }, kTail),
                                dtypes, scalars);
  for (FarArray* array : {&master, &m, &v, &params, &average}) CHECK(array->end_is_near());
}
