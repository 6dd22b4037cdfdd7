// A libnccl for tests: the entry points of NCCL that comm/nccl_library.h names, for ranks that are threads of one
// process. It behaves like NCCL's non-blocking mode: calls are only recorded. The function ncclCommGetAsyncError()
// queues them on their stream of the emulated device. Calls without a stream it executes in host memory as far as the
// peers allow. A peer that has left is ncclRemoteError, one that is silent leaves things in progress for ever. Ranks
// connect at their first message, for as long as zfFakeNcclConnectMs() says.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ranks.h"

#define ZF_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

std::map<ncclComm*, std::shared_ptr<ncclComm>> comms;  // that the program has

/// A function of the emulated device, which is part of the program, or of a library that the program has opened for
/// itself. Null: it has none.
template <class Function>
Function* of_device(const char* mangled) {
  struct Search {
    const char* name;
    void* found;
  } search{mangled, ::dlsym(RTLD_DEFAULT, mangled)};
  const auto look_into = [](dl_phdr_info* info, std::size_t, void* data) {
    auto& wanted = *static_cast<Search*>(data);
    void* library = ::dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return 0;
    wanted.found = ::dlsym(library, wanted.name);
    ::dlclose(library);
    return wanted.found == nullptr ? 0 : 1;
  };
  if (search.found == nullptr) ::dl_iterate_phdr(look_into, &search);
  return reinterpret_cast<Function*>(search.found);
}

void tell_ranks_on_device(int more) {
  static auto* const tell = of_device<void(int)>("_Z15zfRanksOnDevicei");
  if (tell != nullptr) tell(more);
}

/// Work of the device in its turn: messages leave when it has come to them, and it stays there until all have arrived.
struct Launch {
  std::shared_ptr<ncclComm> comm;
  std::unique_ptr<Batch> batch;

  static void run(void* data) {
    const std::unique_ptr<Launch> launch(static_cast<Launch*>(data));
    std::unique_lock lock(mutex);
    ncclComm& comm = *launch->comm;
    while (!comm.is_aborted && comm.failure == kSuccess && comm.progress(*launch->batch) == kInProgress)
      changed.wait(lock);
  }
};

/// Without a stream, as on the CPU, the host does what is in the group; else the device in its turn.
Result progress(ncclComm* comm) {
  if (comm->failure != kSuccess) return comm->failure;
  if (comm->is_connecting()) return kInProgress;
  if (!comm->group) return kSuccess;
  comm->num_connecting = 0;
  if (comm->group->stream == nullptr) {
    const Result result = comm->progress(*comm->group);
    if (result == kSuccess) comm->group = nullptr;
    return result;
  }
  using LaunchHostFunc = int(void* stream, void (*function)(void*), void* data);
  static auto* const launch_host_func = of_device<LaunchHostFunc>("_Z18cudaLaunchHostFuncP11CUstream_stPFvPvES1_");
  if (launch_host_func == nullptr) return comm->fail(kInternalError, "there is no emulated device");
  void* stream = comm->group->stream;
  auto launch = std::make_unique<Launch>(Launch{comms.at(comm), std::move(comm->group)});
  const int status = launch_host_func(stream, &Launch::run, launch.get());
  if (status != 0) return comm->fail(kUnhandledCudaError, "the device has failed");
  static_cast<void>(launch.release());
  return kSuccess;
}

}  // namespace

namespace {

/// Logs the network that it has chosen, as NCCL does.
void log_network() {
  const char *level = std::getenv("NCCL_DEBUG"), *name = std::getenv("NCCL_DEBUG_FILE");
  if (level == nullptr || name == nullptr || std::strcmp(level, "INFO") != 0) return;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name, "a"), &std::fclose);
  if (!file) return;
  std::fputs("host:1:1 [0] NCCL INFO NCCL version 2.99.0+fake\nhost:1:1 [0] NCCL INFO Using network Memory\n",
             file.get());
}

/// Group calls of one thread.
thread_local int group_depth = 0;

