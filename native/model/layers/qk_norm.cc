#include "model/layers/qk_norm.h"

#include "kernels/norm/head_norm.h"

namespace zerofleet {
namespace {

/// Statistics of the norms of x, of which there may be fewer rows than room was made for.
template <class Values>
auto stats_of(Values& values, const ConstMatrix& x, std::int64_t norm_size) {
  return values.first(x.rows * x.cols / norm_size);
}

}  // namespace

QkNorm::Kept::Kept(const ModelContext& model, std::int64_t rows)
    : raw(model.tensor(rows, model.config.query_size() + model.config.key_value_size())),
      query_rstd(model.ctx, rows * (model.config.query_size() / model.config.query_norm_size())),
      key_rstd(model.ctx, rows * (model.config.key_value_size() / model.config.key_norm_size())) {}

// M · row(Q + KV) + 4·M · (H + key/value heads), or 8·M in the last term with one norm for all heads
std::size_t QkNorm::Kept::num_bytes() const { return bytes_of(raw, query_rstd, key_rstd); }

void QkNorm::bind(ParamPointers params) {
  query_weight_ = params[spec_.query];
  key_weight_ = params[spec_.key];
}

void QkNorm::forward(const ModelContext& model, Kept& kept, const Matrix& qkv) const {
  const ModelConfig& c = model.config;
  const Matrix raw = kept.raw.first_rows(qkv.rows);
  const auto run = [&](std::int64_t begin, std::int64_t count, std::int64_t size, const void* weight,
                       Values<float>& rstd) {
    HeadNormForward args;
    args.x = raw.columns(begin, count);
    args.weight = weight;
    args.weight_offset = c.norm_offset;
    args.head_dim = size;
    args.eps = c.norm_eps;
    args.y = qkv.columns(begin, count);
    args.rstd = stats_of(rstd, qkv.columns(begin, count), size);
    head_norm(model.ctx, args);
  };
  run(0, c.query_size(), c.query_norm_size(), query_weight_, kept.query_rstd);
  run(c.query_size(), c.key_value_size(), c.key_norm_size(), key_weight_, kept.key_rstd);
}

// Makes 4 · values of a norm of work for each weight that is trained.
void QkNorm::backward(const ModelContext& model, const Kept& kept, const Matrix& dqkv, Work& work,
                      GradSink& sink) const {
  const ModelConfig& c = model.config;
  const auto run = [&](std::int64_t begin, std::int64_t count, std::int64_t size, const void* weight,
                       const Values<float>& rstd, std::size_t param, Values<float>& dweight) {
    HeadNormBackward args;
    args.dy = dqkv.columns(begin, count);
    args.x = kept.raw.first_rows(dqkv.rows).columns(begin, count);
    args.weight = weight;
    args.weight_offset = c.norm_offset;
    args.head_dim = size;
    args.rstd = stats_of(rstd, args.x, size);
    args.dx = dqkv.columns(begin, count);
    if (model.trains(param)) args.dweight = values_for(model, dweight, size);
    head_norm_backward(model.ctx, args);
    model.emit(param, args.dweight, sink);
  };
  run(c.query_size(), c.key_value_size(), c.key_norm_size(), key_weight_, kept.key_rstd, spec_.key, work.dkey);
  run(0, c.query_size(), c.query_norm_size(), query_weight_, kept.query_rstd, spec_.query, work.dquery);
}

}  // namespace zerofleet
