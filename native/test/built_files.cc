#include "test/built_files.h"

namespace zerofleet::test {

std::string golden_dir() { return ZF_GOLDEN_DIR; }
std::string fake_nccl_file() { return ZF_FAKE_NCCL; }
std::string fake_nvml_file() { return ZF_FAKE_NVML; }

}  // namespace zerofleet::test
