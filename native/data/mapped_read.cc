#include "data/mapped_read.h"

#include <setjmp.h>
#include <signal.h>

#include <utility>

#include "core/error.h"

namespace zerofleet {
namespace {

/// Continuation of this thread's read after SIGBUS; null while it reads nothing.
thread_local sigjmp_buf* after_fault = nullptr;

struct sigaction action_before;

/// A fault outside of a mapped read keeps its previous effect: the access is repeated and faults again.
void on_fault(int /*signal*/) {
  if (after_fault != nullptr) ::siglongjmp(*after_fault, 1);
  ::sigaction(SIGBUS, &action_before, nullptr);
}

bool install_handler() {
  struct sigaction action{};
  action.sa_handler = on_fault;
  ::sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, &action_before) == 0;
}

/// Lets faults of this thread come here, until it goes.
class FaultReturn {
 public:
  explicit FaultReturn(sigjmp_buf& target) : before_(std::exchange(after_fault, &target)) {}
  ~FaultReturn() { after_fault = before_; }
  FaultReturn(const FaultReturn&) = delete;
  FaultReturn& operator=(const FaultReturn&) = delete;

 private:
  sigjmp_buf* before_;
};

}  // namespace

void read_mapped(const std::function<void()>& read) {
  static const bool installed = install_handler();
  require(installed, "token_file_unreadable", "SIGBUS cannot be handled, which reading a mapped file needs");
  sigjmp_buf target;
  const FaultReturn faults(target);
  if (sigsetjmp(target, 1) != 0) {
    throw Error("token_file_unreadable",
                "the token file could not be read where it is used: its disk failed, or somebody cut it short");
  }
  read();
}

}  // namespace zerofleet
