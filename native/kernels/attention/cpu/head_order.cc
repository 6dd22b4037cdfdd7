#include "kernels/attention/head_order.h"

#include <cstddef>
#include <cstring>
#include <vector>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cpu/row_chunks.h"

namespace zerofleet::cpu {

void order_heads(const Context& ctx, const HeadOrder& args) {
  const std::int64_t heads = args.num_heads;
  const std::size_t row_bytes = static_cast<std::size_t>(args.qkv.cols) * size_of(args.qkv.dtype),
                    piece_bytes = row_bytes / static_cast<std::size_t>(3 * heads);
  for_row_chunks(ctx, args.qkv.rows, [&](std::int64_t first, std::int64_t rows) {
    std::vector<std::byte> old(row_bytes);
    for (std::int64_t row = first; row < first + rows; ++row) {
      auto* columns = static_cast<std::byte*>(args.qkv.at(row, 0));
      std::memcpy(old.data(), columns, row_bytes);
      for (std::int64_t head = 0; head < heads; ++head) {
        for (std::int64_t kind = 0; kind < 3; ++kind) {
          const auto in_head = static_cast<std::size_t>(3 * head + kind),
                     in_kind = static_cast<std::size_t>(kind * heads + head);
          std::memcpy(columns + (args.by_head ? in_head : in_kind) * piece_bytes,
                      old.data() + (args.by_head ? in_kind : in_head) * piece_bytes, piece_bytes);
        }
      }
    }
  });
}

}  // namespace zerofleet::cpu
