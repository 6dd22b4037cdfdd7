#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/range.h"
#include "kernels/attention/cpu/attention_parts.h"
#include "kernels/common/scratch.h"

// Division of attention into tasks. Some key/value heads are worked on at once, in memory of their own. A head's first
// steps pack its keys and values, a block of keys each. Every later step does some blocks of query rows of one query
// head that shares the key/value head. The step goes over the blocks of keys that these rows see.
namespace zerofleet::cpu {

/// A key/value head of one sequence.
struct KeyValueHead {
  std::int64_t batch, kv_head;
};

/// Query rows of one step: two blocks, so that a step is long beside its bookkeeping. In the backward pass a step is
/// also long beside the way of a block's sums from one core to another.
constexpr std::int64_t kStepBlocks = 2;
constexpr std::int64_t kStepRows = kStepBlocks * kQueryRows;
static_assert(kKeyRows % kStepRows == 0);

inline std::int64_t key_blocks(const AttentionShape& shape) {
  return (shape.sequence_length + kKeyRows - 1) / kKeyRows;
}
inline std::int64_t steps_per_query_head(const AttentionShape& shape) {
  return (shape.sequence_length + kStepRows - 1) / kStepRows;
}
/// Number of steps of all query heads that share a key/value head.
inline std::int64_t row_steps(const AttentionShape& shape) {
  return shape.num_heads / shape.num_kv_heads * steps_per_query_head(shape);
}

inline KeyBlock key_block(const AttentionShape& shape, std::int64_t number) {
  const std::int64_t key = number * kKeyRows;
  return {key, std::min(kKeyRows, shape.sequence_length - key)};
}

/// The query rows of step `number` of row_steps(): they are counted query head by query head.
struct StepRows {
  StepRows(const AttentionShape& shape, const KeyValueHead& head, std::int64_t number)
      : offsets(
            offsets_of(shape, head.batch,
                       head.kv_head * (shape.num_heads / shape.num_kv_heads) + number / steps_per_query_head(shape))),
        begin(number % steps_per_query_head(shape) * kStepRows),
        end(std::min(begin + kStepRows, shape.sequence_length)) {}

  std::int64_t num_blocks() const { return (end - begin + kQueryRows - 1) / kQueryRows; }
  QueryBlock block(std::int64_t i) const {
    const std::int64_t row = begin + i * kQueryRows;
    return {offsets, row, std::min(kQueryRows, end - row)};
  }

  HeadOffsets offsets;
  std::int64_t begin, end;
};

/// Key/value heads that are worked on at once: at most one per thread. A head of n blocks of keys has work for about n
/// threads. So of long heads there are as many as have 1024 tokens per thread, and one more that begins while others
/// end.
inline std::int64_t heads_at_once(const AttentionShape& shape, int num_threads) {
  constexpr std::int64_t kTokensPerThread = 1024;
  const std::int64_t long_heads = (num_threads * kTokensPerThread + shape.sequence_length - 1) / shape.sequence_length;
  return std::min({shape.batch * shape.num_kv_heads, static_cast<std::int64_t>(num_threads), long_heads + 1});
}

/// Hands out the steps of all heads. The steps of a head come in rising order, and its rows after all its blocks of
/// keys were packed. While every worker will have another head to begin, a worker gets a whole head. Towards the end a
/// worker gets a step at a time. The worker stays with its own head while that head has steps, so that the head's data
/// stays in the worker's cache. After that it gets steps of the head that has most left. A head begins when there is a
/// slot for it, which is memory that no other head works in.
class HeadQueue {
 public:
  struct Size {
    std::int64_t heads, packs, rows;  // packs and rows of each head
  };
  struct Steps {
    std::int64_t slot, head;
    Range numbers;  // of the head's packs, and then of its rows
  };

  HeadQueue(const Size& size, std::int64_t num_slots, int num_workers)
      : size_(size), slots_(static_cast<std::size_t>(num_slots)), slot_of_(static_cast<std::size_t>(num_workers)) {
    for (Slot& slot : slots_) slot.head = next_head_++;
    for (std::size_t worker = 0; worker < slot_of_.size(); ++worker) slot_of_[worker] = worker % slots_.size();
  }

  std::int64_t num_steps() const { return size_.heads * (size_.packs + size_.rows); }

