#include "comm/nccl_handle.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/threads/pause.h"

namespace zerofleet::nccl {

using namespace std::chrono_literals;

Handle::Handle(std::shared_ptr<const Library> library, const UniqueId& id, int rank, int world_size,
               Milliseconds timeout)
    : library_(std::move(library)), timeout_(timeout) {
  Config config;
  config.blocking = 0;
  const Result result = library_->comm_init_rank_config(&comm_, world_size, id, rank, &config);
  if (result != kSuccess && result != kInProgress) fail("comm_failed", "connecting ranks: " + message_of(result));
  const auto deadline = Clock::now() + timeout_;
  wait("connecting ranks", [&] {
    require(Clock::now() < deadline, "comm_timeout",
            "not all ranks answered within " + std::to_string(timeout_.count()) + " ms");
  });
}

Handle::~Handle() {
  if (comm_ == nullptr) return;
  // A peer may still read memory of this rank that belongs to the communicator, so the ranks finalize together. A peer
  // that does not take part is abandoned after a timeout.
  const Result result = library_->comm_finalize(comm_);
  const bool ended =
      (result == kSuccess || result == kInProgress) && settles_within(std::min<Milliseconds>(timeout_, 5s));
  if (ended) {
    library_->comm_destroy(comm_);
  } else {
    abort();
  }
}

void Handle::begin_group(const char* during) {
  require(comm_ != nullptr, "comm_failed", std::string(during) + ": an exchange before this one has failed");
  const Result result = library_->group_start();
  if (result != kSuccess) fail("comm_failed", std::string(during) + ": " + message_of(result));
}

void Handle::end_group(const char* during, Result queued, const Check& check) {
  const Result ended = library_->group_end();  // in any case: a group that stays open would swallow later calls
  for (const Result result : {queued, ended}) {
    if (result != kSuccess && result != kInProgress) {
      fail("comm_failed", std::string(during) + ": " + message_of(result));
    }
  }
  wait(during, check);
}

void Handle::wait(const char* during, const Check& check) {
  for (Pause pause; !is_settled(during); pause()) run(check, during);
}

void Handle::look(const char* during, const Check& check) {
  is_settled(during);
  run(check, during);
}

bool Handle::is_settled(const char* during) {
  require(comm_ != nullptr, "comm_failed", std::string(during) + ": the communicator was aborted");
  Result state = kSuccess;
  const Result asked = library_->comm_get_async_error(comm_, &state);
  if (asked != kSuccess) state = asked;
  if (state != kSuccess && state != kInProgress) fail("comm_failed", std::string(during) + ": " + message_of(state));
  return state == kSuccess;
}

void Handle::run(const Check& check, const char* during) {
  try {
    check();
  } catch (const Error& error) {
    fail(error.code().c_str(), std::string(during) + ": " + error.what());
  }
}

void Handle::fail(const char* code, const std::string& message) {
  const std::string kept_code = code, kept_message = message;  // they may be NCCL's or an exception's own
  abort();
  throw Error(kept_code, kept_message);
}

std::string Handle::message_of(Result result) const {
  const char* last = library_->get_last_error(comm_);
  const std::string details = last == nullptr || *last == '\0' ? "" : std::string(" (") + last + ")";
  return std::string("NCCL: ") + library_->get_error_string(result) + details;
}

void Handle::abort() noexcept {
  if (comm_ != nullptr) library_->comm_abort(comm_);
  comm_ = nullptr;
}

bool Handle::settles_within(Milliseconds time) noexcept {
  const auto deadline = Clock::now() + time;
  Pause pause;
  for (;;) {
    Result state = kSuccess;
    if (library_->comm_get_async_error(comm_, &state) != kSuccess) return false;
    if (state != kInProgress) return state == kSuccess;
    if (Clock::now() >= deadline) return false;
    pause();
  }
}

}  // namespace zerofleet::nccl
