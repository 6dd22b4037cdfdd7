#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "kernels/attention/rope_frequencies.h"
#include "serve/kv_cache_manager.h"
#include "serve/token_draw.h"

namespace zerofleet {

/// One sequence to generate: a prompt, and how to continue it.
struct SequenceRequest {
  std::uint64_t id = 0;  // unique among live requests; never reused
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 64;
  std::vector<std::int32_t> end_tokens;  // the sequence ends with the first of these that is drawn
  std::int64_t top_log_probs = 0;        // most likely tokens to report with each drawn token
  std::int32_t adapter = 0;              // from AnswerEngine::add_adapter(); 0: the model alone
  DrawOptions draw;
  bool is_constrained = false;  // each token waits for allow()
};

/// A request in progress.
struct Sequence {
  SequenceRequest request;
  std::vector<std::int32_t> tokens;      // of the prompt and drawn
  std::vector<std::int32_t> page_table;  // pages of the KV cache, in order
  std::int64_t num_computed = 0;         // tokens whose keys and values are in the KV cache
  std::int64_t num_published = 0;        // pages
  std::int64_t num_scheduled = 0;        // rows in this step
  std::int64_t cached_tokens = -1;       // -1: not admitted yet
  TokenMask mask;                        // for the next token of a constrained sequence
  bool has_ended = false;

  std::int64_t num_uncomputed() const { return std::ssize(tokens) - num_computed; }
  /// Rows that may be computed now: without a mask, not the one that a constrained token is drawn from.
  std::int64_t num_ready() const { return num_uncomputed() - (request.is_constrained && mask.empty() ? 1 : 0); }
  std::span<const std::int32_t> drawn() const { return std::span(tokens).subspan(request.prompt.size()); }
  std::int64_t num_drawn() const { return std::ssize(drawn()); }
};

/// Decides which rows of which sequences each step computes, and holds the sequences' pages of the KV cache.
///
/// A step is schedule(), which returns the sequences with rows; finish_rows(), once these are computed; append() or
/// end() for each drawn token; and remove_ended(). Between steps, sequences may be added, dropped and given masks.
class SequenceScheduler {
 public:
  struct Limits {
    std::int64_t max_rows = 0;       // of a step
    std::int64_t max_sequences = 0;  // running at a time
    std::int64_t num_pages = 0;
  };

  SequenceScheduler(const RopeScaling& rope_scaling, const Limits& limits);

  void add(SequenceRequest request);
  void drop(const std::function<bool(const SequenceRequest&)>& is_dropped);
  /// Sets the masks of next tokens, by request.
  void set_masks(const std::map<std::uint64_t, TokenMask>& masks);

  /// Admits waiting sequences and schedules rows. Returns the sequences with rows, ordered by adapter; the pointers are
  /// valid until remove_ended().
  std::vector<Sequence*> schedule();
  /// Marks the scheduled rows as computed, and publishes the pages that they fill.
  void finish_rows();
  void append(Sequence& sequence, std::int32_t token);
  void end(Sequence& sequence);
  void remove_ended();

 private:
  void admit();
  void schedule_decode_and_prefill();
  void schedule_rows(std::size_t index, std::int64_t count);
  bool allocate_pages(std::size_t index, std::int64_t num_tokens);
  void preempt(std::size_t index);
  void release(Sequence& sequence);
  void publish(Sequence& sequence);
  std::int32_t cache_tree(const Sequence& sequence) const;

  RopeScaling rope_scaling_;
  Limits limits_;
  KvCacheManager cache_;
  std::deque<Sequence> waiting_;
  std::vector<Sequence> running_;  // in order of admission
};

}  // namespace zerofleet
