#include <algorithm>
#include <atomic>

#include "core/device/context.h"
#include "core/threads/wait_for.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cpu/attention_heads.h"
#include "kernels/attention/cpu/attention_parts.h"
#include "kernels/common/cpu/row_chunks.h"

// Each block of query rows goes over the blocks of keys that it sees. P is made again from the scores and the forward's
// lse. D = rows of Σ dO · O:
//   dV += drop(P)ᵀ dO,  dP = drop(dO Vᵀ),  dS = P · (dP − D) · scale,  dQ += dS K,  dK += dSᵀ Q.
// A step of query rows goes from one block of keys to the next, and adds up its own dQ. All steps that see a block of
// keys add to the block's dK and dV, in rising order. A step computes P and dS of the block (three of the five
// products), and then waits for its turn. So a head has work for more than one thread, and the order of additions is
// that of one thread.
namespace zerofleet::cpu {
namespace {

/// Takes 2·panels(T)·steps(d) + panels(d)·steps(T) + 2·T·d + T/256 words of 4 bytes, each array rounded up to 64 bytes.
/// T = sequence_length, d = head_dim, steps(k) is Words::steps and panels(n) is n rounded up to 32. The result is never
/// below the forward's.
struct BackwardHead {
  BackwardHead(Carver& carver, const AttentionShape& shape, const Words& words) {
    const std::int64_t length = shape.sequence_length, dim = shape.head_dim;
    keys_by_dim = carver.take<std::uint32_t>(words.panel_words(dim, length));
    values_by_dim = carver.take<std::uint32_t>(words.panel_words(dim, length));
    keys_by_row = carver.take<std::uint32_t>(words.panel_words(length, dim));
    dkeys = carver.take<float>(length * dim);
    dvalues = carver.take<float>(length * dim);
    turns = carver.take<std::int32_t>(key_blocks(shape));
  }

  std::uint32_t *keys_by_dim, *values_by_dim;  // (head_dim, T) packed
  std::uint32_t* keys_by_row;                  // (T, head_dim) packed
  float *dkeys, *dvalues;                      // (T, head_dim) sums
  std::int32_t* turns;                         // per block of keys: the number of the row that adds next
};

/// Scratch of a step for a block of query rows, for K = min(T, 256): 128·steps(d) + 2·(panels(d) + panels(K))·steps(64)
/// + 64·d + 64 words.
struct BackwardBlock {
  BackwardBlock(Carver& carver, const AttentionShape& shape, const Words& words) {
    const std::int64_t dim = shape.head_dim, keys = block_keys(shape);
    query = carver.take<std::uint32_t>(kQueryRows * words.steps(dim));
    dout = carver.take<std::uint32_t>(kQueryRows * words.steps(dim));
    query_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, dim));
    dout_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, dim));
    probs_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, keys));
    dscores_by_row = carver.take<std::uint32_t>(words.panel_words(kQueryRows, keys));
    dquery = carver.take<float>(kQueryRows * dim);
    delta = carver.take<float>(kQueryRows);
  }

  std::uint32_t *query, *dout;                   // (kQueryRows, head_dim)
  std::uint32_t *query_by_row, *dout_by_row;     // the same, packed with rows as k
  std::uint32_t *probs_by_row, *dscores_by_row;  // (kQueryRows, block of keys) packed with rows as k
  float* dquery;                                 // (kQueryRows, head_dim) sums
  float* delta;                                  // (kQueryRows)
};

/// Two BackwardBlocks and 256·(panels(K) + 32). Never less than the forward's.
struct BackwardRows {
  BackwardRows(Carver& carver, const AttentionShape& shape, const Words& words)
      : blocks{{carver, shape, words}, {carver, shape, words}} {
    const std::int64_t row = kQueryRows * scores_stride(shape);
    scores = carver.take<float>(row);
    dprobs = carver.take<float>(row);
    probs = carver.take<std::uint32_t>(row);
    dscores = carver.take<std::uint32_t>(row);
  }

  BackwardBlock blocks[kStepBlocks];
  float *scores, *dprobs;          // (kQueryRows, block of keys)
  std::uint32_t *probs, *dscores;  // (kQueryRows, block of keys) elements
};

