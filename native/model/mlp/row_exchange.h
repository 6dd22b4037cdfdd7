#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/stream.h"
#include "kernels/common/matrix.h"
#include "kernels/moe/moe.h"
#include "model/common/tensor.h"
#include "model/common/values.h"
#include "model/mlp/expert_exchange.h"

namespace zerofleet {

/// Source and destination of a layer's rows. A rank's rows are its leaf's (token, choice) pairs, sorted by expert as in
/// ExpertGroups. An expert's rows are those of all P leaves, leaf by leaf in their order. So its products don't depend
/// on which ranks compute the leaves.
struct RowPlan {
  std::vector<Range> sent;      // (P) rows of this rank's leaf for each set
  std::vector<Range> received;  // (P) rows of each leaf for this rank's set, as they arrive
  std::vector<std::int64_t>
      first;  // (E/P + 1) the rows of own expert e, all leaves together, are [first[e], first[e + 1])
  std::vector<std::int64_t> counts;  // (P, E/P) of these, by leaf
  // The same in memory of a CUDA device, as RowOrder has it:
  Values<std::int32_t> device_first;  // (E/P + 1)
  Values<std::int32_t> orders;        // (2, at least R) how the rows arrived, and how they are wanted

  std::int64_t num_rows() const { return first.back(); }
  std::size_t num_bytes() const;
};

/// Carries rows of leaves to the ranks that hold their experts, and back. The number of rows per destination is part of
/// a transport's call. So on a CUDA device plan() waits on the host for the router's choices, once for each layer's
/// forward.
class RowExchange {
 public:
  /// `ranks` must outlive the object. Throws Error{"invalid_argument"} where the sets don't divide the experts, or
  /// there is one only, which needs no exchange.
  RowExchange(const Context& ctx, ExpertExchange& ranks, std::int64_t num_experts);

  /// The experts that this rank holds.
  const Range& experts() const { return experts_; }

  /// Sends the other ranks the number of rows that this one has for each of their experts, and makes `plan` of the
  /// numbers received. It may be an earlier plan, whose memory is reused.
  void plan(const ExpertGroups& groups, RowPlan& plan);
  /// leaf_rows: (rows of this rank's leaf, D); expert_rows: (num_rows(), D) is overwritten.
  void to_experts(const RowPlan& plan, const Matrix& leaf_rows, const Matrix& expert_rows);
  /// The way back: leaf_rows is overwritten.
  void to_leaves(const RowPlan& plan, const Matrix& expert_rows, const Matrix& leaf_rows);

  /// Room for the rows of this rank's experts, (rows, cols), shared by all layers; valid until the next call.
  Matrix room(DType dtype, std::int64_t rows, std::int64_t cols);

  /// 2·R·row(D), where R is the most rows of this rank's experts so far: those in transit, and room(); on a CUDA device
  /// 8·E more.
  std::size_t num_bytes() const { return wire_.num_bytes() + room_.num_bytes() + counts_.num_bytes(); }

 private:
  void tell_counts(std::span<const std::int64_t> mine, RowPlan& plan);
  std::vector<std::int64_t> tell_counts_of_device(const ExpertGroups& groups, RowPlan& plan);
  void put_in_order(RowPlan& plan);
  void swap(const Matrix& send, std::span<const Range> send_rows, const Matrix& recv, std::span<const Range> recv_rows);

  Context ctx_;
  ExpertExchange& ranks_;
  Range experts_;
  Tensor wire_;  // rows as they arrive and leave: leaf by leaf, each sorted by expert
  Tensor room_;
  // On a CUDA device:
  Values<std::int32_t> counts_;  // (E) rows of the leaf for each expert, (P, E/P) rows of each leaf for own experts
  Buffer counts_here_;           // the same in pinned memory of the host
  Event counts_came_;
};

/// A tensor of at least (rows, cols): `tensor` itself, reallocated where it has too few rows. Its contents are lost
/// then. On a CUDA device it grows by an eighth more than it must, because growing waits for all work of the device.
Matrix grown(const Context& ctx, Tensor& tensor, DType dtype, std::int64_t rows, std::int64_t cols);

}  // namespace zerofleet
