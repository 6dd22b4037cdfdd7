#include "kernels/optimizer/cpu/optimizer_tiles.h"

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/simd/write_past_caches.h"
#include "kernels/flat/simd/cast.h"
#include "kernels/optimizer/simd/average_tile.h"

namespace zerofleet::cpu {
namespace {

template <class T>
T* at(std::byte* array, std::int64_t element) {
  return reinterpret_cast<T*>(array) + element;
}

template <class T>
const T* at(const std::byte* array, std::int64_t element) {
  return reinterpret_cast<const T*>(array) + element;
}

auto pick_widen(CpuIsa isa, DType dtype) {
  return dtype == DType::kF16 ? ZF_PICK_KERNEL(isa, widen_from_f16) : ZF_PICK_KERNEL(isa, widen_from_bf16);
}

/// Elements of a tile. An array that passes through scratch memory needs short tiles: then its conversions overlap with
/// the reading of the next tile. From 1024 elements on they don't overlap (measured with AdamW). Otherwise long tiles
/// cost less.
std::int64_t best_tile_numel(const OptimizerDTypes& dtypes, const TileAccess& access) {
  const bool converts = dtypes.master != DType::kF32 || (access.reads_grad && dtypes.grad != DType::kF32);
  return converts ? 512 : kMaxTileNumel;
}

}  // namespace

TileStorage::TileStorage(const Context& context, const OptimizerDTypes& dtypes, const TileAccess& access)
    : dtypes_(dtypes),
      access_(access),
      widen_master_(pick_widen(context.cpu_isa, dtypes.master)),
      narrow_master_(ZF_PICK_KERNEL(context.cpu_isa, narrow_to_f16)),
      widen_grad_(pick_widen(context.cpu_isa, dtypes.grad)),
      write_params_(ZF_PICK_KERNEL(context.cpu_isa, write_past_caches)),
      move_average_(ZF_PICK_KERNEL(context.cpu_isa, average_tile)),
      finish_(ZF_PICK_KERNEL(context.cpu_isa, finish_writes_past_caches)) {
  if (access_.tile_numel == 0) access_.tile_numel = best_tile_numel(dtypes, access);
}

OptimizerTile TileStorage::open(const OptimizerSegment& segment, std::int64_t begin, std::int64_t numel,
                                Scratch& scratch) const {
  OptimizerTile tile{scratch.master, {}, scratch.grad, numel, nullptr, dtypes_.params};
  for (std::size_t i = 0; i < kMaxMoments; ++i) {
    tile.states[i] = segment.states[i] == nullptr ? nullptr : segment.states[i] + begin;
  }
  if (dtypes_.master == DType::kF32) {
    tile.master = at<float>(segment.master, begin);
  } else {
    widen_master_(at<std::uint16_t>(segment.master, begin), scratch.master, numel);
  }
  if (!access_.reads_grad) {
    tile.grad = nullptr;
  } else if (dtypes_.grad == DType::kF32) {
    tile.grad = at<float>(segment.grad, begin);
  } else {
    widen_grad_(at<std::uint16_t>(segment.grad, begin), scratch.grad, numel);
  }
  // A master that is rounded, and parameters that no vector can be streamed to, come after the tile.
  std::byte* params = params_at(segment, begin);
  const bool aligned = reinterpret_cast<std::uintptr_t>(params) % 64 == 0;
  if (access_.writes_master && dtypes_.master == DType::kF32 && aligned) tile.params = params;
  return tile;
}

std::byte* TileStorage::params_at(const OptimizerSegment& segment, std::int64_t begin) const {
  return segment.params == nullptr ? nullptr
                                   : segment.params + static_cast<std::size_t>(begin) * size_of(dtypes_.params);
}

void TileStorage::close(const OptimizerSegment& segment, std::int64_t begin, const OptimizerTile& tile) const {
  if (!access_.writes_master) return;
  if (dtypes_.master == DType::kF16) {
    auto* stored = at<std::uint16_t>(segment.master, begin);
    narrow_master_(tile.master, stored, tile.numel);
    widen_master_(stored, tile.master, tile.numel);  // parameters are rounded from the stored master
  }
  if (const auto& [values, weight] = segment.average; values != nullptr) {
    move_average_(tile.master, values + begin, weight, tile.numel);
  }
  if (segment.params == nullptr || tile.params != nullptr) return;
  write_params_(tile.master, params_at(segment, begin), dtypes_.params, tile.numel);
}

}  // namespace zerofleet::cpu
