#include "comm/nccl_comm.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "comm/connect_progress.h"
#include "comm/exchange_check.h"
#include "comm/group_place.h"
#include "comm/nccl_handle.h"
#include "comm/one_device_here.h"
#include "comm/pulse.h"
#include "core/cuda/cuda_runtime.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {
namespace {

using nccl::CommHandle;
using nccl::Library;
using nccl::Result;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// Ranks connect to so many others at once, and have so much time for each of them beyond the timeout: TCP repeats the first packet of a
/// connection after one second, should it be lost.
constexpr int kPeersAtOnce = 16;
constexpr Milliseconds kConnectTime{2000};

/// Counts bytes in NCCL's calls.
std::size_t count_of(const Range& bytes) { return static_cast<std::size_t>(bytes.size()); }

/// Queues calls of a group until the first that fails.
class GroupCalls {
 public:
  GroupCalls(const Library& library, CommHandle* comm, CUstream_st* stream)
      : library_(library), comm_(comm), stream_(stream) {}

  void send(std::span<const std::byte> buffer, const Range& bytes, int peer) {
    if (bytes.empty() || result_ != nccl::kSuccess) return;
    note(library_.send(buffer.data() + bytes.begin, count_of(bytes), nccl::kByte, peer, comm_, stream_));
  }
  void recv(std::span<std::byte> buffer, const Range& bytes, int peer) {
    if (bytes.empty() || result_ != nccl::kSuccess) return;
    note(library_.recv(buffer.data() + bytes.begin, count_of(bytes), nccl::kByte, peer, comm_, stream_));
  }
  Result result() const { return result_; }

 private:
  void note(Result result) {
    if (result != nccl::kInProgress) result_ = result;
  }

  const Library& library_;
  CommHandle* comm_;
  CUstream_st* stream_;
  Result result_ = nccl::kSuccess;
};

class NcclComm final : public Communicator {
 public:
  NcclComm(const NcclBackend& backend, const NcclOptions& options, const nccl::UniqueId& id, KvStore& store)
      : backend_(backend),
        one_device_here_(id, options.device),
        rank_(options.rank),
        world_size_(options.world_size),
        stream_(options.device, Stream::Priority::kUrgent),
        context_{options.device, nullptr, CpuIsa::kGeneric, &stream_},
        handle_(backend.library, stream_, id, options.rank, options.world_size, options.timeout),
        pulse_({options.rank, options.world_size, options.bind_address, options.timeout, options.key_prefix}, store) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    check_messages(sends, world_size(), send.size(), "send");
    check_messages(recvs, world_size(), recv.size(), "recv");
    const auto source = reach(send, send_copy_), target = reach(recv, recv_copy_);
    for (const Message& message : sends) bring(send, source, message.bytes);
    for_own_messages(sends, recvs, rank(), [&](const Range& to, const Range& from) {
      copy_bytes(context_, piece_of(target, to), piece_of(std::span<const std::byte>(source), from));
    });
    run_group("all_to_all", [&](GroupCalls& calls) {
      for_each_message(sends, rank(), [&](const Message& m, std::uint32_t) { calls.send(source, m.bytes, m.peer); });
      for_each_message(recvs, rank(), [&](const Message& m, std::uint32_t) { calls.recv(target, m.bytes, m.peer); });
    });
    for (const Message& message : recvs) take(recv, target, message.bytes);
  }

