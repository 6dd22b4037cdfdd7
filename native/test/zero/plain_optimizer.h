#pragma once

#include <cstdint>
#include <vector>

#include "zero/optimizer/optimizer_options.h"

namespace zerofleet::test {

/// Values of a parameter. The contents of `first` and `second` depend on the optimizer; see state_ids().
struct PlainTensor {
  std::vector<float> master, first, second;
  std::vector<float> ema;   // empty without ema.decay
  std::vector<float> grad;  // summed over the leaves
};

/// Inputs of an update.
struct PlainUpdate {
  double lr = 0, weight_decay = 0;
  float grad_factor = 1;
  std::int64_t step = 1;  // counted from 1
};

/// The numbers by which the digest knows the states that the optimizer has besides the master: first, then second.
std::vector<std::uint8_t> state_ids(const OptimizerOptions& options);

/// Runs one step of one whole parameter by the optimizer's definition, in fp32 with constants rounded from fp64.
void plain_update(const OptimizerOptions& options, const PlainUpdate& update, PlainTensor& tensor);

/// Moves the average, if there is one, after plain_update() and the rounding of the master.
void plain_average(const OptimizerOptions& options, std::int64_t step, PlainTensor& tensor);

/// Sums of squares in fp64 of a parameter's blocks of 4096 elements, of which the last is padded with zeros. A block
/// has 32 running sums by element index mod 32, whose halves are then added.
std::vector<double> block_sums(const std::vector<float>& values);

}  // namespace zerofleet::test
