#include "model/transformer/loss_head.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/device/transfer.h"
#include "kernels/common/backend.h"
#include "kernels/elementwise/soft_cap.h"
#include "kernels/gemm/gemm.h"
#include "kernels/loss/cross_entropy.h"

namespace zerofleet {
namespace {

/// Returns the length of the chunks that divide `rows`: of at most max_bytes, but at least kRowUnit rows.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t row_bytes, std::int64_t max_bytes) {
  return part_rows(rows, std::max<std::int64_t>(1, max_bytes / row_bytes / kRowUnit) * kRowUnit);
}

Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t count) {
  return {matrix.data == nullptr ? nullptr : matrix.at(begin, 0), matrix.dtype, count, matrix.cols, matrix.stride};
}

}  // namespace

LogitRows logit_rows(const Device& device, std::int64_t vocab_size, DType dtype, std::int64_t max_rows) {
  const Backend& backend = backend_of(device);
  const std::int64_t logits_row = vocab_size * 4,
                     gradients_row = vocab_size * static_cast<std::int64_t>(size_of(dtype));
  const std::int64_t gradients = std::max(chunk_rows(max_rows, gradients_row, backend.max_logit_gradient_bytes),
                                          chunk_rows(max_rows, logits_row, backend.max_logits_bytes));
  return {chunk_rows(gradients, logits_row, backend.max_logits_bytes), gradients};
}

LossHead::LossHead(const ModelContext& model, std::int64_t max_rows)
    : LossHead(model, max_rows, logit_rows(model.ctx.device, model.config.vocab_size, model.dtype, max_rows)) {}

LossHead::LossHead(const ModelContext& model, std::int64_t max_rows, const LogitRows& rows,
                   std::shared_ptr<PackedMatrix> packed)
    : chunk_rows_(rows.gradients),
      forward_(packed ? std::move(packed)
                      : std::make_shared<PackedMatrix>(model.ctx, model.dtype, model.config.hidden_size,
                                                       model.config.vocab_size, model.packed_words)),
      logits_(model.ctx, DType::kF32, rows.logits, model.config.vocab_size),
      losses_(model.ctx, max_rows),
      max_rows_(max_rows) {}

void LossHead::pack(const ModelContext& model, const void* weight) {
  const ModelConfig& c = model.config;
  const ConstMatrix matrix{weight, model.dtype, c.vocab_size, c.hidden_size, c.hidden_size};
  const PackRequest request[] = {{matrix, SourceRows::kAlongN, forward_.get()}};
  zerofleet::pack(model.ctx, request);
  backward_ = {{matrix}, SourceRows::kAlongK};
}

void LossHead::run(const ModelContext& model, const Matrix& normed, const Indices& targets,
                   const Gradients* gradients) {
  backward_seconds_ = 0;
  if (gradients != nullptr) use_factors(model, gradients->factors);
  for (std::int64_t first = 0; first < normed.rows; first += chunk_rows_) {
    const std::int64_t rows = std::min(chunk_rows_, normed.rows - first);
    const Matrix chunk = rows_of(normed, first, rows);
    if (gradients != nullptr) make_dlogits(model);
    const Matrix dlogits = gradients == nullptr ? Matrix{} : dlogits_.first_rows(rows);
    chunk_forward(model, chunk, targets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows)), first,
                  dlogits, gradients);
    if (gradients == nullptr) continue;
    const auto start = std::chrono::steady_clock::now();
    chunk_backward(model, chunk, dlogits, *gradients, first);
    backward_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  losses_.fetch(model.ctx);
}

void LossHead::use_factors(const ModelContext& model, std::span<const float> factors) {
  if (!factors.empty() && !factors_upload_) factors_upload_.emplace(model.ctx, max_rows_);
  factors_ = factors.empty() ? factors : factors_upload_->upload(model.ctx, factors);
}

void LossHead::make_dlogits(const ModelContext& model) {
  if (dlogits_.num_bytes() == 0) dlogits_ = Tensor(model.ctx, model.dtype, chunk_rows_, model.config.vocab_size);
}

std::int64_t LossHead::kept_logit_rows() const {
  const Matrix& gradients = dlogits_.view();
  const std::int64_t bytes = chunk_rows_ * gradients.stride * static_cast<std::int64_t>(size_of(gradients.dtype));
  return bytes / (logits_.view().stride * 4);
}

