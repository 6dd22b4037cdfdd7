/** Checkpoints that DeepSpeed wrote, read after a change of their values. */
import type { StateName } from '../../contracts/state-records.js';
import { memorySource } from '../../formats/testing/byte-source.js';
import { readTorchFile, type TorchFile } from '../../formats/torch-file/read.js';
import type { TorchDict, TorchValue } from '../../formats/torch-file/values.js';
import { shapeOf } from '../contents/config.js';
import { DeepSpeedCheckpoint } from '../contents/deepspeed/checkpoint.js';
import { checkModuleWeights } from '../contents/deepspeed/module-weights.js';
import { deepSpeedGolden, inFolder } from './deepspeed-golden.js';

export const golden = new Map([...(await deepSpeedGolden('deepspeed')), ...(await deepSpeedGolden('modes'))]);
export const configOf = (folder: string) =>
  golden.get(`${folder.split('/')[0]}/config.json`) ?? golden.get('config.json');
export const paramsOf = (folder: string) => shapeOf(JSON.parse(String(configOf(folder)))).params;
export const NUM_PARAMS = 2 * 9 + 3;
export const ADAM: StateName[] = ['exp_avg', 'exp_avg_sq'];

export type Change = (value: TorchDict, name: string) => void;

/**
 *  @param change changes the values of a file; the bytes of its tensors stay
 * @param other a file that holds the tensors of model states instead
 */
export async function checked(
  folder: string,
  change: Change = () => undefined,
  without = /^$/,
  other?: TorchFile,
) {
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
export async function compared(folder: string): Promise<number> {
  const { pairs } = await checked(folder);
  const read = async (begin: number, end: number, file = '') =>
    (golden.get(`${folder}/${file}`) as Buffer).subarray(begin, end);
  await checkModuleWeights(pairs, read);
  return pairs.length;
}

/** Bytes of every state of every parameter, assembled from the files. */
export async function contents(folder: string, change?: Change): Promise<Map<string, string>> {
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

export const dictOf = (value: TorchValue | undefined, ...path: (string | number)[]): TorchDict => {
  const inner = path.reduce<TorchValue | undefined>(
    (at, key) => (at instanceof Map ? at.get(key) : undefined),
    value,
  );
  if (!(inner instanceof Map)) throw new Error(`no dict at ${path}`);
  return inner;
};

export const listOf = (value: TorchValue | undefined): TorchValue[] => {
  if (!Array.isArray(value)) throw new Error('no list');
  return value;
};

export const RAW = 'zero2/global_step6';
export const RAW3 = 'zero3/global_step6';
export const UNIVERSAL3 = 'zero3/global_step6_universal';
export const groupStates = (value: TorchDict) => {
  const all = dictOf(value, 'optimizer_state_dict');
  const states = dictOf(
    all.has('base_optimizer_state') ? all.get('base_optimizer_state') : all.get('optimizer_state_dict'),
    'state',
  );
  return [...states.values()].map((state) => dictOf(state));
};
export const isOptim = (name: string) => name.endsWith('_optim_states.pt');

export const NORM = 'model.norm.weight';
