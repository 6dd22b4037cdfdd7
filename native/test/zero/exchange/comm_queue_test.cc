#include "zero/exchange/comm_queue.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "core/error.h"
#include "test/devices_here.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

DEVICE_TEST_CASE("comm_queue: an exchange of the rank itself runs after the posted tasks, and is waited for") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    CommQueue queue(machine.ctx);
    std::vector<int> order;
    std::thread::id thread;
    for (const int number : {1, 2}) {
      queue.post([&order, number](bool) {
        std::this_thread::sleep_for(2ms);
        order.push_back(number);
      });
    }
    queue.run([&] {
      thread = std::this_thread::get_id();
      order.push_back(3);
    });
    CHECK(order == std::vector<int>{1, 2, 3});
    CHECK(thread != std::this_thread::get_id());
    CHECK(queue.take_busy_seconds() >= 0.004);
    queue.run([] { std::this_thread::sleep_for(1ms); });
    CHECK(queue.take_busy_seconds() == 0);  // its own exchange does not count
  }
}

TEST_CASE("comm_queue: the exception of an exchange is thrown to the rank, then and by later calls") {
  DeviceMachine machine({});
  CommQueue queue(machine.ctx);
  CHECK(code_of([&] { queue.run([] { throw Error("test", "an exchange fails"); }); }) == "test");
  bool ran = false;
  CHECK(code_of([&] { queue.run([&] { ran = true; }); }) == "test");
  CHECK(code_of([&] { queue.drain(); }) == "test");
  CHECK(!ran);
}
