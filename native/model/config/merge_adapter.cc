#include "model/config/merge_adapter.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/error.h"

namespace zerofleet {
namespace {

void check(const AdapterFactors& adapter, std::int64_t begin, std::size_t count) {
  const auto size = [](std::int64_t rows, std::int64_t columns) { return static_cast<std::size_t>(rows * columns); };
  require(adapter.rank > 0 && adapter.in > 0 && adapter.out > 0 && adapter.down.size() == size(adapter.rank, adapter.in) &&
              adapter.up.size() == size(adapter.out, adapter.rank),
          "invalid_argument", "the factors of an adapter have other sizes than its matrix");
  require(begin >= 0 && static_cast<std::size_t>(begin) + count <= size(adapter.in, adapter.out), "invalid_argument",
          "a piece of a matrix ends behind it");
}

/// (rank, out) from (out, rank).
std::vector<float> transposed(const AdapterFactors& adapter) {
  std::vector<float> result(adapter.up.size());
  for (std::int64_t o = 0; o < adapter.out; ++o)
    for (std::int64_t r = 0; r < adapter.rank; ++r)
      result[static_cast<std::size_t>(r * adapter.out + o)] = adapter.up[static_cast<std::size_t>(o * adapter.rank + r)];
  return result;
}

}  // namespace

// A row of the matrix is Σ over the rank of a factor · a row of the other: A's for (out, in), Bᵀ's for (in, out).
void merge_adapter(const AdapterFactors& adapter, std::int64_t begin, std::span<float> values) {
  check(adapter, begin, values.size());
  const std::int64_t columns = adapter.in_first ? adapter.out : adapter.in;
  const std::vector<float> up = adapter.in_first ? transposed(adapter) : std::vector<float>();
  const std::span<const float> rows = adapter.in_first ? std::span<const float>(up) : adapter.down;
  std::vector<double> sums(static_cast<std::size_t>(columns));
  const auto end = begin + static_cast<std::int64_t>(values.size());
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t row = at / columns, first = at % columns, count = std::min(columns - first, end - at);
    std::fill_n(sums.begin(), count, 0.0);
    for (std::int64_t r = 0; r < adapter.rank; ++r) {
      const auto of_row = static_cast<std::size_t>(adapter.in_first ? r * adapter.in + row : row * adapter.rank + r);
      const auto factor = static_cast<double>(adapter.in_first ? adapter.down[of_row] : adapter.up[of_row]);
      const float* other = rows.data() + r * columns + first;
      for (std::int64_t i = 0; i < count; ++i) sums[static_cast<std::size_t>(i)] += factor * static_cast<double>(other[i]);
    }
    float* target = values.data() + (at - begin);
    for (std::int64_t i = 0; i < count; ++i)
      target[i] = static_cast<float>(static_cast<double>(target[i]) + adapter.scale * sums[static_cast<std::size_t>(i)]);
    at += count;
  }
}

}  // namespace zerofleet
