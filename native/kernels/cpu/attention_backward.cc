#include <algorithm>

#include "kernels/attention.h"
#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/launch.h"

// One task does one (batch, key/value head) with all query heads that share it, so that the gradients of its keys and
// values are summed by one thread: over heads, then over blocks of query rows, in rising order. For each block, over
// the blocks of keys that it sees, with P made again from the scores and the forward's lse, and D = rows of Σ dO · O:
//   dV += drop(P)ᵀ dO,  dP = drop(dO Vᵀ),  dS = P · (dP − D) · scale,  dQ += dS K,  dK += dSᵀ Q.
namespace zerofleet::cpu {
namespace {

/// With T, K = min(T, 256), d = head_dim, steps(k) as Words::steps and panels(n) = n rounded up to 32, in words of 4
/// bytes, each array rounded up to 64 bytes: 2·panels(T)·steps(d) + panels(d)·steps(T) + 128·steps(d) +
/// 2·(panels(d) + panels(K))·steps(64) + 256·(panels(K) + 32) + (2·T + 64)·d + 64. Never less than the forward's.
struct BackwardAreas {
  BackwardAreas(Carver& carver, const AttentionShape& shape, const Words& words) {
    const std::int64_t length = shape.sequence_length, dim = shape.head_dim, keys = block_keys(shape),
                       row = kQueryRows * scores_stride(shape);
    keys_by_dim = carver.take<std::uint32_t>(words.panel_words(dim, length));
    values_by_dim = carver.take<std::uint32_t>(words.panel_words(dim, length));
    keys_by_row = carver.take<std::uint32_t>(words.panel_words(length, dim));
    query = carver.take<std::uint32_t>(kQueryRows * words.steps(dim));
    dout = carver.take<std::uint32_t>(kQueryRows * words.steps(dim));
    query_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, dim));
    dout_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, dim));
    probs_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, keys));
    dscores_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, keys));
    scores = carver.take<float>(row);
    dprobs = carver.take<float>(row);
    probs = carver.take<std::uint32_t>(row);
    dscores = carver.take<std::uint32_t>(row);
    dkeys = carver.take<float>(length * dim);
    dvalues = carver.take<float>(length * dim);
    dquery = carver.take<float>(kQueryRows * dim);
    delta = carver.take<float>(kQueryRows);
  }

  std::uint32_t *keys_by_dim, *values_by_dim;    // (head_dim, T) packed
  std::uint32_t* keys_by_row;                    // (T, head_dim) packed
  std::uint32_t *query, *dout;                   // (kQueryRows, head_dim)
  std::uint32_t *query_by_row, *dout_by_row;     // the same, packed with rows as k
  std::uint32_t *probs_by_row, *dscores_by_row;  // (kQueryRows, block of keys) packed with rows as k
  float *scores, *dprobs;                        // (kQueryRows, block of keys)
  std::uint32_t *probs, *dscores;                // (kQueryRows, block of keys) elements
  float *dkeys, *dvalues;                        // (T, head_dim) sums
  float* dquery;                                 // (kQueryRows, head_dim) sums
  float* delta;                                  // (kQueryRows)
};

class BackwardTask {
 public:
  using Areas = BackwardAreas;

  BackwardTask(const AttentionKernels& kernels, const AttentionBackward& args, const Words& words, const Areas& areas)
      : kernels_(kernels),
        args_(args),
        shape_(args.shape),
        words_(words),
        areas_(areas),
        head_steps_(words.steps(args.shape.head_dim)),
        stride_(scores_stride(args.shape)),
        dropout_(kernels, args.shape, args.options) {}

  void run(std::int64_t batch, std::int64_t kv_head) const {
    const std::int64_t length = shape_.sequence_length, dim = shape_.head_dim;
    const HeadPlace place = place_of(shape_, batch, kv_head * (shape_.num_heads / shape_.num_kv_heads));
    const HeadRows keys{&args_.qkv, place.first_row, place.key_col, length, dim};
    const HeadRows values{&args_.qkv, place.first_row, place.value_col, length, dim};
    kernels_.pack_k_cols(keys.to(areas_.keys_by_dim, head_steps_ * kPanel, words_));
    kernels_.pack_k_cols(values.to(areas_.values_by_dim, head_steps_ * kPanel, words_));
    kernels_.pack_k_rows(keys.to(areas_.keys_by_row, words_.steps(length) * kPanel, words_));
    std::fill_n(areas_.dkeys, length * dim, 0.0F);
    std::fill_n(areas_.dvalues, length * dim, 0.0F);
    for_query_blocks(shape_, batch, kv_head, [&](const QueryBlock& queries) { query_block(queries); });
    write_sums(areas_.dkeys, place.first_row, place.key_col, length);
    write_sums(areas_.dvalues, place.first_row, place.value_col, length);
  }

