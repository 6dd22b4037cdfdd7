/**
 * Tokens per second of answers: `npm run bench -- serve --config llama-small --requests 1,8,32 --threads 2`.
 *
 * Weights and prompts are random, and the most likely token is taken each time. A line is one number of requests that
 * are answered at once: tokens per second from the first token of all on, and the time until then. The bound of one
 * request is the memory: each token reads every weight of a matrix product once; `memory_share` is that number of bytes
 * per second of this machine's reads in the same run.
 *
 * With `--peer PYTHON`, a Python with transformers, the same model answers the same number of requests with `generate`,
 * as one batch in bf16. `peer_products_ms` is the time of one token's products alone there, by a library that chooses
 * its tiles by the number of rows. `of_free_products` is the time of a whole token here, divided by that time.
 * `resident_mb` is the resident set of the process, `weights_mb` the weights by the engine's own count.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { architectureOf, presets } from '../job-document/index.js';
import { AnswerEngine, GREEDY, measureBandwidth, paramTable } from '../native/js/index.js';
import { projectRoot } from '../platform/process/root.js';
import { benchOptions, count, counts, oneOf, path } from './options.js';
import { median, report } from './report.js';
import { configs, numMultipliedParams } from './training.js';

/** More than the caches hold. */
const READ_BYTES = 512 * 2 ** 20;
const BYTES = 2;
const SPREAD = 0.02;

const { config, requests, threads, prompt, tokens, rounds, peer } = benchOptions({
  config: oneOf(configs, 'llama-small'),
  requests: counts(1, 8, 32),
  threads: count(2),
  prompt: count(64),
  tokens: count(64),
  rounds: count(3),
  peer: path(),
});
const model = { ...architectureOf(presets[config]), quantization: null };

interface Speed {
  tokens_per_s: number;
  first_token_ms: number;
}

/** Answers `many` requests, each with a prompt that no other one has. */
async function answer(engine: AnswerEngine, many: number, round: number): Promise<Speed> {
  const started = performance.now();
  for (let id = 0; id < many; id++) {
    const text = Array.from(
      { length: prompt },
      (_, place) => (place * 31 + id * 977 + round * 7919 + 1) % model.vocab_size,
    );
    engine.add(round * 1_000 + id, text, { ...GREEDY, max_tokens: tokens });
  }
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

function engineWithWeights(): AnswerEngine {
  const engine = AnswerEngine.create(model, {
    threads,
    dtype: 'bf16',
    device: 'cpu',
    cache_tokens: Math.max(...requests) * (prompt + tokens + 32),
    max_length: prompt + tokens,
    max_sequences: Math.max(...requests),
  });
  for (const { index, numel } of paramTable(model)) {
    const values = Float32Array.from({ length: numel }, () => (Math.random() - 0.5) * 2 * SPREAD);
    engine.setParam(index, 0, new Uint8Array(values.buffer));
  }
  return engine;
}

async function peerSpeed(python: string, many: number): Promise<Speed & { products_ms: number }> {
  const script = join(projectRoot(), 'bench', 'peers', 'transformers_generate.py');
  const options = { config, threads, requests: many, prompt, tokens, rounds };
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const { stdout } = await promisify(execFile)(python, [script, ...args]);
  return JSON.parse(stdout) as Speed & { products_ms: number };
}

const engine = engineWithWeights();
const weightBytes = numMultipliedParams(config) * BYTES;
await answer(engine, Math.max(...requests), 0);
for (const many of requests) {
  const speeds: Speed[] = [];
  for (let round = 1; round <= rounds; round++) speeds.push(await answer(engine, many, round * 64 + many));
  const read = await measureBandwidth({ bytes: READ_BYTES, pass: 'read', threads, repeats: 5 });
  const bytesPerS = READ_BYTES / median(read);
  const tokensPerS = median(speeds.map((speed) => speed.tokens_per_s));
  const other = peer === null ? null : await peerSpeed(peer, many);
  report('serve', {
    config,
    threads,
    requests: many,
    prompt,
    tokens,
    tokens_per_s: Number(tokensPerS.toFixed(1)),
    weights_mb: Math.round(engine.numBytes / 1e6),
    resident_mb: Math.round(process.memoryUsage.rss() / 1e6),
    first_token_ms: Number(median(speeds.map((speed) => speed.first_token_ms)).toFixed(1)),
    memory_gb_per_s: Number((bytesPerS / 1e9).toFixed(1)),
    ...(many === 1 && { memory_share: Number(((tokensPerS * weightBytes) / bytesPerS).toFixed(3)) }),
    ...(other !== null && {
      peer_tokens_per_s: other.tokens_per_s,
      peer_first_token_ms: other.first_token_ms,
      times_peer: Number((tokensPerS / other.tokens_per_s).toFixed(2)),
      peer_products_ms: other.products_ms,
      of_free_products: Number(((many * 1000) / tokensPerS / other.products_ms).toFixed(2)),
    }),
  });
}
engine.close();
