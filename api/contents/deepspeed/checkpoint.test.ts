/** Checkpoints written by DeepSpeed 0.19.6 (golden/make_golden.py), and variants that its sources allow. */
import t from 'tap';
import type { StateName } from '../../../contracts/state-records.js';
import { collect, memorySource } from '../../../formats/testing/byte-source.js';
import { readTorchFile, type TorchFile } from '../../../formats/torch-file/read.js';
import { PyFloat, type TorchDict, type TorchValue } from '../../../formats/torch-file/values.js';
import { inMemory, TorchFileWriter } from '../../../formats/torch-file/write.js';
import { deepSpeedGolden, inFolder } from '../../testing/deepspeed-golden.js';
import { shapeOf } from '../config.js';
import { DeepSpeedCheckpoint } from './checkpoint.js';
import { checkModuleWeights } from './module-weights.js';

const golden = new Map([...(await deepSpeedGolden('deepspeed')), ...(await deepSpeedGolden('modes'))]);
const configOf = (folder: string) =>
  golden.get(`${folder.split('/')[0]}/config.json`) ?? golden.get('config.json');
const paramsOf = (folder: string) => shapeOf(JSON.parse(String(configOf(folder)))).params;
const NUM_PARAMS = 2 * 9 + 3;
const ADAM: StateName[] = ['exp_avg', 'exp_avg_sq'];

type Change = (value: TorchDict, name: string) => void;

/**
 *  @param change changes the values of a file; the bytes of its tensors stay
 * @param other a file that holds the tensors of model states instead
 */
async function checked(folder: string, change: Change = () => undefined, without = /^$/, other?: TorchFile) {
  const checkpoint = new DeepSpeedCheckpoint();
  const files = [...inFolder(golden, folder)].filter(([name]) => !without.test(name));
  for (const [name, bytes] of files) {
    await checkpoint.add(name, async () => {
      const file: TorchFile = await readTorchFile(memorySource(bytes, name, bytes.length));
      if (file.value instanceof Map) change(file.value, name);
      return other !== undefined && name.endsWith('_model_states.pt')
        ? { ...file, location: other.location }
        : file;
    });
  }
  return checkpoint.finish(paramsOf(folder));
}

/** Compares the master weights of a folder with its module's weights. */
async function compared(folder: string): Promise<number> {
  const { pairs } = await checked(folder);
  const read = async (begin: number, end: number, file = '') =>
    (golden.get(`${folder}/${file}`) as Buffer).subarray(begin, end);
  await checkModuleWeights(pairs, read);
  return pairs.length;
}

/** Bytes of every state of every parameter, assembled from the files. */
async function contents(folder: string, change?: Change): Promise<Map<string, string>> {
  const { tensors } = await checked(folder, change);
  const runs = [...tensors].flatMap(([file, list]) => list.map((tensor) => ({ file, tensor })));
  runs.sort((a, b) => (a.tensor.begin ?? 0) - (b.tensor.begin ?? 0));
  const states = new Map<string, string>();
  for (const { file, tensor } of runs) {
    const { state, param, byte_begin, byte_end } = tensor;
    const bytes = golden.get(`${folder}/${file}`)?.subarray(byte_begin, byte_end).toString('hex');
    states.set(`${state}/${param}`, `${states.get(`${state}/${param}`) ?? ''}${bytes}`);
  }
  return new Map([...states].sort());
}

const dictOf = (value: TorchValue | undefined, ...path: (string | number)[]): TorchDict => {
  const inner = path.reduce<TorchValue | undefined>(
    (at, key) => (at instanceof Map ? at.get(key) : undefined),
    value,
  );
  if (!(inner instanceof Map)) throw new Error(`no dict at ${path}`);
  return inner;
};

const listOf = (value: TorchValue | undefined): TorchValue[] => {
  if (!Array.isArray(value)) throw new Error('no list');
  return value;
};

for (const stage of ['zero2', 'zero3']) {
  t.test(`${stage}: universal and raw checkpoints have equal values`, async (t) => {
    const folders = [`${stage}/global_step6_universal`, `${stage}/global_step6`];
    for (const folder of folders) {
      const { optimizer } = await checked(folder);
      t.strictSame(optimizer, { steps: 6, states: ADAM, frozen: [], loss_scaler: null }, folder);
    }
    const [universal, raw] = await Promise.all(folders.map((folder) => contents(folder)));
    t.equal(universal?.size, 3 * NUM_PARAMS);
    t.strictSame(raw, universal);
  });

  t.test(`${stage}: the files of all ranks are needed`, async (t) => {
    const change = checked(`${stage}/global_step6`, undefined, /rank_1_mp_rank_00_optim/);
    await t.rejects(change, {
      code: 'model_tensor_missing',
      message: /Send the files of all ranks|has no master of/,
    });
  });
}

