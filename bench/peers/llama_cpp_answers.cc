// The answers of bench/serve.ts with llama.cpp, through its C interface.
//
// Arguments: MODEL.gguf, the folder of llama.cpp's libraries, threads, most
// requests at once, most tokens of one. Each line of input, "requests prompt tokens", is one batch of greedy answers.
// The line of output has the tokens per second after every answer has its first token, and the milliseconds until
// then.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ggml-backend.h"
#include "llama.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void require(bool is_so, const char *what) {
  if (is_so)
    return;
  std::fprintf(stderr, "llama.cpp: %s\n", what);
  std::exit(1);
}

void add(llama_batch &batch, llama_token token, int place, int sequence,
         bool needs_logits) {
  const int row = batch.n_tokens++;
  batch.token[row] = token;
  batch.pos[row] = place;
  batch.n_seq_id[row] = 1;
  batch.seq_id[row][0] = sequence;
  batch.logits[row] = needs_logits;
}

llama_token most_likely(llama_context *context, int row, int vocab) {
  const float *logits = llama_get_logits_ith(context, row);
  return static_cast<llama_token>(std::max_element(logits, logits + vocab) -
                                  logits);
}

struct Answers {
  llama_context *context;
  int vocab;
  llama_batch batch;
  int round = 0;

  void run(int requests, int prompt, int tokens) {
    llama_memory_clear(llama_get_memory(context), true);
    ++round;
    std::vector<llama_token> last(static_cast<std::size_t>(requests));
    const auto begin = Clock::now();
    for (int id = 0; id < requests; ++id) {
      batch.n_tokens = 0;
      for (int place = 0; place < prompt; ++place)
        add(batch, (place * 31 + id * 977 + round * 7919 + 1) % vocab, place,
            id, place == prompt - 1);
      require(llama_decode(context, batch) == 0, "a prompt failed");
      last[static_cast<std::size_t>(id)] =
          most_likely(context, prompt - 1, vocab);
    }
    const double first_token = seconds_since(begin);
    const auto began = Clock::now();
    for (int place = prompt; place < prompt + tokens - 1; ++place) {
      batch.n_tokens = 0;
      for (int id = 0; id < requests; ++id)
        add(batch, last[static_cast<std::size_t>(id)], place, id, true);
      require(llama_decode(context, batch) == 0, "a token failed");
      for (int id = 0; id < requests; ++id)
        last[static_cast<std::size_t>(id)] = most_likely(context, id, vocab);
    }
    const double decoded = static_cast<double>(requests) * (tokens - 1);
    std::printf("{\"tokens_per_s\": %.1f, \"first_token_ms\": %.1f}\n",
                decoded / seconds_since(began), first_token * 1000);
    std::fflush(stdout);
  }
};

} // namespace

int main(int argc, char **argv) {
  require(argc == 6, "5 arguments");
  const int threads = std::atoi(argv[3]), sequences = std::atoi(argv[4]),
            length = std::atoi(argv[5]);
  llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
  ggml_backend_load_all_from_path(argv[2]);
  llama_backend_init();
  llama_model_params model_params = llama_model_default_params();
  model_params.n_gpu_layers = 0;
  llama_model *model = llama_model_load_from_file(argv[1], model_params);
  require(model != nullptr, "the model does not load");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<unsigned>(sequences * length);
  params.n_batch = static_cast<unsigned>(std::max(sequences, length));
  params.n_seq_max = static_cast<unsigned>(sequences);
  params.n_threads = params.n_threads_batch = threads;
  llama_context *context = llama_init_from_model(model, params);
  require(context != nullptr, "no memory for the context");
  const int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
  Answers answers{context, vocab,
                  llama_batch_init(static_cast<int>(params.n_batch), 0, 1)};
  int requests = 0, prompt = 0, tokens = 0;
  while (std::scanf("%d %d %d", &requests, &prompt, &tokens) == 3)
    answers.run(requests, prompt, tokens);
  llama_batch_free(answers.batch);
  llama_free(context);
  llama_model_free(model);
  return 0;
}
