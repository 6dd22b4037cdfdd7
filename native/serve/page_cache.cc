#include "serve/page_cache.h"

#include <algorithm>
#include <numeric>

namespace zerofleet {

PageCache::PageCache(std::int64_t num_pages) : pages_(static_cast<std::size_t>(num_pages)), free_(pages_.size()) {
  for (Page& page : pages_) page.published = published_.end();
  std::iota(free_.rbegin(), free_.rend(), 0);
}

void PageCache::reference(std::int32_t page) {
  Page& it = of(page);
  if (it.references++ > 0) return;
  droppable_.erase({it.last_used, page});
  if (is_published(it)) --num_unused_;
}

void PageCache::update(std::int32_t page) {
  const Page& it = of(page);
  if (is_published(it) && it.references == 0 && it.followers == 0) droppable_.insert({it.last_used, page});
}

std::vector<std::int32_t> PageCache::take_beginning(std::int32_t adapter, std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> taken;
  Key key{first_of(adapter), {}};
  for (std::size_t end = kPageTokens; end < tokens.size(); end += kPageTokens) {
    std::ranges::copy(tokens.subspan(end - kPageTokens, kPageTokens), key.tokens.begin());
    const auto found = published_.find(key);
    if (found == published_.end()) break;
    key.before = found->second;
    reference(found->second);
    taken.push_back(found->second);
  }
  return taken;
}

std::optional<std::int32_t> PageCache::take() {
  if (free_.empty() && !droppable_.empty()) drop(droppable_.begin()->second);
  if (free_.empty()) return std::nullopt;
  const std::int32_t page = free_.back();
  free_.pop_back();
  of(page).references = 1;
  return page;
}

void PageCache::drop(std::int32_t page) {
  Page& it = of(page);
  const std::int32_t before = it.published->first.before;
  droppable_.erase({it.last_used, page});
  published_.erase(it.published);
  it.published = published_.end();
  --num_unused_;
  free_.push_back(page);
  if (before < 0) return;
  --of(before).followers;
  update(before);
}

std::int32_t PageCache::publish(std::int32_t before, std::span<const std::int32_t> tokens, std::int32_t page) {
  Key key{before, {}};
  std::ranges::copy(tokens, key.tokens.begin());
  const auto [place, is_new] = published_.try_emplace(key, page);
  if (is_new) {
    of(page).published = place;
    if (before >= 0) ++of(before).followers;
    return page;
  }
  reference(place->second);
  release(page);
  return place->second;
}

void PageCache::release(std::int32_t page) {
  Page& it = of(page);
  if (--it.references > 0) return;
  if (!is_published(it)) {
    free_.push_back(page);
    return;
  }
  it.last_used = ++clock_;
  ++num_unused_;
  update(page);
}

}  // namespace zerofleet
