#include "kernels/attention.h"

#include <cmath>

#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/launch.h"

// One task does the heads of one (batch, key/value head): keys and values are packed once for all of them. For each
// block of query rows: scores = Q Kᵀ over the keys that the block can see, softmax of whole rows, out = P V.
namespace zerofleet::cpu {
namespace {

struct Areas {
  Areas(Carver& carver, const AttentionShape& shape, const Words& words)
      : keys(carver.take<std::uint32_t>(words.panel_words(shape.head_dim, shape.sequence_length))),
        values(carver.take<std::uint32_t>(words.panel_words(shape.sequence_length, shape.head_dim))),
        query(carver.take<std::uint32_t>(kQueryRows * words.steps(shape.head_dim))),
        scores(carver.take<float>(kQueryRows * scores_stride(shape.sequence_length))),
        probs(carver.take<std::uint32_t>(kQueryRows * scores_stride(shape.sequence_length))) {}

  std::uint32_t* keys;    // (head_dim, T) packed
  std::uint32_t* values;  // (T, head_dim) packed
  std::uint32_t* query;   // (kQueryRows, head_dim)
  float* scores;          // (kQueryRows, T)
  std::uint32_t* probs;   // (kQueryRows, T) elements
};

class Task {
 public:
  Task(const AttentionKernels& kernels, const AttentionForward& args, const Words& words, const Areas& areas)
      : kernels_(kernels), args_(args), shape_(args.shape), words_(words), areas_(areas) {}

  void run(std::int64_t batch, std::int64_t kv_head) const {
    const std::int64_t group = shape_.num_heads / shape_.num_kv_heads, length = shape_.sequence_length;
    const HeadPlace place = place_of(shape_, batch, kv_head * group);
    const HeadRows keys{&args_.qkv, place.first_row, place.key_col, length, shape_.head_dim};
    const HeadRows values{&args_.qkv, place.first_row, place.value_col, length, shape_.head_dim};
    kernels_.pack_k_cols(keys.to(areas_.keys, words_.steps(shape_.head_dim) * kPanel, words_));
    kernels_.pack_k_rows(values.to(areas_.values, words_.steps(length) * kPanel, words_));
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t row = 0; row < length; row += kQueryRows) {
        query_block(place_of(shape_, batch, head), row, std::min(kQueryRows, length - row));
      }
    }
  }

 private:
  void query_block(const HeadPlace& place, std::int64_t row, std::int64_t rows) const {
    const std::int64_t seen = row + rows, stride = scores_stride(shape_.sequence_length);
    const std::int64_t head_steps = words_.steps(shape_.head_dim);
    const HeadRows query{&args_.qkv, place.first_row + row, place.query_col, rows, shape_.head_dim};
    kernels_.copy_words(query.to(areas_.query, head_steps, words_));

    GemmBlock scores;
    set_row_major_a(scores, areas_.query, head_steps);
    scores.b = areas_.keys;
    scores.b_panel_stride = head_steps * kPanel;
    scores.c = areas_.scores;
    scores.c_stride = stride;
    scores.rows = rows;
    scores.cols = seen;
    scores.steps = head_steps;
    scores.pairs = words_.pairs;
    scores.left_out = Triangle::kColsAbove;
    scores.diagonal = row;
    kernels_.block(scores);

    AttentionRowsArgs softmax;
    softmax.scores = areas_.scores;
    softmax.scores_stride = stride;
    softmax.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    softmax.lse = args_.lse.data() + place.lse_index + row;
    softmax.probs = areas_.probs;
    softmax.probs_stride = stride;
    softmax.rows = rows;
    softmax.first_valid = row + 1;
    softmax.padded = even(seen);
    softmax.probs_are_bf16 = words_.pairs;
    kernels_.softmax(softmax);

    GemmBlock out;
    set_row_major_a(out, areas_.probs, stride / words_.per_word());
    out.b = areas_.values;
    out.b_panel_stride = words_.steps(shape_.sequence_length) * kPanel;
    out.c = args_.out.at(place.first_row + row, place.query_col);
    out.c_stride = args_.out.stride;
    out.rows = rows;
    out.cols = shape_.head_dim;
    out.steps = words_.steps(seen);
    out.pairs = words_.pairs;
    out.left_out = Triangle::kStepsAbove;
    out.diagonal = row;
    out.c_is_bf16 = args_.out.dtype == DType::kBF16;
    kernels_.block(out);
  }

  const AttentionKernels& kernels_;
  const AttentionForward& args_;
  const AttentionShape& shape_;
  const Words& words_;
  const Areas& areas_;
};

}  // namespace

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args) {
  const AttentionKernels kernels(ctx.cpu_isa);
  const Words words{packs_pairs(ctx, args.qkv.dtype)};
  Carver measure;
  Areas(measure, args.shape, words);
  scratch.reserve(measure.used());
  const std::int64_t kv_heads = args.shape.num_kv_heads;
  ctx.pool->parallel_for(args.shape.batch * kv_heads, [&](std::int64_t task, int worker) {
    Carver carver(scratch.of(worker));
    const Areas areas(carver, args.shape, words);
    Task(kernels, args, words, areas).run(task / kv_heads, task % kv_heads);
  });
}

}  // namespace zerofleet::cpu
