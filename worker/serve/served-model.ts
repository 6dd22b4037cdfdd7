/** What a host answers with: a checkpoint, or an uploaded model. */
import type { Model, ResolvedJobSpec } from '../../contracts/index.js';
import { ZerofleetError } from '../../contracts/index.js';
import type { ObjectStore } from '../../platform/object-store/index.js';
import { importConfig, trainedArchitecture } from '../../spec/index.js';
import { retryTransient } from '../common/errors.js';
import { BytesTokenizer } from '../encoding/bytes-tokenizer.js';
import { HfTokenizer } from '../encoding/hf-tokenizer.js';
import type { PromptTokenizer } from '../encoding/prompt-tokenizer.js';
import { readTokenizer } from '../encoding/tokenizer-store.js';
import { openModel, type ReadParam } from '../export/base-reader.js';
import { tokenizerSource } from '../export/model-source.js';
import { openCheckpoint } from '../export/open-checkpoint.js';
import type { ModelConfig, NativeCore } from '../native/adapter.js';
import type { ServedSource, TaskRequest } from '../tasks/protocol.js';

export type ServeTask = Extract<TaskRequest, { kind: 'serve' }>;

export interface ServedModel {
  architecture: ModelConfig;
  precision: ResolvedJobSpec['train']['precision'];
  /** How a chat becomes a prompt. */
  data: Pick<ResolvedJobSpec['data'], 'chat_template' | 'template_date'>;
  tokenizer: PromptTokenizer;
  openWeights(): Promise<ReadParam>;
}

type Core = Pick<NativeCore, 'castTo16Bit' | 'initialValues' | 'quantizedValues'>;

/** @throws ZerofleetError `tokenizer_invalid`, `model_not_found`; errors of the object store */
export function servedModel(objects: ObjectStore, core: Core, task: ServeTask): Promise<ServedModel> {
  const { source } = task;
  return 'model' in source
    ? uploadedModel(objects, task, source.model)
    : ofCheckpoint(objects, core, task, source);
}

async function ofCheckpoint(
  objects: ObjectStore,
  core: Core,
  { retry }: ServeTask,
  source: Exclude<ServedSource, { model: Model }>,
): Promise<ServedModel> {
  const { spec } = source;
  const { data } = spec;
  return {
    architecture: trainedArchitecture(spec),
    precision: spec.train.precision,
    data,
    tokenizer:
      data.tokenizer === 'bytes'
        ? new BytesTokenizer()
        : await openTokenizer(objects, tokenizerSource(spec), data.parse_special_tokens, retry),
    openWeights: async () => (await openCheckpoint(objects, core, { ...source, retry })).readWeights,
  };
}

async function uploadedModel(objects: ObjectStore, { retry }: ServeTask, model: Model): Promise<ServedModel> {
  const { config } = importConfig(model.config);
  if (config === null) throw new ZerofleetError('model_not_found', `${model.id} has no weights`);
  const { id, base, adapter, tokenizer, dtypes, created_at } = model;
  return {
    architecture: trainedArchitecture({ model: { config }, train: { adapter } }),
    precision: dtypes.every((dtype) => dtype === 'fp32') ? 'fp32' : 'bf16',
    data: {
      chat_template: tokenizer?.chat_template ?? null,
      // The same on each day.
      template_date: created_at.slice(0, 'YYYY-MM-DD'.length),
    },
    tokenizer: await openTokenizer(objects, tokenizer === null ? null : id, false, retry),
    openWeights: async () => {
      const own = await openModel(objects, id, retry);
      if (base === undefined) return own;
      const below = await openModel(objects, base, retry);
      return (param, numel) =>
        (/\.(lora_[AB]|lora_magnitude_vector)\b/.test(param) ? own : below)(param, numel);
    },
  };
}

async function openTokenizer(
  objects: ObjectStore,
  model: string | null,
  parse_special: boolean,
  policy: ServeTask['retry'],
): Promise<PromptTokenizer> {
  if (model === null)
    throw new ZerofleetError(
      'tokenizer_invalid',
      'the model has no tokenizer for texts: it was trained on uploaded tokens, or has no tokenizer.json',
    );
  return new HfTokenizer(await retryTransient(() => readTokenizer(objects, model), policy), parse_special);
}