class BackwardPass {
 public:
  using HeadAreas = BackwardHead;
  using RowAreas = BackwardRows;

  BackwardPass(const AttentionKernels& kernels, const AttentionBackward& args, const Words& words)
      : kernels_(kernels),
        args_(args),
        shape_(args.shape),
        words_(words),
        head_steps_(words.steps(args.shape.head_dim)),
        products_{kernels, args.shape, words},
        dropout_(kernels, args.shape, args.options) {}

  void pack(const HeadAreas& head, const HeadOffsets& offsets, const KeyBlock& keys) const {
    products_.pack_by_dim(args_.qkv, offsets, offsets.key_col, keys, head.keys_by_dim);
    products_.pack_by_dim(args_.qkv, offsets, offsets.value_col, keys, head.values_by_dim);
    products_.pack_by_row(args_.qkv, offsets, offsets.key_col, keys, head.keys_by_row);
    for (float* sums : {head.dkeys, head.dvalues}) {
      std::fill_n(sums + keys.key * shape_.head_dim, keys.keys * shape_.head_dim, 0.0F);
    }
    head.turns[keys.key / kKeyRows] = static_cast<std::int32_t>(keys.key / kStepRows);
  }

  void run(const HeadAreas& head, const RowAreas& areas, const KeyValueHead& kv_head, std::int64_t number) const {
    const StepRows rows(shape_, kv_head, number);
    for (std::int64_t i = 0; i < rows.num_blocks(); ++i) open(areas.blocks[i], rows.block(i));
    const std::int64_t first_key = first_key_of(args_.options, rows.offsets.first_row, rows.begin);
    for (std::int64_t block = first_key / kKeyRows; block * kKeyRows < rows.end; ++block) {
      const KeyBlock keys = key_block(shape_, block);
      for (std::int64_t i = 0; i < rows.num_blocks(); ++i) add_to_query(head, areas, i, rows.block(i), keys);
      const std::atomic_ref<std::int32_t> turn(head.turns[block]);
      wait_for_([&] { return turn.load() == number; });
      for (std::int64_t i = 0; i < rows.num_blocks(); ++i) add_to_keys(head, areas.blocks[i], rows.block(i), keys);
      const std::int64_t next = next_step(rows, number, block);
      if (next == row_steps(shape_)) write_keys(head, rows.offsets, keys);
      turn.store(static_cast<std::int32_t>(next));
      wait_for_.changed();
    }
    for (std::int64_t i = 0; i < rows.num_blocks(); ++i) {
      const QueryBlock queries = rows.block(i);
      write_sums(areas.blocks[i].dquery, queries.offsets.first_row + queries.row, queries.offsets.query_col,
                 queries.rows);
    }
  }

 private:
  /// Packs a block of query rows.
  void open(const BackwardBlock& block, const QueryBlock& queries) const {
    const std::int64_t first_row = queries.offsets.first_row + queries.row, rows = queries.rows;
    const HeadRows query{&args_.qkv, first_row, queries.offsets.query_col, rows, shape_.head_dim};
    const HeadRows dout{&args_.dout, first_row, queries.offsets.query_col, rows, shape_.head_dim};
    kernels_.copy_words(query.to(block.query, head_steps_, words_));
    kernels_.copy_words(dout.to(block.dout, head_steps_, words_));
    kernels_.pack_k_rows(query.to(block.query_by_row, words_.steps(rows) * kPanel, words_));
    kernels_.pack_k_rows(dout.to(block.dout_by_row, words_.steps(rows) * kPanel, words_));
    row_dots(block, queries);
  }

  void row_dots(const BackwardBlock& block, const QueryBlock& queries) const {
    const std::int64_t first_row = queries.offsets.first_row + queries.row;
    RowDotArgs dots;
    dots.a = rows_from(args_.dout, first_row, queries.offsets.query_col);
    dots.b = rows_from(args_.out, first_row, queries.offsets.query_col);
    dots.dots = block.delta;
    dots.rows = queries.rows;
    dots.cols = shape_.head_dim;
    dots.dtype = args_.out.dtype;
    kernels_.dots(dots);
  }

