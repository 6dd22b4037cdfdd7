#include "kernels/attention/paged_attention.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "core/device/context.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cpu/attention_parts.h"
#include "kernels/common/cpu/row_chunks.h"

// The computation of attention.cc with keys and values that are packed once, when their token comes: a page holds them
// as the operands of both products. A task does some new tokens of a sequence for some heads that share keys and
// values. Blocks of keys, the order in each sum and where it begins are those of attention.cc, hence the bits, too.
namespace zerofleet::cpu {
namespace {

static_assert(kPageTokens == kPanel && kKeyRows % kPageTokens == 0);

/// Words of a page: of each key/value head a (head_dim, kPageTokens) operand of keys, and a (kPageTokens, head_dim) one
/// of values.
struct PageLayout {
  PageLayout(const AttentionShape& shape, const Words& source)
      : words(source), heads(shape.num_kv_heads), head_dim(shape.head_dim) {}

  std::int64_t dim_steps() const { return words.steps(head_dim); }
  std::int64_t key_words() const { return dim_steps() * kPanel; }
  std::int64_t value_panel() const { return words.steps(kPageTokens) * kPanel; }
  std::int64_t value_words() const { return (head_dim + kPanel - 1) / kPanel * value_panel(); }
  std::uint32_t* keys(std::byte* pages, std::int64_t page, std::int64_t head) const {
    return reinterpret_cast<std::uint32_t*>(pages) + (page * heads + head) * key_words();
  }
  std::uint32_t* values(std::byte* pages, std::int64_t page, std::int64_t head) const {
    return reinterpret_cast<std::uint32_t*>(pages) + (page * heads + head) * value_words();
  }

  Words words;
  std::int64_t heads, head_dim;
};

/// Neighbouring rows of one sequence.
struct Run {
  std::int64_t row, rows, position, table;
};

std::vector<Run> runs_of(const PagedRows& rows, std::int64_t longest) {
  std::vector<Run> runs;
  for (std::size_t row = 0; row < rows.positions.size(); ++row) {
    const std::int64_t position = rows.positions[row], table = rows.tables[row];
    if (!runs.empty()) {
      Run& last = runs.back();
      if (last.table == table && last.position + last.rows == position && last.rows < longest) {
        ++last.rows;
        continue;
      }
    }
    runs.push_back({static_cast<std::int64_t>(row), 1, position, table});
  }
  return runs;
}

struct Areas {
  Areas(Carver& carver, const PageLayout& layout)
      : query(carver.take<std::uint32_t>(kQueryRows * layout.dim_steps())),
        scores(carver.take<float>(kQueryRows * kStride)),
        probs(carver.take<std::uint32_t>(kQueryRows * kStride)),
        sums(carver.take<float>(kQueryRows * layout.head_dim)),
        top(carver.take<float>(kQueryRows)),
        total(carver.take<float>(kQueryRows)),
        lse(carver.take<float>(kQueryRows)) {}

  static constexpr std::int64_t kStride = kKeyRows + 32;  // not a multiple of 4 KiB

  std::uint32_t* query;      // (kQueryRows, head_dim)
  float* scores;             // (kQueryRows, block of keys)
  std::uint32_t* probs;      // (kQueryRows, block of keys) elements
  float* sums;               // (kQueryRows, head_dim)
  float *top, *total, *lse;  // (kQueryRows)
};

class PagedPass {
 public:
  PagedPass(const Context& ctx, const PagedAttention& args)
      : kernels_(ctx.cpu_isa),
        args_(args),
        shape_(args.shape),
        layout_(args.shape, Words{packs_pairs(ctx, args.qkv.dtype)}) {}

  const PageLayout& layout() const { return layout_; }

  /// Puts the keys and values of a run's tokens into their pages, for one key/value head. `row`: room for a token's
  /// words.
  void append(const Run& run, std::int64_t head, std::uint32_t* row) const {
    const std::int64_t key_col = (shape_.num_heads + head) * shape_.head_dim,
                       value_col = key_col + layout_.heads * shape_.head_dim;
    for (std::int64_t i = 0; i < run.rows; ++i) {
      const std::int64_t position = run.position + i, slot = position % kPageTokens, page = page_of(run, position);
      std::uint32_t* keys = layout_.keys(args_.keys, page, head);
      std::uint32_t* values = layout_.values(args_.values, page, head);
      // What an earlier text left must not meet a probability of zero as an infinity.
      if (slot == 0) std::fill_n(values, layout_.value_words(), 0U);
      const HeadRows key{&args_.qkv, run.row + i, key_col, 1, shape_.head_dim};
      kernels_.copy_words(key.to(row, layout_.dim_steps(), layout_.words));
      for (std::int64_t step = 0; step < layout_.dim_steps(); ++step) keys[step * kPanel + slot] = row[step];
      if (layout_.words.pairs) {
        append_halves(static_cast<const std::uint16_t*>(args_.qkv.at(run.row + i, value_col)), values, slot);
        continue;
      }
      const HeadRows value{&args_.qkv, run.row + i, value_col, 1, shape_.head_dim};
      kernels_.copy_words(value.to(row, shape_.head_dim, layout_.words));
      for (std::int64_t dim = 0; dim < shape_.head_dim; dim += kPanel) {
        std::copy_n(row + dim, std::min<std::int64_t>(kPanel, shape_.head_dim - dim),
                    values + dim / kPanel * layout_.value_panel() + slot * kPanel);
      }
    }
  }

