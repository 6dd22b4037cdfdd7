import { isErrorCode, type Sample, type SampleRequest, ZerofleetError } from '../../contracts/index.js';
import { findCheckpoint } from '../jobs/init-source.js';
import type { OperationHandler } from './types.js';

const DEFAULTS: Omit<Required<SampleRequest>, 'prompt'> = {
  max_tokens: 128,
  temperature: 1,
  top_k: 0,
  top_p: 1,
  seed: 1,
};

export const sampleCheckpoint: OperationHandler<'sampleCheckpoint'> = async (request): Promise<Sample> => {
  const { services } = request.server;
  const { objects } = services;
  const { source, errors } = await findCheckpoint(
    { store: request.records, objects },
    request.params.checkpoint_id,
  );
  if (source === null) {
    throw new ZerofleetError('checkpoint_not_found', errors[0]?.message ?? 'there is no such checkpoint');
  }
  const { checkpoint, spec } = source;
  const { id, prefix, job_id, step } = checkpoint;
  const reply = await services.samples.sample(spec.resources.pool, {
    job_id,
    checkpoint: { id, prefix },
    request: { ...DEFAULTS, ...request.body },
    expires_at: Date.now() + services.limits.sample_timeout_ms,
  });
  if (reply.ok) return { checkpoint_id: id, step, prompt: request.body.prompt, ...reply.sample };
  const { code, message } = reply.error;
  throw new ZerofleetError(isErrorCode(code) ? code : 'native_error', message);
};
