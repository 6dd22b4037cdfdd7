/** Tinker's messages in protobuf (package `tinker_public`), with the fields that this server reads and writes. */
import protobuf from 'protobufjs/light.js';

const map = (type: string, id: number) => ({ keyType: 'string', type, id });
const repeated = (type: string, id: number) => ({ rule: 'repeated', type, id });

/** Unknown fields are skipped, so a chunk other than of text has no field at all. */
const root = protobuf.Root.fromJSON({
  nested: {
    ForwardBackwardRequest: {
      fields: {
        model_id: { type: 'string', id: 1 },
        seq_id: { type: 'int32', id: 2 },
        data: repeated('Datum', 3),
        loss_fn: { type: 'string', id: 4 },
        loss_fn_config: map('double', 5),
        forward_only: { type: 'bool', id: 6 },
      },
    },
    Datum: { fields: { model_input: repeated('Chunk', 1), loss_fn_inputs: map('Tensor', 2) } },
    Chunk: { fields: { encoded_text: { type: 'EncodedText', id: 1 } } },
    EncodedText: { fields: { tokens: { type: 'bytes', id: 1 } } },
    Tensor: { fields: { dense: { type: 'bytes', id: 1 }, dtype: { type: 'int32', id: 3 } } },
    SampleResponse: {
      fields: { sequences: repeated('Sequence', 1), prompt_logprobs: { type: 'bytes', id: 2 } },
    },
    Sequence: {
      fields: {
        stop_reason: { type: 'int32', id: 1 },
        tokens: { type: 'bytes', id: 2 },
        logprobs: { type: 'bytes', id: 3 },
      },
    },
    ForwardBackwardOutput: {
      fields: {
        loss_fn_output_type: { type: 'string', id: 1 },
        loss_fn_outputs: repeated('Record', 2),
        metrics: map('double', 3),
      },
    },
    Record: {
      fields: {
        type_tag: { type: 'string', id: 1 },
        fields: map('Batch', 2),
        num_datums: { type: 'int32', id: 3 },
      },
    },
    Batch: {
      fields: {
        data: { type: 'bytes', id: 1 },
        offsets: { type: 'bytes', id: 2 },
        dtype: { type: 'int32', id: 3 },
      },
    },
  },
}).resolveAll();

/** Wire type of texts, bytes and messages. */
const LENGTH_DELIMITED = 2;

/** Numbers of the enumeration DType. */
export const DTYPE = { float32: 1, int64: 2 } as const;
/** Numbers of the enumeration StopReason. */
export const STOP_REASON = { end: 0, length: 1 } as const;

export interface Tensor {
  dense: Uint8Array;
  dtype: number;
}

export interface Datum {
  model_input: { encoded_text: { tokens: Uint8Array } | null }[];
  loss_fn_inputs: Record<string, Tensor>;
}

export interface PassMessage {
  model_id: string;
  seq_id: number;
  data: Datum[];
  loss_fn: string;
  loss_fn_config: Record<string, number>;
  forward_only: boolean;
}

interface PassOutput {
  loss_fn_output_type: string;
  loss_fn_outputs: { type_tag: string; fields: Record<string, Tensors>; num_datums: number }[];
  metrics: Record<string, number>;
}

/** Lists behind each other: list i has the bytes from `offsets[i]` to `offsets[i + 1]`. */
export interface Tensors {
  data: Uint8Array;
  offsets: Uint8Array;
  dtype: number;
}

export interface SampleMessage {
  sequences: { stop_reason: number; tokens: Uint8Array; logprobs: Uint8Array }[];
  prompt_logprobs?: Uint8Array;
}

const PASS = root.lookupType('ForwardBackwardRequest');

/**
 * Returns whether a pass has more fields, those of its rows included: each one takes memory.
 * @throws errors of `decodePass`
 */
export function passExceeds(bytes: Uint8Array, maxFields: number): boolean {
  const reader = protobuf.Reader.create(bytes);
  let left = maxFields;
  const count = ({ fieldsById }: protobuf.Type, end: number) => {
    while (reader.pos < end && left >= 0) {
      left -= 1;
      const tag = reader.uint32();
      const [id, wireType] = [tag >>> 3, tag & 7];
      const field = fieldsById[id];
      if (wireType === LENGTH_DELIMITED && field?.resolvedType instanceof protobuf.Type && !field.map) {
        const length = reader.uint32();
        count(field.resolvedType, reader.pos + length);
      } else reader.skipType(wireType);
    }
  };
  count(PASS, bytes.length);
  return left < 0;
}

/** @throws Error, RangeError for bytes that are not this message */
export function decodePass(bytes: Uint8Array): PassMessage {
  const options = { defaults: true, arrays: true, objects: true };
  return PASS.toObject(PASS.decode(bytes), options) as PassMessage;
}

export function encodePassOutput(output: PassOutput): Uint8Array {
  return encode('ForwardBackwardOutput', output);
}

export function encodeSamples(samples: SampleMessage): Uint8Array {
  return encode('SampleResponse', samples);
}

function encode(name: string, message: object): Uint8Array {
  const type = root.lookupType(name);
  return type.encode(type.create(message as Record<string, unknown>)).finish();
}
