#pragma once

#include <cstdint>
#include <vector>

#include "zero/optimizer/optimizer_options.h"

namespace zerofleet::test {

/// One parameter's numbers. What `first` and `second` hold depends on the optimizer; see state_ids().
struct PlainTensor {
  std::vector<float> master, first, second;
  std::vector<float> grad;  // summed over the leaves
};

/// What one update is told.
struct PlainUpdate {
  double lr = 0, weight_decay = 0;
  float grad_factor = 1;
  std::int64_t step = 1;  // counted from 1
};

/// The numbers by which the digest knows the states that the optimizer has besides the master: first, then second.
std::vector<std::uint8_t> state_ids(const OptimizerOptions& options);

/// One step of one whole parameter, as the optimizer's definition reads, in fp32 with constants rounded from fp64.
void plain_update(const OptimizerOptions& options, const PlainUpdate& update, PlainTensor& tensor);

/// Sums of squares in fp64 of the blocks of 4096 elements of a parameter, the last one filled up with zeros: 32 running
/// sums by element index mod 32, then halves added.
std::vector<double> block_sums(const std::vector<float>& values);

}  // namespace zerofleet::test
