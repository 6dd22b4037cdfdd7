// Operations on tokens: embeddings and the loss.
#include <algorithm>
#include <memory>

#include "bench/kernel_bench.h"
#include "kernels/embedding/embedding.h"
#include "kernels/loss/cross_entropy.h"
#include "model/common/transit.h"
#include "model/transformer/loss_head.h"

namespace zerofleet::bench {
namespace {

KernelCase embedding_forward(KernelBench& bench) {
  const std::int64_t vocab = bench.config.vocab_size, hidden = bench.config.hidden_size;
  const Matrix table = bench.random(vocab, hidden, bench.dtype, Tensor::Rows::kContiguous);
  const Matrix rows = bench.random(bench.rows(), hidden);
  const auto tokens = bench.random_below(bench.rows(), vocab);
  KernelCase made{shape_text({bench.rows(), vocab, hidden})};
  made.bytes = 2 * bench.element() * static_cast<double>(bench.rows() * hidden);
  made.run = [&bench, table, tokens, rows] { embedding(bench.ctx, table, tokens, rows); };
  made.results = {rows};
  return made;
}

// A tied embedding is added to the gradient that the head left; another one is written whole.
KernelCase embedding_back(KernelBench& bench) {
  const std::int64_t vocab = bench.config.vocab_size, hidden = bench.config.hidden_size;
  const bool accumulate = bench.config.tie_word_embeddings;
  const Matrix dtable = bench.random(vocab, hidden, DType::kF32, Tensor::Rows::kContiguous);
  const Matrix drows = bench.random(bench.rows(), hidden);
  const auto tokens = bench.random_below(bench.rows(), vocab);
  KernelCase made{shape_text({bench.rows(), vocab, hidden})};
  const auto read = static_cast<double>(bench.rows() * hidden), whole = static_cast<double>(vocab * hidden);
  made.bytes = bench.element() * read + (accumulate ? 8 * read : 4 * whole);
  made.in_place = accumulate;
  GroupUpload& same_tokens = *bench.keep(std::make_unique<GroupUpload>(bench.ctx, bench.rows()));
  made.run = [&bench, &same_tokens, tokens, drows, dtable, accumulate] {
    embedding_backward(bench.ctx, tokens, same_tokens.upload(bench.ctx, tokens), drows, dtable, accumulate);
  };
  made.results = {dtable};
  return made;
}

/// The rows of logits that exist at once in the model's head.
KernelCase loss(KernelBench& bench) {
  const std::int64_t vocab = bench.config.vocab_size;
  const std::int64_t rows = logit_rows(bench.ctx.device, vocab, bench.dtype, bench.rows()).logits;
  const Matrix logits = bench.random(rows, vocab, DType::kF32);
  const Matrix dlogits = bench.random(rows, vocab, bench.dtype);
  const CrossEntropy args{logits, bench.random_below(rows, vocab), bench.random_floats(rows), dlogits, 1.0F};
  KernelCase made{shape_text({rows, vocab})};
  made.bytes = (4 + bench.element()) * static_cast<double>(rows * vocab);
  made.in_place = true;
  made.run = [&bench, args] { cross_entropy(bench.ctx, args); };
  made.results = {dlogits, as_row(args.losses)};
  return made;
}

constexpr KernelEntry kTokenKernels[] = {
    {"embedding.forward", embedding_forward}, {"embedding.backward", embedding_back}, {"cross_entropy", loss}};

}  // namespace

std::span<const KernelEntry> token_kernels() { return kTokenKernels; }

}  // namespace zerofleet::bench
