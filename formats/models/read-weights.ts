/** Plans reads of an uploaded model's weights: maps elements that a rank will own to bytes of files. */
import { ZerofleetError } from '../../contracts/index.js';
import type { StateName } from '../../contracts/rank-protocol.js';
import type { ObjectStore } from '../../platform/object-store/common/port.js';
import { ELEMENT_BYTES } from '../safetensors/header.js';
import {
  elementsOf,
  type ModelWeights,
  parseWeights,
  WEIGHTS_FILE,
  type WeightDtype,
  type WeightTensor,
} from './weights.js';

/** Elements `[begin, end)` of one parameter, in row-major order. */
export interface WantedElements {
  state: StateName;
  param: string;
  begin: number;
  end: number;
}

/** Bytes `[byte_begin, byte_end)` of a file and the elements that they hold. */
interface WeightRead {
  file: string;
  byte_begin: number;
  byte_end: number;
  dtype: WeightDtype;
  state: StateName;
  param: string;
  /** First element. */
  begin: number;
}

/**
 * @param directory key of the model's folder
 * @throws ZerofleetError `model_corrupt`; errors of the object store
 */
export async function readWeights(objects: ObjectStore, directory: string): Promise<ModelWeights> {
  return parseWeights(await objects.get(`${directory}/${WEIGHTS_FILE}`));
}

/**
 * Checks that the weights are exactly these parameters.
 * @throws ZerofleetError `model_corrupt`; the same was checked at the upload and when the job was created
 */
export function checkParams(
  { files }: ModelWeights,
  params: readonly { name: string; shape: readonly number[] }[],
): void {
  const shapes = new Map(
    files.flatMap(({ tensors }) => tensors.filter(isMaster).map(({ param, shape }) => [param, shape])),
  );
  for (const { name, shape } of params) {
    const expected = shapes.get(name);
    if (expected?.join() !== shape.join())
      throw corrupt(
        `${name} has shape [${shape}] here and ${expected ? `[${expected}]` : 'is missing'} there`,
      );
    shapes.delete(name);
  }
  const [unexpected] = shapes.keys();
  if (unexpected !== undefined) throw corrupt(`its ${unexpected} does not exist here`);
}

/**
 * Plans the reads of the wanted elements, each element once, ordered by file and byte. @throws ZerofleetError
 * `model_corrupt`
 */
export function planWeightReads({ files }: ModelWeights, wanted: readonly WantedElements[]): WeightRead[] {
  const runs = new Map<string, Run[]>();
  for (const { file, tensors } of files) {
    for (const tensor of tensors) {
      const key = `${stateOf(tensor)}/${tensor.param}`;
      const { begin, end } = elementsOf(tensor);
      const others = runs.get(key);
      if (others) others.push({ file, tensor, begin, end });
      else runs.set(key, [{ file, tensor, begin, end }]);
    }
  }
  for (const list of runs.values()) list.sort((a, b) => a.begin - b.begin);
  const reads = wanted.flatMap((elements) =>
    readsOf(elements, runs.get(`${elements.state}/${elements.param}`) ?? []),
  );
  return reads.sort((a, b) => (a.file === b.file ? a.byte_begin - b.byte_begin : a.file < b.file ? -1 : 1));
}

/** Tensor of a file with its elements. */
interface Run {
  file: string;
  tensor: WeightTensor;
  begin: number;
  end: number;
}

/** @param runs of the parameter, in order */
function readsOf({ state, param, begin, end }: WantedElements, runs: readonly Run[]): WeightRead[] {
  if (runs.length === 0) throw corrupt(`it has no ${state} of ${param}`);
  const reads: WeightRead[] = [];
  let next = begin;
  for (const run of runs) {
    if (run.begin > next || next === end) break;
    if (run.end <= next) continue;
    const { dtype, byte_begin } = run.tensor;
    const byteOf = (element: number) => byte_begin + (element - run.begin) * ELEMENT_BYTES[dtype];
    const to = Math.min(end, run.end);
    reads.push({
      file: run.file,
      byte_begin: byteOf(next),
      byte_end: byteOf(to),
      dtype,
      state,
      param,
      begin: next,
    });
    next = to;
  }
  if (next < end) throw corrupt(`its ${param} has no element ${next}`);
  return reads;
}

function stateOf({ state = 'master' }: WeightTensor): StateName {
  return state;
}

function isMaster(tensor: WeightTensor): boolean {
  return stateOf(tensor) === 'master';
}

function corrupt(problem: string): ZerofleetError {
  return new ZerofleetError('model_corrupt', `the model does not fit: ${problem}`);
}
