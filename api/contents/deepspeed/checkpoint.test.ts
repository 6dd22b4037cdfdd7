/** Checkpoints written by DeepSpeed 0.19.6 (golden/make_golden.py), and variants that its sources allow. */
import t from 'tap';
import { collect, memorySource } from '../../../formats/testing/byte-source.js';
import { readTorchFile } from '../../../formats/torch-file/read.js';
import { inMemory, TorchFileWriter } from '../../../formats/torch-file/write.js';
import {
  ADAM,
  type Change,
  checked,
  compared,
  contents,
  dictOf,
  groupStates,
  isOptim,
  listOf,
  NORM,
  NUM_PARAMS,
  paramsOf,
  RAW,
  RAW3,
  UNIVERSAL3,
} from '../../testing/deepspeed-checkpoints.js';

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
