#include "comm/gloo_comm.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "comm/exchange_check.h"
#include "comm/pulse.h"

namespace zerofleet {
namespace {

using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds kNoTimeout = std::chrono::hours(24 * 365);  // of Gloo: the pulse decides how long a rank waits

/// Gloo's view of our KvStore.
class StoreAdapter final : public gloo::rendezvous::Store {
 public:
  StoreAdapter(KvStore& store, const GlooOptions& options)
      : store_(store), prefix_(options.key_prefix), timeout_(options.timeout) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(prefix_ + key, {data.begin(), data.end()});
  }

  std::vector<char> get(const std::string& key) override {
    const KvStore::Bytes value = store_.wait(prefix_ + key, timeout_);
    return {value.begin(), value.end()};
  }

  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }

  void wait(const std::vector<std::string>& keys, const Milliseconds& timeout) override {
    for (const std::string& key : keys) store_.wait(prefix_ + key, timeout);
  }

 private:
  KvStore& store_;
  std::string prefix_;
  Milliseconds timeout_;
};

/// Gloo distinguishes a silent peer from a lost one only in its message text.
[[noreturn]] void throw_as_error(const std::exception& cause, const std::string& during) {
  const std::string_view what = cause.what();
  const auto says = [&](std::string_view words) { return what.find(words) != std::string_view::npos; };
  const bool is_timeout = says("imed out") || says("imeout");
  throw Error(is_timeout ? "comm_timeout" : "comm_failed", during + ": " + cause.what());
}

template <class Call>
void translate_errors(const std::string& during, Call&& call) {
  try {
    call();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& cause) {
    throw_as_error(cause, during);
  }
}

bool can_bind(const addrinfo& address) {
  const int descriptor = ::socket(address.ai_family, address.ai_socktype, address.ai_protocol);
  if (descriptor < 0) return false;
  const bool bound = ::bind(descriptor, address.ai_addr, address.ai_addrlen) == 0;
  ::close(descriptor);
  return bound;
}

/// Looks the address up and binds to it for a moment. Gloo 0.5.0 would do the same, but reads an uninitialised pointer
/// when the name has no address and leaks memory when it cannot be bound.
void check_bind_address(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  require(status == 0, "comm_failed", "no address for '" + host + "': " + ::gai_strerror(status));
  bool bound = false;
  for (const addrinfo* address = found; address != nullptr && !bound; address = address->ai_next) {
    bound = can_bind(*address);
  }
  ::freeaddrinfo(found);
  require(bound, "comm_failed", "'" + host + "' is not an address of this machine: cannot bind to it");
}

/// Collectives over Gloo's point-to-point messages: every rank sends each piece straight to the rank that needs it, all
/// pairs at once. Empty pieces are not sent at all. Gloo's own collectives would do for full pieces, but copy the input
/// of an in-place gather and leave zero sizes undefined.
class GlooComm final : public Communicator {
 public:
  GlooComm(std::shared_ptr<gloo::rendezvous::Context> context, const GlooOptions& options, KvStore& store)
      : context_(std::move(context)),
        pulse_({options.rank, options.world_size, options.bind_address, options.timeout, options.key_prefix}, store) {}

