#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>

#include "core/device/context.h"
#include "kernels/attention/cpu/attention_heads.h"
#include "kernels/attention/cpu/attention_parts.h"
#include "kernels/common/cpu/row_chunks.h"

// For each block of query rows, over the blocks of keys that it sees, with m the largest score so far and P = exp(S −
// m):
//   S = Q Kᵀ,  sums = sums · exp(m before − m) + P V,  total = total · exp(m before − m) + Σ P;  out = sums / total.
namespace zerofleet::cpu {
namespace {

/// In words of 4 bytes, each array rounded up to 64 bytes, with T = sequence_length, d = head_dim, steps(k) as
/// Words::steps and panels(n) = n rounded up to 32: panels(T)·steps(d) + panels(d)·steps(T).
struct ForwardHead {
  ForwardHead(Carver& carver, const AttentionShape& shape, const Words& words)
      : keys(carver.take<std::uint32_t>(words.panel_words(shape.head_dim, shape.sequence_length))),
        values(carver.take<std::uint32_t>(words.panel_words(shape.sequence_length, shape.head_dim))) {}

  std::uint32_t* keys;    // (head_dim, T) packed
  std::uint32_t* values;  // (T, head_dim) packed
};

/// Words, for K = min(T, 256): 64·steps(d) + 128·(panels(K) + 32) + 64·d + 128.
struct ForwardRows {
  ForwardRows(Carver& carver, const AttentionShape& shape, const Words& words)
      : query(carver.take<std::uint32_t>(kQueryRows * words.steps(shape.head_dim))),
        scores(carver.take<float>(kQueryRows * scores_stride(shape))),
        probs(carver.take<std::uint32_t>(kQueryRows * scores_stride(shape))),
        sums(carver.take<float>(kQueryRows * shape.head_dim)),
        top(carver.take<float>(kQueryRows)),
        total(carver.take<float>(kQueryRows)) {}

  std::uint32_t* query;  // (kQueryRows, head_dim)
  float* scores;         // (kQueryRows, block of keys)
  std::uint32_t* probs;  // (kQueryRows, block of keys) elements
  float* sums;           // (kQueryRows, head_dim)
  float *top, *total;    // (kQueryRows)
};

class ForwardPass {
 public:
  using HeadAreas = ForwardHead;
  using RowAreas = ForwardRows;

  ForwardPass(const AttentionKernels& kernels, const AttentionForward& args, const Words& words)
      : kernels_(kernels),
        args_(args),
        shape_(args.shape),
        words_(words),
        products_{kernels, args.shape, words},
        dropout_(kernels, args.shape, args.options) {}

  void pack(const HeadAreas& head, const HeadOffsets& offsets, const KeyBlock& keys) const {
    products_.pack_by_dim(args_.qkv, offsets, offsets.key_col, keys, head.keys);
    products_.pack_by_row(args_.qkv, offsets, offsets.value_col, keys, head.values);
  }

  void run(const HeadAreas& head, const RowAreas& areas, const KeyValueHead& kv_head, std::int64_t number) const {
    // The long rows first, so that all threads end at about the same time.
    const StepRows rows(shape_, kv_head, row_steps(shape_) - 1 - number);
    for (std::int64_t i = 0; i < rows.num_blocks(); ++i) query_block(head, areas, rows.block(i));
  }

 private:
  void query_block(const HeadAreas& head, const RowAreas& areas, const QueryBlock& queries) const {
    const HeadRows query{&args_.qkv, queries.offsets.first_row + queries.row, queries.offsets.query_col, queries.rows,
                         shape_.head_dim};
    kernels_.copy_words(query.to(areas.query, words_.steps(shape_.head_dim), words_));
    std::fill_n(areas.top, queries.rows, -std::numeric_limits<float>::infinity());
    std::fill_n(areas.total, queries.rows, 0.0F);
    const FirstKeys first_keys(args_.options, queries);
    for (std::int64_t block = first_keys.lowest() / kKeyRows; block * kKeyRows <= queries.row; ++block) {
      add_keys(head, areas, queries, seen_of(key_block(shape_, block), queries, first_keys), first_keys);
    }
    AttentionFinishArgs finish;
    finish.top = areas.top;
    finish.total = areas.total;
    finish.sums = areas.sums;
    finish.out = rows_from(args_.out, queries.offsets.first_row + queries.row, queries.offsets.query_col);
    finish.lse = args_.lse.data() + queries.offsets.lse_index + queries.row;
    finish.rows = queries.rows;
    finish.cols = shape_.head_dim;
    finish.out_dtype = args_.out.dtype;
    kernels_.finish(finish);
  }

  void add_keys(const HeadAreas& head, const RowAreas& areas, const QueryBlock& queries, const KeyBlock& keys,
                const FirstKeys& first_keys) const {
    const bool first = first_keys.lowest() >= keys.key;
    products_.against_keys(areas.query, head.keys, areas.scores, queries, keys);
    AttentionRowsArgs softmax = rows_args(shape_, words_, queries, keys, first_keys);
    softmax.scores = areas.scores;
    softmax.top = areas.top;
    softmax.total = areas.total;
    softmax.sums = areas.sums;
    softmax.sums_cols = first ? 0 : shape_.head_dim;
    softmax.probs = areas.probs;
    kernels_.softmax(softmax);
    dropout_.apply(areas.probs, words_.dtype(), queries, keys);
    products_.over_keys(areas.probs, head.values, areas.sums, queries, keys, first);
  }

  const AttentionKernels& kernels_;
  const AttentionForward& args_;
  const AttentionShape& shape_;
  const Words& words_;
  HeadProducts products_;
  AttentionDropout dropout_;
};

}  // namespace

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args) {
  run_attention<ForwardPass>(ctx, scratch, args);
}

}  // namespace zerofleet::cpu
