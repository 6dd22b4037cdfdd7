import { ZerofleetError } from '../../contracts/index.js';
import { paramOfPeft } from '../../formats/models/peft-names.js';
import { isWeightDtype, WEIGHT_DTYPES, type WeightTensor } from '../../formats/models/weights.js';
import type { HeaderTensor, SafetensorsHeader } from '../../formats/safetensors/header.js';
import { moduleOf, PARAM_NAMES } from '../../job-document/index.js';
import type { ModelShape } from './config.js';

/** Header data of one weights file. */
export interface WeightsHeader {
  file: string;
  header: SafetensorsHeader;
  /** SHA-256 of the data of embeddings and output projections, by tensor name in the file. */
  digests: ReadonlyMap<string, string>;
}

/** Modules of embeddings and output projections, also without the first part of their names. */
const MATRICES: ReadonlySet<string> = new Set(
  PARAM_NAMES.flatMap(({ modules: { embed, head } }) => [head, embed, embed.replace(/^\w+\./, '')]),
);

/** True for tensors that need a digest, because two of them may be tied. Each name occurs at most once per file. */
export function mayBeTied(name: string): boolean {
  return MATRICES.has(moduleOf(paramOfPeft(name)));
}

/** Buffers that some programs store beside the weights: masks and frequencies, computable from the configuration. */
const COMPUTED = /(^|\.)(rotary_emb\.inv_freq|(attn|attention)\.(bias|masked_bias))$/;

/**
 * Tensors of a file that are parameters, under the parameters' canonical names.
 * @throws ZerofleetError `model_tensor_unexpected`, `model_tensor_mismatch`
 */
export function parameterTensors(
  { file, header }: Pick<WeightsHeader, 'file' | 'header'>,
  shape: ModelShape,
): WeightTensor[] {
  const byName = new Map(shape.params.map((param) => [param.name, param]));
  return header.tensors.flatMap((tensor) => {
    const name = parameterName(tensor.name, byName, shape);
    if (name === null) return [];
    const param = byName.get(name);
    if (param === undefined) {
      const detail = `${where(file, tensor.name)} is not a parameter of the model in config.json`;
      throw problem('model_tensor_unexpected', detail, file, tensor.name);
    }
    if (tensor.shape.join() !== param.shape.join()) {
      const detail = `${where(file, tensor.name)} has the shape [${tensor.shape}]; config.json requires [${param.shape}]`;
      throw problem('model_tensor_mismatch', detail, file, tensor.name);
    }
    return [located(tensor, name, header.bytes, file)];
  });
}

/**
 * Canonical parameter name of a tensor; null for a tensor that is not a parameter and may be ignored. Files of a model
 * without output projection (`GPT2Model` instead of `GPT2LMHeadModel`) lack the first part of all names.
 */
function parameterName(
  name: string,
  params: ReadonlyMap<string, unknown>,
  { params: [first], tied }: ModelShape,
): string | null {
  if (params.has(name)) return name;
  const full = `${first?.name.split('.', 1)[0]}.${name}`;
  if (params.has(full)) return full;
  return COMPUTED.test(name) || name === tied ? null : name;
}

function located(
  { name, dtype, shape, begin, end }: HeaderTensor,
  param: string,
  dataBegin: number,
  file: string,
): WeightTensor {
  if (!isWeightDtype(dtype)) {
    const detail = `${where(file, name)} is of ${dtype}; supported are ${WEIGHT_DTYPES.join(', ')}`;
    throw problem('model_tensor_mismatch', detail, file, name);
  }
  return { param, dtype, shape: [...shape], byte_begin: dataBegin + begin, byte_end: dataBegin + end };
}

/** A parameter and its file. */
interface Found {
  file: string;
  tensor: WeightTensor;
}

/**
 * Checks that the files together hold every parameter exactly once.
 * @throws ZerofleetError `model_tensor_missing`, `model_tensor_unexpected`
 */
export function checkWhole(found: readonly Found[], { params }: ModelShape): void {
  const fileOf = new Map<string, string>();
  for (const { file, tensor } of found) {
    const other = fileOf.get(tensor.param);
    if (other !== undefined) {
      const detail = `${where(file, tensor.param)} is also in ${other}`;
      throw problem('model_tensor_unexpected', detail, file, tensor.param);
    }
    fileOf.set(tensor.param, file);
  }
  const missing = params.filter(({ name }) => !fileOf.has(name));
  const [first] = missing;
  if (first === undefined) return;
  const others = missing.length === 1 ? '' : ` (and ${missing.length - 1} more)`;
  throw new ZerofleetError(
    'model_tensor_missing',
    `no weights file has the tensor ${first.name} of shape [${first.shape}]${others}, which config.json requires`,
    { details: { tensor: first.name, missing: missing.length } },
  );
}

/**
 * Checks that a tied output projection equals the input embedding, if the files contain it.
 * @throws ZerofleetError `model_tensor_mismatch`
 */
export function checkTied(files: readonly WeightsHeader[], { params: [embedding], tied }: ModelShape): void {
  const projection = files.find(({ header }) => header.tensors.some(({ name }) => name === tied));
  if (tied === null || projection === undefined || embedding === undefined) return;
  const short = embedding.name.split('.').slice(1).join('.');
  const digestOf = (name: string) => files.flatMap(({ digests }) => digests.get(name) ?? [])[0];
  if (digestOf(tied) === (digestOf(embedding.name) ?? digestOf(short))) return;
  throw problem(
    'model_tensor_mismatch',
    `${where(projection.file, tied)} is not the same as ${embedding.name}, but config.json ties the two; ` +
      'set tie_word_embeddings to false there to keep both',
    projection.file,
    tied,
  );
}

/** Checks that an index agrees with the files. @throws ZerofleetError `model_index_mismatch`, `model_file_missing` */
export function checkIndex(index: ReadonlyMap<string, string>, files: readonly WeightsHeader[]): void {
  const fail = (message: string, file: string, tensor: string) =>
    problem('model_index_mismatch', message, file, tensor);
  const names = new Map(
    files.map(({ file, header }) => [file, new Set(header.tensors.map(({ name }) => name))]),
  );
  for (const [tensor, file] of index) {
    const known = names.get(file);
    if (known === undefined) {
      const detail = `the index says that ${shown(tensor)} is in ${shown(file)}, which is missing`;
      throw problem('model_file_missing', detail, file, tensor);
    }
    if (!known.has(tensor))
      throw fail(`the index says that ${shown(tensor)} is in ${file}; it is not`, file, tensor);
  }
  for (const [file, known] of names)
    for (const tensor of known)
      if (index.get(tensor) !== file)
        throw fail(
          `${where(file, tensor)} is not where the index says (${index.get(tensor) ?? 'nowhere'})`,
          file,
          tensor,
        );
}

function problem(
  code: 'model_tensor_unexpected' | 'model_tensor_mismatch' | 'model_index_mismatch' | 'model_file_missing',
  message: string,
  file: string,
  tensor: string,
): ZerofleetError {
  return new ZerofleetError(code, message, { details: { file, tensor: tensor.slice(0, 200) } });
}

function where(file: string, tensor: string): string {
  return `${file}: tensor ${shown(tensor)}`;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 200));
}
