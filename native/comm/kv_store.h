#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace zerofleet {

/// The key-value store of a rendezvous, without its own server: keys that this rank sets go out through a callback, and
/// keys of all ranks come in through deliver(). The owner must relay every key to every rank. Thread-safe.
class KvStore {
 public:
  using Bytes = std::vector<std::uint8_t>;
  using OnSet = std::function<void(const std::string& key, const Bytes& value)>;

  explicit KvStore(OnSet on_set) : on_set_(std::move(on_set)) {}

  /// Publishes a key. It is readable here at once, so a relay may deliver it back or not.
  void set(const std::string& key, const Bytes& value);
  /// A key that another rank published. The first value stays.
  void deliver(const std::string& key, const Bytes& value);
  /// Waits for the key. Throws Error{"comm_timeout"} with its name, Error{"comm_failed"} after close().
  Bytes wait(const std::string& key, std::chrono::milliseconds timeout);
  /// Ends all waiting, now and later. Can be called again.
  void close();

 private:
  OnSet on_set_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Bytes> values_;
  bool closed_ = false;
};

}  // namespace zerofleet