Matrix LossHead::kept_logits(std::int64_t rows) const {
  const Matrix& like = logits_.view();
  return {dlogits_.view().data, DType::kF32, rows, like.cols, like.stride};
}

void LossHead::run(const ModelContext& model, const Matrix& normed, const Indices& targets, Gradients gradients,
                   const Factors& factors) {
  make_dlogits(model);
  if (normed.rows > kept_logit_rows()) {
    run(model, normed, targets, nullptr);
    gradients.factors = factors();
    return run(model, normed, targets, &gradients);
  }
  const Matrix kept = kept_logits(normed.rows);
  keep_logits(model, normed, targets, kept);
  use_factors(model, factors());
  // An element of a gradient is at most as long as a logit, and a row of gradients lies over its row of logits.
  const std::int64_t stride = kept.stride * 4 / static_cast<std::int64_t>(size_of(model.dtype));
  const Matrix dlogits{kept.data, model.dtype, kept.rows, kept.cols, stride};
  cross_entropy_of(model, kept, targets, 0, dlogits, &gradients);
  const auto start = std::chrono::steady_clock::now();
  chunk_backward(model, normed, dlogits, gradients, 0);
  backward_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  losses_.fetch(model.ctx);
}

// The losses are computed from a copy, which they overwrite.
void LossHead::keep_logits(const ModelContext& model, const Matrix& normed, const Indices& targets,
                           const Matrix& kept) {
  const std::int64_t most = logits_.view().rows;
  for (std::int64_t row = 0; row < normed.rows; row += most) {
    const std::int64_t rows = std::min(most, normed.rows - row);
    const Matrix logits = logits_.first_rows(rows);
    compute_logits(model, rows_of(normed, row, rows), logits);
    const auto num_bytes = static_cast<std::size_t>(rows * logits.stride * 4);
    copy_bytes(model.ctx, {static_cast<std::byte*>(kept.at(row, 0)), num_bytes},
               {static_cast<const std::byte*>(logits.data), num_bytes});
    cross_entropy_of(model, logits, targets.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(rows)), row,
                     {}, nullptr);
  }
  losses_.fetch(model.ctx);
}

LeafResult LossHead::result(const Indices& targets) const {
  const std::span<const float> losses = losses_.on_host();
  LeafResult result;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0) continue;
    result.loss_sum += static_cast<double>(losses[row]);
    ++result.num_targets;
  }
  return result;
}

std::vector<SequenceScore> LossHead::scores(const Indices& targets, std::span<const std::int32_t> sequences,
                                            std::int64_t batch) const {
  const std::span<const float> losses = losses_.on_host();
  std::vector<SequenceScore> scores(static_cast<std::size_t>(batch));
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0) continue;
    SequenceScore& score = scores[static_cast<std::size_t>(sequences[row])];
    score.log_prob -= static_cast<double>(losses[row]);
    ++score.num_targets;
  }
  return scores;
}

void LossHead::compute_logits(const ModelContext& model, const Matrix& normed, const Matrix& logits) {
  const GemmProblem product[] = {{normed, forward_.get(), logits}};
  gemm(model.ctx, *model.scratch, product);
  if (model.config.logits_scale != 1) scale(model.ctx, model.config.logits_scale, logits, logits);
  if (model.config.logits_soft_cap != 0) soft_cap(model.ctx, model.config.logits_soft_cap, logits, logits);
}

void LossHead::chunk_forward(const ModelContext& model, const Matrix& normed, const Indices& targets,
                             std::int64_t first_row, const Matrix& dlogits, const Gradients* gradients) {
  const std::int64_t most = logits_.view().rows;
  for (std::int64_t row = 0; row < normed.rows; row += most) {
    const std::int64_t rows = std::min(most, normed.rows - row);
    const Matrix logits = logits_.first_rows(rows);
    compute_logits(model, rows_of(normed, row, rows), logits);
    cross_entropy_of(model, logits, targets.subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(rows)),
                     first_row + row, rows_of(dlogits, row, rows), gradients);
  }
}

