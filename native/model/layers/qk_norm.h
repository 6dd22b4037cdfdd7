#pragma once

#include <cstdint>
#include <span>

#include "model/common/block.h"

namespace zerofleet {

/// RMSNorm of queries and of keys before the rotation: of each head by itself, or of all together.
class QkNorm {
 public:
  explicit QkNorm(const QkNormSpec& spec) : spec_(spec) {}

  struct Kept {
    Kept(const ModelContext& model, std::int64_t rows);
    std::size_t num_bytes() const;

    Tensor raw;                          // (M, Q + KV) queries and keys before the norm
    Values<float> query_rstd, key_rstd;  // (norms of a row, M)
  };

  /// Each is empty until the backward of a norm that is trained.
  struct Work {
    Values<float> dquery, dkey;  // (values of a norm)
    std::size_t num_bytes() const { return bytes_of(dquery, dkey); }
  };

  void bind(ParamPointers params);

  /// From kept.raw to the first columns of qkv (M, QKV).
  void forward(const ModelContext& model, Kept& kept, const Matrix& qkv) const;
  /// In place over the first columns of dqkv (M, QKV).
  void backward(const ModelContext& model, const Kept& kept, const Matrix& dqkv, Work& work, GradSink& sink) const;

 private:
  QkNormSpec spec_;
  const void* query_weight_ = nullptr;
  const void* key_weight_ = nullptr;
};

}  // namespace zerofleet
