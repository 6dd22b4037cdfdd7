#pragma once

#include <cstddef>

namespace zerofleet {

/// Bytes that one rank keeps, by part, including the padding to blocks.
struct ZeroMemory {
  std::size_t params = 0;            // parameters that the rank holds, compute dtype or quantized
  std::size_t shared_params = 0;     // parameters in a copy that ranks of the host share; not in `params`
  std::size_t grad_shard = 0;        // owned and trained, grad_accum_dtype
  std::size_t master = 0;            // owned and trained, master_dtype
  std::size_t moments = 0;           // owned and trained, fp32: all other states of the optimizer
  std::size_t lane_accumulator = 0;  // all trained parameters, grad_accum_dtype; 0 if lanes are single leaves
  std::size_t send_staging = 0;      // buckets that are filled or in transit
  std::size_t receive_staging = 0;   // arriving pieces, and transfer windows of offload
};

}  // namespace zerofleet
