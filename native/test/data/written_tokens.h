#pragma once

#include "bench/written_tokens.h"

namespace zerofleet::test {

using bench::cut_into_sequences;
using bench::TemporaryFile;
using bench::TokenTables;

}  // namespace zerofleet::test
