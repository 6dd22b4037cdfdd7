#include "model/config/merge_adapter.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "core/error.h"

namespace zerofleet {
namespace {

void check(const AdapterFactors& adapter, std::int64_t begin, std::size_t count) {
  const auto size = [](std::int64_t rows, std::int64_t columns) { return static_cast<std::size_t>(rows * columns); };
  require(adapter.rank > 0 && adapter.in > 0 && adapter.out > 0 &&
              adapter.down.size() == size(adapter.rank, adapter.in) &&
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
      result[static_cast<std::size_t>(r * adapter.out + o)] =
          adapter.up[static_cast<std::size_t>(o * adapter.rank + r)];
  return result;
}

/// Calls take(i, output, v) for the i-th of the values and its element v of V. V adds to a row of the matrix the rows
/// of one factor, each times an element of the other one. The rows are those of A for (out, in), and of Bᵀ for (in,
/// out).
template <class Take>
void for_each_row(const AdapterFactors& adapter, std::int64_t begin, std::span<const float> values, const Take& take) {
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
      for (std::int64_t i = 0; i < count; ++i)
        sums[static_cast<std::size_t>(i)] += factor * static_cast<double>(other[i]);
    }
    const float* weights = values.data() + (at - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const double v = static_cast<double>(weights[i]) + adapter.scale * sums[static_cast<std::size_t>(i)];
      take(static_cast<std::size_t>(at - begin + i), static_cast<std::size_t>(adapter.in_first ? first + i : row), v);
    }
    at += count;
  }
}

}  // namespace

void merge_adapter(const AdapterFactors& adapter, std::int64_t begin, std::span<float> values) {
  const bool has_factors = !adapter.output_factors.empty();
  require(!has_factors || std::ssize(adapter.output_factors) == adapter.out, "invalid_argument",
          "an adapter has a factor for each output");
  for_each_row(adapter, begin, values, [&](std::size_t at, std::size_t output, double v) {
    values[at] = static_cast<float>(has_factors ? v * adapter.output_factors[output] : v);
  });
}

void add_output_squares(const AdapterFactors& adapter, std::int64_t begin, std::span<const float> values,
                        std::span<double> sums) {
  require(std::ssize(sums) == adapter.out, "invalid_argument", "there is a sum of squares for each output");
  for_each_row(adapter, begin, values, [&](std::size_t, std::size_t output, double v) { sums[output] += v * v; });
}

}  // namespace zerofleet
