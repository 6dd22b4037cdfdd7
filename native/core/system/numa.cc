#include "core/system/numa.h"

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace zerofleet {
namespace {

constexpr std::size_t kMaxNodes = 1024, kBitsPerWord = 8 * sizeof(unsigned long);

/// "0-3,8" as {0, 1, 2, 3, 8}.
Cpus read_list(const std::filesystem::path& file) {
  Cpus cpus;
  std::ifstream list(file);
  for (std::string part; std::getline(list, part, ',');) {
    int first = 0;
    const char* end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, first);
    if (error != std::errc{}) continue;
    int last = first;
    if (rest != end && *rest == '-') std::from_chars(rest + 1, end, last);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::vector<NumaNode> numa_nodes(const Cpus& allowed, const std::string& folder) {
  std::vector<NumaNode> nodes;
  for (const int node : read_list(std::filesystem::path(folder) / "online")) {
    const Cpus all = read_list(std::filesystem::path(folder) / ("node" + std::to_string(node)) / "cpulist");
    Cpus own;
    std::ranges::set_intersection(all, allowed, std::back_inserter(own));
    if (!own.empty()) nodes.push_back({node, own});
  }
  return nodes;
}

Cpus cpus_of_rank(const std::vector<NumaNode>& nodes, int local_rank, int local_ranks, int threads) {
  const auto num_nodes = static_cast<int>(nodes.size());
  if (num_nodes < 2 || local_ranks < num_nodes) return {};
  const Cpus& node = nodes[static_cast<std::size_t>(local_rank * num_nodes / local_ranks)].cpus;
  return threads <= static_cast<int>(node.size()) ? node : Cpus{};
}

#if defined(__linux__)

Cpus allowed_cpus() {
  Cpus cpus;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

bool stay_on(const Cpus& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  bool done = true;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    const int id = std::stoi(thread.path().filename().string());
    // A thread that ended meanwhile needs no processor.
    if (::sched_setaffinity(id, sizeof(set), &set) != 0 && errno != ESRCH) done = false;
  }
  return done && !error;
}

bool interleave(std::byte* begin, std::size_t num_bytes, const std::vector<NumaNode>& nodes) {
  std::array<unsigned long, kMaxNodes / kBitsPerWord> mask{};
  for (const NumaNode& node : nodes) {
    const auto number = static_cast<std::size_t>(node.number);
    if (number < kMaxNodes) mask[number / kBitsPerWord] |= 1UL << number % kBitsPerWord;
  }
  // The system counts one bit fewer than the argument says.
  return ::syscall(SYS_mbind, begin, num_bytes, MPOL_INTERLEAVE, mask.data(), kMaxNodes + 1, 0) == 0;
}

#else

Cpus allowed_cpus() { return {}; }
bool stay_on(const Cpus&) { return false; }
bool interleave(std::byte*, std::size_t, const std::vector<NumaNode>&) { return false; }

#endif

}  // namespace zerofleet
