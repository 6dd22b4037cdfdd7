#include "kernels/gemm/packed_matrix.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "kernels/common/backend.h"
#include "kernels/gemm/simd/gemm.h"

namespace zerofleet {
namespace {

void check(const PackRequest& request) {
  require(request.target != nullptr && request.source.data != nullptr, "invalid_argument",
          "pack: no source or no target");
  const bool along_k = request.rows == SourceRows::kAlongK;
  const std::int64_t k = along_k ? request.source.rows : request.source.cols;
  const std::int64_t n = along_k ? request.source.cols : request.source.rows;
  const PackedMatrix& target = *request.target;
  require(request.source.dtype == target.dtype(), "invalid_argument", "pack: source and target differ in dtype");
  require(n == target.n() && request.k_begin >= 0 && request.k_begin % 2 == 0 && request.k_begin + k <= target.k(),
          "invalid_argument",
          "pack: a (" + std::to_string(k) + ", " + std::to_string(n) + ") source does not fit at k " +
              std::to_string(request.k_begin) + " of a (" + std::to_string(target.k()) + ", " +
              std::to_string(target.n()) + ") target");
}

}  // namespace

bool packs_pairs(const Context& ctx, DType dtype) {
  return dtype == DType::kBF16 && ctx.cpu_isa == CpuIsa::kAvx512Bf16;
}

// With an odd k, the zero behind its last element could change the sign of a sum of zero.
PackedMatrix::PackedMatrix(const Context& ctx, DType dtype, std::int64_t k, std::int64_t n, PackedWords words)
    : dtype_(dtype),
      n_(n),
      pairs_(packs_pairs(ctx, dtype) || (words == PackedWords::kSmallest && dtype == DType::kBF16 && k % 2 == 0)) {
  require(k >= 1 && n >= 1, "invalid_argument", "a packed matrix needs at least one row and one column");
  set_k(ctx, k);
}

void PackedMatrix::set_k(const Context& ctx, std::int64_t k) {
  if (k == k_) return;
  k_ = k;
  parts_.clear();
  if (!backend_of(ctx).gemm_reads_packed) return;
  const std::int64_t num_panels = (n_ + cpu::kPanel - 1) / cpu::kPanel;
  const std::size_t num_bytes = static_cast<std::size_t>(num_panels * panel_stride()) * sizeof(std::uint32_t);
  if (num_bytes > buffer_.num_bytes()) buffer_ = Buffer(ctx.device, num_bytes);
}

std::int64_t PackedMatrix::panel_stride() const { return steps() * cpu::kPanel; }

void PackedMatrix::set_part(const Part& part) {
  const auto position = std::ranges::lower_bound(parts_, part.k_begin, {}, &Part::k_begin);
  if (position != parts_.end() && position->k_begin == part.k_begin) {
    *position = part;
  } else {
    parts_.insert(position, part);
  }
}

void pack(const Context& ctx, std::span<const PackRequest> requests) {
  for (const PackRequest& request : requests) check(request);
  backend_of(ctx).pack(ctx, requests);
}

}  // namespace zerofleet
