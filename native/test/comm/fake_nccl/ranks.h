#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

// Worlds of ranks that are threads of one process, and the messages between them.

using Result = int;
inline constexpr Result kSuccess = 0, kUnhandledCudaError = 1, kInternalError = 3, kInvalidArgument = 4,
                        kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;

struct UniqueId {
  char bytes[128];
};

struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking, padding;
};

using Message = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

struct World {
  int world_size = 0;
  int num_joined = 0;
  std::map<std::pair<int, int>, std::deque<Message>> mail;  // (from, to)
  std::vector<bool> left;
};

inline std::mutex mutex;
inline std::condition_variable changed;  // a message has come, or a rank has gone
inline std::map<std::string, std::shared_ptr<World>> worlds;
inline int num_ids = 0;
inline std::atomic<int> connect_ms{0}, most_at_once{0};
inline std::atomic<int> loses_messages{0};

/// Calls of one group, until they are done.
struct Batch {
  struct Message {
    std::byte* data;
    std::size_t count;
    int peer;
  };
  void* stream = nullptr;
  std::vector<Message> sends, recvs;
  std::vector<std::pair<Message, const void*>> copies;  // of the own piece of a gather
  bool has_sent = false;
};

struct ncclComm {
  std::shared_ptr<World> world;
  int rank = 0;
  std::unique_ptr<Batch> group;  // that is not queued yet
  bool is_aborted = false;
  Result failure = kSuccess;
  std::string last_error;
  std::set<int> connected;  // peers by messages; the own rank: the whole world, for gathers
  int num_connecting = 0;   // in this group
  Clock::time_point connected_at{};

  Result fail(Result result, const std::string& message) {
    last_error = message;
    return failure = result;
  }

  void connect(int peer) {
    if (!connected.insert(peer).second) return;
    most_at_once = std::max(most_at_once.load(), ++num_connecting);
    connected_at = std::max(connected_at, Clock::now()) + std::chrono::milliseconds(connect_ms);
  }

  bool is_connecting() const { return world->num_joined < world->world_size || Clock::now() < connected_at; }

  Batch& calls_on(void* stream) {
    if (!group) group = std::make_unique<Batch>();
    group->stream = stream;
    return *group;
  }

  /// Moves the messages that are there.
  Result progress(Batch& batch) {
    if (!batch.has_sent) send(batch);
    auto& recvs = batch.recvs;
    for (std::size_t i = 0; i < recvs.size();) {
      const Batch::Message recv = recvs[i];
      auto& mail = world->mail[{recv.peer, rank}];
      if (mail.empty()) {
        if (world->left[static_cast<std::size_t>(recv.peer)]) return fail(kRemoteError, "the peer has left");
        ++i;
        continue;
      }
      if (mail.front().size() != recv.count) return fail(kInternalError, "a message has another size than expected");
      std::memcpy(recv.data, mail.front().data(), recv.count);
      mail.pop_front();
      recvs.erase(recvs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return recvs.empty() ? kSuccess : kInProgress;
  }

  void send(Batch& batch) {
    for (const auto& [target, source] : batch.copies) std::memmove(target.data, source, target.count);
    for (const Batch::Message& message : batch.sends) {
      if (loses_messages != 0) continue;
      world->mail[{rank, message.peer}].emplace_back(message.data, message.data + message.count);
    }
    batch.has_sent = true;
    changed.notify_all();
  }
};