  int rank() const override { return context_->rank; }
  int world_size() const override { return context_->size; }

  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    check_messages(sends, world_size(), send.size(), "send");
    check_messages(recvs, world_size(), recv.size(), "recv");
    translate_errors("all_to_all", [&] {
      auto source = context_->createUnboundBuffer(const_cast<std::byte*>(send.data()), send.size());
      auto target = context_->createUnboundBuffer(recv.data(), recv.size());
      Pending pending{*source, *target};
      for_each_message(recvs, rank(),
                       [&](const Message& m, std::uint32_t number) { pending.recv(m.peer, slot(number), m.bytes); });
      for_each_message(sends, rank(),
                       [&](const Message& m, std::uint32_t number) { pending.send(m.peer, slot(number), m.bytes); });
      for_own_messages(sends, recvs, rank(), [&](const Range& to, const Range& from) {
        copy_piece(piece_of(send, from), piece_of(recv, to));
      });
      wait(pending);
    });
    ++num_calls_;
  }

  // One after the other: a message costs its latency, but nothing is started for it.
  void all_gathers(std::span<const Gather> gathers) override {
    check_gathers(gathers, world_size());
    const auto own = static_cast<std::size_t>(rank());
    for (const auto& [data, pieces_bytes] : gathers) {
      translate_errors("all_gather", [&] {
        auto buffer = context_->createUnboundBuffer(data.data(), data.size());
        Pending pending{*buffer, *buffer};
        for_each_peer([&](int peer) { pending.recv(peer, slot(0), pieces_bytes[static_cast<std::size_t>(peer)]); });
        for_each_peer([&](int peer) { pending.send(peer, slot(0), pieces_bytes[own]); });
        wait(pending);
      });
      ++num_calls_;
    }
  }

  void barrier() override {
    std::vector<std::byte> marks(static_cast<std::size_t>(world_size()));
    std::vector<Range> pieces;
    for (std::int64_t r = 0; r < world_size(); ++r) pieces.push_back({r, r + 1});
    all_gather(marks, pieces);
  }

  bool joins_processes() const override { return true; }

  void abort() override { pulse_.abort(); }

 private:
  /// Messages in progress in one collective.
  struct Pending {
    gloo::transport::UnboundBuffer& source;
    gloo::transport::UnboundBuffer& target;
    int num_sends = 0;
    int num_recvs = 0;

    void send(int peer, std::uint64_t slot, const Range& bytes) {
      if (bytes.empty()) return;
      source.send(peer, slot, static_cast<std::size_t>(bytes.begin), static_cast<std::size_t>(bytes.size()));
      ++num_sends;
    }
    void recv(int peer, std::uint64_t slot, const Range& bytes) {
      if (bytes.empty()) return;
      target.recv(peer, slot, static_cast<std::size_t>(bytes.begin), static_cast<std::size_t>(bytes.size()));
      ++num_recvs;
    }
  };

  /// The slot of a message, by its number among those of a pair: messages of two calls can't be taken for each other.
  std::uint64_t slot(std::uint32_t number) const { return (num_calls_ << 32) | number; }

  /// Waits until all messages have arrived, or until the pulse gives them up.
  void wait(Pending& pending) {
    Pulse::Exchange exchange(pulse_, [&] {
      pending.target.abortWaitRecv();
      pending.source.abortWaitSend();
    });
    try {
      for (; pending.num_recvs > 0; --pending.num_recvs) {
        pending.target.waitRecv(kNoTimeout);
        exchange.moved();
      }
      for (; pending.num_sends > 0; --pending.num_sends) {
        pending.source.waitSend(kNoTimeout);
        exchange.moved();
      }
    } catch (...) {
      context_->closeConnections();  // no message may come into the buffers any more, and the other ranks learn of it
      throw;
    }
  }

  /// Every rank begins with the peer after itself, so that not all of them send to the same one at once.
  template <class Body>
  void for_each_peer(Body&& body) {
    for (int distance = 1; distance < world_size(); ++distance) {
      body((rank() + distance) % world_size());
    }
  }

  // Left to its destructor, which lets the system send what it still holds: closeConnections() would drop it.
  std::shared_ptr<gloo::rendezvous::Context> context_;
  Pulse pulse_;
  std::uint64_t num_calls_ = 0;
};

/// Connects a world of the ranks of one group, whose keys in the store begin with its name.
std::unique_ptr<Communicator> connect_at(const GlooOptions& options, const GroupMember& member, const std::string& name,
                                         KvStore& store) {
  GlooOptions of_group = options;
  of_group.rank = member.rank;
  of_group.world_size = member.world_size;
  of_group.key_prefix += name + "/";
  return connect_gloo(of_group, store);
}

}  // namespace

bool gloo_built_in() { return true; }

std::unique_ptr<Communicator> connect_gloo_group(const GlooOptions& options, int num_groups, KvStore& store) {
  const GroupMember member = group_member(options.rank, options.world_size, num_groups);
  return connect_at(options, member, "group-" + std::to_string(member.group) + "-of-" + std::to_string(num_groups),
                    store);
}

std::unique_ptr<Communicator> connect_gloo_neighbours(const GlooOptions& options, int group_size, KvStore& store) {
  const GroupMember member = neighbour_member(options.rank, options.world_size, group_size);
  return connect_at(options, member, "neighbours-" + std::to_string(member.group), store);
}

std::unique_ptr<Communicator> connect_gloo(const GlooOptions& options, KvStore& store) {
  require(options.world_size >= 1 && options.rank >= 0 && options.rank < options.world_size, "invalid_argument",
          "rank " + std::to_string(options.rank) + " is outside a world of " + std::to_string(options.world_size));
  require(options.timeout.count() > 0, "invalid_argument", "the time-out must be positive");
  check_bind_address(options.bind_address);
  auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.world_size);
  context->setTimeout(options.timeout);
  translate_errors("connecting ranks", [&] {
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options.bind_address.c_str()));
    StoreAdapter adapter(store, options);
    context->connectFullMesh(adapter, device);
  });
  auto comm = std::make_unique<GlooComm>(std::move(context), options, store);
  // A rank that is done connecting may still be waited for by others; leaving now would break their connecting.
  comm->barrier();
  return comm;
}

}  // namespace zerofleet