  void all_gather(std::span<std::byte> data, std::span<const Range> pieces_bytes) override {
    check_pieces(pieces_bytes, world_size(), data.size(), "data");
    const Range own = pieces_bytes[static_cast<std::size_t>(rank())];
    const auto target = reach(data, recv_copy_);
    bring(data, target, own);
    const bool equal = std::ranges::all_of(pieces_bytes, [&](const Range& piece) { return piece.size() == own.size(); });
    if (equal && !own.empty()) {
      // NCCL connects the ranks of a collective when it is first called.
      const Milliseconds more = std::exchange(has_gathered_, true) ? Milliseconds{} : kConnectTime * kPeersAtOnce;
      run_calls("all_gather", more, [&](const Library& library, CommHandle* comm, CUstream_st* stream) {
        return library.all_gather(target.data() + own.begin, target.data() + pieces_bytes.front().begin, count_of(own),
                                  nccl::kByte, comm, stream);
      });
    } else {
      run_group("all_gather", [&](GroupCalls& calls) {
        for (int distance = 1; distance < world_size(); ++distance) {
          const int peer = peer_at(distance);
          calls.send(target, own, peer);
          calls.recv(target, pieces_bytes[static_cast<std::size_t>(peer)], peer);
        }
      });
    }
    take(data, target, {pieces_bytes.front().begin, pieces_bytes.back().end});
  }

  void barrier() override {
    std::vector<std::byte> marks(static_cast<std::size_t>(world_size()));
    std::vector<Range> pieces;
    for (std::int64_t r = 0; r < world_size(); ++r) pieces.push_back({r, r + 1});
    all_gather(marks, pieces);
  }

  void abort() override { pulse_.abort(); }

 private:
  /// An exchange, until it is done or the pulse gives it up; `also` is called again and again meanwhile.
  template <class Calls>
  void run_calls(const char* during, Milliseconds more, Calls&& calls, const std::function<void()>& also = [] {}) {
    const Pulse::Exchange exchange(pulse_, nullptr, more);
    handle_.run_group(during, calls, [&] {
      exchange.check();
      also();
    });
  }

  /// A group of messages between ranks, all of which are connected before the first one.
  template <class Body>
  void run_group(const char* during, Body&& body) {
    if (!std::exchange(is_connected_, true)) connect_peers();
    run_calls(during, {}, grouped(body));
  }

  template <class Body>
  static auto grouped(Body& body) {
    return [&body](const Library& library, CommHandle* comm, CUstream_st* stream) {
      GroupCalls calls(library, comm, stream);
      body(calls);
      return calls.result();
    };
  }

  /// NCCL connects two ranks at the first message between them, which takes long among many ranks. So a byte goes between all pairs, in
  /// rounds whose time is bounded by their number of connections, before the messages whose time is not.
  void connect_peers() {
    ConnectProgress progress(rank(), world_size(), Clock::now(), [](const std::string& line) {
      std::fprintf(stderr, "%s\n", line.c_str());
    });
    Buffer bytes(context_.device, 2 * static_cast<std::size_t>(kPeersAtOnce));
    for (int first = 1; first < world_size(); first += kPeersAtOnce) {
      const int count = std::min(kPeersAtOnce, world_size() - first);
      auto round = [&](GroupCalls& calls) {
        for (int i = 0; i < count; ++i) {
          calls.send({bytes.data(), bytes.num_bytes()}, {i, i + 1}, peer_at(first + i));
          calls.recv({bytes.data(), bytes.num_bytes()}, {kPeersAtOnce + i, kPeersAtOnce + i + 1}, peer_at(-first - i));
        }
      };
      run_calls("connecting ranks", kConnectTime * count, grouped(round), [&] { progress.tick(Clock::now()); });
      progress.connected(count, Clock::now());
    }
  }

  /// Every rank begins with the peer after itself, so that not all of them send to the same one at once.
  int peer_at(int distance) const { return (rank() + distance + world_size()) % world_size(); }

  /// Returns the buffer that NCCL uses: the caller's if it is on the device, else `copy`, made large enough. Sending
  /// does not write, but one type of span keeps the rest simple.
  std::span<std::byte> reach(std::span<const std::byte> buffer, Buffer& copy) {
    if (buffer.empty() || backend_.is_device_memory(buffer.data())) {
      return {const_cast<std::byte*>(buffer.data()), buffer.size()};
    }
    if (copy.num_bytes() < buffer.size()) copy = Buffer(context_.device, buffer.size());
    return {copy.data(), buffer.size()};
  }

