#include "comm/connect_progress.h"

#include <doctest/doctest.h>

#include <vector>

using namespace zerofleet;
using namespace std::chrono_literals;

TEST_CASE("connect_progress: reports every ten seconds, and the end of what took so long") {
  std::vector<std::string> lines;
  const auto log = [&](const std::string& line) { lines.push_back(line); };
  const ConnectProgress::Time start{};
  ConnectProgress slow(3, 33, start, log);
  slow.tick(start + 9s);
  slow.connected(16, start + 9s);
  CHECK(lines.empty());
  slow.tick(start + 10s);
  slow.tick(start + 19s);
  slow.connected(16, start + 21s);
  CHECK(lines == std::vector<std::string>{"NCCL: rank 3 is connected to 16 of 32 ranks after 10 s",
                                          "NCCL: rank 3 is connected to 32 of 32 ranks after 21 s"});
  ConnectProgress quick(0, 2, start, log);
  quick.connected(1, start + 5s);
  CHECK(lines.size() == 2);
}
