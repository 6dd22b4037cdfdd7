#pragma once

#include <string>

/// Paths of the source and build folders for tests. Functions return them, so that no other object holds a path:
/// compiler caches then serve every checkout.
namespace zerofleet::test {

std::string golden_dir();
std::string fake_nccl_file();
std::string fake_nvml_file();

}  // namespace zerofleet::test
