#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "test/zero/plain_training.h"

namespace zerofleet::test {

/// Draws from a counter-based generator: the same numbers for the same seed, on every machine.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}

  /// 0 … limit - 1.
  std::int64_t below(std::int64_t limit);
  bool one_in(std::int64_t chances) { return below(chances) == 0; }
  template <class Value>
  Value one_of(std::span<const Value> values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }
  template <class Value, std::size_t kSize>
  Value one_of(const Value (&values)[kSize]) {
    return one_of(std::span<const Value>(values));
  }

 private:
  std::uint64_t seed_;
  std::uint32_t next_ = 0;
};

/// Combination of settings that a property is checked for.
struct JobKind {
  OptimizerType optimizer = OptimizerType::kAdamW;
  DType param_dtype = DType::kF32;
  DType reduce_dtype = DType::kF32;
  DType grad_accum_dtype = DType::kF32;
  int stage = 2;
  enum class Clipping { kOff, kL2, kMax } clipping = Clipping::kOff;

  std::string text() const;
};

/// A job drawn at random, with numbers for gradients.
struct RandomJob {
  JobKind kind;
  std::uint64_t seed = 0;
  std::vector<PlainParam> params;
  PlainOptions options;
  std::int64_t bucket_bytes = 1 << 20;
  bool has_overflow = false;
  bool offload = false;
  std::vector<int> world_sizes;  // that it allows, ascending

  /// The gradient before loss scaling; empty for a parameter that the leaf does not use. See PlainData.
  std::span<const float> grad(std::int64_t step, std::int64_t leaf, std::size_t param) const;
  double loss_sum(std::int64_t step, std::int64_t leaf) const;
  PlainTraining plain() const;
  std::string text() const;

  static constexpr std::int64_t kTargetsPerLeaf = 60;
};

/// A model of any shape with every feature as chance has it.
RandomJob random_job(const JobKind& kind, std::uint64_t seed);
/// A model of any shape with one leaf after another and no feature on, for one rank.
RandomJob plain_job(const JobKind& kind, std::uint64_t seed);

}  // namespace zerofleet::test
