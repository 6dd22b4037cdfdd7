/** Weights and tokenizers of served sources: checkpoints, uploaded models, and adapters over them. */
import type { Architecture } from '../../../contracts/architecture.js';
import type { Model, ResolvedJobSpec } from '../../../contracts/index.js';
import { ZerofleetError } from '../../../contracts/index.js';
import type { RetryPolicy } from '../../../contracts/rank-protocol.js';
import type { TextRules } from '../../../formats/encoding/encode-batch.js';
import type { TokenizerFiles } from '../../../formats/encoding/hf-tokenizer.js';
import { readTokenizer } from '../../../formats/encoding/tokenizer-store.js';
import { importConfig, modelParams, trainedArchitecture } from '../../../job-document/index.js';
import type { ObjectStore } from '../../../platform/object-store/index.js';
import { retryTransient } from '../../shared/errors.js';
import type { NativeCore } from '../../shared/native/adapter.js';
import {
  asTrained,
  openModel,
  openStored,
  type ReadElements,
  type ReadParam,
} from '../export/base-reader.js';
import { tokenizerSource } from '../export/model-source.js';
import { openCheckpoint } from '../export/open-checkpoint.js';
import type { ServedBase, ServedSource } from '../protocol.js';

type Precision = ResolvedJobSpec['train']['precision'];
type Core = Pick<NativeCore, 'castTo16Bit' | 'initialValues' | 'quantizedValues'>;

/**
 * Returns the architecture of a source, its adapter included, and its precision. An adapter has the precision of its
 * base.
 * @throws ZerofleetError `model_not_found` without weights
 */
export function shapeOf(source: ServedSource): { architecture: Architecture; precision: Precision } {
  if ('spec' in source)
    return { architecture: trainedArchitecture(source.spec), precision: source.spec.train.precision };
  const { id, adapter } = source.model;
  const { config } = importConfig(source.model.config);
  if (config === null) throw new ZerofleetError('model_not_found', `${id} has no weights`);
  return {
    architecture: trainedArchitecture({ model: { config }, train: { adapter } }),
    precision: precisionOf(source.base_model ?? source.model),
  };
}

/** Returns the same weights without their quantization. */
export function withoutQuantization<T extends ServedBase | ServedSource>(weights: T): T {
  if ('base' in weights) return { ...weights, architecture: { ...weights.architecture, quantization: null } };
  if (!('spec' in weights)) return weights;
  const { quantization: _, ...model } = weights.spec.model;
  return { ...weights, spec: { ...weights.spec, model } };
}

/** A 16-bit model may have some tensors in fp32. A mix of both 16-bit dtypes needs fp32, which represents both. */
function precisionOf({ dtypes }: Pick<Model, 'dtypes'>): Precision {
  const [half, other] = dtypes.filter((dtype) => dtype !== 'fp32');
  return half === undefined || other !== undefined ? 'fp32' : half;
}

/** @throws ZerofleetError `tokenizer_invalid`, `model_not_found`; errors of the object store */
export async function textRules(
  objects: ObjectStore,
  source: ServedSource,
  retry: RetryPolicy,
): Promise<TextRules> {
  if ('spec' in source) {
    const { spec } = source;
    const { tokenizer, parse_special_tokens, chat_template, template_date } = spec.data;
    const files = tokenizer === 'bytes' ? null : await tokenizerFiles(objects, tokenizerSource(spec), retry);
    return { tokenizer: files, parse_special_tokens, chat_template, template_date };
  }
  const { id, tokenizer, created_at } = source.model;
  return {
    tokenizer: await tokenizerFiles(objects, tokenizer === null ? null : id, retry),
    parse_special_tokens: false,
    chat_template: tokenizer?.chat_template ?? null,
    // Prompts do not depend on the current date.
    template_date: created_at.slice(0, 'YYYY-MM-DD'.length),
  };
}

async function tokenizerFiles(
  objects: ObjectStore,
  model: string | null,
  policy: RetryPolicy,
): Promise<TokenizerFiles> {
  if (model === null)
    throw new ZerofleetError(
      'tokenizer_invalid',
      'the model has no tokenizer for texts: it was trained on uploaded tokens, or has no tokenizer.json',
    );
  return retryTransient(() => readTokenizer(objects, model), policy);
}

/**
 * Opens all weights of a source, including the base of an adapter.
 * @throws ZerofleetError `manifest_invalid`, `base_damaged`, `model_corrupt`, also while reading; errors of the object
 *   store
 */
export async function openWeights(
  objects: ObjectStore,
  core: Core,
  source: ServedSource,
  retry: RetryPolicy,
): Promise<ReadElements> {
  if ('spec' in source)
    return ofFp32((await openCheckpoint(objects, core, { ...source, retry })).readWeights);
  const { model, base_model } = source;
  const readOwn = await openModel(objects, model.id, retry);
  if (base_model === null) return readOwn;
  const readBase = await openModel(objects, base_model.id, retry);
  const params = modelParams(shapeOf(source).architecture);
  const frozen = new Set(params.filter((param) => param.frozen).map(({ name }) => name));
  return (param, numel) => (frozen.has(param) ? readBase : readOwn)(param, numel);
}

/**
 * Opens the base weights for adapters that are loaded separately, as their trainings computed with them.
 * @throws as `openWeights`
 */
export async function openBase(
  objects: ObjectStore,
  core: Core,
  { base, architecture, precision }: ServedBase,
  retry: RetryPolicy,
): Promise<ReadElements> {
  if (architecture.quantization === null && 'model' in base) return openModel(objects, base.model, retry);
  const read = await openStored(objects, base, retry);
  return ofFp32(
    architecture.quantization === null ? read : asTrained(read, core, { architecture, precision }),
  );
}

function ofFp32(read: ReadParam): ReadElements {
  return async function* (param, numel) {
    for await (const bytes of read(param, numel)) yield { dtype: 'fp32', bytes };
  };
}
