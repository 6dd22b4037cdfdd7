#include "model/row_exchange.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/transfer.h"

namespace zerofleet {
namespace {

std::int64_t row_bytes(const Matrix& matrix) { return matrix.stride * static_cast<std::int64_t>(size_of(matrix.dtype)); }

/// Whole rows as bytes, with what lies between them.
std::vector<Range> bytes_of_rows(const Matrix& matrix, std::span<const Range> rows) {
  std::vector<Range> ranges;
  for (const Range& range : rows) ranges.push_back({range.begin * row_bytes(matrix), range.end * row_bytes(matrix)});
  return ranges;
}

std::span<std::byte> all_bytes(const Matrix& matrix) {
  return {static_cast<std::byte*>(matrix.data), static_cast<std::size_t>(matrix.rows * row_bytes(matrix))};
}

void copy_rows(const Context& ctx, const Matrix& from, std::int64_t from_row, const Matrix& to, std::int64_t to_row,
               std::int64_t count) {
  const auto num_bytes = static_cast<std::size_t>(count * row_bytes(from));
  copy_bytes(ctx, {static_cast<std::byte*>(to.at(to_row, 0)), num_bytes},
             {static_cast<const std::byte*>(from.at(from_row, 0)), num_bytes});
}

/// Calls visit(row on the wire, row among the experts' rows, rows) for each run of rows of one leaf and one expert.
template <class Visit>
void for_each_run(const RowPlan& plan, const Visit& visit) {
  const std::size_t num_leaves = plan.received.size(), num_experts = plan.first.size() - 1;
  std::vector<std::int64_t> next(plan.first.begin(), plan.first.end() - 1);
  std::int64_t on_wire = 0;
  for (std::size_t leaf = 0; leaf < num_leaves; ++leaf) {
    for (std::size_t expert = 0; expert < num_experts; ++expert) {
      const std::int64_t count = plan.counts[leaf * num_experts + expert];
      visit(on_wire, next[expert], count);
      on_wire += count;
      next[expert] += count;
    }
  }
}

}  // namespace

// 8·(4·P + E + E/P + 1)
std::size_t RowPlan::num_bytes() const {
  return (sent.size() + received.size()) * sizeof(Range) + (first.size() + counts.size()) * sizeof(std::int64_t);
}

RowExchange::RowExchange(const Context& ctx, ExpertExchange& ranks, std::int64_t num_experts) : ctx_(ctx), ranks_(ranks) {
  const std::int64_t num_sets = ranks.num_sets(), set = ranks.set();
  require(num_sets > 1 && num_experts > 0 && num_experts % num_sets == 0 && set >= 0 && set < num_sets,
          "invalid_argument",
          "set " + std::to_string(set) + " of " + std::to_string(num_sets) + " cannot be one of equal parts of " +
              std::to_string(num_experts) + " experts");
  const std::int64_t per_set = num_experts / num_sets;
  experts_ = {set * per_set, (set + 1) * per_set};
}

RowPlan RowExchange::plan(std::span<const std::int64_t> first) {
  const auto num_sets = static_cast<std::size_t>(ranks_.num_sets());
  const auto per_set = static_cast<std::size_t>(experts_.size());
  RowPlan plan;
  std::vector<std::int64_t> mine;
  for (std::size_t expert = 0; expert + 1 < first.size(); ++expert) mine.push_back(first[expert + 1] - first[expert]);
  plan.counts.resize(mine.size());
  std::vector<Range> pieces;
  for (std::size_t set = 0; set < num_sets; ++set) {
    plan.sent.push_back({first[set * per_set], first[(set + 1) * per_set]});
    const auto bytes = static_cast<std::int64_t>(per_set * sizeof(std::int64_t)), number = static_cast<std::int64_t>(set);
    pieces.push_back({number * bytes, (number + 1) * bytes});
  }
  ranks_.all_to_all(std::as_bytes(std::span(mine)), pieces, std::as_writable_bytes(std::span(plan.counts)), pieces);
  std::int64_t arrived = 0;
  for (std::size_t leaf = 0; leaf < num_sets; ++leaf) {
    const std::int64_t begin = arrived;
    for (std::size_t expert = 0; expert < per_set; ++expert) arrived += plan.counts[leaf * per_set + expert];
    plan.received.push_back({begin, arrived});
  }
  plan.first.push_back(0);
  for (std::size_t expert = 0; expert < per_set; ++expert) {
    std::int64_t end = plan.first.back();
    for (std::size_t leaf = 0; leaf < num_sets; ++leaf) end += plan.counts[leaf * per_set + expert];
    plan.first.push_back(end);
  }
  return plan;
}

void RowExchange::to_experts(const RowPlan& plan, const Matrix& leaf_rows, const Matrix& expert_rows) {
  const Matrix wire = grown(ctx_, wire_, leaf_rows.dtype, plan.num_rows(), leaf_rows.cols);
  swap(leaf_rows, plan.sent, wire, plan.received);
  for_each_run(plan, [&](std::int64_t on_wire, std::int64_t of_expert, std::int64_t count) {
    copy_rows(ctx_, wire, on_wire, expert_rows, of_expert, count);
  });
}

void RowExchange::to_leaves(const RowPlan& plan, const Matrix& expert_rows, const Matrix& leaf_rows) {
  const Matrix wire = grown(ctx_, wire_, leaf_rows.dtype, plan.num_rows(), leaf_rows.cols);
  for_each_run(plan, [&](std::int64_t on_wire, std::int64_t of_expert, std::int64_t count) {
    copy_rows(ctx_, expert_rows, of_expert, wire, on_wire, count);
  });
  swap(wire, plan.received, leaf_rows, plan.sent);
}

Matrix RowExchange::room(DType dtype, std::int64_t rows, std::int64_t cols) {
  return grown(ctx_, room_, dtype, rows, cols);
}

void RowExchange::swap(const Matrix& send, std::span<const Range> send_rows, const Matrix& recv,
                       std::span<const Range> recv_rows) {
  require(send.stride == recv.stride && send.dtype == recv.dtype, "internal", "rows that are exchanged are laid out alike");
  synchronize(ctx_);  // communicators read what they are given at once
  ranks_.all_to_all(all_bytes(send), bytes_of_rows(send, send_rows), all_bytes(recv), bytes_of_rows(recv, recv_rows));
}

Matrix grown(const Context& ctx, Tensor& tensor, DType dtype, std::int64_t rows, std::int64_t cols) {
  const std::int64_t at_least = std::max<std::int64_t>(rows, 1);
  if (tensor.view().rows < at_least || tensor.view().cols != cols) tensor = Tensor(ctx, dtype, at_least, cols);
  return tensor.first_rows(rows);
}

}  // namespace zerofleet
