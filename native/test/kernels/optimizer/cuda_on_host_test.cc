// The code of the CUDA kernels that one thread runs, compiled for the host and run thread by thread, against the CPU
// kernels bit for bit. A machine with a GPU is needed for the rest: the launches, the exchange between lanes of a warp,
// and nvcc's arithmetic. The cases for every device (test/devices_here.h) cover that.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <vector>

#include "core/philox.h"
#include "kernels/flat/block_hash.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/cast.h"
#include "kernels/flat/cuda/block_lanes.h"
#include "kernels/flat/cuda/flat_elements.h"
#include "kernels/flat/cuda/xxh3_lanes.h"
#include "kernels/flat/fold.h"
#include "kernels/optimizer/cuda/lamb_lane.h"
#include "kernels/optimizer/cuda/segment_batch.h"
#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/optimizer_update.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Bytes = std::vector<std::byte>;

const Context& cpu_context() {
  static DeviceMachine machine(Device{});
  return machine.ctx;
}

float random_float(std::uint64_t key, std::size_t i) {
  const auto bits = philox(key, {static_cast<std::uint32_t>(i), 0, 0, 0});
  return static_cast<float>((uniform_open(bits[0]) - 0.5) * std::exp2(static_cast<double>(bits[1] % 30) - 24));
}

std::vector<float> random_floats(std::size_t numel, std::uint64_t key) {
  std::vector<float> values(numel);
  for (std::size_t i = 0; i < numel; ++i) values[i] = random_float(key, i);
  return values;
}

