#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kernels/gemm/packed_matrix.h"
#include "model/common/transit.h"
#include "model/layers/dropout.h"
#include "model/layers/norm.h"

namespace zerofleet {

/// Input of the first layer: the embedding of each token, plus that of its position if positions are learned.
class TokenEmbedding {
 public:
  TokenEmbedding(const ModelContext& model, const ParamTable& table);

  void bind(ParamPointers params) { params_ = params; }
  /// Reads tokens from the output projection that they are tied to, which must stay where it is. (D, V)
  void bind_packed(const PackedMatrix* tokens) { packed_ = tokens; }

  /// `input` (M, D) is where the first layer's input belongs; the stream is there already, or is made there with the
  /// first layer's norm from `tokens_part` and `added` (M, D).
  Residual forward(const ModelContext& model, const Pass& pass, const Indices& tokens, const Matrix& input,
                   const Matrix& tokens_part, const Matrix& added) const;

  /// Work space of the backward; the gradient of the tokens' table is shared with the output projection.
  struct Work {
    /// For passes of that many rows.
    Work(const ModelContext& model, const ParamTable& table, std::int64_t rows);
    std::size_t num_bytes() const { return bytes_of(dtokens, dpositions); }

    Tensor dtokens;     // (V, D) fp32, unless the tokens' table and the output projection are frozen
    Tensor dpositions;  // (max_position_embeddings, D) fp32, with learned positions that are trained
    GroupUpload same_tokens, same_positions;
  };

  /// dstream: (M, D) gradient of the first layer's input, overwritten. With tied embeddings the gradient of the tokens'
  /// table is added to the contents of work.dtokens.
  void backward(const ModelContext& model, const Pass& pass, const Indices& tokens, const Matrix& dstream, Work& work,
                GradSink& sink) const;

 private:
  ConstMatrix matrix(const ModelContext& model, std::size_t param, std::int64_t rows) const;

  std::size_t tokens_;
  std::optional<std::size_t> positions_;
  double scale_;  // of the tokens' part
  Dropout dropout_;
  ParamPointers params_;
  const PackedMatrix* packed_ = nullptr;  // null: tokens are read from params_
};

}  // namespace zerofleet
