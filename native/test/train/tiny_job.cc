#include "test/train/tiny_job.h"

#include <algorithm>
#include <utility>

#include "core/philox.h"

namespace zerofleet::test {
namespace {

std::string corpus(std::int64_t num_tokens, std::uint32_t vocab_size, std::uint64_t seed,
                   std::int64_t sequence_length) {
  std::vector<std::uint32_t> tokens;
  for (std::int64_t i = 0; i < num_tokens; ++i) {
    // Every other token repeats its predecessor, so that there is something to learn.
    tokens.push_back(philox(seed, {static_cast<std::uint32_t>(i / 2), 0, 0, 0})[0] % vocab_size);
  }
  return bytes_of(cut_into_sequences(std::move(tokens), sequence_length));
}

}  // namespace

TinyJob::TinyJob(DType precision, CpuIsa isa, std::int64_t sequence_length)
    : tokens_(corpus(sequence_length * 23 + 5, 101, 11, sequence_length)),
      validation_tokens_(corpus(sequence_length * 9 + 1, 101, 12, sequence_length)) {
  config.model.hidden_size = 48;
  config.model.intermediate_size = 112;
  config.model.num_hidden_layers = 2;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.head_dim = 12;
  config.model.vocab_size = 101;
  config.model.max_position_embeddings = std::max<std::int64_t>(64, sequence_length);
  config.cpu_isa = isa;
  config.precision = precision;
  config.zero.reduce_dtype = precision;
  config.zero.bucket_bytes = 65536;
  config.batch = {14, 2, sequence_length};
  config.training_files = {{tokens_.path()}};
  config.evaluation_files = {{validation_tokens_.path()}};
  config.lr_schedule = {LrScheduleType::kCosine, 1e-2, 1e-4, 3, 20};
}

}  // namespace zerofleet::test
