#include "core/system/numa.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "core/system/mapping.h"

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#endif

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

using namespace zerofleet;

namespace {

/// A folder as Linux has it, removed at the end.
class NodeFolder {
 public:
  NodeFolder() : path_(std::filesystem::temp_directory_path() / ("zf-nodes-" + std::to_string(::getpid()))) {}
  ~NodeFolder() { std::filesystem::remove_all(path_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text << '\n';
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

constexpr int kNoNode = 1000;
const Cpus kFirst{0, 1, 2, 3, 8, 9}, kSecond{4, 5, 6, 7, 10};

}  // namespace

TEST_CASE("nodes are those of Linux' list, with the CPUs that this process may use") {
  const NodeFolder folder;
  folder.write("online", "0-1,3");
  folder.write("node0/cpulist", "0-3,8-9");
  folder.write("node1/cpulist", "4-7,10");
  folder.write("node3/cpulist", "");  // memory alone
  const Cpus all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  CHECK(numa_nodes(all, folder.path()) == std::vector<NumaNode>{{0, kFirst}, {1, kSecond}});
  CHECK(numa_nodes({2, 3, 4}, folder.path()) == std::vector<NumaNode>{{0, {2, 3}}, {1, {4}}});
  CHECK(numa_nodes({0, 1}, folder.path()) == std::vector<NumaNode>{{0, {0, 1}}});
  CHECK(numa_nodes(all, folder.path() + "/none").empty());
}

TEST_CASE("neighbouring ranks stay on one node where that has room for their threads") {
  const std::vector<NumaNode> nodes{{0, kFirst}, {1, kSecond}};
  for (const int rank : {0, 1}) CHECK(cpus_of_rank(nodes, rank, 4, 3) == kFirst);
  for (const int rank : {2, 3}) CHECK(cpus_of_rank(nodes, rank, 4, 3) == kSecond);
  CHECK(cpus_of_rank(nodes, 1, 3, 2) == kFirst);
  CHECK(cpus_of_rank(nodes, 0, 2, 6) == kFirst);
  CHECK(cpus_of_rank(nodes, 1, 2, 6).empty());  // five CPUs
  CHECK(cpus_of_rank(nodes, 0, 1, 2).empty());  // a rank alone has both
  CHECK(cpus_of_rank({{0, kFirst}}, 1, 2, 2).empty());
  CHECK(cpus_of_rank({}, 0, 2, 1).empty());
}

TEST_CASE("threads of a process stay where it was told to, also those that it starts later") {
  const Cpus before = allowed_cpus();
  REQUIRE(!before.empty());
  const Cpus last{before.back()};
  REQUIRE(stay_on(last));
  CHECK(allowed_cpus() == last);
  Cpus of_thread;
  std::thread([&] { of_thread = allowed_cpus(); }).join();
  CHECK(of_thread == last);
  REQUIRE(stay_on(before));
  CHECK(allowed_cpus() == before);
}

#if defined(__linux__)
TEST_CASE("pages of a mapping are interleaved over the nodes of a rank") {
  const std::size_t bytes = 16 << 20;
  std::byte* const begin = map_pages(bytes);
  const auto policy_of = [&](std::byte* page) {
    int policy = -1;
    return ::syscall(SYS_get_mempolicy, &policy, nullptr, 0, page, MPOL_F_ADDR) == 0 ? policy : -1;
  };
  if (policy_of(begin) == -1) {
    MESSAGE("the sandbox forbids get_mempolicy");
    return unmap_pages(begin, bytes);
  }
  const std::vector<NumaNode> nodes = numa_nodes(allowed_cpus());
  CHECK((policy_of(begin) == MPOL_INTERLEAVE) == (nodes.size() > 1));
  if (interleave(begin, bytes, nodes)) {
    CHECK(policy_of(begin) == MPOL_INTERLEAVE);
    CHECK(policy_of(begin + bytes - 1) == MPOL_INTERLEAVE);
  } else {
    CHECK(nodes.empty());
  }
  CHECK_FALSE(interleave(begin, bytes, {{kNoNode, {}}}));
  unmap_pages(begin, bytes);
}
#endif
