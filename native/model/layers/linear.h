#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_matrix.h"
#include "model/common/block.h"
#include "model/layers/linear_adapter.h"

namespace zerofleet {

class Linear;

/// The gradients of one Linear's parameters, and the operand of their products. All layers share this memory.
/// Parameters that are frozen in every layer take none.
struct LinearGradients {
  /// `spare`: an operand that is free while this one is used; it serves where its shape fits. May be null.
  LinearGradients(const ModelContext& model, const Linear& linear, std::int64_t rows_of_pass,
                  std::shared_ptr<PackedMatrix> spare = nullptr);
  std::size_t num_bytes() const;

  std::int64_t rows;                      // computed at once: R, or where the number varies M
  DType dtype;                            // of the weights' gradients; products of several parts add up in fp32
  bool any_weight = false;                // that is trained
  std::vector<Tensor> weights;            // shapes of the parameters, for gradients without room in the sink
  std::vector<Matrix> targets;            // of the current pass: room in the sink, or `weights`
  std::vector<Values<float>> biases;      // (out) of each matrix that has one
  std::shared_ptr<PackedMatrix> operand;  // (R, in), or (R, out) for weights that are stored as (in, out)
  bool is_spare = false;                  // belongs to another object
  AdapterGradients adapter;
  Tensor dlow;  // (R, low_size()) gradient of the adapter's low-rank rows
};

/// y = x Wᵀ + bias for one or more matrices with the same input, whose outputs are adjacent columns of y. Adapters add
/// their terms: the layer's own adapter, or a served adapter of each row (Pass::adapted). `low`: the adapter's low-rank
/// rows, kept from forward to backward; empty without an adapter.
class Linear {
 public:
  /// Number of rows of x: the same in every call, or varying.
  enum class RowCount : std::uint8_t { kFixed, kVaries };

  /// ModelContext::weights decides about copies, in each call. Where the number of rows varies, there are always
  /// copies. Quantized matrices have no copy of their elements: products restore them from the codes. Where products
  /// read the smallest words, these are packed codes.
  /// Throws Error{"invalid_model_config"} where some of the matrices are quantized and others are not.
  Linear(const ModelContext& model, LinearSpecs specs, std::int64_t in, RowCount rows = RowCount::kFixed);

  std::int64_t in() const { return in_; }
  std::int64_t out() const { return out_; }
  const LinearAdapter& adapter() const { return adapter_; }

  /// The packed copies: of the forward from the beginning, or from the first request of a model that reads copies until
  /// that of one that does not; of the backward from the first request on.
  void request_forward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  void request_backward(const ModelContext& model, ParamPointers params, std::vector<PackRequest>& requests);
  std::size_t packed_bytes() const;

  /// x: (M, in); y: (M, out). With an epilogue only for one matrix.
  void forward(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y, const Tensor& low,
               const GemmEpilogue& epilogue = {}) const;
  /// forward() in two steps: first what the backward reads, then y.
  void forward_low(const ModelContext& model, const Pass& pass, const Matrix& x, const Tensor& low) const;
  void forward_from_low(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y,
                        const Tensor& low) const;
  /// Computes the outputs separately: (M, out of each matrix).
  void forward(const ModelContext& model, const Pass& pass, const Matrix& x, std::span<const Matrix> ys,
               const Tensor& low) const;

  /// dx is overwritten; the epilogue is of its product. Emits the gradients from the last matrix to the first;
  /// those of frozen parameters are not computed. With Pass::part they are emitted after the last part.
  struct Backward {
    Matrix x;   // (M, in) of the forward
    Matrix dy;  // (M, out)
    Matrix dx;  // (M, in)
    GemmEpilogue epilogue = {};
  };
  void backward(const ModelContext& model, const Pass& pass, const Backward& args, const Tensor& low,
                LinearGradients& grads, GradSink& sink) const;

  /// Appends the products of forward() and backward(), without those of adapters, so that one gemm() computes several
  /// of these. The `row_range` is as in GemmProblem: the rows of both matrices that take part.
  void add_forward(const ModelContext& model, const Matrix& x, const Matrix& y, std::vector<GemmProblem>& problems,
                   const std::int32_t* row_range = nullptr) const;
  void add_input_gradient(const ModelContext& model, const Matrix& dy, const Matrix& dx,
                          std::vector<GemmProblem>& problems, const std::int32_t* row_range = nullptr) const;
  /// The rest of backward(), without dropout. With a row_range not for those with a bias.
  void weight_gradients(const ModelContext& model, const LinearAdapter::Backward& args, LinearGradients& grads,
                        GradSink& sink, const std::int32_t* row_range = nullptr) const;
  /// The backward where there was no row: emits zeros.
  void no_gradient(const ModelContext& model, LinearGradients& grads, GradSink& sink) const;

 private:
  friend struct LinearGradients;
  void emit_part(const ModelContext& model, std::size_t part, LinearGradients& grads, GradSink& sink) const;
  void adapt_rows(const ModelContext& model, const Pass& pass, const Matrix& x, const Matrix& y,
                  const GemmEpilogue& epilogue = {}) const;
  /// Returns whether products of the model read packed copies.
  bool reads_copies(const ModelContext& model) const;
  void make_copies(const ModelContext& model);
  GemmProblem output(const ModelContext& model, std::size_t part, const Matrix& x, const Matrix& y) const;
  void add_weight_gradients(const ModelContext& model, const Matrix& x, const Matrix& dy, const RowPart& rows,
                            LinearGradients& grads, GradSink& sink, std::vector<GemmProblem>& problems) const;
  void find_room(const ModelContext& model, LinearGradients& grads, GradSink& sink) const;
  void backward_of_part(const ModelContext& model, const Pass& pass, const Backward& args, const Matrix& low,
                        LinearGradients& grads, GradSink& sink) const;
  void add_bias_gradients(const ModelContext& model, const Matrix& dy, const RowPart& rows,
                          LinearGradients& grads) const;
  void emit_all(const ModelContext& model, LinearGradients& grads, GradSink& sink) const;
  void add_parameter(const ModelContext& model, ParamPointers params, const LinearSpec& spec,
                     SourceOperand& source) const;

  LinearSpecs specs_;
  WeightLayout layout_;
  std::int64_t in_ = 0, out_ = 0;
  RowCount rows_;
  bool is_quantized_;
  LinearAdapter adapter_;
  std::vector<const void*> biases_;            // (out) of each matrix, or null
  std::vector<PackedMatrix> packed_forward_;   // (in, out) of each matrix; empty without copies
  std::vector<PackedCodes> codes_;             // the same of quantized ones
  PackedMatrix packed_backward_;               // (out, in), one after the other in k
  std::vector<SourceOperand> source_forward_;  // the same as they lie in memory
  SourceOperand source_backward_;
};

}  // namespace zerofleet
