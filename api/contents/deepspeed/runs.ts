import { ZerofleetError } from '../../../contracts/index.js';
import type { StateName } from '../../../contracts/rank-protocol.js';
import { isWeightDtype, type WeightDtype, type WeightTensor } from '../../../formats/models/weights.js';
import { ELEMENT_BYTES } from '../../../formats/safetensors/header.js';
import type { TorchFile } from '../../../formats/torch-file/read.js';
import { TorchTensor, type TorchValue } from '../../../formats/torch-file/values.js';
import type { ModelParam, ModuleTensor } from '../../../job-document/index.js';

/** A contiguous row-major tensor of a file. */
export interface FoundTensor {
  file: string;
  dtype: WeightDtype;
  shape: readonly number[];
  numel: number;
  byte_begin: number;
}

/** Elements `[begin, end)` of one state of one parameter, or of one tensor of the module. */
export interface Run {
  state: StateName;
  param: string;
  begin: number;
  end: number;
  file: string;
  dtype: WeightDtype;
  byte_begin: number;
}

/**
 * Returns the tensor at a position of a file.
 * @param at position in the file, for messages
 * @throws ZerofleetError `model_tensor_mismatch`, `torch_file_invalid`
 */
export function tensorOf(
  file: string,
  content: TorchFile,
  value: TorchValue | undefined,
  at: string,
): FoundTensor {
  if (!(value instanceof TorchTensor))
    throw problem('model_tensor_mismatch', `${file} holds no tensor${at}`, file);
  const { dtype, shape, numel } = value;
  if (!isWeightDtype(dtype)) {
    const detail = `${file} is of ${dtype}${at}; supported are floats of 32 and 16 bits`;
    throw problem('model_tensor_mismatch', detail, file);
  }
  return { file, dtype, shape, numel, byte_begin: content.location(value).byte_begin };
}

/** Run of `count` elements of a parameter starting at `begin`, stored in a tensor starting at element `offset`. */
export function runOf(
  { file, dtype, byte_begin }: FoundTensor,
  { state, param, begin, offset, count }: Pick<Run, 'state' | 'param' | 'begin'> & TensorSpan,
): Run {
  const at = byte_begin + offset * ELEMENT_BYTES[dtype];
  return { state, param, begin, end: begin + count, file, dtype, byte_begin: at };
}

interface TensorSpan {
  offset: number;
  count: number;
}

/** Divides runs of the module's tensors into runs of the parameters in them. */
export function runsOfParams(runs: readonly Run[], tensors: ReadonlyMap<string, ModuleTensor>): Run[] {
  return runs.flatMap((run) => {
    let at = 0;
    return (tensors.get(run.param)?.params ?? []).flatMap(({ name, numel }) => {
      const first = at;
      at += numel;
      const [begin, end] = [Math.max(run.begin, first), Math.min(run.end, at)];
      const byteBegin = run.byte_begin + (begin - run.begin) * ELEMENT_BYTES[run.dtype];
      return begin < end
        ? [{ ...run, param: name, begin: begin - first, end: end - first, byte_begin: byteBegin }]
        : [];
    });
  });
}

/**
 * Checks that the files hold each state of each parameter exactly once and complete.
 * @param nameOf returns the name of a parameter's state, for messages
 * @throws ZerofleetError `model_tensor_missing`, `model_tensor_unexpected`
 */
export function checkWhole(
  runs: readonly Run[],
  params: readonly ModelParam[],
  statesOf: (param: ModelParam) => readonly StateName[],
  nameOf: (param: string, state: StateName) => string,
): void {
  const found = grouped(runs, ({ state, param }) => `${state}/${param}`);
  const wanted = params.flatMap((param) =>
    statesOf(param).map((state) => {
      const { name, numel } = param;
      return { name, state, numel, runs: found.get(`${state}/${name}`) ?? [] };
    }),
  );
  const missing = wanted.filter((one) => one.runs.length === 0);
  const [first] = missing;
  if (first !== undefined) {
    const others = missing.length === 1 ? '' : ` (and ${missing.length - 1} more)`;
    const name = nameOf(first.name, first.state);
    throw problem('model_tensor_missing', `the checkpoint has no ${name}${others}`, name);
  }
  for (const one of wanted) checkCovered(one, nameOf(one.name, one.state));
}

function checkCovered({ runs, numel }: { runs: readonly Run[]; numel: number }, name: string): void {
  let next = 0;
  for (const { begin, end, file } of [...runs].sort((a, b) => a.begin - b.begin)) {
    if (begin < next)
      throw problem(
        'model_tensor_unexpected',
        `${file} has elements of ${name} that another file already has`,
        file,
      );
    if (begin > next) break;
    next = end;
  }
  if (next === numel) return;
  const detail = `the files hold ${Math.min(next, numel)} elements of ${name} in a row; config.json requires ${numel}. Send the files of all ranks`;
  throw problem('model_tensor_missing', detail, name);
}

/** Tensors of each file, in the form that readers use. */
export function tensorsByFile(
  runs: readonly Run[],
  params: readonly ModelParam[],
): Map<string, WeightTensor[]> {
  const byName = new Map(params.map((param) => [param.name, param]));
  const weightTensor = ({ state, param, begin, end, dtype, byte_begin }: Run): WeightTensor => {
    const { shape, numel } = byName.get(param) as ModelParam;
    const whole = begin === 0 && end === numel;
    const byteEnd = byte_begin + (end - begin) * ELEMENT_BYTES[dtype];
    return { param, state, dtype, shape, ...(whole ? {} : { begin }), byte_begin, byte_end: byteEnd };
  };
  const files = grouped(runs, ({ file }) => file);
  return new Map([...files].map(([file, list]) => [file, list.map(weightTensor)]));
}

function grouped(runs: readonly Run[], keyOf: (run: Run) => string): Map<string, Run[]> {
  const groups = new Map<string, Run[]>();
  for (const run of runs) {
    const key = keyOf(run);
    const group = groups.get(key);
    if (group) group.push(run);
    else groups.set(key, [run]);
  }
  return groups;
}

export function problem(
  code: 'model_tensor_unexpected' | 'model_tensor_mismatch' | 'model_tensor_missing',
  message: string,
  file: string,
): ZerofleetError {
  return new ZerofleetError(code, message, { details: { file } });
}

export function invalidState(message: string): ZerofleetError {
  return new ZerofleetError('optimizer_state_invalid', message);
}
