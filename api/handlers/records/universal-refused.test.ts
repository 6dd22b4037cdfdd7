import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { Problem } from '../../../contracts/index.js';
import { collect } from '../../../formats/testing/byte-source.js';
import { safetensorsFile } from '../../../formats/testing/models.js';
import { TorchFileWriter } from '../../../formats/torch-file/write.js';

import { GOLDEN, NORM, tensorFile, universalUploads, ZERO } from '../../testing/universal-checkpoint.js';

const hostile = readFileSync(join(GOLDEN, 'hostile_system.pt'));
const refused: [string, (files: Map<string, Buffer>) => unknown, string, RegExp][] = [
  ['a pickle that calls a function', (f) => f.set(`${NORM}/fp32.pt`, hostile), 'torch_file_unsafe', /system/],
  [
    'a truncated file',
    (f) => f.set(`${NORM}/fp32.pt`, (f.get(`${NORM}/fp32.pt`) as Buffer).subarray(0, -1)),
    'torch_file_invalid',
    /does not end/,
  ],
  [
    'a missing weight',
    (f) => f.delete(`${NORM}/fp32.pt`),
    'model_tensor_missing',
    /model.norm.weight\/fp32.pt/,
  ],
  ['a missing moment', (f) => f.delete(`${NORM}/exp_avg_sq.pt`), 'model_tensor_missing', /exp_avg_sq.pt/],
  [
    'an unknown state',
    (f) => f.set(`${NORM}/max_exp_avg_sq.pt`, f.get(`${NORM}/exp_avg_sq.pt`) as Buffer),
    'optimizer_state_invalid',
    /max_exp_avg_sq.pt is not a state of a supported optimizer/,
  ],
  [
    'an unknown parameter',
    (f) => f.set(`${ZERO}/other/fp32.pt`, f.get(`${NORM}/fp32.pt`) as Buffer),
    'model_tensor_unexpected',
    /other/,
  ],
  [
    'another shape',
    async (f) => f.set(`${NORM}/fp32.pt`, await tensorFile([2], [1, 2])),
    'model_tensor_mismatch',
    /\[2\]; config.json requires \[16\]/,
  ],
  [
    'no tensor',
    async (f) => f.set(`${NORM}/fp32.pt`, await collect(new TorchFileWriter().file(5))),
    'model_tensor_mismatch',
    /no tensor/,
  ],
  [
    'two counts',
    async (f) => f.set(`${NORM}/step.pt`, await tensorFile([], [11], false)),
    'optimizer_state_invalid',
    /12, 11|11, 12/,
  ],
  [
    'an invalid step count',
    async (f) => f.set(`${NORM}/step.pt`, await tensorFile([], [1.5], false)),
    'optimizer_state_invalid',
    /1.5/,
  ],
  [
    'no count',
    (f) => {
      for (const name of [...f.keys()]) if (name.endsWith('step.pt')) f.delete(name);
    },
    'optimizer_state_invalid',
    /does not say/,
  ],
  ['no configuration', (f) => f.delete('config.json'), 'model_file_missing', /config.json/],
  [
    'weights twice',
    (f) => f.set('model.safetensors', safetensorsFile([])),
    'model_archive_invalid',
    /one of the two/,
  ],
];

t.test('universal checkpoints that are refused', async (t) => {
  const { upload } = await universalUploads(t);
  for (const [name, change, code, message] of refused)
    await t.test(`refused: ${name}`, async (t) => {
      const problem = (await upload(change)).json<Problem>();
      t.match(problem, { code, detail: message });
    });
});
