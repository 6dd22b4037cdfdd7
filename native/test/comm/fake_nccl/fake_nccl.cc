// A libnccl for tests: the entry points of NCCL that comm/nccl_library.h names, for ranks that are threads of one
// process and buffers in host memory. It behaves like NCCL's non-blocking mode: calls are only recorded, and are
// executed, as far as the peers allow, in ncclCommGetAsyncError(). A peer that has left is ncclRemoteError, one that is
// silent leaves things in progress for ever. Ranks connect at their first message, for as long as zfFakeNcclConnectMs() says.
#include <algorithm>
#include <atomic>
#include <chrono>
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

#define ZF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Result = int;
constexpr Result kSuccess = 0, kInternalError = 3, kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;

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

std::mutex mutex;
std::map<std::string, std::shared_ptr<World>> worlds;
int num_ids = 0;
std::atomic<int> connect_ms{0}, most_at_once{0};

}  // namespace

struct ncclComm {
  struct Recv {
    std::byte* target;
    std::size_t count;
    int peer;
  };
  std::shared_ptr<World> world;
  int rank = 0;
  std::vector<Recv> pending;
  std::string last_error;
  std::set<int> connected;  // peers by messages; the own rank: the whole world, for gathers
  int num_connecting = 0;   // in this group
  Clock::time_point connected_at{};

  Result fail(Result result, const std::string& message) {
    last_error = message;
    return result;
  }

  void connect(int peer) {
    if (!connected.insert(peer).second) return;
    most_at_once = std::max(most_at_once.load(), ++num_connecting);
    connected_at = std::max(connected_at, Clock::now()) + std::chrono::milliseconds(connect_ms);
  }

  void post(const void* source, std::size_t count, int peer) {
    const auto* bytes = static_cast<const std::byte*>(source);
    world->mail[{rank, peer}].emplace_back(bytes, bytes + count);
  }

  Result progress() {
    if (world->num_joined < world->world_size || Clock::now() < connected_at) return kInProgress;
    for (std::size_t i = 0; i < pending.size();) {
      const Recv recv = pending[i];
      auto& mail = world->mail[{recv.peer, rank}];
      if (mail.empty()) {
        if (world->left[static_cast<std::size_t>(recv.peer)]) return fail(kRemoteError, "the peer has left");
        ++i;
        continue;
      }
      if (mail.front().size() != recv.count) return fail(kInternalError, "a message has another size than expected");
      std::memcpy(recv.target, mail.front().data(), recv.count);
      mail.pop_front();
      pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (!pending.empty()) return kInProgress;
    num_connecting = 0;
    return kSuccess;
  }
};

namespace {

/// Group calls of one thread.
thread_local int group_depth = 0;

Result check(const ncclComm* comm, int peer, int data_type) {
  const bool valid = comm != nullptr && group_depth > 0 && peer >= 0 && peer < comm->world->world_size && data_type == 0;
  return valid ? kSuccess : kInvalidArgument;
}

void leave(ncclComm* comm) {
  const std::lock_guard lock(mutex);
  comm->world->left[static_cast<std::size_t>(comm->rank)] = true;
  delete comm;
}

}  // namespace

/// For tests: the time that a connection takes from now on.
ZF_EXPORT void zfFakeNcclConnectMs(int ms) { connect_ms = ms; }

/// For tests: the most peers to which a rank connected in one group since the last call.
ZF_EXPORT int zfFakeNcclMostAtOnce() { return most_at_once.exchange(0); }

ZF_EXPORT const char* ncclGetErrorString(Result result) {
  switch (result) {
    case kSuccess: return "no error";
    case kInternalError: return "internal error";
    case kInvalidArgument: return "invalid argument";
    case kInvalidUsage: return "invalid usage";
    case kRemoteError: return "remote process exited or there was a network error";
    case kInProgress: return "in progress";
    default: return "unknown result";
  }
}

ZF_EXPORT const char* ncclGetLastError(const ncclComm* comm) { return comm == nullptr ? "" : comm->last_error.c_str(); }

ZF_EXPORT Result ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(mutex);
  std::memset(id->bytes, 0, sizeof id->bytes);
  const std::string name = "fake world " + std::to_string(num_ids++);
  std::memcpy(id->bytes + 100, name.data(), name.size());  // at the end: the id has to arrive whole
  return kSuccess;
}

ZF_EXPORT Result ncclCommInitRankConfig(ncclComm** comm, int world_size, UniqueId id, int rank, Config* config) {
  const bool valid = config->size == 24 && config->magic == 0xcafebeef && config->version == 21400 && config->blocking == 0;
  if (!valid || rank < 0 || rank >= world_size) return kInvalidArgument;
  const std::lock_guard lock(mutex);
  auto& world = worlds[std::string(id.bytes + 100)];
  if (!world) world = std::make_shared<World>();
  world->world_size = world_size;
  world->left.resize(static_cast<std::size_t>(world_size));
  ++world->num_joined;
  *comm = new ncclComm;
  (*comm)->world = world;
  (*comm)->rank = rank;
  return kInProgress;
}

ZF_EXPORT Result ncclCommGetAsyncError(ncclComm* comm, Result* state) {
  if (comm == nullptr) return kInvalidArgument;
  const std::lock_guard lock(mutex);
  *state = comm->progress();
  return kSuccess;
}

ZF_EXPORT Result ncclCommFinalize(ncclComm* comm) { return comm == nullptr ? kInvalidArgument : kInProgress; }

ZF_EXPORT Result ncclCommDestroy(ncclComm* comm) {
  leave(comm);
  return kSuccess;
}

ZF_EXPORT Result ncclCommAbort(ncclComm* comm) {
  leave(comm);
  return kSuccess;
}

ZF_EXPORT Result ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}

ZF_EXPORT Result ncclGroupEnd() {
  if (group_depth == 0) return kInvalidUsage;
  --group_depth;
  return kInProgress;
}

ZF_EXPORT Result ncclSend(const void* source, std::size_t count, int data_type, int peer, ncclComm* comm, void*) {
  const std::lock_guard lock(mutex);
  const Result result = check(comm, peer, data_type);
  if (result != kSuccess) return result;
  comm->connect(peer);
  comm->post(source, count, peer);
  return result;
}

ZF_EXPORT Result ncclRecv(void* target, std::size_t count, int data_type, int peer, ncclComm* comm, void*) {
  const std::lock_guard lock(mutex);
  const Result result = check(comm, peer, data_type);
  if (result != kSuccess) return result;
  comm->connect(peer);
  comm->pending.push_back({static_cast<std::byte*>(target), count, peer});
  return result;
}

ZF_EXPORT Result ncclAllGather(const void* source, void* target, std::size_t count, int data_type, ncclComm* comm, void*) {
  const std::lock_guard lock(mutex);
  const Result result = check(comm, 0, data_type);
  if (result != kSuccess) return result;
  comm->connect(comm->rank);  // to all of them, at the first call
  auto* pieces = static_cast<std::byte*>(target);
  for (int peer = 0; peer < comm->world->world_size; ++peer) {
    std::byte* piece = pieces + static_cast<std::size_t>(peer) * count;
    if (peer == comm->rank) {
      std::memmove(piece, source, count);
    } else {
      comm->post(source, count, peer);
      comm->pending.push_back({piece, count, peer});
    }
  }
  return kSuccess;
}
