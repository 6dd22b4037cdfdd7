/**
 * Tokens per second of answers: `npm run bench -- serve --config llama-small --requests 1,8,32 --threads 2`.
 *
 * Weights and prompts are random, and the most likely token is taken each time. Each line measures concurrent requests
 * with prompts of one length: the time until all have their first token, and the tokens per second after it. Memory
 * bandwidth bounds a single request, because each token reads every weight of a matrix product once. `memory_share`
 * divides these bytes per second by the bandwidth measured in the same run. `resident_mb` is the memory of the process,
 * `weights_mb` the engine's own figure for its weights.
 *
 * `--quantization int8` or `nf4` answers from codes, as a worker does over a quantized base.
 *
 * With `--peer llama.cpp`, llama.cpp answers as many requests with the same model and threads, alternating with ours.
 * It reads our GGUF export, as bf16 and as q8_0 (`--peer-types`). It comes from npm, and is compiled against with c++;
 * a line says so if that fails. `times_bf16` and `times_q8_0` are medians of ours over the peer's.
 */
import { architectureOf } from '../job-document/index.js';
import { type AnswerEngine, GREEDY, measureBandwidth, paramTable } from '../native/js/index.js';
import { benchOptions, count, counts, oneOf, someOf } from './options.js';
import { LlamaCpp, type PeerType, peerTypes, type Speed } from './peers/llama-cpp.js';
import { median, report } from './report.js';
import { configOf, engineWithWeights, servedModels } from './serve/models.js';
import { numMultipliedParams } from './training.js';

/** More than the caches hold. */
const READ_BYTES = 512 * 2 ** 20;
/** Bytes that a product reads of an element: of packed codes with their scales (native/kernels/gemm/simd/codes.h). */
const BYTES = { none: 2, int8: 1 + 4 / 64, nf4: 1 / 2 + 4 / 64 };

const { config, quantization, requests, threads, prompts, tokens, rounds, peer, peer_types } = benchOptions({
  config: oneOf(servedModels, 'llama-small'),
  quantization: oneOf<'none' | 'int8' | 'nf4'>(['none', 'int8', 'nf4'], 'none'),
  requests: counts(1, 8, 32),
  threads: count(2),
  prompts: counts(64),
  tokens: count(64),
  rounds: count(3),
  peer: oneOf<'none' | 'llama.cpp'>(['none', 'llama.cpp'], 'none'),
  peer_types: someOf<PeerType>(peerTypes, 'all'),
});
const model = {
  ...architectureOf(configOf(config)),
  quantization: quantization === 'none' ? null : quantization,
};
const mostRequests = Math.max(...requests);
const length = Math.max(...prompts) + tokens;
let answered = 0;

/** Answers `many` requests, each with a prompt that no other one has. */
async function answer(engine: AnswerEngine, many: number, prompt: number): Promise<Speed> {
  const texts = Array.from({ length: many }, (_, row) =>
    Array.from({ length: prompt }, (_, i) => (i * 31 + (answered + row) * 977 + 1) % model.vocab_size),
  );
  const started = performance.now();
  for (const text of texts) engine.add(answered++, text, { ...GREEDY, max_tokens: tokens });
  const first = new Set<number>();
  let allBegan = 0;
  let drawnBefore = 0;
  for (let drawn = 0; drawn < many * tokens; ) {
    for (const { id } of await engine.step()) {
      drawn += 1;
      first.add(id);
    }
    if (allBegan > 0 || first.size < many) continue;
    allBegan = performance.now();
    drawnBefore = drawn;
  }
  const seconds = (performance.now() - allBegan) / 1000;
  return { tokens_per_s: (many * tokens - drawnBefore) / seconds, first_token_ms: allBegan - started };
}

/** Starts the peer for each type; reports and returns nothing if it is missing. */
async function startPeers(): Promise<[PeerType, LlamaCpp][]> {
  if (peer === 'none') return [];
  try {
    const limits = { threads, requests: mostRequests, length };
    const started: [PeerType, LlamaCpp][] = [];
    for (const type of peer_types) started.push([type, await LlamaCpp.start(config, type, limits)]);
    return started;
  } catch (error) {
    report('serve', { config, peer: `not measured: ${(error as Error).message}` });
    return [];
  }
}

/** Medians of alternating rounds: ours, then each peer's. */
async function measured(engine: AnswerEngine, many: number, prompt: number): Promise<Speed[]> {
  const contenders = [
    () => answer(engine, many, prompt),
    ...peers.map(
      ([, other]) =>
        () =>
          other.answer(many, prompt, tokens),
    ),
  ];
  const speeds: Speed[][] = contenders.map(() => []);
  for (let round = 0; round < rounds; round++)
    for (const [index, contender] of contenders.entries()) speeds[index]?.push(await contender());
  return speeds.map((measured) => ({
    tokens_per_s: median(measured.map((speed) => speed.tokens_per_s)),
    first_token_ms: median(measured.map((speed) => speed.first_token_ms)),
  }));
}

const rounded = (value: number, digits: number) => Number(value.toFixed(digits));

const engine = await engineWithWeights(model, {
  threads,
  dtype: 'bf16',
  max_length: length,
  max_sequences: mostRequests,
});
const peers = await startPeers();
const numQuantized = paramTable(model).reduce(
  (sum, param) => sum + (param.quantization ? param.numel : 0),
  0,
);
const weightBytes =
  (numMultipliedParams(model) - numQuantized) * BYTES.none + numQuantized * BYTES[quantization];
await answer(engine, mostRequests, Math.min(...prompts));
for (const prompt of prompts) {
  for (const many of requests) {
    const [ours = { tokens_per_s: Number.NaN, first_token_ms: Number.NaN }, ...theirs] = await measured(
      engine,
      many,
      prompt,
    );
    const read = await measureBandwidth({ bytes: READ_BYTES, pass: 'read', threads, repeats: 5 });
    const bytesPerS = READ_BYTES / median(read);
    report('serve', {
      config,
      quantization,
      threads,
      requests: many,
      prompt,
      tokens,
      tokens_per_s: rounded(ours.tokens_per_s, 1),
      weights_mb: Math.round(engine.numBytes / 1e6),
      resident_mb: Math.round(process.memoryUsage.rss() / 1e6),
      first_token_ms: rounded(ours.first_token_ms, 1),
      memory_gb_per_s: rounded(bytesPerS / 1e9, 1),
      ...(many === 1 && { memory_share: rounded((ours.tokens_per_s * weightBytes) / bytesPerS, 3) }),
      ...Object.fromEntries(
        peers.flatMap(([type], index) => {
          const { tokens_per_s = Number.NaN, first_token_ms = Number.NaN } = theirs[index] ?? {};
          return [
            [`${type}_tokens_per_s`, rounded(tokens_per_s, 1)],
            [`${type}_first_token_ms`, rounded(first_token_ms, 1)],
            [`times_${type}`, rounded(ours.tokens_per_s / tokens_per_s, 2)],
          ];
        }),
      ),
    });
  }
}
for (const [, other] of peers) other.close();
engine.close();
