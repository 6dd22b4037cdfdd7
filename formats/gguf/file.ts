/**
 * The GGUF container, version 3: metadata, descriptions of tensors, then their data, each tensor at a multiple of 32
 * bytes. All numbers are little-endian.
 */

const MAGIC = 'GGUF';
const VERSION = 3;
const ALIGNMENT = 32;

/** Type codes of metadata. */
const CODES = { uint32: 4, int32: 5, float32: 6, bool: 7, string: 8, array: 9 } as const;

type GgufValue =
  | { type: 'uint32' | 'float32'; value: number }
  | { type: 'bool'; value: boolean }
  | { type: 'string'; value: string }
  | { type: 'array'; elements: 'int32' | 'float32'; value: readonly number[] }
  | { type: 'array'; elements: 'string'; value: readonly string[] };

/** Metadata by key, in the order of the file. */
export type GgufMetadata = readonly (readonly [key: string, value: GgufValue])[];

/** Storage of tensors: the code in the file, the elements of a block and the bytes of one. */
export const TENSOR_TYPES = {
  F32: { code: 0, elements: 1, bytes: 4 },
  F16: { code: 1, elements: 1, bytes: 2 },
  Q8_0: { code: 8, elements: 32, bytes: 34 },
  BF16: { code: 30, elements: 1, bytes: 2 },
} as const;

export type TensorType = keyof typeof TENSOR_TYPES;

export interface GgufTensor {
  name: string;
  /** Outermost dimension first; the file has them the other way round. */
  shape: readonly number[];
  type: TensorType;
}

export const uint32 = (value: number): GgufValue => ({ type: 'uint32', value });
export const float32 = (value: number): GgufValue => ({ type: 'float32', value });
export const bool = (value: boolean): GgufValue => ({ type: 'bool', value });
export const string = (value: string): GgufValue => ({ type: 'string', value });
export const strings = (value: readonly string[]): GgufValue => ({
  type: 'array',
  elements: 'string',
  value,
});
export const int32s = (value: readonly number[]): GgufValue => ({ type: 'array', elements: 'int32', value });
export const float32s = (value: readonly number[]): GgufValue => ({
  type: 'array',
  elements: 'float32',
  value,
});

/** Returns the number of elements of a tensor. */
function numelOf({ shape }: Pick<GgufTensor, 'shape'>): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Returns the bytes of a tensor's data, without padding. */
export function tensorBytes(tensor: GgufTensor): number {
  const { elements, bytes } = TENSOR_TYPES[tensor.type];
  return (numelOf(tensor) / elements) * bytes;
}

/** Returns the zeros that follow some bytes of the file up to the next multiple of the alignment. */
export function paddingAfter(bytes: number): Uint8Array {
  return new Uint8Array((ALIGNMENT - (bytes % ALIGNMENT)) % ALIGNMENT);
}

/** Returns the bytes of the data of all tensors, with the padding after each. */
export function dataBytes(tensors: readonly GgufTensor[]): number {
  return tensors.reduce((sum, tensor) => sum + paddedBytes(tensor), 0);
}

/** Returns everything before the data of the tensors, which follow in their order. */
export function ggufHeader(metadata: GgufMetadata, tensors: readonly GgufTensor[]): Buffer {
  const parts = [
    Buffer.from(MAGIC),
    number32(VERSION),
    number64(tensors.length),
    number64(metadata.length),
    ...metadata.flatMap(([key, value]) => [text(key), encodedValue(value)]),
  ];
  let offset = 0;
  for (const tensor of tensors) {
    const dimensions = [...tensor.shape].reverse();
    parts.push(text(tensor.name), number32(dimensions.length), ...dimensions.map(number64));
    parts.push(number32(TENSOR_TYPES[tensor.type].code), number64(offset));
    offset += paddedBytes(tensor);
  }
  const header = Buffer.concat(parts);
  return Buffer.concat([header, paddingAfter(header.length)]);
}

function paddedBytes(tensor: GgufTensor): number {
  const bytes = tensorBytes(tensor);
  return bytes + paddingAfter(bytes).length;
}

function encodedValue(value: GgufValue): Buffer {
  if (value.type !== 'array') return Buffer.concat([number32(CODES[value.type]), scalar(value)]);
  const head = [number32(CODES.array), number32(CODES[value.elements]), number64(value.value.length)];
  return Buffer.concat([...head, ...elementsOf(value)]);
}

function elementsOf(array: Extract<GgufValue, { type: 'array' }>): Buffer[] {
  if (array.elements === 'string') return array.value.map(text);
  const bytes = Buffer.alloc(4 * array.value.length);
  for (const [index, value] of array.value.entries())
    if (array.elements === 'int32') bytes.writeInt32LE(value, 4 * index);
    else bytes.writeFloatLE(value, 4 * index);
  return [bytes];
}

function scalar(value: Exclude<GgufValue, { type: 'array' }>): Buffer {
  switch (value.type) {
    case 'uint32':
      return number32(value.value);
    case 'float32': {
      const bytes = Buffer.alloc(4);
      bytes.writeFloatLE(value.value);
      return bytes;
    }
    case 'bool':
      return Buffer.of(Number(value.value));
    case 'string':
      return text(value.value);
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number64(bytes.length), bytes]);
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function number64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
