/** From "these elements will be mine" to "these bytes of these files", for the weights of an uploaded model. */
import { ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../object-store/port.js';
import { ELEMENT_BYTES } from '../safetensors/header.js';
import {
  type ModelWeights,
  parseWeights,
  WEIGHTS_FILE,
  type WeightDtype,
  type WeightState,
  type WeightTensor,
} from './weights.js';

/** Elements `[begin, end)` of one parameter, in row-major order. */
export interface WantedElements {
  state: WeightState;
  param: string;
  begin: number;
  end: number;
}

/** One run of bytes `[byte_begin, byte_end)` of a file and the elements that it holds. */
export interface WeightRead {
  file: string;
  byte_begin: number;
  byte_end: number;
  dtype: WeightDtype;
  state: WeightState;
  param: string;
  /** The first element. */
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
 * Checks that a model has just these parameters.
 * @throws ZerofleetError `model_corrupt`: it was checked when it was uploaded, and when the job was created
 */
export function checkParams(
  { files }: ModelWeights,
  params: readonly { name: string; shape: readonly number[] }[],
): void {
  const shapes = new Map(
    files.flatMap(({ tensors }) => tensors.filter(isMaster).map(({ param, shape }) => [param, shape])),
  );
  for (const { name, shape } of params) {
    const there = shapes.get(name);
    if (there?.join() !== shape.join())
      throw corrupt(`${name} has shape [${shape}] here and ${there ? `[${there}]` : 'is missing'} there`);
    shapes.delete(name);
  }
  const [stranger] = shapes.keys();
  if (stranger !== undefined) throw corrupt(`its ${stranger} does not exist here`);
}

/** Where the wanted elements lie: every element once, in the order of files and bytes. @throws ZerofleetError `model_corrupt` */
export function planWeightReads({ files }: ModelWeights, wanted: readonly WantedElements[]): WeightRead[] {
  const places = new Map<string, { file: string; tensor: WeightTensor }>();
  for (const { file, tensors } of files)
    for (const tensor of tensors) places.set(`${stateOf(tensor)}/${tensor.param}`, { file, tensor });
  const reads = wanted.map(({ state, param, begin, end }): WeightRead => {
    const place = places.get(`${state}/${param}`);
    if (place === undefined) throw corrupt(`it has no ${state} of ${param}`);
    const { file, tensor } = place;
    const { dtype } = tensor;
    const byteOf = (element: number) => tensor.byte_begin + element * ELEMENT_BYTES[dtype];
    if (byteOf(end) > tensor.byte_end) throw corrupt(`its ${param} has no element ${end - 1}`);
    return { file, byte_begin: byteOf(begin), byte_end: byteOf(end), dtype, state, param, begin };
  });
  return reads.sort((a, b) => (a.file === b.file ? a.byte_begin - b.byte_begin : a.file < b.file ? -1 : 1));
}

function stateOf({ state = 'master' }: WeightTensor): WeightState {
  return state;
}

function isMaster(tensor: WeightTensor): boolean {
  return stateOf(tensor) === 'master';
}

function corrupt(problem: string): ZerofleetError {
  return new ZerofleetError('model_corrupt', `the model does not fit: ${problem}`);
}
