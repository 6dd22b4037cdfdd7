#include "comm/kv_store.h"

#include "core/error.h"

namespace zerofleet {

void KvStore::set(const std::string& key, const Bytes& value) {
  deliver(key, value);
  on_set_(key, value);
}

void KvStore::deliver(const std::string& key, const Bytes& value) {
  {
    const std::lock_guard lock(mutex_);
    values_.emplace(key, value);
  }
  changed_.notify_all();
}

KvStore::Bytes KvStore::wait(const std::string& key, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const bool settled = changed_.wait_for(lock, timeout, [&] { return closed_ || values_.contains(key); });
  require(settled, "comm_timeout",
          "rendezvous key '" + key + "' did not come within " + std::to_string(timeout.count()) + " ms");
  require(!closed_, "comm_failed", "the rendezvous was closed while waiting for key '" + key + "'");
  return values_.at(key);
}

void KvStore::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace zerofleet
