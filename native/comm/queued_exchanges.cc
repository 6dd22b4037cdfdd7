#include "comm/queued_exchanges.h"

#include "core/threads/pause.h"

namespace zerofleet {

QueuedExchanges::Exchange::Exchange(const Stream& stream, std::unique_ptr<Watch> exchange_watch)
    : watch(std::move(exchange_watch)), begun(stream.device()), done(stream.device()) {
  begun.record(stream);
}

void QueuedExchanges::Exchange::begin() {
  watch->begin();
  has_begun = true;
}

void QueuedExchanges::wait_for_room() {
  for (Pause pause; queue_.size() >= kMost; pause()) look();
}

void QueuedExchanges::add(Exchange exchange) {
  exchange.done.record(stream_);
  queue_.push_back(std::move(exchange));
}

void QueuedExchanges::look() {
  try {
    forget_done();
  } catch (...) {
    abandon();
    throw;
  }
}

void QueuedExchanges::forget_done() {
  while (!queue_.empty()) {
    Exchange& first = queue_.front();
    if (!first.has_begun && first.begun.is_done()) first.begin();
    const bool is_done = first.has_begun && first.done.is_done();
    first.watch->check();  // also then: an exchange that failed ends, too
    if (!is_done) return;
    queue_.pop_front();
  }
}

void QueuedExchanges::wait() {
  for (Pause pause; !queue_.empty(); pause()) look();
}

void QueuedExchanges::abandon() noexcept {
  for (const Exchange& exchange : queue_) exchange.watch->abort();
  queue_.clear();
}

}  // namespace zerofleet
