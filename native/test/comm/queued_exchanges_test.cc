#include "comm/queued_exchanges.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/devices_here.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// Events of a test's exchanges, in order.
using Events = std::vector<std::string>;

class NotedWatch final : public QueuedExchanges::Watch {
 public:
  NotedWatch(Events& events, std::string name, bool fails = false)
      : events_(events), name_(std::move(name)), fails_(fails) {}
  ~NotedWatch() override { events_.push_back(name_ + " is over"); }
  void begin() override { events_.push_back(name_ + " begins"); }
  void check() override {
    if (fails_) throw Error("comm_failed", name_ + " fails");
  }
  void abort() noexcept override { events_.push_back(name_ + " is aborted"); }

 private:
  Events& events_;
  std::string name_;
  bool fails_;
};

void add(QueuedExchanges& exchanges, Events& events, const std::string& name, bool fails = false) {
  exchanges.add({exchanges.stream(), std::make_unique<NotedWatch>(events, name, fails)});
}

}  // namespace

DEVICE_TEST_CASE("queued exchanges begin and end in their order") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    Stream stream(device);
    QueuedExchanges exchanges(stream);
    Events events;
    add(exchanges, events, "a");
    add(exchanges, events, "b");
    CHECK(!exchanges.is_empty());
    exchanges.wait();
    CHECK(exchanges.is_empty());
    CHECK(events == Events{"a begins", "a is over", "b begins", "b is over"});
  }
}

DEVICE_TEST_CASE("an exchange that fails ends all that are queued, also one that is done when it is looked at") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    Stream stream(device);
    QueuedExchanges exchanges(stream);
    Events events;
    add(exchanges, events, "a");
    add(exchanges, events, "b", true);
    add(exchanges, events, "c");
    stream.synchronize();
    CHECK(code_of([&] { exchanges.wait(); }) == "comm_failed");
    CHECK(exchanges.is_empty());
    CHECK(events ==
          Events{"a begins", "a is over", "b begins", "b is aborted", "c is aborted", "b is over", "c is over"});
  }
}

TEST_CASE("queued exchanges: communicators run ahead only while they are told to") {
  Stream stream{Device{}};
  QueuedExchanges exchanges(stream);
  CHECK(!exchanges.runs_ahead());
  exchanges.run_ahead([&] { CHECK(exchanges.runs_ahead()); });
  CHECK(!exchanges.runs_ahead());
  CHECK(code_of([&] { exchanges.run_ahead([] { throw Error("test", "a task fails"); }); }) == "test");
  CHECK(!exchanges.runs_ahead());
}
