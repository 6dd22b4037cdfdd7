import { isErrorCode, type Sample, type SampleTask, ZerofleetError } from '../../../contracts/index.js';
import { checkpointNotFound } from '../../access/found.js';
import { invalidDocument } from '../../jobs/check-spec.js';
import { findCheckpoint } from '../../jobs/init-source.js';
import { requireWeights } from '../../jobs/resolve-export.js';
import type { OperationHandler } from '../types.js';

const DEFAULTS: Omit<SampleTask, 'prompt' | 'messages'> = {
  max_tokens: 128,
  temperature: 1,
  top_k: 0,
  top_p: 1,
  seed: 1,
  weights: 'trained',
};

export const sampleCheckpoint: OperationHandler<'sampleCheckpoint'> = async (request): Promise<Sample> => {
  const { services } = request.server;
  const { objects } = services;
  const { source, errors } = await findCheckpoint(
    { store: request.records, objects },
    request.params.checkpoint_id,
  );
  if (source === null) throw checkpointNotFound(errors[0]?.message);
  const { checkpoint, spec } = source;
  if (request.body.messages !== undefined && spec.data.chat_template === null) throw noTemplate();
  requireWeights(spec, request.body.weights);
  const { id, prefix, job_id, step } = checkpoint;
  const { sample_timeout_ms } = services.limits;
  const payload = {
    job_id,
    checkpoint: { id, prefix },
    request: { ...DEFAULTS, ...request.body },
    expires_at: (await services.store.now()) + sample_timeout_ms,
  };
  const reply = await services.samples.sample(spec.resources.pool, payload, sample_timeout_ms);
  if (reply.ok) return { checkpoint_id: id, step, ...reply.sample };
  const { code, message } = reply.error;
  throw new ZerofleetError(isErrorCode(code) ? code : 'native_error', message);
};

function noTemplate(): ZerofleetError {
  const message = 'the job has no chat template for messages; send a prompt';
  return invalidDocument([{ pointer: '/messages', code: 'chat_template_missing', message }]);
}
