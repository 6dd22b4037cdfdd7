/** Documents next to the tensors in DeepSpeed's universal layout. */
import type { ResolvedJobSpec } from '../../contracts/index.js';
import type { Manifest } from '../../platform/checkpoint/manifest.js';
import { PyFloat, PyTuple, type TorchDict, type TorchValue } from '../../platform/torch-file/values.js';
import { groupOf } from '../../spec/index.js';

/** DeepSpeed version in the files: its readers support everything that is written here. */
const DS_VERSION = '0.16.0';

/**
 * Builds `optimizer_state.pt`: one PyTorch group per set of settings, with the indexes of its parameters in model order, without frozen
 * ones.
 */
export function optimizerState(manifest: Manifest, spec: ResolvedJobSpec): TorchDict {
  const groups = new Map<string, { settings: TorchDict; params: number[] }>();
  const trained = manifest.params.filter(({ frozen }) => !frozen);
  for (const [index, { name, group }] of trained.entries()) {
    const settings = settingsOf(manifest, spec, { name, decays: group === 'decay' });
    const key = JSON.stringify([...settings]);
    const known = groups.get(key);
    if (known) known.params.push(index);
    else groups.set(key, { settings, params: [index] });
  }
  const param_groups = [...groups.values()].map(({ settings, params }): TorchValue => {
    return new Map<string, TorchValue>([...settings, ['params', params]] as [string, TorchValue][]);
  });
  return new Map<string, TorchValue>([
    ['param_groups', param_groups],
    ['overflow', false],
    ['clip_grad', new PyFloat(spec.train.gradient_clipping ?? 0)],
    ['ds_version', DS_VERSION],
  ]);
}

function settingsOf(
  manifest: Manifest,
  { train: { optimizer } }: ResolvedJobSpec,
  { name, decays }: { name: string; decays: boolean },
): TorchDict {
  const own = groupOf(optimizer.param_groups, name);
  const settings: TorchDict = new Map<string, TorchValue>([
    ['lr', new PyFloat(own?.lr ?? optimizer.lr)],
    ['weight_decay', new PyFloat(own?.weight_decay ?? (decays ? optimizer.weight_decay : 0))],
    ['step', manifest.optimizer_steps],
  ]);
  const { betas, eps } = optimizer;
  if (betas !== undefined) settings.set('betas', new PyTuple(betas.map((beta) => new PyFloat(beta))));
  if (eps !== undefined) settings.set('eps', new PyFloat(eps));
  return settings;
}

/** Builds `mp_rank_00_model_states.pt`: one file, because there is no tensor parallelism. */
export function modelStates(manifest: Manifest, spec: ResolvedJobSpec, module: TorchDict): TorchDict {
  const { step, skipped_steps, world_size, params } = manifest;
  const shapes = (frozen: boolean): TorchDict =>
    new Map(
      params.filter((param) => param.frozen === frozen).map(({ name, shape }) => [name, new PyTuple(shape)]),
    );
  return new Map<string, TorchValue>([
    ['module', module],
    ['buffer_names', []],
    ['param_shapes', [shapes(false)]],
    ['frozen_param_shapes', shapes(true)],
    ['shared_params', new Map()],
    ['lr_scheduler', new Map([['last_batch_iteration', step - 1]])],
    ['skipped_steps', skipped_steps],
    ['global_steps', step],
    ['global_samples', step * spec.train.global_batch_size],
    ['dp_world_size', world_size],
    ['mp_world_size', 1],
    ['ds_config', new Map()],
    ['ds_version', DS_VERSION],
    ['universal_checkpoint_info', new Map()],
  ]);
}
