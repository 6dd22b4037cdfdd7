import t from 'tap';
import { encodeTensor } from './encode.js';
import type { PlannedTensor } from './tensors.js';

type Tensor = Pick<PlannedTensor, 'shape' | 'type' | 'layout' | 'headRows'> & Partial<PlannedTensor>;

const noCast = () => {
  throw new Error('fp32 needs no cast');
};

/** Encodes the numbers 0, 1, 2, … in pieces of a length that no row has. */
async function encoded(tensor: Tensor): Promise<number[]> {
  const numel = tensor.shape.reduce((product, size) => product * size, 1);
  const bytes = new Uint8Array(Float32Array.from({ length: numel }, (_, i) => i).buffer);
  const pieces = async function* () {
    for (let at = 0; at < bytes.length; at += 28) yield bytes.subarray(at, at + 28);
  };
  const parts: Uint8Array[] = [];
  for await (const part of encodeTensor(tensor, pieces(), noCast)) parts.push(part);
  return [...new Float32Array(Uint8Array.from(Buffer.concat(parts)).buffer)];
}

t.test('rows stay in order', async (t) => {
  const tensor = { shape: [2, 3], type: 'F32', layout: 'rows', headRows: 0 } as const;
  t.same(await encoded(tensor), [0, 1, 2, 3, 4, 5]);
});

t.test('a matrix of GPT-2 is transposed', async (t) => {
  // Stored as (in 3, out 2): 0 1 / 2 3 / 4 5.
  const tensor = { shape: [2, 3], type: 'F32', layout: 'transposed', headRows: 0 } as const;
  t.same(await encoded(tensor), [0, 2, 4, 1, 3, 5]);
});

t.test('rows that are rotated together become neighbours, in each head', async (t) => {
  const rows = { shape: [8, 2], type: 'F32', layout: 'paired', headRows: 4 } as const;
  t.same(await encoded(rows), [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15]);
  const biases = { shape: [8], type: 'F32', layout: 'paired', headRows: 4 } as const;
  t.same(await encoded(biases), [0, 2, 1, 3, 4, 6, 5, 7]);
});

t.test('queries, keys and values of each head become those of all heads', async (t) => {
  const rows = { shape: [12, 1], type: 'F32', layout: 'by_kind', headRows: 2 } as const;
  t.same(await encoded(rows), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]);
});

t.test("a norm's offset is added to its weights", async (t) => {
  t.same(await encoded({ shape: [3], type: 'F32', layout: 'rows', headRows: 0, offset: 1 }), [1, 2, 3]);
});
