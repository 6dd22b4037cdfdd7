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
#include "comm/group_member.h"
#include "comm/nccl_handle.h"
#include "comm/one_device_here.h"
#include "comm/pulse.h"
#include "comm/queued_exchanges.h"
#include "core/cuda/cuda_runtime.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {
namespace {

using nccl::GroupCalls;
using nccl::Library;
using nccl::Result;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// Number of peers to which a rank connects at once, and time for each of them beyond the timeout. TCP repeats a lost
/// first packet of a connection after one second.
constexpr int kPeersAtOnce = 16;
constexpr Milliseconds kConnectTime{2000};

class NcclComm final : public Communicator {
 public:
  NcclComm(const NcclBackend& backend, const NcclOptions& options, const nccl::UniqueId& id, KvStore& store)
      : backend_(backend),
        one_device_here_(id, options.device),
        rank_(options.rank),
        world_size_(options.world_size),
        device_(options.device),
        own_stream_(options.device, Stream::Priority::kUrgent),
        handle_(backend.library, id, options.rank, options.world_size, options.timeout),
        pulse_({options.rank, options.world_size, options.bind_address, options.timeout, options.key_prefix}, store) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }

  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    check_messages(sends, world_size(), send.size(), "send");
    check_messages(recvs, world_size(), recv.size(), "recv");
    const auto source = reach(send, send_copy_), target = reach(recv, recv_copy_);
    const bool ahead = runs_ahead(source.data() == send.data() && target.data() == recv.data() && is_connected_);
    connect_peers();
    for (const Message& message : sends) bring(send, source, message.bytes);
    for_own_messages(sends, recvs, rank(), [&](const Range& to, const Range& from) {
      copy_bytes(context(), piece_of(target, to), piece_of(std::span<const std::byte>(source), from));
    });
    run_calls("all_to_all", ahead, {}, [&](GroupCalls& calls) {
      for_each_message(sends, rank(), [&](const Message& m, std::uint32_t) { calls.send(source, m.bytes, m.peer); });
      for_each_message(recvs, rank(), [&](const Message& m, std::uint32_t) { calls.recv(target, m.bytes, m.peer); });
    });
    for (const Message& message : recvs) take(recv, target, message.bytes);
  }

  void all_gathers(std::span<const Gather> gathers) override {
    check_gathers(gathers, world_size());
    const auto is_here = [this](const Gather& gather) { return is_on_device(gather.data); };
    if (std::ranges::all_of(gathers, is_here)) return gather_in_place(gathers, true);
    for (const auto& [data, pieces_bytes] : gathers) {
      const auto target = reach(data, recv_copy_);
      const Gather there{target, pieces_bytes};
      bring(data, target, pieces_bytes[static_cast<std::size_t>(rank())]);
      gather_in_place({&there, 1}, false);
      take(data, target, {pieces_bytes.front().begin, pieces_bytes.back().end});
    }
  }

  void barrier() override {
    std::vector<std::byte> marks(static_cast<std::size_t>(world_size()));
    std::vector<Range> pieces;
    for (std::int64_t r = 0; r < world_size(); ++r) pieces.push_back({r, r + 1});
    all_gather(marks, pieces);
  }

  bool queue_on(QueuedExchanges* exchanges) override {
    exchanges_ = exchanges == nullptr ? &own_exchanges_ : exchanges;
    return true;
  }

  void abort() override { pulse_.abort(); }

 private:
  /// Returns true if the exchange that follows is left in the queue, which has room for it then. Otherwise nothing is
  /// before it, so that NCCL may connect ranks, and the host use its results.
  bool runs_ahead(bool is_possible) {
    if (!exchanges_->runs_ahead()) return false;
    if (is_possible) {
      exchanges_->wait_for_room();
    } else {
      exchanges_->wait();
      exchanges_->stream().synchronize();
    }
    return is_possible;
  }

  /// Queues an exchange, and waits until it is done unless it runs ahead; `also` is called again and again while it is
  /// queued.
  template <class Body>
  void run_calls(
      const char* during, bool ahead, Milliseconds more, Body&& body, const std::function<void()>& also = [] {}) {
    Stream& stream = exchanges_->stream();
    QueuedExchanges::Exchange exchange(stream, std::make_unique<nccl::Watch>(handle_, pulse_, during, more));
    try {
      if (!ahead) exchange.begin();
      handle_.run_group(during, stream, body, [&] {
        pulse_.check();
        also();
      });
      exchanges_->add(std::move(exchange));
    } catch (...) {
      handle_.abort();
      exchanges_->abandon();
      throw;
    }
    if (!ahead) exchanges_->wait();
  }

  void gather_in_place(std::span<const Gather> gathers, bool on_device) {
    const bool any_equal = std::ranges::any_of(gathers, [this](const Gather& gather) { return is_equal(gather); });
    const bool all_equal = std::ranges::all_of(gathers, [this](const Gather& gather) { return is_equal(gather); });
    const bool ahead = runs_ahead(on_device && (has_gathered_ || !any_equal) && (is_connected_ || all_equal));
    if (!all_equal) connect_peers();
    // NCCL connects the ranks of a collective when it is first called.
    const bool connects = any_equal && !std::exchange(has_gathered_, has_gathered_ || any_equal);
    run_calls("all_gather", ahead, connects ? kConnectTime * kPeersAtOnce : Milliseconds{}, [&](GroupCalls& calls) {
      for (const Gather& gather : gathers) {
        const Range own = gather.pieces_bytes[static_cast<std::size_t>(rank())];
        if (is_equal(gather)) {
          calls.all_gather(gather, own);
          continue;
        }
        for (int distance = 1; distance < world_size(); ++distance) {
          const int peer = peer_at(distance);
          calls.send(gather.data, own, peer);
          calls.recv(gather.data, gather.pieces_bytes[static_cast<std::size_t>(peer)], peer);
        }
      }
    });
  }

  /// Pieces of one size, and not of none.
  static bool is_equal(const Gather& gather) {
    const std::int64_t size = gather.pieces_bytes.front().size();
    return size > 0 &&
           std::ranges::all_of(gather.pieces_bytes, [&](const Range& piece) { return piece.size() == size; });
  }

  /// NCCL connects two ranks at the first message between them, which takes long among many ranks. So a byte goes
  /// between all pairs, in rounds whose time is bounded by their number of connections, before the messages whose time
  /// is not.
  void connect_peers() {
    if (std::exchange(is_connected_, true)) return;
    ConnectProgress progress(rank(), world_size(), Clock::now(),
                             [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
    Buffer bytes(device_, 2 * static_cast<std::size_t>(kPeersAtOnce));
    for (int first = 1; first < world_size(); first += kPeersAtOnce) {
      const int count = std::min(kPeersAtOnce, world_size() - first);
      auto round = [&](GroupCalls& calls) {
        for (int i = 0; i < count; ++i) {
          calls.send({bytes.data(), bytes.num_bytes()}, {i, i + 1}, peer_at(first + i));
          calls.recv({bytes.data(), bytes.num_bytes()}, {kPeersAtOnce + i, kPeersAtOnce + i + 1}, peer_at(-first - i));
        }
      };
      run_calls("connecting ranks", false, kConnectTime * count, round, [&] { progress.tick(Clock::now()); });
      progress.connected(count, Clock::now());
    }
  }

  /// Every rank begins with the peer after itself, so that not all of them send to the same one at once.
  int peer_at(int distance) const { return (rank() + distance + world_size()) % world_size(); }

  Context context() { return {device_, nullptr, CpuIsa::kGeneric, &exchanges_->stream()}; }

  bool is_on_device(std::span<const std::byte> buffer) const {
    return buffer.empty() || backend_.is_device_memory(buffer.data());
  }

  /// Returns the buffer that NCCL uses: the caller's if it is on the device, else `copy`, made large enough. Sending
  /// does not write, but one type of span keeps the rest simple.
  std::span<std::byte> reach(std::span<const std::byte> buffer, Buffer& copy) {
    if (is_on_device(buffer)) {
      return {const_cast<std::byte*>(buffer.data()), buffer.size()};
    }
    if (copy.num_bytes() < buffer.size()) copy = Buffer(device_, buffer.size());
    return {copy.data(), buffer.size()};
  }

  /// The caller's bytes → the buffer that NCCL sees, where they are two.
  void bring(std::span<const std::byte> buffer, std::span<std::byte> reached, const Range& bytes) {
    if (buffer.data() == reached.data()) return;
    copy_bytes(context(), piece_of(reached, bytes), device_, piece_of(buffer, bytes), Device{});
  }

  /// The other way round.
  void take(std::span<std::byte> buffer, std::span<const std::byte> reached, const Range& bytes) {
    if (buffer.data() == reached.data()) return;
    copy_bytes(context(), piece_of(buffer, bytes), Device{}, piece_of(reached, bytes), device_);
  }

  NcclBackend backend_;
  OneDeviceHere one_device_here_;
  int rank_, world_size_;
  Device device_;
  Stream own_stream_;
  QueuedExchanges own_exchanges_{own_stream_};
  QueuedExchanges* exchanges_ = &own_exchanges_;
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

NcclOptions at(const NcclOptions& options, const GroupMember& member, const std::string& name) {
  NcclOptions of_group = options;
  of_group.rank = member.rank;
  of_group.world_size = member.world_size;
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
  const GroupMember member = group_member(options.rank, options.world_size, num_groups);
  return at(options, member, "group-" + std::to_string(member.group) + "-of-" + std::to_string(num_groups));
}

NcclOptions nccl_neighbours(const NcclOptions& options, int group_size) {
  const GroupMember member = neighbour_member(options.rank, options.world_size, group_size);
  return at(options, member, "neighbours-" + std::to_string(member.group));
}

std::unique_ptr<Communicator> connect_nccl_group(const NcclOptions& options, int num_groups, KvStore& store) {
  return connect_nccl(nccl_group(options, num_groups), store);
}

std::unique_ptr<Communicator> connect_nccl_neighbours(const NcclOptions& options, int group_size, KvStore& store) {
  return connect_nccl(nccl_neighbours(options, group_size), store);
}

}  // namespace zerofleet
