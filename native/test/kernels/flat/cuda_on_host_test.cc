#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/flat/block_hash.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/cuda/block_lanes.h"
#include "kernels/flat/cuda/flat_elements.h"
#include "kernels/flat/cuda/xxh3_lanes.h"
#include "kernels/flat/fold.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/on_host.h"

using namespace zerofleet;
using namespace zerofleet::test;

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
        const cuda::CastArrays narrow{
            std::as_bytes(std::span(source)).data(), DType::kF32, target.data(), dtype, numel, factor, aligned};
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
        const cuda::CastArrays widen{
            expected.data(), dtype, std::as_writable_bytes(std::span(back)).data(), DType::kF32, numel, 1.0F, aligned};
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
          const cuda::FoldArrays arrays{pieces.data(), piece_dtype, 3,       sum.data(),
                                        sum_dtype,     count,       restart, numel % 4 == 0};
          for (std::int64_t first = 0; first < count; first += 4) cuda::fold4(arrays, first);
          CHECK(sum == expected);
        }
      }
    }
  }
}

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
    blocks[i] = i < 2 * kHashedBlockBytes
                    ? std::byte{0}
                    : static_cast<std::byte>(philox(5, {static_cast<std::uint32_t>(i), 0, 0, 0})[0]);
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
          accumulators[thread % cuda::xxh3::kAccumulators] +=
              cuda::xxh3::thread_part(words.data(), secret, inner, thread);
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
