#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "core/param_spec.h"
#include "core/threads/thread_pool.h"
#include "model/layers/served_adapter.h"
#include "model/transformer/decoder.h"
#include "serve/page_cache.h"
#include "serve/token_draw.h"

namespace zerofleet {

/// A text to go on with.
struct AnswerRequest {
  std::uint64_t id = 0;  // of those that are there, and not used again
  std::vector<std::int32_t> prompt;
  std::int64_t max_tokens = 64;
  std::vector<std::int32_t> end_tokens;  // no token is drawn after one of these
  std::int64_t top_log_probs = 0;        // most likely tokens that are told with each token
  std::int32_t adapter = 0;              // of add_adapter(); 0: the model alone
  DrawOptions draw;
};

/// Why a text ends with this token.
enum class Finish : std::uint8_t { kNone, kEndToken, kLength };

struct LikelyToken {
  std::int32_t token = 0;
  float log_prob = 0;
};

struct DrawnToken {
  std::uint64_t id = 0;  // of the request
  LikelyToken drawn;
  std::vector<LikelyToken> top;  // the most likely one first
  Finish finish = Finish::kNone;
  std::int64_t cached_tokens = 0;  // of the prompt, that an earlier text left
};

/// Goes on with any number of texts at once: each step() computes the next rows of all of them in one pass of the model, new
/// ones join and finished ones leave at any step. Texts that begin alike share the pages of their beginning. A text for
/// whose next page there is no room gives its pages back and is computed again later.
///
/// What is drawn, and every log-probability, is a function of the weights, the prompt, the options and the seed alone
/// (see Decoder): neither the other texts count, nor what was there before, nor the number of threads.
///
/// Texts of the model and of any number of adapters over it are in one pass: the products of the model are computed once for all.
///
/// add() and cancel() may be called from any thread, also during a step(); all else from one thread at a time.
class AnswerEngine {
 public:
  struct Limits {
    std::int64_t max_texts = 32;       // that are in a pass
    std::int64_t cache_tokens = 4096;  // whose keys and values are kept, of all texts together
    std::int64_t max_length = std::numeric_limits<std::int64_t>::max();  // of a text, if the model and the cache have room for it
  };

  /// `dtype`: of weights and products. Throws Error{"invalid_model_config"}, or Error{"invalid_argument"} for limits below 1.
  AnswerEngine(const ModelConfig& config, DType dtype, Device device, int num_threads, CpuIsa cpu_isa, const Limits& limits);

  /// Sets elements of a parameter from `begin` on, from fp32 values; all must be set once before the first step(), those of a parameter
  /// in their order.
  void set_param(std::size_t param, std::int64_t begin, std::span<const float> values);

  /// Tokens of the longest text.
  std::int64_t max_length() const { return decoder_.limits().max_length; }
  /// Bytes of weights and pages when all parameters are set; adapters apart.
  std::size_t num_bytes() const;

  /// Adds an adapter and returns its number, which is not used again. values: of each parameter of ServedAdapter::params(), in fp32.
  /// Throws its errors, Error{"invalid_argument"} for values of another number, and errors of the device: nothing else changes then.
  std::int32_t add_adapter(const AdapterConfig& adapter, std::span<const std::vector<float>> values);
  /// Bytes of an adapter on the device.
  std::size_t num_bytes(std::int32_t adapter) const { return adapters_.at(adapter)->num_bytes(); }
  /// Forgets an adapter and the requests for it, and releases its memory; one that is not there is ignored.
  void remove_adapter(std::int32_t adapter);

  /// Throws Error{"invalid_argument"} for an empty prompt or options that cannot be, or an adapter that is not there, Error{"token_out_of_vocab"},
  /// Error{"prompt_too_long"} where no token can follow.
  void add(AnswerRequest request);
  /// Forgets a request; one that is not there is ignored.
  void cancel(std::uint64_t id);

  /// Computes the next rows. Returns what was drawn, a token of a request at most; empty also while prompts are still being read.
  std::vector<DrawnToken> step();

 private:
  struct Text {
    AnswerRequest request;
    std::vector<std::int32_t> tokens, pages;
    std::int64_t computed = 0;   // tokens whose keys and values are there
    std::int64_t published = 0;  // pages
    std::int64_t planned = 0;    // rows of this step
    std::int64_t cached_tokens = -1;  // -1: not begun

    std::int64_t pending() const { return std::ssize(tokens) - computed; }
    std::int64_t num_drawn() const { return std::ssize(tokens) - std::ssize(request.prompt); }
  };

  void use_params(int layer);
  void take_requests();
  std::vector<Text*> planned_texts();
  void admit();
  void plan();
  void plan_rows(std::size_t index, std::int64_t count);
  bool find_pages(std::size_t index, std::int64_t end);
  void put_back(std::size_t index);
  void release(Text& text);
  void publish(Text& text);
  std::vector<std::byte> converted(std::span<const float> values) const;
  DrawnToken draw(const Text& text, const NextToken& next) const;

  std::vector<ParamSpec> specs_;
  ThreadPool pool_;
  Stream stream_;
  Context context_;
  DType dtype_;
  ModelConfig config_;
  std::vector<Buffer> params_;
  std::vector<std::int64_t> num_set_;  // elements of each parameter
  std::map<int, std::int64_t> unset_;  // parameters by layer that are not whole
  Decoder decoder_;
  PageCache cache_;
  std::deque<Text> waiting_;
  std::vector<Text> writing_;  // in the order in which they began
  std::int32_t last_adapter_ = 0;

  std::mutex mutex_;  // of what follows; a step reads adapters_ without it
  std::map<std::int32_t, std::unique_ptr<const ServedAdapter>> adapters_;
  std::vector<AnswerRequest> arrived_;
  std::vector<std::uint64_t> cancelled_;
};

}  // namespace zerofleet