  /// P and dS of a block of query rows and one of keys, and their contribution to dQ.
  void add_to_query(const HeadAreas& head, const RowAreas& areas, std::int64_t i, const QueryBlock& queries,
                    const KeyBlock& all_keys) const {
    const BackwardBlock& block = areas.blocks[i];
    const FirstKeys first_keys(args_.options, queries);
    const KeyBlock keys = seen_of(all_keys, queries, first_keys);
    if (keys.keys == 0) return;
    products_.against_keys(block.query, head.keys_by_dim, areas.scores, queries, keys);
    products_.against_keys(block.dout, head.values_by_dim, areas.dprobs, queries, keys);
    dropout_.apply(areas.dprobs, DType::kF32, queries, keys);
    AttentionRowsArgs softmax = rows_args(shape_, words_, queries, keys, first_keys);
    softmax.scores = areas.scores;
    softmax.dprobs = areas.dprobs;
    softmax.lse = args_.lse.data() + queries.offsets.lse_index + queries.row;
    softmax.delta = block.delta;
    softmax.probs = areas.probs;
    softmax.dscores = areas.dscores;
    kernels_.backward(softmax);
    dropout_.apply(areas.probs, words_.dtype(), queries, keys);
    const bool first = first_keys.lowest() >= keys.key;
    products_.over_keys(areas.dscores, head.keys_by_row, block.dquery, queries, keys, first);
    pack_transposed(areas.probs, block.probs_by_row, queries, keys);
    pack_transposed(areas.dscores, block.dscores_by_row, queries, keys);
  }

  /// Adds the contribution of a block of query rows to dV and dK of a block of keys.
  void add_to_keys(const HeadAreas& head, const BackwardBlock& block, const QueryBlock& queries,
                   const KeyBlock& all_keys) const {
    const KeyBlock keys = seen_of(all_keys, queries, FirstKeys(args_.options, queries));
    if (keys.keys == 0) return;
    add_transposed(block.probs_by_row, block.dout_by_row, head.dvalues, queries, keys);
    add_transposed(block.dscores_by_row, block.query_by_row, head.dkeys, queries, keys);
  }

  /// The number of the next step that sees the block of keys, or row_steps(). Steps that see it follow one another in
  /// every query head, since what rows see first never falls.
  std::int64_t next_step(const StepRows& rows, std::int64_t number, std::int64_t block) const {
    const std::int64_t each = steps_per_query_head(shape_), query_head = number / each;
    const bool last_of_head = rows.end == shape_.sequence_length;
    if (!last_of_head && first_key_of(args_.options, rows.offsets.first_row, rows.end) < (block + 1) * kKeyRows) {
      return number + 1;
    }
    const bool last = query_head + 1 == shape_.num_heads / shape_.num_kv_heads;
    return last ? row_steps(shape_) : (query_head + 1) * each + block * kKeyRows / kStepRows;
  }

  void write_keys(const HeadAreas& head, const HeadOffsets& offsets, const KeyBlock& keys) const {
    const std::int64_t at = keys.key * shape_.head_dim, row = offsets.first_row + keys.key;
    write_sums(head.dkeys + at, row, offsets.key_col, keys.keys);
    write_sums(head.dvalues + at, row, offsets.value_col, keys.keys);
  }

  /// A (rows, keys) with its rows as k.
  void pack_transposed(const std::uint32_t* source, std::uint32_t* target, const QueryBlock& queries,
                       const KeyBlock& keys) const {
    kernels_.pack_k_rows({source, scores_stride(shape_), queries.rows, keys.keys, target,
                          words_.steps(queries.rows) * kPanel, words_.dtype(), words_.pairs});
  }

  /// sums (keys, head_dim) += the transpose of a packed (rows, keys) · b (rows, head_dim).
  void add_transposed(const std::uint32_t* a, const std::uint32_t* b, float* sums, const QueryBlock& queries,
                      const KeyBlock& keys) const {
    const std::int64_t panel_stride = words_.steps(queries.rows) * kPanel;
    GemmBlock block;
    set_packed_a(block, a, panel_stride);
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
  std::int64_t head_steps_;
  HeadProducts products_;
  AttentionDropout dropout_;
  mutable WaitFor wait_for_;
};

}  // namespace

void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args) {
  run_attention<BackwardPass>(ctx, scratch, args);
}

}  // namespace zerofleet::cpu
