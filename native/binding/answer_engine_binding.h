#pragma once

#include <napi.h>

namespace zerofleet::binding {

void export_answer_engine(Napi::Env env, Napi::Object exports);

}  // namespace zerofleet::binding
