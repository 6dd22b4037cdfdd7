#include "serve/kv_cache_manager.h"

#include <algorithm>
#include <numeric>

namespace zerofleet {

KvCacheManager::KvCacheManager(std::int64_t num_pages)
    : pages_(static_cast<std::size_t>(num_pages)), free_(pages_.size()) {
  for (Page& page : pages_) page.published = published_.end();
  std::iota(free_.rbegin(), free_.rend(), 0);
}

void KvCacheManager::reference(std::int32_t page) {
  Page& node = page_at(page);
  if (node.references++ > 0) return;
  evictable_.erase({node.last_used, page});
  if (is_published(node)) --num_unused_;
}

void KvCacheManager::update_evictable(std::int32_t page) {
  const Page& node = page_at(page);
  if (is_published(node) && node.references == 0 && node.children == 0) evictable_.insert({node.last_used, page});
}

std::vector<std::int32_t> KvCacheManager::take_prefix(std::int32_t tree, std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> taken;
  Key key{root_of(tree), {}};
  for (std::size_t end = kPageTokens; end < tokens.size(); end += kPageTokens) {
    std::ranges::copy(tokens.subspan(end - kPageTokens, kPageTokens), key.tokens.begin());
    const auto found = published_.find(key);
    if (found == published_.end()) break;
    key.parent = found->second;
    reference(found->second);
    taken.push_back(found->second);
  }
  return taken;
}

std::optional<std::int32_t> KvCacheManager::allocate() {
  if (free_.empty() && !evictable_.empty()) evict(evictable_.begin()->second);
  if (free_.empty()) return std::nullopt;
  const std::int32_t page = free_.back();
  free_.pop_back();
  page_at(page).references = 1;
  return page;
}

void KvCacheManager::evict(std::int32_t page) {
  Page& node = page_at(page);
  const std::int32_t parent = node.published->first.parent;
  evictable_.erase({node.last_used, page});
  published_.erase(node.published);
  node.published = published_.end();
  --num_unused_;
  free_.push_back(page);
  if (parent < 0) return;
  --page_at(parent).children;
  update_evictable(parent);
}

std::int32_t KvCacheManager::publish(std::int32_t parent, std::span<const std::int32_t> tokens, std::int32_t page) {
  Key key{parent, {}};
  std::ranges::copy(tokens, key.tokens.begin());
  const auto [entry, is_new] = published_.try_emplace(key, page);
  if (is_new) {
    page_at(page).published = entry;
    if (parent >= 0) ++page_at(parent).children;
    return page;
  }
  reference(entry->second);
  release(page);
  return entry->second;
}

void KvCacheManager::release(std::int32_t page) {
  Page& node = page_at(page);
  if (--node.references > 0) return;
  if (!is_published(node)) {
    free_.push_back(page);
    return;
  }
  node.last_used = ++clock_;
  ++num_unused_;
  update_evictable(page);
}

}  // namespace zerofleet
