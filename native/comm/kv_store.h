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

/// The key-value store of a rendezvous, without a server. Keys that this rank sets go out through a callback, and keys
/// of all ranks come in through deliver(). The owner must relay every key to every rank. Thread-safe.
class KvStore {
 public:
  using Bytes = std::vector<std::uint8_t>;
  using OnSet = std::function<void(const std::string& key, const Bytes& value)>;

  explicit KvStore(OnSet on_set) : on_set_(std::move(on_set)) {}

  /// Publishes a key. It is readable on this rank at once, so the relay need not deliver it back.
  void set(const std::string& key, const Bytes& value);
  /// Adds a key of another rank. The first value of a key stays.
  void deliver(const std::string& key, const Bytes& value);
  /// Waits for a key. Throws Error{"comm_timeout"} with its name, Error{"comm_failed"} after close().
  Bytes wait(const std::string& key, std::chrono::milliseconds timeout);
  /// Ends all present and later waits. Idempotent.
  void close();

 private:
  OnSet on_set_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Bytes> values_;
  bool closed_ = false;
};

}  // namespace zerofleet