  /// The caller's bytes → the buffer that NCCL sees, where they are two.
  void bring(std::span<const std::byte> buffer, std::span<std::byte> reached, const Range& bytes) {
    if (buffer.data() == reached.data()) return;
    copy_bytes(context_, piece_of(reached, bytes), context_.device, piece_of(buffer, bytes), Device{});
  }

  /// The other way round.
  void take(std::span<std::byte> buffer, std::span<const std::byte> reached, const Range& bytes) {
    if (buffer.data() == reached.data()) return;
    copy_bytes(context_, piece_of(buffer, bytes), Device{}, piece_of(reached, bytes), context_.device);
  }

  NcclBackend backend_;
  OneDeviceHere one_device_here_;
  int rank_, world_size_;
  Stream stream_;
  Context context_;
  Buffer send_copy_, recv_copy_;  // of host memory, on the device
  bool is_connected_ = false, has_gathered_ = false;
  nccl::Handle handle_;  // behind the memory that an exchange may still use, so that it is gone before that
  Pulse pulse_;
};

/// Rank 0 makes the id under which the ranks find one another, and publishes it.
nccl::UniqueId meet(const Library& library, const NcclOptions& options, KvStore& store) {
  const std::string key = options.key_prefix + "nccl-unique-id";
  nccl::UniqueId id;
  if (options.rank == 0) {
    const Result result = library.get_unique_id(&id);
    require(result == nccl::kSuccess, "comm_failed", std::string("NCCL: ") + library.get_error_string(result));
    const auto* first = reinterpret_cast<const std::uint8_t*>(id.bytes);
    store.set(key, KvStore::Bytes(first, first + sizeof id.bytes));
    return id;
  }
  const KvStore::Bytes bytes = store.wait(key, options.timeout);
  require(bytes.size() == sizeof id.bytes, "comm_failed", "the id of NCCL's rendezvous has a wrong size");
  std::memcpy(id.bytes, bytes.data(), sizeof id.bytes);
  return id;
}

NcclOptions at(const NcclOptions& options, const GroupPlace& place, const std::string& name) {
  NcclOptions of_group = options;
  of_group.rank = place.rank;
  of_group.world_size = place.world_size;
  of_group.key_prefix += name + "/";
  return of_group;
}

}  // namespace

std::unique_ptr<Communicator> connect_nccl_through(const NcclBackend& backend, const NcclOptions& options,
                                                   KvStore& store) {
  require(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size, "invalid_argument",
          "rank " + std::to_string(options.rank) + " is outside a world of " + std::to_string(options.world_size));
  require(options.timeout.count() > 0, "invalid_argument", "the time-out must be positive");
  return std::make_unique<NcclComm>(backend, options, meet(*backend.library, options, store), store);
}

std::unique_ptr<Communicator> connect_nccl(const NcclOptions& options, KvStore& store) {
  cuda::use(options.device);
  return connect_nccl_through({nccl::open_library(nccl::default_file_names()), cuda::is_device_memory}, options, store);
}

NcclOptions nccl_group(const NcclOptions& options, int num_groups) {
  const GroupPlace place = group_place(options.rank, options.world_size, num_groups);
  return at(options, place, "group-" + std::to_string(place.group) + "-of-" + std::to_string(num_groups));
}

NcclOptions nccl_neighbours(const NcclOptions& options, int group_size) {
  const GroupPlace place = neighbour_place(options.rank, options.world_size, group_size);
  return at(options, place, "neighbours-" + std::to_string(place.group));
}

std::unique_ptr<Communicator> connect_nccl_group(const NcclOptions& options, int num_groups, KvStore& store) {
  return connect_nccl(nccl_group(options, num_groups), store);
}

std::unique_ptr<Communicator> connect_nccl_neighbours(const NcclOptions& options, int group_size, KvStore& store) {
  return connect_nccl(nccl_neighbours(options, group_size), store);
}

}  // namespace zerofleet