t.test(
  'checkpoints with round_robin_gradients: each element is at its index, as in the module',
  async (t) => {
    const raw = 'round_robin/global_step5';
    t.ok((await compared(raw)) > NUM_PARAMS);
    await t.rejects(compared(`${raw}_universal`), {
      code: 'model_tensor_mismatch',
      message: /element \d+ of .* which is no rounding: ds_to_universal.py mixes up/,
    });
  },
);

t.test('the module has rounded weights in every other checkpoint, and none in stage 3', async (t) => {
  for (const folder of ['zero2/global_step6', 'zero2/global_step6_universal', 'mixtral/global_step5'])
    t.ok((await compared(folder)) >= NUM_PARAMS, folder);
  t.equal(await compared('zero3/global_step6'), 0);
});

const RAW = 'zero2/global_step6';
const RAW3 = 'zero3/global_step6';
const UNIVERSAL3 = 'zero3/global_step6_universal';
const groupStates = (value: TorchDict) => {
  const all = dictOf(value, 'optimizer_state_dict');
  const states = dictOf(
    all.has('base_optimizer_state') ? all.get('base_optimizer_state') : all.get('optimizer_state_dict'),
    'state',
  );
  return [...states.values()].map((state) => dictOf(state));
};
const isOptim = (name: string) => name.endsWith('_optim_states.pt');

t.test('Mixtral of transformers 5: the experts of a layer are stacked in two tensors', async (t) => {
  const folders = ['mixtral/global_step5_universal', 'mixtral/global_step5'];
  const [universal, raw] = await Promise.all(folders.map((folder) => contents(folder)));
  t.equal(universal?.size, 3 * paramsOf('mixtral/').length);
  t.strictSame(raw, universal);
  const { optimizer } = await checked('mixtral/global_step5_universal');
  t.strictSame(optimizer, { steps: 5, states: ADAM, frozen: [], loss_scaler: null });
  // Expert 1 of 4: w1 is above w3 in (experts, 2 × inner, hidden), w2 lies in (experts, hidden, inner).
  const file = (name: string) => `zero/model.layers.1.mlp.experts.${name}/fp32.pt`;
  const { tensors } = await checked('mixtral/global_step5_universal');
  const begins = (name: string) => {
    const all = tensors.get(file(name)) ?? [];
    const first = all[0]?.byte_begin ?? 0;
    return all.map(({ param, byte_begin }) => [
      param.split('.').slice(5, 7).join('.'),
      (byte_begin - first) / 4,
    ]);
  };
  const [inner, hidden] = [48, 32];
  t.strictSame(begins('gate_up_proj').slice(2, 4), [
    ['1.w1', 2 * inner * hidden],
    ['1.w3', 3 * inner * hidden],
  ]);
  t.strictSame(begins('down_proj')[1], ['1.w2', inner * hidden]);
});

t.test('the state of a dynamic loss scaler is read', async (t) => {
  const { optimizer } = await checked('fp16/global_step5');
  t.strictSame(optimizer?.loss_scaler, {
    type: 'dynamic',
    scale: 131_072,
    iteration: 5,
    last_overflow_iteration: 2,
    hysteresis: 1,
    skipped_in_a_row: 0,
  });
  t.equal(optimizer?.steps, 2, 'three of five steps were skipped');
});

t.test('bf16 and stage 1 write fewer values beside the tensors', async (t) => {
  const { optimizer } = await checked(RAW, (value, name) => {
    if (!isOptim(name)) return;
    const states = dictOf(value, 'optimizer_state_dict');
    for (const key of ['loss_scaler', 'zero_stage', 'overflow', 'dynamic_loss_scale']) states.delete(key);
  });
  t.strictSame(optimizer, { steps: 6, states: ADAM, frozen: [], loss_scaler: null });
});

