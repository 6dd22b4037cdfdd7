#include "comm/kv_store.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

using namespace zerofleet;
using namespace std::chrono_literals;

TEST_CASE("kv_store publishes keys that are set and keeps the first value of a key") {
  std::vector<std::string> published;
  KvStore store([&](const std::string& key, const KvStore::Bytes&) { published.push_back(key); });
  store.set("a", {1, 2});
  store.deliver("a", {9});
  store.deliver("b", {});
  CHECK(published == std::vector<std::string>{"a"});
  CHECK(store.wait("a", 0ms) == KvStore::Bytes{1, 2});
  CHECK(store.wait("b", 0ms).empty());
}

TEST_CASE("kv_store wakes a waiter, times out and closes") {
  KvStore store([](const std::string&, const KvStore::Bytes&) {});
  std::thread relay([&] { store.deliver("late", {7}); });
  CHECK(store.wait("late", 10s) == KvStore::Bytes{7});
  relay.join();
  const auto code_of_wait = [&](std::chrono::milliseconds timeout) -> std::string {
    try {
      store.wait("never", timeout);
    } catch (const Error& error) {
      return error.code();
    }
    return "none";
  };
  CHECK(code_of_wait(1ms) == "comm_timeout");
  std::thread closer([&] { store.close(); });
  CHECK(code_of_wait(10s) == "comm_failed");
  closer.join();
}
