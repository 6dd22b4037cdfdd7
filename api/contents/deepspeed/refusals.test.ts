import t from 'tap';
import { memorySource } from '../../../formats/testing/byte-source.js';
import { readTorchFile } from '../../../formats/torch-file/read.js';
import { PyFloat } from '../../../formats/torch-file/values.js';
import {
  type Change,
  checked,
  dictOf,
  groupStates,
  isOptim,
  listOf,
  paramsOf,
  RAW,
} from '../../testing/deepspeed-checkpoints.js';
import { DeepSpeedCheckpoint } from './checkpoint.js';

const refusals: [string, Change, { code: string; message: RegExp }][] = [
  [
    'ranks without their number',
    (value, name) => isOptim(name) && dictOf(value, 'optimizer_state_dict').delete('partition_count'),
    { code: 'optimizer_state_invalid', message: /ds_to_universal.py/ },
  ],
  [
    'another number of groups',
    (value, name) => isOptim(name) || listOf(value.get('param_shapes')).pop(),
    { code: 'optimizer_state_invalid', message: /has 2 groups, and param_shapes of the model states 1/ },
  ],
  [
    'a name that is not in the model',
    (value, name) => isOptim(name) || dictOf(listOf(value.get('param_shapes'))[0]).set('other', null),
    { code: 'model_tensor_unexpected', message: /"other" is not a parameter/ },
  ],
  [
    'a name twice',
    (value, name) => {
      if (isOptim(name)) return;
      const [matrices, vectors] = listOf(value.get('param_shapes'));
      dictOf(vectors).set([...dictOf(matrices).keys()][0] ?? '', null);
    },
    { code: 'model_tensor_unexpected', message: /or is there twice/ },
  ],
  [
    'counts that differ',
    (value, name) => name.includes('rank_1') && groupStates(value)[0]?.set('step', new PyFloat(5)),
    { code: 'optimizer_state_invalid', message: /different numbers of updates: 6, 5/ },
  ],
];
for (const [name, change, error] of refusals)
  t.test(`refused: ${name}`, async (t) => {
    await t.rejects(checked(RAW, change), error);
  });

t.test('refused: a checkpoint without model states', async (t) => {
  await t.rejects(checked(RAW, undefined, /model_states/), {
    code: 'model_tensor_missing',
    message: /no mp_rank_00_model_states.pt/,
  });
});

t.test('a file of a tensor-parallel rank and an unreadable file', async (t) => {
  const read = async () => readTorchFile(memorySource(Buffer.from('no zip'), 'x.pt'));
  for (const [name, error] of [
    [
      'zero_pp_rank_0_mp_rank_01_optim_states.pt',
      { code: 'optimizer_state_invalid', message: /ds_to_universal.py/ },
    ],
    ['zero_pp_rank_0_mp_rank_00_optim_states.pt', { code: 'torch_file_invalid' }],
  ] as const) {
    const checkpoint = new DeepSpeedCheckpoint();
    await checkpoint.add(name, read);
    t.equal(checkpoint.hasParams, true);
    t.throws(() => checkpoint.finish(paramsOf(RAW)), error);
  }
});
