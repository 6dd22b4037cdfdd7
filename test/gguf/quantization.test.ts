/** Blocks of q8_0 with the bytes of llama.cpp's package gguf. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { encodeTensor } from '../../formats/gguf/encode.js';
import { castTo16Bit } from '../../native/js/index.js';
import { projectRoot } from '../../platform/process/root.js';

const GOLDEN = JSON.parse(readFileSync(join(projectRoot(), 'formats/gguf/golden/q8_0.json'), 'utf8'));

t.test('weights are quantized as by the reference', async (t) => {
  const values = Buffer.from(GOLDEN.values, 'base64');
  const shape = [values.length / (4 * 32), 32];
  const elements = async function* () {
    for (let at = 0; at < values.length; at += 36) yield values.subarray(at, at + 36);
  };
  const tensor = { shape, type: 'Q8_0', layout: 'rows', headRows: 0 } as const;
  const parts: Uint8Array[] = [];
  for await (const part of encodeTensor(tensor, elements(), castTo16Bit)) parts.push(part);
  t.equal(Buffer.concat(parts).toString('base64'), GOLDEN.q8_0);
});
