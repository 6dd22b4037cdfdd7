/** Rows of calls as the core takes them, and its results as the log of calls has them. */
import type { CallResult, PassCall, StoredCall } from '../../../contracts/index.js';
import { mixedSeed } from '../../../platform/seeds.js';
import type { PassResult, PassRows, SampledAnswer, SampleRequest } from '../../shared/native/adapter.js';

type Row = PassCall['rows'][number];
type SampleCall = Extract<StoredCall, { type: 'sample' }>;

/** Joins the rows. A list that only some rows have is 1 in the others. */
export function passRows(rows: readonly Row[]): PassRows {
  const lengths = Int32Array.from(rows, ({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const join = <A extends Int32Array | Float32Array>(joined: A, name: Exclude<keyof PassRows, 'lengths'>) => {
    let at = 0;
    for (const row of rows) {
      const values = row[name];
      if (values === undefined) joined.fill(1, at, at + row.tokens.length);
      else joined.set(values, at);
      at += row.tokens.length;
    }
    return joined;
  };
  const optional = (name: 'weights' | 'log_probs' | 'advantages') =>
    rows.some((row) => row[name] !== undefined) ? { [name]: join(new Float32Array(total), name) } : {};
  return {
    lengths,
    tokens: join(new Int32Array(total), 'tokens'),
    targets: join(new Int32Array(total), 'targets'),
    ...optional('weights'),
    ...optional('log_probs'),
    ...optional('advantages'),
  };
}

export function passAnswer(
  { loss, num_targets, log_probs, metrics }: PassResult,
  { lengths }: PassRows,
): CallResult {
  let at = 0;
  const rows = Array.from(lengths, (length) => {
    const row = log_probs.subarray(at, at + length);
    at += length;
    return numbersOf(row);
  });
  const means = Object.entries(metrics).map(([name, value]) => [name, finiteOrNull(value)]);
  return {
    loss: finiteOrNull(loss),
    num_targets,
    log_probs: rows,
    metrics: Object.fromEntries(means),
  };
}

/**
 * Requests in the order of the prompts. Each has a seed of its own, so that equal prompts get different samples. Calls
 * with neighbouring seeds share none.
 */
export function sampleRequests(call: SampleCall): SampleRequest[] {
  const { prompts, n, max_tokens, temperature, top_p, top_k, seed, stop_tokens } = call;
  const common = { max_tokens, temperature, top_p, top_k, stop_tokens: Int32Array.from(stop_tokens) };
  return prompts.flatMap((tokens, i) => {
    const prompt = Int32Array.from(tokens);
    return Array.from({ length: n }, (_, k) => ({
      ...common,
      prompt,
      seed: mixedSeed(seed, i * n + k),
    }));
  });
}

export function sampleAnswer(answers: readonly SampledAnswer[]): CallResult {
  return {
    samples: answers.map(({ tokens, log_probs, finish }) => ({
      tokens: Array.from(tokens),
      log_probs: numbersOf(log_probs),
      finish,
    })),
  };
}

function numbersOf(values: Float32Array): (number | null)[] {
  return Array.from(values, finiteOrNull);
}

/** Returns null for NaN and infinity, which JSON does not have. */
export function finiteOrNull(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
