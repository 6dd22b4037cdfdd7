#include "binding/process_binding.h"

#include "core/system/numa.h"

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

Napi::Value stay_on_node(const Napi::CallbackInfo& info) {
  const auto number = [&](std::size_t i) { return info[i].As<Napi::Number>().Int32Value(); };
  const Cpus cpus = cpus_of_rank(numa_nodes(allowed_cpus()), number(0), number(1), number(2));
  return Napi::Boolean::New(info.Env(), !cpus.empty() && stay_on(cpus));
}

}  // namespace zerofleet::binding
