#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/matrix.h"
#include "model/expert_exchange.h"
#include "model/tensor.h"

namespace zerofleet {

/// Which rows of one layer go where. A rank's rows are its leaf's (token, choice) pairs, sorted by expert as in
/// ExpertGroups; an expert's rows are those of all P leaves, leaf by leaf in their order, so that its products don't
/// depend on which ranks compute the leaves.
struct RowPlan {
  std::vector<Range> sent;           // (P) rows of this rank's leaf for each set
  std::vector<Range> received;       // (P) rows of each leaf for this rank's set, as they arrive
  std::vector<std::int64_t> first;   // (E/P + 1) the rows of own expert e, all leaves together, are [first[e], first[e + 1])
  std::vector<std::int64_t> counts;  // (P, E/P) of these, by leaf

  std::int64_t num_rows() const { return first.back(); }
  std::size_t num_bytes() const;
};

/// Carries rows of leaves to the ranks that hold their experts, and back.
class RowExchange {
 public:
  /// `ranks` must outlive the object. Throws Error{"invalid_argument"} where the sets don't divide the experts, or there
  /// is one only, which needs no exchange.
  RowExchange(const Context& ctx, ExpertExchange& ranks, std::int64_t num_experts);

  /// The experts that this rank holds.
  const Range& experts() const { return experts_; }

  /// Tells the other ranks how many rows this one has for each of their experts. first: (E + 1) as in ExpertGroups.
  RowPlan plan(std::span<const std::int64_t> first);
  /// leaf_rows: (rows of this rank's leaf, D); expert_rows: (num_rows(), D) is overwritten.
  void to_experts(const RowPlan& plan, const Matrix& leaf_rows, const Matrix& expert_rows);
  /// The way back: leaf_rows is overwritten.
  void to_leaves(const RowPlan& plan, const Matrix& expert_rows, const Matrix& leaf_rows);

  /// Room for the rows of this rank's experts, (rows, cols), shared by all layers; valid until the next call.
  Matrix room(DType dtype, std::int64_t rows, std::int64_t cols);

  /// 2·R·row(D), where R is the most rows of this rank's experts so far: those on their way, and room().
  std::size_t num_bytes() const { return wire_.num_bytes() + room_.num_bytes(); }

 private:
  void swap(const Matrix& send, std::span<const Range> send_rows, const Matrix& recv, std::span<const Range> recv_rows);

  Context ctx_;
  ExpertExchange& ranks_;
  Range experts_;
  Tensor wire_;  // rows as they arrive and leave: leaf by leaf, each sorted by expert
  Tensor room_;
};

/// A tensor of at least (rows, cols): `tensor` itself, made anew where it has too few rows.
Matrix grown(const Context& ctx, Tensor& tensor, DType dtype, std::int64_t rows, std::int64_t cols);

}  // namespace zerofleet