t.test("DeepSpeed's fused Adam counts steps in its states and leaves 0 in the groups", async (t) => {
  const fused: Change = (value, name) => {
    if (!isOptim(name) && name !== 'zero/optimizer_state.pt') return;
    for (const state of groupStates(
      name === 'zero/optimizer_state.pt' ? new Map([['optimizer_state_dict', value]]) : value,
    ))
      state.set('step', 6);
    const optimizer = dictOf(value, 'optimizer_state_dict');
    const groups =
      optimizer.get('param_groups') ??
      dictOf(
        optimizer,
        optimizer.has('base_optimizer_state') ? 'base_optimizer_state' : 'optimizer_state_dict',
      ).get('param_groups');
    for (const group of listOf(groups)) dictOf(group).set('step', 0);
  };
  for (const folder of [RAW, RAW3, UNIVERSAL3])
    t.equal((await checked(folder, fused)).optimizer?.steps, 6, folder);
});

t.test('an older version counts steps in the groups only', async (t) => {
  const { optimizer } = await checked(RAW, (value, name) => {
    if (!isOptim(name)) return;
    for (const state of groupStates(value)) state.delete('step');
    for (const group of listOf(
      dictOf(value, 'optimizer_state_dict', 'base_optimizer_state').get('param_groups'),
    ))
      dictOf(group).set('step', 6);
  });
  t.equal(optimizer?.steps, 6);
});

t.test('other optimizers and their states', async (t) => {
  const keep = (names: Record<string, string>) =>
    checked(RAW, (value, name) => {
      if (!isOptim(name)) return;
      for (const state of groupStates(value)) {
        const entries = [...state].flatMap(([key, tensor]) =>
          names[key] ? [[names[key], tensor] as const] : [],
        );
        state.clear();
        for (const [key, tensor] of entries) state.set(key, tensor);
      }
    });
  const lion = await keep({ step: 'step', exp_avg: 'exp_avg' });
  t.strictSame(lion.optimizer?.states, ['exp_avg']);
  const adagrad = await keep({ step: 'step', exp_avg_sq: 'sum' });
  t.strictSame(adagrad.optimizer, { steps: 6, states: ['sum'], frozen: [], loss_scaler: null });
  const sgd = await keep({ exp_avg: 'momentum_buffer' });
  t.strictSame(
    sgd.optimizer,
    { steps: 6, states: ['momentum_buffer'], frozen: [], loss_scaler: null },
    'DeepSpeed counts the steps',
  );
  const plain = await keep({});
  t.equal(plain.optimizer, null);
  t.equal(
    [...plain.tensors.values()].flat().every(({ state }) => state === 'master'),
    true,
  );
  await t.rejects(keep({ step: 'step', exp_avg: 'max_exp_avg_sq' }), {
    code: 'optimizer_state_invalid',
    message: /the state "max_exp_avg_sq", which no supported optimizer has/,
  });
});

const NORM = 'model.norm.weight';

t.test('a frozen parameter is read from the model states', async (t) => {
  const { optimizer, tensors } = await checked(RAW, (value, name) => {
    if (isOptim(name)) return;
    const [, vectors] = listOf(value.get('param_shapes'));
    // The last one, so that the others keep their positions.
    t.equal([...dictOf(vectors).keys()].at(-1), NORM);
    dictOf(vectors).delete(NORM);
    value.set('frozen_param_fragments', new Map([[NORM, dictOf(value, 'module').get(NORM) ?? null]]));
  });
  t.strictSame(optimizer, { steps: 6, states: ADAM, frozen: [NORM], loss_scaler: null });
  t.match(tensors.get('mp_rank_00_model_states.pt'), [{ param: NORM, state: 'master', shape: [48] }]);
});

t.test("stage 3: each rank's file holds a share of it", async (t) => {
  const share = new TorchFileWriter();
  const value = new Map([[NORM, share.tensor('BF16', [24], inMemory(new Uint8Array(48)))]]);
  const fragments = await collect(share.file(new Map([['frozen_param_fragments', value]])));
  const read = await readTorchFile(memorySource(fragments));
  const { optimizer, tensors } = await checked(
    RAW3,
    (value, name) => {
      if (isOptim(name)) return;
      const [, vectors] = listOf(value.get('param_shapes'));
      // The last one, so that the others keep their positions.
      t.equal([...dictOf(vectors).keys()].at(-1), NORM);
      dictOf(vectors).delete(NORM);
      value.set('frozen_param_fragments', dictOf(read.value).get('frozen_param_fragments') ?? null);
    },
    /^$/,
    read,
  );
  t.strictSame(optimizer, { steps: 6, states: ADAM, frozen: [NORM], loss_scaler: null });
  for (const rank of [0, 1])
    t.match(tensors.get(`zero_pp_rank_${rank}_mp_rank_00_model_states.pt`), [
      { param: NORM, state: 'master', dtype: 'BF16', shape: [48], begin: 24 * rank },
    ]);
});

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