void LossHead::cross_entropy_of(const ModelContext& model, const Matrix& logits, const Indices& targets,
                                std::int64_t first_row, const Matrix& dlogits, const Gradients* gradients) {
  const auto first = static_cast<std::size_t>(first_row), rows = static_cast<std::size_t>(logits.rows);
  CrossEntropy loss{logits, targets, losses_.on_device().subspan(first, rows), dlogits};
  loss.soft_cap = static_cast<float>(model.config.logits_soft_cap);
  if (gradients != nullptr) {
    if (!factors_.empty()) loss.factors = factors_.subspan(first, rows);
    loss.grad_scale = (factors_.empty() ? gradients->grad_scale : 1) * static_cast<float>(model.config.logits_scale);
  }
  cross_entropy(model.ctx, loss);
}

void LossHead::chunk_backward(const ModelContext& model, const Matrix& normed, const Matrix& dlogits,
                              const Gradients& gradients, std::int64_t first_row) {
  const Matrix dnormed = rows_of(gradients.normed, first_row, normed.rows);
  std::vector<GemmProblem> products = {{dlogits, nullptr, dnormed, false, false, nullptr, &backward_}};
  if (gradients.weight.data != nullptr) {
    if (packed_.k() == 0) packed_ = PackedMatrix(model.ctx, model.dtype, chunk_rows_, normed.cols);
    packed_.set_k(model.ctx, normed.rows);
    const PackRequest request[] = {{normed, SourceRows::kAlongK, &packed_}};
    zerofleet::pack(model.ctx, request);
    products.push_back({dlogits, &packed_, gradients.weight, true, first_row > 0});
  }
  gemm(model.ctx, *model.scratch, products);
}

// M is the largest number of rows, L and R those of logits and of gradients (see logit_rows), V vocab_size; packed()
// and row() are as in block.h. The head has L · row(V) of fp32 + 4·M, and from the first backward on R · row(V). For
// the gradient of the weight it has packed(R, D). The packed weight is packed(D, V). It is for the forward, which takes
// few rows at a time; the backward takes so many that it packs as it goes.
std::size_t LossHead::activation_bytes() const {
  return logits_.num_bytes() + dlogits_.num_bytes() + losses_.num_bytes() + packed_.num_bytes();
}

// With the likeliest token as the target a loss is ln Σ exp(logit − largest): the same number is a part of every other
// token's loss.
void LossHead::next_tokens(const ModelContext& model, const Matrix& normed, std::span<NextToken> next) {
  const std::int64_t vocab = model.config.vocab_size;
  const Matrix logits = logits_.first_rows(normed.rows);
  compute_logits(model, normed, logits);
  host_logits_.resize(static_cast<std::size_t>(logits_.view().rows * vocab));
  std::vector<std::int32_t> likeliest(next.size());
  const auto fetch = [&](std::size_t row) {
    const auto here =
        std::span(host_logits_).subspan(row * static_cast<std::size_t>(vocab), static_cast<std::size_t>(vocab));
    copy_bytes(model.ctx, std::as_writable_bytes(here), Device{},
               {static_cast<const std::byte*>(logits.at(static_cast<std::int64_t>(row), 0)), here.size_bytes()},
               model.ctx.device);
    next[row].logits = here;
  };
  const bool is_cpu = model.ctx.device.kind == DeviceKind::kCpu;
  for (std::size_t row = 0; row < next.size() && !is_cpu; ++row) fetch(row);
  model.ctx.pool->parallel_for(std::ssize(next), [&](std::int64_t index, int) {
    const auto row = static_cast<std::size_t>(index);
    if (is_cpu) fetch(row);
    const auto largest = std::ranges::max_element(next[row].logits);
    likeliest[row] = static_cast<std::int32_t>(largest - next[row].logits.begin());
    next[row].largest = *largest;
  });
  if (!likeliest_) likeliest_.emplace(model.ctx, logits_.view().rows);
  cross_entropy(model.ctx, {logits.first_rows(std::ssize(next)),
                            likeliest_->upload(model.ctx, likeliest),
                            losses_.on_device().first(next.size()),
                            {},
                            0});
  losses_.fetch(model.ctx);
  for (std::size_t row = 0; row < next.size(); ++row) next[row].log_sum = losses_.on_host()[row];
}

}  // namespace zerofleet
