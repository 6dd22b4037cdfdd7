/** Tasks that translate results with many numbers to protobuf, in a thread. */
import { type CallResult, ZerofleetError } from '../../../contracts/index.js';
import { DTYPE, encodePassOutput, encodeSamples, STOP_REASON, type Tensors } from './wire.js';

type Result = Exclude<CallResult, { error: unknown }>;
type PassResult = Extract<Result, { log_probs: unknown }>;
type SampleResult = Extract<Result, { samples: unknown }>;

interface StoredResult {
  /** JSON of the result. */
  stored: Uint8Array;
  /** JSON of the result of a forward pass over the prompt, if its log-probabilities are wanted. */
  prompt: Uint8Array | null;
}

/** A message in protobuf, or a small result. */
type WrittenResult = { protobuf: Uint8Array } | { result: CallResult };

/** @throws ZerofleetError `invalid_parameter` if `prompt` is no result of a pass */
export function writeTinkerResult({ stored, prompt }: StoredResult): WrittenResult {
  const result = parsed(stored);
  if ('error' in result) return { result };
  if ('log_probs' in result) return { protobuf: passOutput(result) };
  if (!('samples' in result)) return { result };
  const before = prompt && parsed(prompt);
  if (before !== null && 'error' in before) return { result: before };
  if (before !== null && !('log_probs' in before))
    throw new ZerofleetError(
      'invalid_parameter',
      'the request_id names a call that is no pass over a prompt',
    );
  return { protobuf: sampleResponse(result, before) };
}

function parsed(bytes: Uint8Array): CallResult {
  return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'));
}

function passOutput({ loss, log_probs, metrics }: PassResult): Uint8Array {
  const means = Object.entries(metrics).map(
    ([name, value]) => [`${name}:mean`, value ?? Number.NaN] as const,
  );
  const fields = { logprobs: tensorsOf(log_probs) };
  return encodePassOutput({
    loss_fn_output_type: 'ArrayRecord',
    loss_fn_outputs: [{ type_tag: 'ArrayRecord', fields, num_datums: log_probs.length }],
    metrics: { 'loss:sum': loss ?? Number.NaN, ...Object.fromEntries(means) },
  });
}

function tensorsOf(rows: readonly (readonly (number | null)[])[]): Tensors {
  const offsets = new BigInt64Array(rows.length + 1);
  let at = 0;
  for (const [i, row] of rows.entries()) {
    at += row.length * Float32Array.BYTES_PER_ELEMENT;
    offsets[i + 1] = BigInt(at);
  }
  return { data: bytesOf(floatsOf(rows.flat())), offsets: bytesOf(offsets), dtype: DTYPE.float32 };
}

function sampleResponse({ samples }: SampleResult, prompt: PassResult | null): Uint8Array {
  return encodeSamples({
    sequences: samples.map(({ tokens, log_probs, finish }) => ({
      stop_reason: STOP_REASON[finish],
      tokens: bytesOf(Int32Array.from(tokens)),
      logprobs: bytesOf(floatsOf(log_probs)),
    })),
    // Nothing predicts the first token.
    ...(prompt !== null && { prompt_logprobs: bytesOf(floatsOf([null, ...(prompt.log_probs[0] ?? [])])) }),
  });
}

function floatsOf(values: readonly (number | null)[]): Float32Array {
  return Float32Array.from(values, (value) => value ?? Number.NaN);
}

function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}
