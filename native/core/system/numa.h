#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace zerofleet {

/// Folder in which Linux describes which processors are close to which memory.
inline constexpr const char* kNumaFolder = "/sys/devices/system/node";

using Cpus = std::vector<int>;  // rising numbers

/// Processors that this process may use; empty where the system does not report them.
Cpus allowed_cpus();

/// Node of memory, with the CPUs next to it that this process may use.
struct NumaNode {
  int number = 0;
  Cpus cpus;
  bool operator==(const NumaNode&) const = default;
};

/// Returns the nodes that have some of the `allowed` CPUs, from `folder` (node0/cpulist, …). Empty if the folder has no
/// nodes.
std::vector<NumaNode> numa_nodes(const Cpus& allowed, const std::string& folder = kNumaFolder);

/// The CPUs for rank number `local_rank` of `local_ranks` on this machine: those of one node. The kernel places memory
/// on the node of the CPU that touches it first, so the rank's memory is local. Neighbouring ranks share a node. Empty,
/// for any CPU, if the machine has one node, more nodes than ranks, or a node with fewer CPUs than the rank has
/// threads.
Cpus cpus_of_rank(const std::vector<NumaNode>& nodes, int local_rank, int local_ranks, int threads);

/// Keeps all threads of this process, and those that they start, on some CPUs. False where the system refuses.
bool stay_on(const Cpus& cpus);

/// Places the pages of a mapping on the nodes in turn, from their first use on (mbind, MPOL_INTERLEAVE). Tasks move
/// between the threads of a rank, so no page has a thread of its own. False where the system refuses.
bool interleave(std::byte* begin, std::size_t num_bytes, const std::vector<NumaNode>& nodes);

}  // namespace zerofleet
