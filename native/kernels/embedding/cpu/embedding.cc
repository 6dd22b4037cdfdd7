#include "kernels/embedding/embedding.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/simd/add_rows.h"
#include "kernels/gemm/simd/gemm.h"

namespace zerofleet::cpu {
namespace {

constexpr std::int64_t kTableRowsPerTask = 256;

/// Positions sorted by token, equal tokens in rising position: those of token t are order[first[t]] … order[first[t +
/// 1]].
struct ByToken {
  std::vector<std::size_t> first;
  std::vector<std::int64_t> order;
};

ByToken sort_by_token(const Indices& tokens, std::int64_t vocab_size) {
  ByToken sorted{std::vector<std::size_t>(static_cast<std::size_t>(vocab_size) + 1),
                 std::vector<std::int64_t>(tokens.size())};
  for (const std::int32_t token : tokens) ++sorted.first[static_cast<std::size_t>(token) + 1];
  for (std::size_t token = 0; token + 1 < sorted.first.size(); ++token) sorted.first[token + 1] += sorted.first[token];
  std::vector<std::size_t> next = sorted.first;
  for (std::size_t position = 0; position < tokens.size(); ++position) {
    sorted.order[next[static_cast<std::size_t>(tokens[position])]++] = static_cast<std::int64_t>(position);
  }
  return sorted;
}

template <class T>
T rounded(float value) {
  if constexpr (std::is_same_v<T, bf16>) return to_bf16(value);
  if constexpr (std::is_same_v<T, f16>) return to_f16(value);
  if constexpr (std::is_same_v<T, float>) return value;
}

/// fp32 words are widened elements, so that rounding them is exact.
template <class T>
void copy_words(const std::uint32_t* words, std::int64_t k, void* target) {
  for (std::int64_t i = 0; i < k; ++i) static_cast<T*>(target)[i] = rounded<T>(std::bit_cast<float>(words[i * kPanel]));
}

/// Copies the column whose first word is given to elements of the table's dtype.
void copy_column(const PackedMatrix& table, const std::uint32_t* words, void* target) {
  if (table.pairs()) {
    for (std::int64_t step = 0; step < table.steps(); ++step) {
      const std::int64_t num_bytes = std::min<std::int64_t>(2, table.k() - 2 * step) * 2;
      std::memcpy(static_cast<std::byte*>(target) + 4 * step, words + step * kPanel,
                  static_cast<std::size_t>(num_bytes));
    }
    return;
  }
  switch (table.dtype()) {
    case DType::kF32:
      return copy_words<float>(words, table.k(), target);
    case DType::kBF16:
      return copy_words<bf16>(words, table.k(), target);
    case DType::kF16:
      return copy_words<f16>(words, table.k(), target);
  }
}

}  // namespace

void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows) {
  const std::size_t row_bytes = static_cast<std::size_t>(table.cols) * size_of(table.dtype);
  for_row_chunks(ctx, rows.rows, [&](std::int64_t begin, std::int64_t count) {
    for (std::int64_t row = begin; row < begin + count; ++row) {
      std::memcpy(rows.at(row, 0), table.at(tokens[static_cast<std::size_t>(row)], 0), row_bytes);
    }
  });
}

void packed_embedding(const Context& ctx, const PackedMatrix& table, const Indices& tokens, const Matrix& rows) {
  for_row_chunks(ctx, rows.rows, [&](std::int64_t begin, std::int64_t count) {
    for (std::int64_t row = begin; row < begin + count; ++row) {
      const std::int64_t token = tokens[static_cast<std::size_t>(row)];
      copy_column(table, table.words() + token / kPanel * table.panel_stride() + token % kPanel, rows.at(row, 0));
    }
  });
}

void embedding_backward(const Context& ctx, const Indices& tokens, const PositionGroups&, const ConstMatrix& drows,
                        const Matrix& dtable, bool accumulate) {
  const auto add = ZF_PICK_KERNEL(ctx.cpu_isa, add_row);
  const ByToken sorted = sort_by_token(tokens, dtable.rows);
  const std::int64_t num_tasks = (dtable.rows + kTableRowsPerTask - 1) / kTableRowsPerTask;
  ctx.pool->parallel_for(num_tasks, [&](std::int64_t task, int) {
    const std::int64_t end = std::min(dtable.rows, (task + 1) * kTableRowsPerTask);
    for (std::int64_t token = task * kTableRowsPerTask; token < end; ++token) {
      auto* target = static_cast<float*>(dtable.at(token, 0));
      if (!accumulate) std::fill_n(target, dtable.cols, 0.0F);
      for (std::size_t i = sorted.first[static_cast<std::size_t>(token)];
           i < sorted.first[static_cast<std::size_t>(token) + 1]; ++i) {
        add(target, drows.at(sorted.order[i], 0), dtable.cols, drows.dtype);
      }
    }
  });
}

}  // namespace zerofleet::cpu
