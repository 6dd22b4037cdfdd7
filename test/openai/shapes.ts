/** Shapes of OpenAI's objects that this server returns, as the official client's types say. */

import type { ChatCompletion } from 'openai/resources/chat/completions';
import type { Completion } from 'openai/resources/completions';
import type { FileObject } from 'openai/resources/files';
import type { FineTuningJobCheckpoint } from 'openai/resources/fine-tuning/jobs/checkpoints';
import type { FineTuningJob, FineTuningJobEvent } from 'openai/resources/fine-tuning/jobs/jobs';
import type { Model } from 'openai/resources/models';
import type { Upload } from 'openai/resources/uploads';
import type { UploadPart } from 'openai/resources/uploads/parts';
import { Check, type TSchema, Type } from '../../platform/schema.js';

const nullable = (schema: TSchema) => Type.Union([schema, Type.Null()]);
const text = Type.String();
const whole = Type.Integer();
const anything = Type.Unsafe<unknown>();
const usage = Type.Object({ prompt_tokens: whole, completion_tokens: whole, total_tokens: whole });

/** Fields that every object of a type has; the client's type is checked against their names. */
const fieldsOf = <T>(fields: Partial<Record<keyof T, TSchema>>) =>
  Type.Object(fields as Record<string, TSchema>);

const SHAPES: Readonly<Record<string, TSchema>> = {
  file: fieldsOf<FileObject>({
    id: text,
    bytes: whole,
    created_at: whole,
    filename: text,
    purpose: text,
    status: text,
  }),
  upload: fieldsOf<Upload>({
    id: text,
    bytes: whole,
    created_at: whole,
    expires_at: whole,
    filename: text,
    purpose: text,
    status: text,
    file: nullable(anything),
  }),
  'upload.part': fieldsOf<UploadPart>({ id: text, created_at: whole, upload_id: text }),
  model: fieldsOf<Model>({ id: text, created: whole, owned_by: text }),
  'fine_tuning.job': fieldsOf<FineTuningJob>({
    id: text,
    created_at: whole,
    error: nullable(anything),
    fine_tuned_model: nullable(text),
    finished_at: nullable(whole),
    hyperparameters: anything,
    model: text,
    organization_id: text,
    result_files: Type.Array(text),
    seed: whole,
    status: text,
    trained_tokens: nullable(whole),
    training_file: text,
    validation_file: nullable(text),
  }),
  'fine_tuning.job.event': fieldsOf<FineTuningJobEvent>({
    id: text,
    created_at: whole,
    level: text,
    message: text,
  }),
  'fine_tuning.job.checkpoint': fieldsOf<FineTuningJobCheckpoint>({
    id: text,
    created_at: whole,
    fine_tuned_model_checkpoint: text,
    fine_tuning_job_id: text,
    metrics: anything,
    step_number: whole,
  }),
  'chat.completion': fieldsOf<ChatCompletion>({
    id: text,
    created: whole,
    model: text,
    usage,
    choices: Type.Array(
      Type.Object({
        index: whole,
        finish_reason: text,
        logprobs: nullable(anything),
        message: Type.Object({ role: text, content: nullable(text), refusal: nullable(text) }),
      }),
    ),
  }),
  text_completion: fieldsOf<Completion>({
    id: text,
    created: whole,
    model: text,
    choices: Type.Array(
      Type.Object({ index: whole, finish_reason: nullable(text), text, logprobs: nullable(anything) }),
    ),
  }),
};
const CHECKS = new Map(Object.entries(SHAPES).map(([name, shape]) => [name, new Check(shape)]));

const ERROR = new Check(
  Type.Object({
    error: Type.Object({ message: text, type: text, param: nullable(text), code: nullable(text) }),
  }),
);

/** Returns what is wrong with an answer, or null. */
export function wrongShape(status: number, body: unknown): string | null {
  if (status >= 400) return ERROR.fits(body) ? null : ERROR.problems().join('; ');
  const { object, data, deleted } = body as { object?: string; data?: unknown[]; deleted?: boolean };
  if (object === 'list') {
    const wrong = (data ?? []).map((entry) => wrongShape(status, entry)).find((problem) => problem !== null);
    return Array.isArray(data) ? (wrong ?? null) : 'a list without data';
  }
  if (deleted === true) return null;
  const check = CHECKS.get(String(object));
  if (check === undefined) return `an object of the type ${object}`;
  return check.fits(body) ? null : check.problems().join('; ');
}
