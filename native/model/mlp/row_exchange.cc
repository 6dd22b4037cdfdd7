#include "model/mlp/row_exchange.h"

#include <algorithm>
#include <string>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/moe/row_order.h"

namespace zerofleet {
namespace {

std::int64_t row_bytes(const Matrix& matrix) {
  return matrix.stride * static_cast<std::int64_t>(size_of(matrix.dtype));
}

/// Whole rows as bytes, with the gaps between them.
std::vector<Range> bytes_of_rows(const Matrix& matrix, std::span<const Range> rows) {
  std::vector<Range> ranges;
  for (const Range& range : rows) ranges.push_back(scaled(range, row_bytes(matrix)));
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

bool on_device(const Context& ctx) { return ctx.device.kind != DeviceKind::kCpu; }

/// A number of one size for each expert, of which those of one set are neighbours.
std::vector<Range> pieces_of_sets(std::int64_t num_sets, std::int64_t per_set, std::size_t width) {
  const std::int64_t bytes = per_set * static_cast<std::int64_t>(width);
  std::vector<Range> pieces;
  for (std::int64_t set = 0; set < num_sets; ++set) pieces.push_back({set * bytes, (set + 1) * bytes});
  return pieces;
}

std::int64_t with_reserve(std::int64_t rows) { return rows + rows / 8; }

/// Both orders lie in memory that may have room for more rows.
template <class Numbers>
Numbers arrived_of(Numbers orders, std::int64_t rows) {
  return orders.first(static_cast<std::size_t>(rows));
}
template <class Numbers>
Numbers wanted_of(Numbers orders, std::int64_t rows) {
  return orders.last(orders.size() / 2).first(static_cast<std::size_t>(rows));
}

}  // namespace

// 8·(4·P + E + E/P + 1); on a CUDA device 8·R + 4·(E/P + 1) of its memory more
std::size_t RowPlan::num_bytes() const {
  return (sent.size() + received.size()) * sizeof(Range) + (first.size() + counts.size()) * sizeof(std::int64_t) +
         device_first.num_bytes() + orders.num_bytes();
}

RowExchange::RowExchange(const Context& ctx, ExpertExchange& ranks, std::int64_t num_experts)
    : ctx_(ctx), ranks_(ranks), counts_came_(ctx.device) {
  const std::int64_t num_sets = ranks.num_sets(), set = ranks.set();
  require(num_sets > 1 && num_experts > 0 && num_experts % num_sets == 0 && set >= 0 && set < num_sets,
          "invalid_argument",
          "set " + std::to_string(set) + " of " + std::to_string(num_sets) + " cannot be one of equal parts of " +
              std::to_string(num_experts) + " experts");
  const std::int64_t per_set = num_experts / num_sets;
  experts_ = {set * per_set, (set + 1) * per_set};
  if (!on_device(ctx)) return;
  counts_ = Values<std::int32_t>(ctx, 2 * num_experts);
  counts_here_ = Buffer::on_host_for(ctx.device, counts_.num_bytes());
}

void RowExchange::plan(const ExpertGroups& groups, RowPlan& plan) {
  std::vector<std::int64_t> mine;
  if (on_device(ctx_)) {
    mine = tell_counts_of_device(groups, plan);
  } else {
    for (std::size_t e = 0; e + 1 < groups.first.size(); ++e) mine.push_back(groups.first[e + 1] - groups.first[e]);
    tell_counts(mine, plan);
  }
  const auto num_sets = static_cast<std::size_t>(ranks_.num_sets());
  const auto per_set = static_cast<std::size_t>(experts_.size());
  plan.sent.assign(num_sets, {});
  plan.received.assign(num_sets, {});
  plan.first.assign(per_set + 1, 0);
  std::int64_t sent = 0, arrived = 0;
  for (std::size_t set = 0; set < num_sets; ++set) {
    plan.sent[set].begin = sent;
    plan.received[set].begin = arrived;
    for (std::size_t expert = 0; expert < per_set; ++expert) {
      const std::int64_t count = plan.counts[set * per_set + expert];
      sent += mine[set * per_set + expert];
      arrived += count;
      plan.first[expert + 1] += count;
    }
    plan.sent[set].end = sent;
    plan.received[set].end = arrived;
  }
  for (std::size_t expert = 0; expert < per_set; ++expert) plan.first[expert + 1] += plan.first[expert];
  if (on_device(ctx_)) put_in_order(plan);
}

void RowExchange::tell_counts(std::span<const std::int64_t> mine, RowPlan& plan) {
  const std::vector<Range> pieces = pieces_of_sets(ranks_.num_sets(), experts_.size(), sizeof(std::int64_t));
  plan.counts.resize(mine.size());
  ranks_.all_to_all(std::as_bytes(mine), pieces, std::as_writable_bytes(std::span(plan.counts)), pieces);
}

/// Numbers go from device to device, and with those of the other ranks to the host in one copy.
std::vector<std::int64_t> RowExchange::tell_counts_of_device(const ExpertGroups& groups, RowPlan& plan) {
  const std::size_t num_experts = counts_.span().size() / 2;
  const std::span<std::int32_t> mine = counts_.span().first(num_experts), theirs = counts_.span().last(num_experts);
  require(groups.device_first != nullptr, "internal", "rows of experts are grouped on the host");
  count_rows(ctx_, {groups.device_first, num_experts + 1}, mine);
  const std::vector<Range> pieces = pieces_of_sets(ranks_.num_sets(), experts_.size(), sizeof(std::int32_t));
  ranks_.all_to_all(std::as_bytes(mine), pieces, std::as_writable_bytes(theirs), pieces);
  Stream& stream = stream_of(ctx_);
  queue_copy(stream, {counts_here_.data(), counts_here_.num_bytes()}, counts_.bytes());
  counts_came_.record(stream);
  counts_came_.synchronize();
  const std::span<const std::int32_t> here = counts_here_.as<std::int32_t>();
  plan.counts.assign(here.begin() + static_cast<std::ptrdiff_t>(num_experts), here.end());
  return {here.begin(), here.begin() + static_cast<std::ptrdiff_t>(num_experts)};
}

void RowExchange::put_in_order(RowPlan& plan) {
  const std::int64_t rows = plan.num_rows(), has = static_cast<std::int64_t>(plan.orders.span().size()) / 2;
  require(rows <= INT32_MAX / 2, "invalid_argument", "experts: too many rows for one rank");
  if (plan.device_first.num_bytes() == 0) plan.device_first = Values<std::int32_t>(ctx_, experts_.size() + 1);
  if (has < rows) {
    plan.orders = {};
    plan.orders = Values<std::int32_t>(ctx_, 2 * (has == 0 ? rows : with_reserve(rows)));
  }
  order_rows(ctx_, counts_.span().last(counts_.span().size() / 2),
             {plan.device_first.span(), arrived_of(plan.orders.span(), rows), wanted_of(plan.orders.span(), rows)});
}

void RowExchange::to_experts(const RowPlan& plan, const Matrix& leaf_rows, const Matrix& expert_rows) {
  const Matrix wire = grown(ctx_, wire_, leaf_rows.dtype, plan.num_rows(), leaf_rows.cols);
  swap(leaf_rows, plan.sent, wire, plan.received);
  if (on_device(ctx_)) return pick_rows(ctx_, wire, arrived_of(plan.orders.span(), plan.num_rows()), expert_rows);
  for_each_run(plan, [&](std::int64_t on_wire, std::int64_t of_expert, std::int64_t count) {
    copy_rows(ctx_, wire, on_wire, expert_rows, of_expert, count);
  });
}

void RowExchange::to_leaves(const RowPlan& plan, const Matrix& expert_rows, const Matrix& leaf_rows) {
  const Matrix wire = grown(ctx_, wire_, leaf_rows.dtype, plan.num_rows(), leaf_rows.cols);
  if (on_device(ctx_)) {
    pick_rows(ctx_, expert_rows, wanted_of(plan.orders.span(), plan.num_rows()), wire);
  } else {
    for_each_run(plan, [&](std::int64_t on_wire, std::int64_t of_expert, std::int64_t count) {
      copy_rows(ctx_, expert_rows, of_expert, wire, on_wire, count);
    });
  }
  swap(wire, plan.received, leaf_rows, plan.sent);
}

Matrix RowExchange::room(DType dtype, std::int64_t rows, std::int64_t cols) {
  return grown(ctx_, room_, dtype, rows, cols);
}

void RowExchange::swap(const Matrix& send, std::span<const Range> send_rows, const Matrix& recv,
                       std::span<const Range> recv_rows) {
  require(send.stride == recv.stride && send.dtype == recv.dtype, "internal",
          "rows that are exchanged are laid out alike");
  ranks_.all_to_all(all_bytes(send), bytes_of_rows(send, send_rows), all_bytes(recv), bytes_of_rows(recv, recv_rows));
}

Matrix grown(const Context& ctx, Tensor& tensor, DType dtype, std::int64_t rows, std::int64_t cols) {
  const std::int64_t at_least = std::max<std::int64_t>(rows, 1), has = tensor.view().rows;
  if (has >= at_least && tensor.view().cols == cols) return tensor.first_rows(rows);
  tensor = Tensor();  // first, so that there need not be room for both
  tensor = Tensor(ctx, dtype, has > 0 && on_device(ctx) ? with_reserve(at_least) : at_least, cols);
  return tensor.first_rows(rows);
}

}  // namespace zerofleet
