// A build without Gloo: ranks cannot connect over TCP, and connecting throws.
#include "comm/gloo_comm.h"
#include "core/error.h"

namespace zerofleet {
namespace {

[[noreturn]] void refuse() {
  throw Error("comm_unavailable",
              "this build has no Gloo, over which ranks of several processes meet: it is built where CMake finds its "
              "library and "
              "headers (ZF_GLOO=auto; Debian's package is libgloo-dev)");
}

}  // namespace

bool gloo_built_in() { return false; }
std::unique_ptr<Communicator> connect_gloo(const GlooOptions&, KvStore&) { refuse(); }
std::unique_ptr<Communicator> connect_gloo_group(const GlooOptions&, int, KvStore&) { refuse(); }
std::unique_ptr<Communicator> connect_gloo_neighbours(const GlooOptions&, int, KvStore&) { refuse(); }

}  // namespace zerofleet