Bytes random_array(std::size_t numel, DType dtype, std::uint64_t key) {
  Bytes bytes(numel * size_of(dtype));
  cast_from_f32(cpu_context(), random_floats(numel, key), dtype, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("a device thread's cast gives the CPU kernel's bits") {
  auto source = random_floats(20003, 1);
  for (std::uint32_t top = 0; top < 512; ++top) {  // every sign and exponent: subnormals, infinities and NaN too
    for (const std::uint32_t mantissa : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0x18000U, 0x7fffffU}) {
      source.push_back(std::bit_cast<float>(top << 23 | mantissa));
    }
  }
  for (const DType dtype : kAllDTypes) {
    for (const float factor : {1.0F, 0.3F}) {
      for (const bool aligned : {true, false}) {
        const std::size_t width = size_of(dtype);
        Bytes expected(source.size() * width), target(source.size() * width);
        cast_from_f32(cpu_context(), source, dtype, expected, factor);
        const auto numel = static_cast<std::int64_t>(source.size());
        const cuda::CastArrays narrow{std::as_bytes(std::span(source)).data(), DType::kF32, target.data(), dtype, numel,
                                      factor, aligned};
        for (std::int64_t first = 0; first < numel; first += 4) cuda::cast4(narrow, first);
        if (factor == 1.0F) {
          CHECK(target == expected);
        } else {
          // The bits of a NaN that arithmetic makes are the machine's own.
          std::vector<float> wide(source.size()), wide_expected(source.size());
          cast_to_f32(cpu_context(), target, dtype, wide);
          cast_to_f32(cpu_context(), expected, dtype, wide_expected);
          std::size_t num_wrong = 0;
          for (std::size_t i = 0; i < wide.size(); ++i) {
            num_wrong += !(wide[i] == wide_expected[i] || (wide[i] != wide[i] && wide_expected[i] != wide_expected[i]));
          }
          CHECK(num_wrong == 0);
        }
        std::vector<float> back(source.size()), back_expected(source.size());
        cast_to_f32(cpu_context(), expected, dtype, back_expected);
        const cuda::CastArrays widen{expected.data(), dtype, std::as_writable_bytes(std::span(back)).data(), DType::kF32,
                                     numel, 1.0F, aligned};
        for (std::int64_t first = 0; first < numel; first += 4) cuda::cast4(widen, first);
        CHECK(std::memcmp(back.data(), back_expected.data(), back.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("a device thread's fold gives the CPU kernel's bits") {
  for (const std::size_t numel : {std::size_t{4096}, std::size_t{4099}}) {
    for (const DType piece_dtype : kAllDTypes) {
      for (const DType sum_dtype : kAllDTypes) {
        for (const bool restart : {true, false}) {
          const Bytes pieces = random_array(3 * numel, piece_dtype, 2);
          Bytes expected = random_array(numel, sum_dtype, 3), sum = expected;
          fold_pieces(cpu_context(), {pieces, piece_dtype, 3, expected, sum_dtype, restart});
          const auto count = static_cast<std::int64_t>(numel);
          const cuda::FoldArrays arrays{pieces.data(), piece_dtype, 3, sum.data(), sum_dtype, count, restart,
                                        numel % 4 == 0};
          for (std::int64_t first = 0; first < count; first += 4) cuda::fold4(arrays, first);
          CHECK(sum == expected);
        }
      }
    }
  }
}

namespace {

/// A warp's exchange, as kernels/common/cuda/warp.cuh has it: afterwards entry 0 is the sum.
double folded_by_halves(std::vector<double> lanes) {
  for (std::size_t half = 16; half >= 1; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace

TEST_CASE("a warp's block statistics are the CPU kernel's bits") {
  constexpr std::size_t kBlocks = 5;
  for (const std::size_t block_numel : {std::size_t{32}, std::size_t{4096}}) {
    for (const DType dtype : kAllDTypes) {
      const Bytes values = random_array(kBlocks * block_numel, dtype, 4);
      std::vector<double> sums(kBlocks);
      std::vector<float> max_abs(kBlocks);
      const auto numel = static_cast<std::int64_t>(block_numel);
      block_stats(cpu_context(), values, dtype, numel, sums, max_abs);
      for (std::size_t block = 0; block < kBlocks; ++block) {
        std::vector<double> lanes;
        std::uint32_t magnitude = 0;
        for (int lane = 0; lane < cuda::kLanes; ++lane) {
          const auto part = cuda::block_lane(values.data() + block * block_numel * size_of(dtype), dtype, numel, lane);
          lanes.push_back(part.sum_squares);
          magnitude = std::max(magnitude, part.max_magnitude);
        }
        CHECK(std::bit_cast<std::uint64_t>(folded_by_halves(lanes)) == std::bit_cast<std::uint64_t>(sums[block]));
        CHECK(magnitude == std::bit_cast<std::uint32_t>(max_abs[block]));
      }
    }
  }
}

TEST_CASE("a warp's hash of a block is XXH3-128 as the xxhash library has it") {
  constexpr std::size_t kBlocks = 9;
  Bytes blocks(kBlocks * kHashedBlockBytes);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocks[i] = i < 2 * kHashedBlockBytes ? std::byte{0} : static_cast<std::byte>(philox(5, {static_cast<std::uint32_t>(i), 0, 0, 0})[0]);
  }
  for (const std::uint64_t first_seed : {std::uint64_t{0}, std::uint64_t{1} << 56 | 12345, ~std::uint64_t{0} - 3}) {
    std::vector<Hash128> expected(kBlocks);
    hash_blocks(cpu_context(), blocks, first_seed, expected);
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::vector<std::uint64_t> words(kHashedBlockBytes / 8);
      std::memcpy(words.data(), blocks.data() + block * kHashedBlockBytes, kHashedBlockBytes);
      std::uint64_t secret[cuda::xxh3::kSecretWords], accumulators[cuda::xxh3::kAccumulators];
      for (int word = 0; word < cuda::xxh3::kSecretWords; ++word) {
        secret[word] = cuda::xxh3::secret_word(cuda::xxh3::kStandardSecret, first_seed + block, word);
      }
      for (int i = 0; i < cuda::xxh3::kAccumulators; ++i) accumulators[i] = cuda::xxh3::first_accumulator(i);
      for (int inner = 0; inner < cuda::xxh3::kInnerBlocks; ++inner) {
        for (int thread = 0; thread < 32; ++thread) {
          accumulators[thread % cuda::xxh3::kAccumulators] += cuda::xxh3::thread_part(words.data(), secret, inner, thread);
        }
        if (inner + 1 == cuda::xxh3::kInnerBlocks) break;
        for (int i = 0; i < cuda::xxh3::kAccumulators; ++i) {
          accumulators[i] = cuda::xxh3::scrambled(accumulators[i], secret, i);
        }
      }
      CHECK(cuda::xxh3::finish(accumulators, secret) == expected[block]);
    }
  }
}

namespace {

/// Arrays of one optimizer and their cut into segments.
struct OptimizerArrays {
  OptimizerDTypes dtypes;
  Bytes master, grad, params, average;
  std::vector<float> states[2];

  OptimizerArrays(std::size_t numel, const OptimizerDTypes& types)
      : dtypes(types),
        master(random_array(numel, types.master, 6)),
        grad(random_array(numel, types.grad, 7)),
        params(numel * size_of(types.params)),
        average(random_array(numel, DType::kF32, 10)),
        states{random_floats(numel, 8), random_floats(numel, 9)} {
    for (float& v : states[1]) v = v * v;
    for (std::size_t i = 0; i < numel; i += 3) states[0][i] = 0;
  }

  std::vector<OptimizerSegment> segments(std::span<const std::size_t> cuts) {
    std::vector<OptimizerSegment> result;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const std::size_t begin = cuts[i];
      OptimizerSegment segment;
      segment.master = master.data() + begin * size_of(dtypes.master);
      segment.states[0] = states[0].data() + begin;
      segment.states[1] = states[1].data() + begin;
      segment.grad = grad.data() + begin * size_of(dtypes.grad);
      segment.params = i % 3 == 2 ? nullptr : params.data() + begin * size_of(dtypes.params);
      segment.numel = static_cast<std::int64_t>(cuts[i + 1] - begin);
      segment.group = i % 2;
      if (i % 4 < 2) segment.average = {reinterpret_cast<float*>(average.data()) + begin, 0.25F};
      result.push_back(segment);
    }
    return result;
  }

  bool operator==(const OptimizerArrays& other) const {
    return master == other.master && params == other.params && states[0] == other.states[0] &&
           states[1] == other.states[1] && average == other.average;
  }
};

/// More segments than a batch has, odd lengths and places, and whole blocks.
std::vector<std::size_t> cuts_of_segments() {
  std::vector<std::size_t> cuts{0, 4096, 4096, 4099, 9000};
  while (cuts.size() < 90) cuts.push_back(cuts.back() + 1 + cuts.size() % 7 * 300);
  return cuts;
}

/// Under a sanitizer on a fifth of the combinations, in which each array has each of its types.
void on_all_dtypes(const std::function<void(const OptimizerDTypes&)>& body) {
  std::size_t number = 0;
  for (const DType master : {DType::kF32, DType::kF16}) {
    for (const DType grad : kAllDTypes) {
      for (const DType params : kAllDTypes) {
        if (!kSanitized || number % 5 == 0) body({master, grad, params});
        ++number;
      }
    }
  }
}

using Segments = std::span<const OptimizerSegment>;

/// All tiles and threads of an update, one after another.
template <class Update>
void update_on_host(Segments segments, const OptimizerDTypes& dtypes, std::span<const typename Update::Scalars> groups) {
  using Scalars = typename Update::Scalars;
  cuda::for_each_batch<Scalars>(segments, dtypes, cuda::kUpdateTile, groups, [](const cuda::SegmentBatch<Scalars>& batch) {
    for (std::int64_t tile = 0; tile < batch.num_tiles(); ++tile) {
      for (int thread = 0; thread < cuda::kUpdateThreads; ++thread) cuda::update_tile<Update>(batch, tile, thread);
    }
  });
}

/// `expected` runs the CPU kernel, `actual` the device's code.
void check_equal_updates(const std::function<void(Segments, const OptimizerDTypes&)>& expected,
                         const std::function<void(Segments, const OptimizerDTypes&)>& actual) {
  const auto cuts = cuts_of_segments();
  on_all_dtypes([&](const OptimizerDTypes& dtypes) {
    OptimizerArrays a(cuts.back(), dtypes), b(cuts.back(), dtypes);
    const OptimizerArrays before = a;
    expected(a.segments(cuts), dtypes);
    actual(b.segments(cuts), dtypes);
    CHECK(a == b);
    CHECK(!(a == before));
  });
}

template <class Update>
void check_update(const std::vector<typename Update::Scalars>& groups) {
  check_equal_updates(
      [&](Segments segments, const OptimizerDTypes& dtypes) {
        optimizer_update<Update>(cpu_context(), segments, dtypes, groups);
      },
      [&](Segments segments, const OptimizerDTypes& dtypes) { update_on_host<Update>(segments, dtypes, groups); });
}

const std::vector<LambScalars> kLambGroups{{0.37F, 0.1F, 0.95F, 0.05F, 1e-6F, 0.01F, 1.7F, 1.3F, 0.02F},
                                           {0.37F, 0.1F, 0.95F, 0.05F, 1e-6F, 0, 1.7F, 1.3F, 0.01F}};

}  // namespace

TEST_CASE("a device thread's optimizer updates give the CPU kernels' bits") {
  check_update<AdamWUpdate>({{0.37F, 0.1F, 0.95F, 0.05F, 1e-8F, 0.9997F, 2e-3F, 1.7F},
                             {0.37F, 0.1F, 0.95F, 0.05F, 1e-8F, 1.0F, 1e-3F, 1.7F}});
  check_update<AdamUpdate>({{0.37F, 0.1F, 0.1F, 0.95F, 0.05F, 1e-8F, 2e-3F, 1.7F},
                            {0.37F, 0.0F, 0.1F, 0.95F, 0.05F, 1e-8F, 1e-3F, 1.7F}});
  check_update<LionUpdate>({{0.37F, 0.1F, 0.01F, 0.9997F, 2e-3F}, {0.0F, 0.1F, 0.01F, 1.0F, 1e-3F}});
  check_update<AdagradUpdate>({{0.37F, 0.1F, 1e-10F, 2e-3F}, {0.37F, 0.0F, 1e-10F, 1e-3F}});
  const std::vector<SgdScalars> sgd{{0.37F, 0.1F, 0.02F, 0.9F, 0.5F}, {0.37F, 0.0F, 0.01F, 0.8F, 1}};
  check_update<SgdUpdate>(sgd);
  check_update<SgdMomentumUpdate>(sgd);
  check_update<SgdNesterovUpdate>(sgd);
}

TEST_CASE("a device thread's second LAMB pass gives the CPU kernel's bits") {
  const auto ratio_of = [](std::size_t i) { return 0.5F + 0.01F * static_cast<float>(i); };
  check_equal_updates(
      [&](Segments segments, const OptimizerDTypes& dtypes) {
        std::vector<float> ratios;
        for (std::size_t i = 0; i < segments.size(); ++i) ratios.push_back(ratio_of(i));
        lamb_update(cpu_context(), segments, dtypes, kLambGroups, ratios);
      },
      [&](Segments segments, const OptimizerDTypes& dtypes) {
        std::vector<OptimizerSegment> own(segments.begin(), segments.end());
        std::vector<LambScalars> scalars;
        for (std::size_t i = 0; i < own.size(); ++i) {
          scalars.push_back(kLambGroups[own[i].group]);
          scalars.back().lr = scalars.back().lr * ratio_of(i);
          own[i].group = i;
        }
        update_on_host<LambUpdate>(own, dtypes, scalars);
      });
}

TEST_CASE("a warp's first LAMB pass moves the moments and sums the squares as the CPU kernel does") {
  constexpr std::int64_t kBlock = 256;
  std::vector<std::size_t> cuts{0};
  while (cuts.size() < 40) cuts.push_back(cuts.back() + cuts.size() % 5 * kBlock);
  const std::size_t num_blocks = cuts.back() / kBlock;
  std::vector<std::int64_t> first_stats;
  for (const std::size_t cut : std::span(cuts).first(cuts.size() - 1)) {
    first_stats.push_back(static_cast<std::int64_t>(cut) / kBlock);
  }
  on_all_dtypes([&](const OptimizerDTypes& dtypes) {
    OptimizerArrays a(cuts.back(), dtypes), b(cuts.back(), dtypes);
    std::vector<double> weights(num_blocks), updates(num_blocks);
    lamb_prepare(cpu_context(), a.segments(cuts), dtypes, kLambGroups, {kBlock, first_stats, weights, updates});
    const auto segments = b.segments(cuts);
    std::size_t next = 0, num_wrong = 0;
    const auto run = [&](const cuda::SegmentBatch<LambScalars>& batch) {
      for (std::int64_t tile = 0; tile < batch.num_tiles(); ++tile, ++next) {
        std::vector<double> weight_lanes, update_lanes;
        for (int lane = 0; lane < cuda::kLanes; ++lane) {
          const cuda::LambLane part = cuda::lamb_lane(batch, tile, kBlock, lane);
          weight_lanes.push_back(part.weights);
          update_lanes.push_back(part.updates);
        }
        num_wrong += folded_by_halves(weight_lanes) != weights[next] || folded_by_halves(update_lanes) != updates[next];
      }
    };
    cuda::for_each_batch<LambScalars>(segments, dtypes, kBlock, kLambGroups, run);
    CHECK(next == num_blocks);
    CHECK(num_wrong == 0);
    CHECK(a == b);
  });
}
