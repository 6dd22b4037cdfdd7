#include "kernels/attention.h"

#include <cmath>

#include "kernels/cpu/attention_parts.h"
#include "kernels/cpu/launch.h"

// One task does the heads of one (batch, key/value head): keys and values are packed once for all of them. For each
// block of query rows: scores = Q Kᵀ over the keys that the block can see, softmax of whole rows, out = P V.
namespace zerofleet::cpu {
namespace {

struct ForwardAreas {
  ForwardAreas(Carver& carver, const AttentionShape& shape, const Words& words)
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

class ForwardTask {
 public:
  using Areas = ForwardAreas;

  ForwardTask(const AttentionKernels& kernels, const AttentionForward& args, const Words& words, const Areas& areas)
      : kernels_(kernels), args_(args), shape_(args.shape), words_(words), areas_(areas) {}

  void run(std::int64_t batch, std::int64_t kv_head) const {
    const std::int64_t length = shape_.sequence_length;
    const HeadPlace place = place_of(shape_, batch, kv_head * (shape_.num_heads / shape_.num_kv_heads));
    const HeadRows keys{&args_.qkv, place.first_row, place.key_col, length, shape_.head_dim};
    const HeadRows values{&args_.qkv, place.first_row, place.value_col, length, shape_.head_dim};
    kernels_.pack_k_cols(keys.to(areas_.keys, words_.steps(shape_.head_dim) * kPanel, words_));
    kernels_.pack_k_rows(values.to(areas_.values, words_.steps(length) * kPanel, words_));
    for_query_blocks(shape_, batch, kv_head,
                     [&](const HeadPlace& head, std::int64_t row, std::int64_t rows) { query_block(head, row, rows); });
  }

 private:
  void query_block(const HeadPlace& place, std::int64_t row, std::int64_t rows) const {
    const QueryProducts products{kernels_, shape_, words_};
    const HeadRows query{&args_.qkv, place.first_row + row, place.query_col, rows, shape_.head_dim};
    kernels_.copy_words(query.to(areas_.query, words_.steps(shape_.head_dim), words_));
    products.against_keys(areas_.query, areas_.keys, areas_.scores, row, rows);

    AttentionRowsArgs softmax;
    softmax.scores = areas_.scores;
    softmax.scores_stride = scores_stride(shape_.sequence_length);
    softmax.scale = 1.0F / std::sqrt(static_cast<float>(shape_.head_dim));
    softmax.lse = args_.lse.data() + place.lse_index + row;
    softmax.probs = areas_.probs;
    softmax.probs_stride = softmax.scores_stride;
    softmax.rows = rows;
    softmax.first_valid = row + 1;
    softmax.padded = even(row + rows);
    softmax.probs_dtype = words_.dtype();
    kernels_.softmax(softmax);

    products.over_keys(areas_.probs, areas_.values, args_.out, place, row, rows);
  }

  const AttentionKernels& kernels_;
  const AttentionForward& args_;
  const AttentionShape& shape_;
  const Words& words_;
  const Areas& areas_;
};

}  // namespace

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args) {
  run_attention<ForwardTask>(ctx, scratch, args);
}

}  // namespace zerofleet::cpu
