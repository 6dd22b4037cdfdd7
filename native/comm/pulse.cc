#include "comm/pulse.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "core/threads/start_thread.h"

namespace zerofleet {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// Several beats may be lost or late within one timeout.
constexpr int kBeatsPerTimeout = 16;
constexpr Milliseconds kLongestInterval{1000};

int bound_socket(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), "0", &hints, &found);
  require(status == 0, "comm_failed", "no address for '" + host + "': " + ::gai_strerror(status));
  int fd = -1;
  for (const addrinfo* address = found; address != nullptr && fd < 0; address = address->ai_next) {
    fd = ::socket(address->ai_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && ::bind(fd, address->ai_addr, address->ai_addrlen) != 0) {
      ::close(fd);
      fd = -1;
    }
  }
  ::freeaddrinfo(found);
  require(fd >= 0, "comm_failed", "'" + host + "' is not an address of this machine: cannot bind to it (UDP)");
  return fd;
}

int wake_descriptor() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  require(fd >= 0, "comm_failed", std::string("no event descriptor: ") + std::strerror(errno));
  return fd;
}

std::uint64_t random_number() {
  std::random_device source;
  return static_cast<std::uint64_t>(source()) << 32 | source();
}

std::string key_of(const PulseOptions& options, int rank) {
  return options.key_prefix + "pulse/" + std::to_string(rank);
}

}  // namespace

Pulse::Descriptor::~Descriptor() { ::close(fd_); }

Pulse::Pulse(const PulseOptions& options, KvStore& store)
    : options_(options),
      interval_(std::clamp(options.timeout / kBeatsPerTimeout, Milliseconds(1), kLongestInterval)),
      socket_(bound_socket(options.bind_address)),
      wake_(wake_descriptor()),
      secret_(random_number()),
      watch_(options.rank, options.world_size, options.timeout, Clock::now()) {
  if (options_.world_size == 1) return;
  meet(store);
  {
    const std::lock_guard lock(mutex_);
    watch_.start_anew(Clock::now());
  }
  thread_ = start_thread<std::jthread>([this](const std::stop_token& stop) { run(stop); });
  std::unique_lock lock(mutex_);
  require(heard_.wait_for(lock, options_.timeout, [&] { return watch_.has_heard_all(); }), "comm_timeout",
          "connecting ranks: not all were heard of within " + std::to_string(options_.timeout.count()) +
              " ms; UDP has to be open between the workers");
}

Pulse::Contact Pulse::own_contact() const {
  Contact contact;
  static_assert(sizeof contact.address == sizeof(sockaddr_storage));
  socklen_t size = sizeof contact.address;
  require(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(contact.address.data()), &size) == 0, "comm_failed",
          std::string("a socket has no name: ") + std::strerror(errno));
  contact.address_bytes = size;
  contact.secret = secret_;
  return contact;
}

void Pulse::meet(KvStore& store) {
  const Contact own = own_contact();
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&own);
  store.set(key_of(options_, options_.rank), {bytes, bytes + sizeof own});
  for (int rank = 0; rank < options_.world_size; ++rank) {
    const KvStore::Bytes value = store.wait(key_of(options_, rank), options_.timeout);
    Contact contact;
    require(value.size() == sizeof contact, "comm_failed",
            "the address of rank " + std::to_string(rank) + " has a wrong size");
    std::memcpy(&contact, value.data(), sizeof contact);
    require(contact.address_bytes <= sizeof contact.address, "comm_failed",
            "the address of rank " + std::to_string(rank) + " is none");
    contacts_.push_back(contact);
  }
}

void Pulse::run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { ::eventfd_write(wake_.get(), 1); });
  send_beats(num_begun());
  Time last = Clock::now();
  while (!stop.stop_requested()) {
    std::array<pollfd, 2> waited{{{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    const auto left = std::chrono::ceil<Milliseconds>(last + interval_ - Clock::now());
    ::poll(waited.data(), waited.size(), static_cast<int>(std::max(left, Milliseconds(0)).count()));
    receive_beats();
    if (Clock::now() < last + interval_) continue;
    send_beats(num_begun());
    judge(last);
    last = Clock::now();
  }
  send_beats(ExchangeWatch::kHasLeft);
}

void Pulse::receive_beats() {
  Beat beat;
  for (;;) {
    const ssize_t size = ::recv(socket_.get(), &beat, sizeof beat, MSG_TRUNC);
    if (size < 0) return;
    if (size != sizeof beat || beat.secret != secret_ || beat.rank >= contacts_.size()) continue;
    const std::lock_guard lock(mutex_);
    watch_.heard(static_cast<int>(beat.rank), beat.num_begun, Clock::now());
    if (watch_.has_heard_all()) heard_.notify_all();
  }
}

std::uint64_t Pulse::num_begun() const {
  const std::lock_guard lock(mutex_);
  return watch_.num_begun();
}

void Pulse::send_beats(std::uint64_t num_begun) {
  Beat beat;
  beat.num_begun = num_begun;
  beat.rank = static_cast<std::uint32_t>(options_.rank);
  for (std::size_t rank = 0; rank < contacts_.size(); ++rank) {
    if (rank == beat.rank) continue;
    const Contact& contact = contacts_[rank];
    beat.secret = contact.secret;
    // A beat that can't be sent now is treated like a lost datagram.
    static_cast<void>(::sendto(socket_.get(), &beat, sizeof beat, 0,
                               reinterpret_cast<const sockaddr*>(contact.address.data()), contact.address_bytes));
  }
}

void Pulse::judge(Time last) {
  const std::lock_guard lock(mutex_);
  const Time now = Clock::now();
  if (now - last > options_.timeout / 2) {
    watch_.start_anew(now);
    return;
  }
  if (const auto reason = watch_.reason_to_give_up(now)) {
    fail("comm_timeout", options_.key_prefix.empty() ? *reason : *reason + " (ranks of " + options_.key_prefix + ")");
  }
}

void Pulse::fail(const char* code, const std::string& message) {
  if (failure_) return;
  failure_.emplace(code, message);
  if (give_up_) give_up_();
}

void Pulse::abort() {
  const std::lock_guard lock(mutex_);
  fail("comm_failed", "this rank has left");
}

void Pulse::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw *failure_;
}

Pulse::Exchange::Exchange(Pulse& pulse, std::function<void()> give_up, Milliseconds more) : pulse_(pulse) {
  const std::lock_guard lock(pulse_.mutex_);
  if (pulse_.failure_) throw *pulse_.failure_;
  pulse_.watch_.begin(Clock::now(), more);
  pulse_.give_up_ = std::move(give_up);
}

Pulse::Exchange::~Exchange() {
  const std::lock_guard lock(pulse_.mutex_);
  pulse_.watch_.end();
  pulse_.give_up_ = nullptr;
}

void Pulse::Exchange::moved() {
  pulse_.check();
  const std::lock_guard lock(pulse_.mutex_);
  pulse_.watch_.moved(Clock::now());
}

}  // namespace zerofleet
