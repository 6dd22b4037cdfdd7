/** Matrices with adapters merged, computed in float64 without the program's own code. */
import { readFileSync } from 'node:fs';
import { parseSafetensorsHeader } from '../../formats/safetensors/read-header.js';

export const ADAPTER = {
  rank: 4,
  alpha: 12,
  target_modules: ['q_proj', 'down_proj'],
  modules_to_save: ['norm'],
};

/** The tensors of a safetensors file, as fp32. */
export function tensorsOf(file: string): Map<string, Float32Array> {
  const content = readFileSync(file);
  const { tensors, bytes } = parseSafetensorsHeader(content, { name: file, bytes: content.length });
  return new Map(
    tensors.map(({ name, dtype, begin, end }) => {
      if (dtype !== 'F32') throw new Error(`${name} is ${dtype}`);
      return [name, new Float32Array(Uint8Array.from(content.subarray(bytes + begin, bytes + end)).buffer)];
    }),
  );
}

/** W + scale · B A of one matrix, in float64. */
export function sumOf(weight: Float32Array, down: Float32Array, up: Float32Array): Float64Array {
  const columns = down.length / ADAPTER.rank;
  return Float64Array.from(weight, (value, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    let sum = 0;
    for (let r = 0; r < ADAPTER.rank; r++)
      sum += (up[row * ADAPTER.rank + r] ?? 0) * (down[r * columns + column] ?? 0);
    return value + (ADAPTER.alpha / ADAPTER.rank) * sum;
  });
}

/** The norm of each row. */
export function normsOf(matrix: Float64Array, rows: number): number[] {
  const columns = matrix.length / rows;
  return Array.from({ length: rows }, (_, row) =>
    Math.sqrt(
      matrix.subarray(row * columns, (row + 1) * columns).reduce((sum, value) => sum + value ** 2, 0),
    ),
  );
}

/** A matrix whose rows are made to have these norms. */
export function withNorms(matrix: Float64Array, norms: Float32Array): Float64Array {
  const factors = normsOf(matrix, norms.length).map((norm, row) => (norms[row] ?? 0) / norm);
  const columns = matrix.length / norms.length;
  return matrix.map((value, at) => value * (factors[Math.floor(at / columns)] ?? 0));
}
