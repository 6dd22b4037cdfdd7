#pragma once

#include <string>
#include <vector>

namespace zerofleet {

/// Folder in which Linux describes which processors are close to which memory.
inline constexpr const char* kNumaFolder = "/sys/devices/system/node";

using Cpus = std::vector<int>;  // rising numbers

/// Processors that this process may use; empty where the system does not report them.
Cpus allowed_cpus();

/// Returns the `allowed` CPUs of each node that has some, from `folder` (node0/cpulist, …). Empty if the folder has no
/// nodes.
std::vector<Cpus> numa_nodes(const Cpus& allowed, const std::string& folder = kNumaFolder);

/// The CPUs that rank number `local_rank` of `local_ranks` on this machine should stay on: those of one node, so that all
/// memory that it is the first to touch is next to it, with neighbouring ranks on one node. Empty where it should stay on
/// none: there are fewer ranks than nodes, or one node, or a node has fewer CPUs than the rank has threads.
Cpus cpus_of_rank(const std::vector<Cpus>& nodes, int local_rank, int local_ranks, int threads);

/// Keeps all threads of this process, and those that they start, on some CPUs. False where the system refuses.
bool stay_on(const Cpus& cpus);

}  // namespace zerofleet
