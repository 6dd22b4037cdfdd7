import type { Checkpoint, FieldError, JobSpec, ResolvedJobSpec } from '../index.js';
import type { ParamShapes } from '../model-params.js';
import { fieldError } from './field-error.js';

type InitFrom = NonNullable<JobSpec['model']['init_from']>;
type ResolvedInitFrom = ResolvedJobSpec['model']['init_from'];

/** A checkpoint that a job may begin with, and the document of the job that made it. */
export interface CheckpointSource {
  checkpoint: Checkpoint;
  spec: ResolvedJobSpec;
}

const AT = '/model/init_from';

/** The fields that decide which parameters there are, and of which shapes. */
const SHAPE_FIELDS = [
  'hidden_size',
  'intermediate_size',
  'num_hidden_layers',
  'num_attention_heads',
  'num_key_value_heads',
  'head_dim',
  'vocab_size',
  'tie_word_embeddings',
] as const satisfies readonly (keyof ParamShapes)[];

/** Null without a source: then the document is refused, or its rules alone are wanted. */
export function resolveInitFrom(
  given: InitFrom | undefined,
  source: CheckpointSource | null,
): ResolvedInitFrom {
  if (given === undefined || source === null) return null;
  const { id, job_id, prefix } = source.checkpoint;
  return { checkpoint: id, job: job_id, prefix, restore: given.restore ?? 'weights' };
}

export function checkInitFrom(spec: ResolvedJobSpec, source: CheckpointSource | null): FieldError[] {
  const { init_from } = spec.model;
  if (init_from === null || source === null) return [];
  const errors = checkShapes(spec, source);
  const [ours, theirs] = [spec.train.optimizer.type, source.spec.train.optimizer.type];
  if (init_from.restore === 'full' && ours !== theirs) {
    errors.push(
      fieldError(
        `${AT}/restore`,
        'checkpoint_optimizer_differs',
        `the checkpoint has the state of ${theirs}, and the job trains with ${ours}`,
        'weights',
      ),
    );
  }
  return errors;
}

function checkShapes(spec: ResolvedJobSpec, { checkpoint, spec: from }: CheckpointSource): FieldError[] {
  const [ours, theirs] = [spec.model.config, from.model.config];
  const different = SHAPE_FIELDS.filter((name) => ours[name] !== theirs[name]);
  if (different.length === 0) return [];
  const list = different.map((name) => `${name} ${theirs[name]} (here ${ours[name]})`).join(', ');
  return [
    fieldError(
      `${AT}/checkpoint`,
      'checkpoint_model_differs',
      `checkpoint ${checkpoint.id} is of another model: ${list}`,
    ),
  ];
}
