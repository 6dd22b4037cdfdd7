#pragma once

#include "kernels/common/backend.h"

// The tables of backend_of(), one per kind of device.
namespace zerofleet {

const Backend& cpu_backend();
/// Null in a build without CUDA.
const Backend* cuda_backend();

/// Declares the launcher of a row: the function of the row's name and signature in the namespace of a kind of device.
/// The entries in kernels/<family>/ have checked the arguments.
#define ZF_DECLARE_LAUNCHER(row) decltype(Backend::row)::Function row;
/// Puts the launcher of a row into `table`.
#define ZF_SET_ROW(row) table.row = row;

}  // namespace zerofleet
