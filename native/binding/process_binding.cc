#include "binding/process_binding.h"

#if defined(__linux__)
#include <sys/prctl.h>

#include <csignal>
#endif

namespace zerofleet::binding {

Napi::Value end_with_parent(const Napi::CallbackInfo& info) {
#if defined(__linux__)
  // The kernel sends it when the thread that forked this process ends: that of Node's event loop, which ends last.
  const bool asked = ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
#else
  const bool asked = false;
#endif
  return Napi::Boolean::New(info.Env(), asked);
}

}  // namespace zerofleet::binding