  /// Attention of a run of at most kQueryRows / heads rows for `heads` query heads from `head` on, which share keys and
  /// values.
  void attend(const Run& run, std::int64_t head, std::int64_t heads, const Areas& areas) const {
    for (std::int64_t h = 0; h < heads; ++h) {
      const HeadRows query{&args_.qkv, run.row, (head + h) * shape_.head_dim, run.rows, shape_.head_dim};
      kernels_.copy_words(
          query.to(areas.query + h * run.rows * layout_.dim_steps(), layout_.dim_steps(), layout_.words));
    }
    const std::int64_t rows = heads * run.rows, kv_head = head / (shape_.num_heads / shape_.num_kv_heads);
    std::fill_n(areas.top, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(areas.total, rows, 0.0F);
    std::array<std::int64_t, kQueryRows> first_keys{};
    for (std::int64_t i = 0; i < run.rows; ++i) {
      first_keys[static_cast<std::size_t>(i)] =
          args_.window == 0 ? 0 : std::max<std::int64_t>(0, run.position + i + 1 - args_.window);
    }
    const std::int64_t lowest = first_keys[0], end = run.position + run.rows;
    bool first = true;
    for (std::int64_t block = lowest / kKeyRows; block * kKeyRows < end; ++block) {
      const std::int64_t begin = std::max(block * kKeyRows, lowest / kPanel * kPanel);
      const KeyBlock keys{begin, std::min((block + 1) * kKeyRows, end) - begin};
      score(run, kv_head, rows, keys, areas);
      for (std::int64_t h = 0; h < heads; ++h) softmax(run, h * run.rows, keys, first, first_keys.data(), areas);
      add_values(run, kv_head, rows, keys, first, areas);
      first = false;
    }
    for (std::int64_t h = 0; h < heads; ++h) finish(run, head + h, h * run.rows, areas);
  }

 private:
  std::int64_t page_of(const Run& run, std::int64_t position) const {
    return args_.rows.pages[static_cast<std::size_t>(run.table + position / kPageTokens)];
  }

  /// Two neighbouring tokens share a word.
  void append_halves(const std::uint16_t* value, std::uint32_t* values, std::int64_t slot) const {
    for (std::int64_t dim = 0; dim < shape_.head_dim; ++dim) {
      std::uint32_t* word = values + dim / kPanel * layout_.value_panel() + slot / 2 * kPanel + dim % kPanel;
      std::memcpy(reinterpret_cast<std::byte*>(word) + slot % 2 * 2, value + dim, sizeof(std::uint16_t));
    }
  }

  void score(const Run& run, std::int64_t kv_head, std::int64_t rows, const KeyBlock& keys, const Areas& areas) const {
    GemmBlock block;
    set_row_major_a(block, areas.query, layout_.dim_steps());
    block.c_stride = Areas::kStride;
    block.rows = rows;
    block.steps = layout_.dim_steps();
    block.pairs = layout_.words.pairs;
    for (std::int64_t key = 0; key < keys.keys; key += kPageTokens) {
      block.b = layout_.keys(args_.keys, page_of(run, keys.key + key), kv_head);
      block.c = areas.scores + key;
      block.cols = std::min(kPageTokens, keys.keys - key);
      kernels_.block(block);
    }
  }

  void softmax(const Run& run, std::int64_t row, const KeyBlock& keys, bool first, const std::int64_t* first_keys,
               const Areas& areas) const {
    AttentionRowsArgs args;
    args.scores = areas.scores + row * Areas::kStride;
    args.scores_stride = Areas::kStride;
    args.scale = shape_.score_scale();
    args.soft_cap = static_cast<float>(shape_.soft_cap);
    args.top = areas.top + row;
    args.total = areas.total + row;
    args.sums = areas.sums + row * shape_.head_dim;
    args.sums_cols = first ? 0 : shape_.head_dim;
    args.probs = areas.probs + row * Areas::kStride / layout_.words.per_word();
    args.probs_stride = Areas::kStride;
    args.rows = run.rows;
    args.keys = keys.keys;
    args.first_valid = run.position + 1 - keys.key;
    args.first_keys = args_.window == 0 ? nullptr : first_keys;
    args.first_key = keys.key;
    args.padded = even(keys.keys);
    args.probs_dtype = layout_.words.dtype();
    kernels_.softmax(args);
  }

  void add_values(const Run& run, std::int64_t kv_head, std::int64_t rows, const KeyBlock& keys, bool first,
                  const Areas& areas) const {
    GemmBlock block;
    block.b_panel_stride = layout_.value_panel();
    block.c = areas.sums;
    block.c_stride = shape_.head_dim;
    block.rows = rows;
    block.cols = shape_.head_dim;
    block.pairs = layout_.words.pairs;
    for (std::int64_t key = 0; key < keys.keys; key += kPageTokens) {
      set_row_major_a(block, areas.probs + key / layout_.words.per_word(), Areas::kStride / layout_.words.per_word());
      block.b = layout_.values(args_.values, page_of(run, keys.key + key), kv_head);
      block.steps = layout_.words.steps(std::min(kPageTokens, keys.keys - key));
      block.accumulate = !first || key > 0;
      kernels_.block(block);
    }
  }

  void finish(const Run& run, std::int64_t head, std::int64_t row, const Areas& areas) const {
    AttentionFinishArgs args;
    args.top = areas.top + row;
    args.total = areas.total + row;
    args.sums = areas.sums + row * shape_.head_dim;
    args.out = rows_from(args_.out, run.row, head * shape_.head_dim);
    args.lse = areas.lse;
    args.rows = run.rows;
    args.cols = shape_.head_dim;
    args.out_dtype = args_.out.dtype;
    kernels_.finish(args);
  }

  AttentionKernels kernels_;
  const PagedAttention& args_;
  const AttentionShape& shape_;
  PageLayout layout_;
};

/// Query heads of a task: as many of those that share keys and values as fit beside each other.
std::int64_t heads_of(const AttentionShape& shape, const Run& run) {
  return std::clamp<std::int64_t>(kQueryRows / run.rows, 1, shape.num_heads / shape.num_kv_heads);
}

struct Task {
  const Run* run;
  std::int64_t head, heads;
};

std::vector<Task> tasks_of(const AttentionShape& shape, const std::vector<Run>& runs) {
  std::vector<Task> tasks;
  const std::int64_t sharing = shape.num_heads / shape.num_kv_heads;
  for (const Run& run : runs) {
    for (std::int64_t head = 0, heads = 0; head < shape.num_heads; head += heads) {
      heads = std::min(heads_of(shape, run), sharing - head % sharing);
      tasks.push_back({&run, head, heads});
    }
  }
  return tasks;
}

}  // namespace

PageBytes page_bytes(const Context& ctx, const AttentionShape& shape, DType dtype) {
  const PageLayout layout(shape, Words{packs_pairs(ctx, dtype)});
  const auto bytes = [&](std::int64_t words) {
    return static_cast<std::size_t>(layout.heads * words) * sizeof(std::uint32_t);
  };
  return {bytes(layout.key_words()), bytes(layout.value_words())};
}

void paged_attention(const Context& ctx, Scratch& scratch, const PagedAttention& args) {
  const PagedPass pass(ctx, args);
  Carver measure;
  Areas{measure, pass.layout()};
  scratch.reserve(measure.used());
  // Two tokens share a word, so a sequence is one task.
  const std::vector<Run> added = runs_of(args.rows, std::numeric_limits<std::int64_t>::max());
  const std::int64_t kv_heads = args.shape.num_kv_heads;
  ctx.pool->parallel_for(std::ssize(added) * kv_heads, [&](std::int64_t index, int worker) {
    Carver carver(scratch.area(worker));
    pass.append(added[static_cast<std::size_t>(index / kv_heads)], index % kv_heads,
                Areas(carver, pass.layout()).query);
  });
  const std::vector<Run> runs = runs_of(args.rows, kQueryRows);
  const std::vector<Task> tasks = tasks_of(args.shape, runs);
  ctx.pool->parallel_for(std::ssize(tasks), [&](std::int64_t index, int worker) {
    const Task& task = tasks[static_cast<std::size_t>(index)];
    Carver carver(scratch.area(worker));
    pass.attend(*task.run, task.head, task.heads, Areas(carver, pass.layout()));
  });
}

}  // namespace zerofleet::cpu
