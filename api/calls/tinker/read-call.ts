/** Tasks that translate requests with many numbers to calls, in a thread. */
import { type Call, ZerofleetError } from '../../../contracts/index.js';
import { type JsonLimits, jsonExcess } from '../../../platform/json-limits.js';
import { type Datum, DTYPE, decodePass, type PassMessage, passExceeds, type Tensor } from './wire.js';

type PassCall = Extract<Call, { rows: unknown }>;
type Row = PassCall['rows'][number];
type Loss = PassCall['loss'];

/** A call and where it belongs. */
interface ReadPass {
  model_id: string;
  seq_id: number;
  /** JSON of the call. */
  call: Uint8Array;
}

type List = 'targets' | 'weights' | 'log_probs' | 'advantages';

/** Names of the lists of a row. */
const LISTS = new Map<string, List>([
  ['target_tokens', 'targets'],
  ['weights', 'weights'],
  ['logprobs', 'log_probs'],
  ['advantages', 'advantages'],
]);
const OF_POLICY: readonly List[] = ['targets', 'log_probs', 'advantages'];
const LOSSES = new Map<string, readonly List[]>([
  ['cross_entropy', ['targets', 'weights']],
  ['importance_sampling', OF_POLICY],
  ['ppo', OF_POLICY],
  ['cispo', OF_POLICY],
]);
const CLIP_LOW = 'clip_low_threshold';
const CLIP_HIGH = 'clip_high_threshold';

/** Fields of a message, or values of a JSON body. */
const MAX_VALUES = 100_000;

/** @throws ZerofleetError `validation_failed` */
export function readTinkerPass({ body }: { body: Uint8Array }): ReadPass {
  const message = decoded(body);
  const { model_id, seq_id, forward_only } = message;
  const loss = lossOf(message);
  const rows = message.data.map((datum, i) => rowOf(datum, loss.type, i));
  const call: PassCall = { type: forward_only ? 'forward' : 'forward_backward', loss, rows };
  return { model_id, seq_id, call: Buffer.from(JSON.stringify(call)) };
}

const JSON_LIMITS: JsonLimits = { depth: 10, values: MAX_VALUES };

/** A JSON body. @throws ZerofleetError `malformed_json` */
export function readTinkerJson({ body }: { body: Uint8Array }): unknown {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const excess = jsonExcess(bytes, JSON_LIMITS);
  if (excess !== null) throw new ZerofleetError('malformed_json', `the body ${excess}`);
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new ZerofleetError('malformed_json', `the body is not JSON: ${(error as Error).message}`);
  }
}

function decoded(body: Uint8Array): PassMessage {
  try {
    if (!passExceeds(body, MAX_VALUES)) return decodePass(body);
  } catch (error) {
    throw refused('', `the body is not a ForwardBackwardRequest in protobuf: ${(error as Error).message}`);
  }
  throw refused('/data', `the pass has more than ${MAX_VALUES} fields; send several passes`);
}

function lossOf({ loss_fn, loss_fn_config }: PassMessage): Loss {
  if (!LOSSES.has(loss_fn))
    throw refused('/loss_fn', `loss_fn ${loss_fn} is not supported; use ${[...LOSSES.keys()].join(', ')}`);
  const { [CLIP_LOW]: low, [CLIP_HIGH]: high, ...others } = loss_fn_config;
  const [unknown] = Object.keys(loss_fn === 'ppo' || loss_fn === 'cispo' ? others : loss_fn_config);
  if (unknown !== undefined)
    throw refused(`/loss_fn_config/${unknown}`, `${unknown} is not a field of the loss ${loss_fn}`);
  const type = loss_fn as Loss['type'];
  // The bounds of the ratio here are distances from 1 in a call.
  return {
    type,
    ...(low !== undefined && { clip_low: rounded(1 - low) }),
    ...(high !== undefined && { clip_high: rounded(high - 1) }),
  };
}

/** 1 − 0.8 is 0.2 and not 0.19999999999999996. */
function rounded(value: number): number {
  return Number(value.toPrecision(12));
}

function rowOf({ model_input, loss_fn_inputs }: Datum, loss: string, index: number): Row {
  const at = `/data/${index}`;
  const tokens = model_input.flatMap(({ encoded_text }) => {
    if (encoded_text !== null) return numbersOf(Int32Array, encoded_text.tokens, `${at}/model_input`);
    throw refused(`${at}/model_input`, 'only chunks of text are supported, and no images or audio');
  });
  const row: Partial<Row> = { tokens };
  for (const [name, tensor] of Object.entries(loss_fn_inputs)) {
    const list = LISTS.get(name);
    if (list === undefined || !LOSSES.get(loss)?.includes(list))
      throw refused(`${at}/loss_fn_inputs/${name}`, `the loss ${loss} does not read ${name}; leave it out`);
    row[list] = tensorOf(tensor, `${at}/loss_fn_inputs/${name}`);
  }
  if (row.targets === undefined)
    throw refused(`${at}/loss_fn_inputs/target_tokens`, 'target_tokens is required');
  return row as Row;
}

function tensorOf({ dense, dtype }: Tensor, at: string): number[] {
  if (dense.length === 0) throw refused(at, 'send a dense tensor that is not empty');
  if (dtype === DTYPE.float32) return numbersOf(Float32Array, dense, at);
  if (dtype === DTYPE.int64) return numbersOf(BigInt64Array, dense, at);
  throw refused(at, 'the dtype must be float32 or int64');
}

type Numbers = Int32ArrayConstructor | Float32ArrayConstructor | BigInt64ArrayConstructor;

function numbersOf(kind: Numbers, bytes: Uint8Array, at: string): number[] {
  const { BYTES_PER_ELEMENT: size } = kind;
  if (bytes.length % size !== 0) throw refused(at, `has ${bytes.length} bytes, no multiple of ${size}`);
  const aligned = bytes.slice().buffer;
  return Array.from(new kind(aligned), Number);
}

function refused(pointer: string, message: string): ZerofleetError {
  const fields = [{ pointer, code: 'unknown_value' as const, message }];
  return new ZerofleetError('validation_failed', message, { fields });
}
