#include "kernels/attention.h"

#include <algorithm>
#include <limits>

#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/launch.h"

// One task does the heads of one (batch, key/value head): keys and values are packed once for all of them. For each
// block of query rows, over the blocks of keys that it sees, with m the largest score so far and P = exp(S − m):
//   S = Q Kᵀ,  sums = sums · exp(m before − m) + P V,  total = total · exp(m before − m) + Σ P;  out = sums / total.
namespace zerofleet::cpu {
namespace {

struct ForwardAreas {
  ForwardAreas(Carver& carver, const AttentionShape& shape, const Words& words)
      : keys(carver.take<std::uint32_t>(words.panel_words(shape.head_dim, shape.sequence_length))),
        values(carver.take<std::uint32_t>(words.panel_words(shape.sequence_length, shape.head_dim))),
        query(carver.take<std::uint32_t>(kQueryRows * words.steps(shape.head_dim))),
        scores(carver.take<float>(kQueryRows * scores_stride(shape))),
        probs(carver.take<std::uint32_t>(kQueryRows * scores_stride(shape))),
        sums(carver.take<float>(kQueryRows * shape.head_dim)),
        top(carver.take<float>(kQueryRows)),
        total(carver.take<float>(kQueryRows)) {}

  std::uint32_t* keys;    // (head_dim, T) packed
  std::uint32_t* values;  // (T, head_dim) packed
  std::uint32_t* query;   // (kQueryRows, head_dim)
  float* scores;          // (kQueryRows, block of keys)
  std::uint32_t* probs;   // (kQueryRows, block of keys) elements
  float* sums;            // (kQueryRows, head_dim)
  float *top, *total;     // (kQueryRows)
};

class ForwardTask {
 public:
  using Areas = ForwardAreas;

  ForwardTask(const AttentionKernels& kernels, const AttentionForward& args, const Words& words, const Areas& areas)
      : kernels_(kernels),
        args_(args),
        shape_(args.shape),
        words_(words),
        areas_(areas),
        dropout_(kernels, args.shape, args.options) {}

  void run(std::int64_t batch, std::int64_t kv_head) const {
    const std::int64_t length = shape_.sequence_length;
    const HeadPlace place = place_of(shape_, batch, kv_head * (shape_.num_heads / shape_.num_kv_heads));
    const HeadRows keys{&args_.qkv, place.first_row, place.key_col, length, shape_.head_dim};
    const HeadRows values{&args_.qkv, place.first_row, place.value_col, length, shape_.head_dim};
    kernels_.pack_k_cols(keys.to(areas_.keys, words_.steps(shape_.head_dim) * kPanel, words_));
    kernels_.pack_k_rows(values.to(areas_.values, words_.steps(length) * kPanel, words_));
    for_query_blocks(shape_, batch, kv_head, [&](const QueryBlock& queries) { query_block(queries); });
  }

 private:
  void query_block(const QueryBlock& queries) const {
    const HeadRows query{&args_.qkv, queries.place.first_row + queries.row, queries.place.query_col, queries.rows,
                         shape_.head_dim};
    kernels_.copy_words(query.to(areas_.query, words_.steps(shape_.head_dim), words_));
    std::fill_n(areas_.top, queries.rows, -std::numeric_limits<float>::infinity());
    std::fill_n(areas_.total, queries.rows, 0.0F);
    const FirstKeys first_keys(args_.options, queries);
    bool first = true;
    for_key_blocks(queries, first_keys, [&](const KeyBlock& keys) {
      add_keys(queries, keys, first_keys, first);
      first = false;
    });
    AttentionFinishArgs finish;
    finish.top = areas_.top;
    finish.total = areas_.total;
    finish.sums = areas_.sums;
    finish.out = args_.out.at(queries.place.first_row + queries.row, queries.place.query_col);
    finish.out_stride = args_.out.stride;
    finish.lse = args_.lse.data() + queries.place.lse_index + queries.row;
    finish.rows = queries.rows;
    finish.cols = shape_.head_dim;
    finish.out_dtype = args_.out.dtype;
    kernels_.finish(finish);
  }

  void add_keys(const QueryBlock& queries, const KeyBlock& keys, const FirstKeys& first_keys, bool first) const {
    const QueryProducts products{kernels_, shape_, words_};
    products.against_keys(areas_.query, areas_.keys, areas_.scores, queries, keys);
    AttentionRowsArgs softmax = rows_args(shape_, words_, queries, keys, first_keys);
    softmax.scores = areas_.scores;
    softmax.top = areas_.top;
    softmax.total = areas_.total;
    softmax.sums = areas_.sums;
    softmax.sums_cols = first ? 0 : shape_.head_dim;
    softmax.probs = areas_.probs;
    kernels_.softmax(softmax);
    dropout_.apply(areas_.probs, words_.dtype(), queries, keys);
    products.over_keys(areas_.probs, areas_.values, areas_.sums, queries, keys, first);
  }

  const AttentionKernels& kernels_;
  const AttentionForward& args_;
  const AttentionShape& shape_;
  const Words& words_;
  const Areas& areas_;
  AttentionDropout dropout_;
};

}  // namespace

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args) {
  run_attention<ForwardTask>(ctx, scratch, args);
}

}  // namespace zerofleet::cpu
