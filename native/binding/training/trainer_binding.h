#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// Adds the class `Trainer` to the addon's exports.
void export_trainer(Napi::Env env, Napi::Object exports);

}  // namespace zerofleet::binding
