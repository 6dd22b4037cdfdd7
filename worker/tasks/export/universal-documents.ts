/** Documents next to the tensors in DeepSpeed's universal layout. */
import { type ResolvedJobSpec, ZerofleetError } from '../../../contracts/index.js';
import { type ScalerSettings, scalerEntries } from '../../../formats/checkpoint/deepspeed-scaler.js';
import type { Manifest } from '../../../formats/checkpoint/manifest.js';
import { PyFloat, PyTuple, type TorchDict, type TorchValue } from '../../../formats/torch-file/values.js';
import { groupOf, type ModuleTensor, moduleTensors } from '../../../job-document/index.js';

/** DeepSpeed version in the files: its readers support everything that is written here. */
const DS_VERSION = '0.16.0';

/** Tensor of the module with the parameters in it, which must all be trained alike. */
export type UniversalTensor = ModuleTensor<Manifest['params'][number]>;

/**
 * Returns the module's tensors, under whose names DeepSpeed loads a checkpoint.
 * @throws ZerofleetError `export_failed` if experts of one layer are trained differently
 */
export function universalTensors({ params }: Manifest, spec: ResolvedJobSpec): UniversalTensor[] {
  const tensors = moduleTensors(params);
  for (const { name, params: members } of tensors) {
    const kinds = new Set(members.map((param) => (param.frozen ? 'frozen' : groupRank(param, spec))));
    if (kinds.size === 1) continue;
    const detail = `train.optimizer.param_groups treats the experts in ${name} differently, and DeepSpeed has one group for all; use safetensors`;
    throw new ZerofleetError('export_failed', detail);
  }
  return tensors;
}

/**
 * Builds `optimizer_state.pt`: one PyTorch group per set of settings, with the indexes of its tensors in model order,
 * without frozen ones. DeepSpeed assigns groups by position, so they have the usual order: matrices, then norms and
 * biases, which do not decay; then those of each entry of `train.optimizer.param_groups`.
 */
export function optimizerState(
  manifest: Manifest,
  spec: ResolvedJobSpec,
  tensors: readonly UniversalTensor[],
): TorchDict {
  const trained = tensors
    .flatMap(({ params: [param] }) => (param === undefined || param.frozen ? [] : [param]))
    .map((param, index) => ({ param, index, rank: groupRank(param, spec) }))
    .sort((a, b) => a.rank - b.rank);
  const groups = new Map<string, { settings: TorchDict; params: number[] }>();
  for (const { param, index } of trained) {
    const settings = settingsOf(manifest, spec, param);
    const key = JSON.stringify([...settings]);
    const known = groups.get(key);
    if (known) known.params.push(index);
    else groups.set(key, { settings, params: [index] });
  }
  const paramGroups = [...groups.values()].map(({ settings, params }): TorchValue => {
    return new Map<string, TorchValue>([...settings, ['params', params]] as [string, TorchValue][]);
  });
  return new Map<string | number, TorchValue>([
    ['param_groups', paramGroups],
    ...scalerEntries(manifest.loss_scaler, scalerSettings(spec)),
    ['overflow', false],
    ['clip_grad', new PyFloat(spec.train.gradient_clipping ?? 0)],
    ['ds_version', DS_VERSION],
  ]);
}

type Param = Pick<Manifest['params'][number], 'name' | 'group'>;

/** Position of the parameter's group among all. */
function groupRank({ name, group }: Param, { train: { optimizer } }: ResolvedJobSpec): number {
  const own = groupOf(optimizer.param_groups, name);
  const entry = own === undefined ? 0 : 1 + optimizer.param_groups.indexOf(own);
  return 2 * entry + (group === 'decay' ? 0 : 1);
}

function scalerSettings({ train: { loss_scale } }: ResolvedJobSpec): ScalerSettings {
  const { window = 1000, hysteresis = 1, consecutive_hysteresis = false, min_scale = 1 } = loss_scale;
  const mayDiverge = loss_scale.max_skipped_steps !== null;
  return { window, hysteresis, consecutive_hysteresis, min_scale, may_diverge: mayDiverge };
}

function settingsOf(
  manifest: Manifest,
  { train: { optimizer } }: ResolvedJobSpec,
  { name, group }: Param,
): TorchDict {
  const own = groupOf(optimizer.param_groups, name);
  const decay = group === 'decay' ? optimizer.weight_decay : 0;
  const settings: TorchDict = new Map<string, TorchValue>([
    ['lr', new PyFloat(own?.lr ?? optimizer.lr)],
    ['weight_decay', new PyFloat(own?.weight_decay ?? decay)],
    ['step', manifest.optimizer_steps],
  ]);
  const { betas, eps } = optimizer;
  if (betas !== undefined) settings.set('betas', new PyTuple(betas.map((beta) => new PyFloat(beta))));
  if (eps !== undefined) settings.set('eps', new PyFloat(eps));
  return settings;
}

/** Builds `mp_rank_00_model_states.pt`: one file, because there is no tensor parallelism. */
export function modelStates(
  manifest: Manifest,
  spec: ResolvedJobSpec,
  weights: readonly (readonly [UniversalTensor, TorchValue])[],
): TorchDict {
  const { step, skipped_steps, world_size } = manifest;
  const shapes = (frozen: boolean): TorchDict =>
    new Map(
      weights
        .filter(([{ params }]) => params[0]?.frozen === frozen)
        .map(([{ name, shape }]) => [name, new PyTuple([...shape])]),
    );
  return new Map<string, TorchValue>([
    ['module', new Map(weights.map(([{ name }, tensor]) => [name, tensor]))],
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