Result check(const ncclComm* comm, int peer, int data_type) {
  const bool valid =
      comm != nullptr && group_depth > 0 && peer >= 0 && peer < comm->world->world_size && data_type == 0;
  return valid ? kSuccess : kInvalidArgument;
}

void leave(ncclComm* comm) {
  const std::lock_guard lock(mutex);
  comm->world->left[static_cast<std::size_t>(comm->rank)] = true;
  comm->is_aborted = true;
  comms.erase(comm);
  tell_ranks_on_device(-1);
  changed.notify_all();
}

}  // namespace

/// For tests: the time that a connection takes from now on.
ZF_EXPORT void zfFakeNcclConnectMs(int ms) { connect_ms = ms; }

/// For tests: messages that are sent from now on are lost, or are not.
ZF_EXPORT void zfFakeNcclLoseMessages(int are_lost) { loses_messages = are_lost; }

/// For tests: the most peers to which a rank connected in one group since the last call.
ZF_EXPORT int zfFakeNcclMostAtOnce() { return most_at_once.exchange(0); }

ZF_EXPORT const char* ncclGetErrorString(Result result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCudaError:
      return "unhandled cuda error";
    case kInternalError:
      return "internal error";
    case kInvalidArgument:
      return "invalid argument";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    case kInProgress:
      return "in progress";
    default:
      return "unknown result";
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
  const bool valid =
      config->size == 24 && config->magic == 0xcafebeef && config->version == 21400 && config->blocking == 0;
  if (!valid || rank < 0 || rank >= world_size) return kInvalidArgument;
  const std::lock_guard lock(mutex);
  auto& world = worlds[std::string(id.bytes + 100)];
  if (!world) world = std::make_shared<World>();
  world->world_size = world_size;
  world->left.resize(static_cast<std::size_t>(world_size));
  ++world->num_joined;
  const auto made = std::make_shared<ncclComm>();
  made->world = world;
  made->rank = rank;
  comms[made.get()] = made;
  log_network();
  tell_ranks_on_device(1);
  *comm = made.get();
  return kInProgress;
}

ZF_EXPORT Result ncclCommGetAsyncError(ncclComm* comm, Result* state) {
  if (comm == nullptr) return kInvalidArgument;
  const std::lock_guard lock(mutex);
  *state = progress(comm);
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

ZF_EXPORT Result ncclSend(const void* source, std::size_t count, int data_type, int peer, ncclComm* comm,
                          void* stream) {
  const std::lock_guard lock(mutex);
  const Result result = check(comm, peer, data_type);
  if (result != kSuccess) return result;
  comm->connect(peer);
  comm->calls_on(stream).sends.push_back({static_cast<std::byte*>(const_cast<void*>(source)), count, peer});
  return result;
}

ZF_EXPORT Result ncclRecv(void* target, std::size_t count, int data_type, int peer, ncclComm* comm, void* stream) {
  const std::lock_guard lock(mutex);
  const Result result = check(comm, peer, data_type);
  if (result != kSuccess) return result;
  comm->connect(peer);
  comm->calls_on(stream).recvs.push_back({static_cast<std::byte*>(target), count, peer});
  return result;
}

ZF_EXPORT Result ncclAllGather(const void* source, void* target, std::size_t count, int data_type, ncclComm* comm,
                               void* stream) {
  const std::lock_guard lock(mutex);
  const Result result = check(comm, 0, data_type);
  if (result != kSuccess) return result;
  comm->connect(comm->rank);  // to all of them, at the first call
  Batch& calls = comm->calls_on(stream);
  auto* own = static_cast<std::byte*>(const_cast<void*>(source));
  for (int peer = 0; peer < comm->world->world_size; ++peer) {
    std::byte* piece = static_cast<std::byte*>(target) + static_cast<std::size_t>(peer) * count;
    if (peer == comm->rank) {
      calls.copies.push_back({{piece, count, peer}, source});
    } else {
      calls.sends.push_back({own, count, peer});
      calls.recvs.push_back({piece, count, peer});
    }
  }
  return kSuccess;
}
