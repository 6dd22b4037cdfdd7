#include "comm/exchange_watch.h"

#include <doctest/doctest.h>

using namespace zerofleet;
using namespace std::chrono_literals;

namespace {

constexpr auto kTimeout = 100ms;
const ExchangeWatch::Time kStart{};  // a clock of the test's own

/// Rank 0 of three, that has begun one exchange; both peers were heard before it, at the start.
ExchangeWatch waiting_rank() {
  ExchangeWatch watch(0, 3, kTimeout, kStart);
  for (const int peer : {1, 2}) watch.heard(peer, 0, kStart);
  watch.begin(kStart);
  return watch;
}

}  // namespace

TEST_CASE("exchange_watch: a rank waits for as long as a peer says that it lives and has not come") {
  ExchangeWatch watch = waiting_rank();
  auto now = kStart;
  for (int tick = 0; tick < 1000; ++tick) {
    now += kTimeout / 2;
    watch.heard(1, 1, now);
    watch.heard(2, 0, now);
    CHECK(!watch.reason_to_give_up(now).has_value());
  }
  // From its arrival on, the exchange has the timeout to move.
  watch.heard(1, 1, now);
  watch.heard(2, 1, now);
  CHECK(!watch.reason_to_give_up(now + kTimeout - 1ms).has_value());
}

TEST_CASE("exchange_watch: a silent peer is given up after the time-out, and named") {
  ExchangeWatch watch = waiting_rank();
  watch.heard(1, 1, kStart + kTimeout);
  CHECK(watch.reason_to_give_up(kStart + kTimeout) == "nothing was heard of rank 2 for 100 ms");

  ExchangeWatch later = waiting_rank();
  later.heard(1, 1, kStart + 99ms);
  later.heard(2, 1, kStart + 99ms);
  CHECK(!later.reason_to_give_up(kStart + 99ms).has_value());
  later.heard(2, 1, kStart + 150ms);
  later.moved(kStart + 150ms);
  CHECK(!later.reason_to_give_up(kStart + 198ms).has_value());
  CHECK(later.reason_to_give_up(kStart + 199ms) == "nothing was heard of rank 1 for 100 ms");
}

TEST_CASE("exchange_watch: an exchange to which all have come has to move") {
  ExchangeWatch watch = waiting_rank();
  const auto all_live = [&](ExchangeWatch::Time now) {
    for (const int peer : {1, 2}) watch.heard(peer, 1, now);
  };
  all_live(kStart + 50ms);
  CHECK(!watch.reason_to_give_up(kStart + 50ms).has_value());
  watch.moved(kStart + 60ms);
  all_live(kStart + 159ms);
  CHECK(!watch.reason_to_give_up(kStart + 159ms).has_value());
  all_live(kStart + 160ms);
  CHECK(watch.reason_to_give_up(kStart + 160ms) ==
        "nothing moved for 100 ms, although all ranks have come to the exchange");
}

TEST_CASE(
    "exchange_watch: an exchange that is granted more time may stand still longer, and a peer may not be silent "
    "longer") {
  ExchangeWatch watch(0, 2, kTimeout, kStart);
  watch.begin(kStart, 3 * kTimeout);
  const auto reason_at = [&](ExchangeWatch::Time now) {
    watch.heard(1, watch.num_begun(), now);
    return watch.reason_to_give_up(now);
  };
  CHECK(!reason_at(kStart + 399ms).has_value());
  CHECK(reason_at(kStart + 400ms) == "nothing moved for 400 ms, although all ranks have come to the exchange");
  watch.end();
  watch.begin(kStart + 500ms);
  CHECK(!reason_at(kStart + 599ms).has_value());
  CHECK(reason_at(kStart + 600ms) == "nothing moved for 100 ms, although all ranks have come to the exchange");

  ExchangeWatch silent(0, 2, kTimeout, kStart);
  silent.begin(kStart, 3 * kTimeout);
  CHECK(silent.reason_to_give_up(kStart + kTimeout) == "nothing was heard of rank 1 for 100 ms");
}

TEST_CASE("exchange_watch: a number that came late takes nothing back") {
  ExchangeWatch watch = waiting_rank();
  for (const int peer : {1, 2}) watch.heard(peer, 1, kStart);
  for (const int peer : {1, 2}) watch.heard(peer, 0, kStart + kTimeout);
  CHECK(watch.reason_to_give_up(kStart + kTimeout).has_value());
}

TEST_CASE(
    "exchange_watch: silence does not count between exchanges, of ranks that left, and while this process was "
    "stopped") {
  ExchangeWatch watch = waiting_rank();
  watch.end();
  CHECK(!watch.reason_to_give_up(kStart + 1h).has_value());

  ExchangeWatch parting = waiting_rank();
  parting.heard(1, 0, kStart + 1h);
  parting.heard(2, ExchangeWatch::kHasLeft, kStart);
  CHECK(!parting.reason_to_give_up(kStart + 1h).has_value());

  ExchangeWatch woken = waiting_rank();
  woken.start_anew(kStart + 1h);
  CHECK(!woken.reason_to_give_up(kStart + 1h + 99ms).has_value());
  CHECK(woken.reason_to_give_up(kStart + 1h + 100ms) == "nothing was heard of rank 1 for 100 ms");
}

TEST_CASE("exchange_watch: all are heard when each peer was, once") {
  ExchangeWatch watch(1, 3, kTimeout, kStart);
  watch.heard(0, 0, kStart);
  CHECK(!watch.has_heard_all());
  watch.heard(2, 0, kStart);
  CHECK(watch.has_heard_all());
}
