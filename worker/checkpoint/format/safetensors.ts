/** A tensor of a safetensors file; bytes are relative to the end of the header. */
export interface HeaderTensor {
  name: string;
  dtype: 'F32' | 'BF16';
  shape: readonly number[];
  begin: number;
  end: number;
}

const ALIGNMENT = 8;

/** Length and JSON header of a safetensors file, padded with spaces so that the data begins aligned. */
export function safetensorsHeader(
  tensors: readonly HeaderTensor[],
  metadata: Record<string, string>,
): Buffer {
  const entries = tensors.map(({ name, dtype, shape, begin, end }) => [
    name,
    { dtype, shape, data_offsets: [begin, end] },
  ]);
  const json = Buffer.from(JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) }));
  const padded = Math.ceil(json.length / ALIGNMENT) * ALIGNMENT;
  const header = Buffer.alloc(8 + padded, ' ');
  header.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(header, 8);
  return header;
}
