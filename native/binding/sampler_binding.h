#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// Adds the class `Sampler` to the addon's exports.
void export_sampler(Napi::Env env, Napi::Object exports);

}  // namespace zerofleet::binding
