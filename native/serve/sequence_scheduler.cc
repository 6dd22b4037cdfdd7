#include "serve/sequence_scheduler.h"

#include <algorithm>
#include <utility>

namespace zerofleet {
namespace {

std::int64_t pages_for(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

}  // namespace

SequenceScheduler::SequenceScheduler(const RopeScaling& rope_scaling, const Limits& limits)
    : rope_scaling_(rope_scaling), limits_(limits), cache_(limits.num_pages) {}

void SequenceScheduler::add(SequenceRequest request) {
  Sequence sequence;
  sequence.tokens = request.prompt;
  sequence.request = std::move(request);
  waiting_.push_back(std::move(sequence));
}

void SequenceScheduler::drop(const std::function<bool(const SequenceRequest&)>& is_dropped) {
  for (Sequence& sequence : running_) {
    if (is_dropped(sequence.request)) end(sequence);
  }
  remove_ended();
  std::erase_if(waiting_, [&](const Sequence& sequence) { return is_dropped(sequence.request); });
}

void SequenceScheduler::set_masks(const std::map<std::uint64_t, TokenMask>& masks) {
  const auto set_mask = [&](Sequence& sequence) {
    if (const auto found = masks.find(sequence.request.id); found != masks.end()) sequence.mask = found->second;
  };
  std::ranges::for_each(running_, set_mask);
  std::ranges::for_each(waiting_, set_mask);
}

std::vector<Sequence*> SequenceScheduler::schedule() {
  admit();
  schedule_decode_and_prefill();
  std::vector<Sequence*> scheduled;
  for (Sequence& sequence : running_) {
    if (sequence.num_scheduled > 0) scheduled.push_back(&sequence);
  }
  std::ranges::stable_sort(scheduled, {}, [](const Sequence* sequence) { return sequence->request.adapter; });
  return scheduled;
}

/// Moves waiting sequences to running_ while the KV cache has room for their tokens.
void SequenceScheduler::admit() {
  while (!waiting_.empty() && std::ssize(running_) < limits_.max_sequences) {
    Sequence& sequence = waiting_.front();
    sequence.page_table = cache_.take_prefix(cache_tree(sequence), sequence.tokens);
    const std::int64_t num_missing = pages_for(std::ssize(sequence.tokens)) - std::ssize(sequence.page_table);
    if (!running_.empty() && num_missing > cache_.num_available()) {
      release(sequence);
      return;
    }
    sequence.num_published = std::ssize(sequence.page_table);
    sequence.num_computed = sequence.num_published * kPageTokens;
    if (sequence.cached_tokens < 0) sequence.cached_tokens = sequence.num_computed;
    running_.push_back(std::move(sequence));
    waiting_.pop_front();
  }
}

/// Decode comes first, one row per sequence. The remaining rows go to prefill, in order of admission.
void SequenceScheduler::schedule_decode_and_prefill() {
  std::int64_t left = limits_.max_rows;
  for (Sequence& sequence : running_) sequence.num_scheduled = 0;
  for (std::size_t index = 0; index < running_.size(); ++index) {
    if (running_[index].num_uncomputed() == 1 && running_[index].num_ready() == 1) schedule_rows(index, 1);
  }
  for (const Sequence& sequence : running_) left -= sequence.num_scheduled;
  for (std::size_t index = 0; index < running_.size() && left > 0; ++index) {
    if (running_[index].num_scheduled > 0) continue;
    const std::int64_t count = std::min(left, running_[index].num_ready());
    if (count > 0) schedule_rows(index, count);
    left -= count;
  }
}

void SequenceScheduler::schedule_rows(std::size_t index, std::int64_t count) {
  if (allocate_pages(index, running_[index].num_computed + count)) {
    running_[index].num_scheduled = count;
  } else {
    preempt(index);
  }
}

/// Allocates pages for the first `num_tokens` tokens, and preempts sequences that were admitted later where it must.
/// Returns false if that is not enough.
bool SequenceScheduler::allocate_pages(std::size_t index, std::int64_t num_tokens) {
  while (std::ssize(running_[index].page_table) < pages_for(num_tokens)) {
    if (const auto page = cache_.allocate()) {
      running_[index].page_table.push_back(*page);
    } else if (index + 1 < running_.size()) {
      preempt(running_.size() - 1);
    } else {
      return false;
    }
  }
  return true;
}

void SequenceScheduler::preempt(std::size_t index) {
  release(running_[index]);
  waiting_.push_front(std::move(running_[index]));
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
}

void SequenceScheduler::release(Sequence& sequence) {
  for (const std::int32_t page : sequence.page_table) cache_.release(page);
  sequence.page_table.clear();
  sequence.num_computed = sequence.num_published = sequence.num_scheduled = 0;
}

void SequenceScheduler::finish_rows() {
  for (Sequence& sequence : running_) {
    sequence.num_computed += sequence.num_scheduled;
    publish(sequence);
  }
}

void SequenceScheduler::publish(Sequence& sequence) {
  for (; sequence.num_published < sequence.num_computed / kPageTokens; ++sequence.num_published) {
    const auto index = static_cast<std::size_t>(sequence.num_published);
    const auto tokens = std::span<const std::int32_t>(sequence.tokens).subspan(index * kPageTokens, kPageTokens);
    std::vector<std::int32_t>& pages = sequence.page_table;
    const std::int32_t parent = index == 0 ? KvCacheManager::root_of(cache_tree(sequence)) : pages[index - 1];
    pages[index] = cache_.publish(parent, tokens, pages[index]);
  }
}

/// Keys and values depend on the adapter and on the rotary frequencies.
std::int32_t SequenceScheduler::cache_tree(const Sequence& sequence) const {
  return 2 * sequence.request.adapter + (rope_scaling_.is_long(std::ssize(sequence.tokens)) ? 1 : 0);
}

void SequenceScheduler::append(Sequence& sequence, std::int32_t token) {
  const std::int32_t tree = cache_tree(sequence);
  sequence.tokens.push_back(token);
  sequence.mask.clear();
  if (cache_tree(sequence) != tree) release(sequence);
}

void SequenceScheduler::end(Sequence& sequence) {
  release(sequence);
  sequence.has_ended = true;
}

void SequenceScheduler::remove_ended() { std::erase_if(running_, &Sequence::has_ended); }

}  // namespace zerofleet