 private:
  void query_block(const QueryBlock& queries) const {
    const std::int64_t first_row = queries.place.first_row + queries.row, rows = queries.rows;
    const HeadRows query{&args_.qkv, first_row, queries.place.query_col, rows, shape_.head_dim};
    const HeadRows dout{&args_.dout, first_row, queries.place.query_col, rows, shape_.head_dim};
    kernels_.copy_words(query.to(areas_.query, head_steps_, words_));
    kernels_.copy_words(dout.to(areas_.dout, head_steps_, words_));
    kernels_.pack_k_rows(query.to(areas_.query_by_row, words_.steps(rows) * kPanel, words_));
    kernels_.pack_k_rows(dout.to(areas_.dout_by_row, words_.steps(rows) * kPanel, words_));
    row_dots(queries);
    const FirstKeys first_keys(args_.options, queries);
    bool first = true;
    for_key_blocks(queries, first_keys, [&](const KeyBlock& keys) {
      const QueryProducts products{kernels_, shape_, words_};
      products.against_keys(areas_.query, areas_.keys_by_dim, areas_.scores, queries, keys);
      products.against_keys(areas_.dout, areas_.values_by_dim, areas_.dprobs, queries, keys);
      softmax_backward(queries, keys, first_keys);
      products.over_keys(areas_.dscores, areas_.keys_by_row, areas_.dquery, queries, keys, first);
      add_transposed(areas_.probs, areas_.probs_by_row, areas_.dout_by_row, areas_.dvalues, queries, keys);
      add_transposed(areas_.dscores, areas_.dscores_by_row, areas_.query_by_row, areas_.dkeys, queries, keys);
      first = false;
    });
    write_sums(areas_.dquery, first_row, queries.place.query_col, rows);
  }

  void row_dots(const QueryBlock& queries) const {
    const std::int64_t first_row = queries.place.first_row + queries.row;
    RowDotArgs dots;
    dots.a = args_.dout.at(first_row, queries.place.query_col);
    dots.a_stride = args_.dout.stride;
    dots.b = args_.out.at(first_row, queries.place.query_col);
    dots.b_stride = args_.out.stride;
    dots.dots = areas_.delta;
    dots.rows = queries.rows;
    dots.cols = shape_.head_dim;
    dots.dtype = args_.out.dtype;
    kernels_.dots(dots);
  }

  void softmax_backward(const QueryBlock& queries, const KeyBlock& keys, const FirstKeys& first_keys) const {
    dropout_.apply(areas_.dprobs, DType::kF32, queries, keys);
    AttentionRowsArgs softmax = rows_args(shape_, words_, queries, keys, first_keys);
    softmax.scores = areas_.scores;
    softmax.dprobs = areas_.dprobs;
    softmax.lse = args_.lse.data() + queries.place.lse_index + queries.row;
    softmax.delta = areas_.delta;
    softmax.probs = areas_.probs;
    softmax.dscores = areas_.dscores;
    kernels_.backward(softmax);
    dropout_.apply(areas_.probs, words_.dtype(), queries, keys);
  }

  /// sums (keys, head_dim) += the transpose of a (rows, keys) · b (rows, head_dim).
  void add_transposed(const std::uint32_t* a, std::uint32_t* a_packed, const std::uint32_t* b, float* sums,
                      const QueryBlock& queries, const KeyBlock& keys) const {
    const std::int64_t panel_stride = words_.steps(queries.rows) * kPanel;
    kernels_.pack_k_rows({a, stride_, queries.rows, keys.keys, a_packed, panel_stride, words_.dtype(), words_.pairs});
    GemmBlock block;
    set_packed_a(block, a_packed, panel_stride);
    block.b = b;
    block.b_panel_stride = panel_stride;
    block.c = sums + keys.key * shape_.head_dim;
    block.c_stride = shape_.head_dim;
    block.rows = keys.keys;
    block.cols = shape_.head_dim;
    block.steps = words_.steps(queries.rows);
    block.pairs = words_.pairs;
    block.accumulate = true;
    block.left_out = Triangle::kStepsBelow;
    block.diagonal = queries.row - keys.key;
    kernels_.block(block);
  }

  void write_sums(const float* sums, std::int64_t row, std::int64_t col, std::int64_t rows) const {
    kernels_.convert(
        {sums, shape_.head_dim, args_.dqkv.at(row, col), args_.dqkv.stride, rows, shape_.head_dim, args_.dqkv.dtype});
  }

  const AttentionKernels& kernels_;
  const AttentionBackward& args_;
  const AttentionShape& shape_;
  const Words& words_;
  const Areas& areas_;
  std::int64_t head_steps_;
  std::int64_t stride_;
  AttentionDropout dropout_;
};

}  // namespace

void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args) {
  run_attention<BackwardTask>(ctx, scratch, args);
}

}  // namespace zerofleet::cpu