  /// Waits for steps if need be; none once all were handed out.
  std::optional<Steps> take(int worker) {
    std::unique_lock lock(mutex_);
    std::size_t& own = slot_of_[static_cast<std::size_t>(worker)];
    ready_.wait(lock, [&] {
      if (!is_ready(slots_[own])) own = fullest();
      return is_ready(slots_[own]) || handed_out_ == num_steps();
    });
    if (handed_out_ == num_steps()) return {};
    Slot& slot = slots_[own];
    const bool whole = slot.next == 0 && size_.heads - next_head_ >= std::ssize(slot_of_);
    const Range numbers{slot.next, whole ? steps_each() : slot.next + 1};
    slot.next = numbers.end;
    handed_out_ += numbers.size();
    if (handed_out_ == num_steps()) ready_.notify_all();
    return Steps{static_cast<std::int64_t>(own), slot.head, numbers};
  }

  void finish(const Steps& steps) {
    const std::lock_guard lock(mutex_);
    Slot& slot = slots_[static_cast<std::size_t>(steps.slot)];
    slot.finished += steps.numbers.size();
    if (slot.finished == steps_each() && next_head_ < size_.heads) slot = {next_head_++, 0, 0};
    if (slot.finished == 0 || slot.finished == size_.packs) ready_.notify_all();
  }

 private:
  struct Slot {
    std::int64_t head = 0, next = 0, finished = 0;
  };

  std::int64_t steps_each() const { return size_.packs + size_.rows; }
  bool is_ready(const Slot& slot) const {
    return slot.next < size_.packs || (slot.next < steps_each() && slot.finished >= size_.packs);
  }

  /// The slot that has most steps left to hand out now, or any.
  std::size_t fullest() const {
    const auto order = [&](const Slot& slot) { return std::pair(!is_ready(slot), slot.next); };
    return static_cast<std::size_t>(std::ranges::min_element(slots_, {}, order) - slots_.begin());
  }

  Size size_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::int64_t next_head_ = 0, handed_out_ = 0;
  std::vector<Slot> slots_;
  std::vector<std::size_t> slot_of_;  // per worker
};

/// Runs a Pass over all heads: pack(areas, offsets, keys) for each block of a head's keys, then run(areas, row areas,
/// head, number) for each of the head's row_steps(). A step may wait for a step of a lower number. Pass::HeadAreas is
/// memory of a head, Pass::RowAreas of a worker.
template <class Pass, class Args>
void run_attention(const Context& ctx, Scratch& scratch, const Args& args) {
  const AttentionShape& shape = args.shape;
  const Words words{packs_pairs(ctx, args.qkv.dtype)};
  const AttentionKernels kernels(ctx.cpu_isa);
  const Pass pass(kernels, args, words);
  Carver head_memory, row_memory;
  typename Pass::HeadAreas(head_memory, shape, words);
  typename Pass::RowAreas(row_memory, shape, words);
  const std::int64_t num_slots = heads_at_once(shape, ctx.pool->num_threads());
  scratch.reserve(row_memory.used(), static_cast<std::size_t>(num_slots) * head_memory.used());
  const HeadQueue::Size size{shape.batch * shape.num_kv_heads, key_blocks(shape), row_steps(shape)};
  HeadQueue queue(size, num_slots, ctx.pool->num_threads());
  const auto run = [&](const HeadQueue::Steps& steps, std::int64_t number, int worker) {
    Carver shared(scratch.shared() + static_cast<std::size_t>(steps.slot) * head_memory.used());
    const typename Pass::HeadAreas areas(shared, shape, words);
    const KeyValueHead head{steps.head / shape.num_kv_heads, steps.head % shape.num_kv_heads};
    if (number < size.packs) return pass.pack(areas, StepRows(shape, head, 0).offsets, key_block(shape, number));
    Carver own(scratch.area(worker));
    pass.run(areas, {own, shape, words}, head, number - size.packs);
  };
  ctx.pool->parallel_for(std::min<std::int64_t>(queue.num_steps(), ctx.pool->num_threads()),
                         [&](std::int64_t, int worker) {
                           while (const std::optional<HeadQueue::Steps> steps = queue.take(worker)) {
                             for (std::int64_t number = steps->numbers.begin; number < steps->numbers.end; ++number)
                               run(*steps, number, worker);
                             queue.finish(*steps);
                           }
                         });
}

}  // namespace zerofleet::cpu
