import t from 'tap';
import { readScaler } from '../../../formats/checkpoint/deepspeed-scaler.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { collect, memorySource } from '../../../formats/testing/byte-source.js';
import { testManifest } from '../../../formats/testing/checkpoints.js';
import { TINY_MIXTRAL } from '../../../formats/testing/models.js';
import { readTorchFile } from '../../../formats/torch-file/read.js';
import type { TorchDict, TorchValue } from '../../../formats/torch-file/values.js';
import { TorchFileWriter } from '../../../formats/torch-file/write.js';
import { modelParams, trainedArchitecture } from '../../../job-document/index.js';
import { type TestSpec, testSpec } from '../../testing/start-message.js';
import { optimizerState, universalTensors } from './universal-documents.js';

/** Returns the documents of a job's checkpoint. */
function documents(given: TestSpec, frozen = /^$/, lossScaler?: Manifest['loss_scaler']) {
  const spec = testSpec(given);
  const plain = testManifest({ numels: [1], ranks: 1 });
  const params = modelParams(trainedArchitecture(spec)).map(({ name, shape, numel, decays }) => {
    const group = decays ? 'decay' : 'no_decay';
    return { name, shape, numel, group, frozen: frozen.test(name), base: false, expert_set: null };
  });
  const manifest = { ...plain, params, loss_scaler: lossScaler ?? plain.loss_scaler };
  const tensors = universalTensors(manifest, spec);
  return { tensors, state: optimizerState(manifest, spec, tensors) };
}

const dictOf = (value: TorchValue | undefined): TorchDict => (value instanceof Map ? value : new Map());

function groupsOf(state: TorchDict) {
  const groups = state.get('param_groups');
  return (Array.isArray(groups) ? groups : []).map((group) => {
    const [decay, params] = [dictOf(group).get('weight_decay'), dictOf(group).get('params')];
    return { decay: (decay as { value: number }).value, count: (params as unknown[]).length };
  });
}

t.test('the group of matrices is first, also if the first trained parameter is a norm', async (t) => {
  const train = { optimizer: { weight_decay: 0.1 } };
  const whole = groupsOf(documents({ train }).state);
  t.strictSame(whole, [
    { decay: 0.1, count: 1 + 2 * 7 },
    { decay: 0, count: 2 * 2 + 1 },
  ]);
  // As in a job that trains the last layer alone: its first parameter is input_layernorm.
  const last = groupsOf(documents({ train }, /embed_tokens|layers\.0/).state);
  t.strictSame(last, [
    { decay: 0.1, count: 7 },
    { decay: 0, count: 3 },
  ]);
});

t.test('groups of the document follow in its order', async (t) => {
  const paramGroups = [
    { match: '*norm*', weight_decay: 0.3 },
    { match: 'model.embed_tokens.*', weight_decay: 0.2 },
  ];
  const train = { optimizer: { weight_decay: 0.1, param_groups: paramGroups } };
  t.strictSame(
    groupsOf(documents({ train }).state).map(({ decay }) => decay),
    [0.1, 0.3, 0.2],
  );
});

t.test('a loss scaler goes on where it was, as an object of DeepSpeed', async (t) => {
  const saved = {
    scale: 131_072,
    iteration: 5,
    last_overflow_iteration: 2,
    hysteresis: 1,
    skipped_in_a_row: 0,
  };
  const lossScaler = { type: 'dynamic', ...saved } as const;
  const { state } = documents({ train: { precision: 'fp16' } }, /^$/, lossScaler);
  const bytes = await collect(new TorchFileWriter().file(state));
  const { value } = await readTorchFile(memorySource(bytes));
  t.strictSame(readScaler(dictOf(value).get('loss_scaler')), lossScaler);
  t.equal(dictOf(value).get('dynamic_loss_scale'), true);
  const { attributes } = dictOf(value).get('loss_scaler') as { attributes: TorchDict };
  t.match(Object.fromEntries(attributes), {
    scale_window: 1000,
    delayed_shift: 2,
    raise_error_at_min_scale: true,
    dtype: { name: 'torch.float16' },
  });
  t.notOk(documents({}).state.has('loss_scaler'), 'bf16 has none');
});

t.test('experts are stacked as in the module of transformers 5', async (t) => {
  const { tensors, state } = documents({ config: TINY_MIXTRAL });
  const shapes = tensors.filter(({ name }) => name.includes('layers.1.mlp'));
  t.strictSame(
    shapes.map(({ name, shape, params }) => [name.slice('model.layers.1.'.length), shape, params.length]),
    [
      ['mlp.gate.weight', [4, 32], 1],
      ['mlp.experts.gate_up_proj', [4, 96, 32], 8],
      ['mlp.experts.down_proj', [4, 32, 48], 4],
    ],
  );
  t.strictSame(
    groupsOf(state).map(({ count }) => count),
    [2 + 2 * 7, 2 * 2 + 1],
  );
  const paramGroups = [{ match: '*experts.1.*', weight_decay: 0 }];
  t.throws(() => documents({ config: TINY_MIXTRAL, train: { optimizer: { param_groups: paramGroups } } }), {
    code: 'export_failed',
    message: /treats the experts in model.layers.0.mlp.experts.gate_up_proj differently/,
  });
});
