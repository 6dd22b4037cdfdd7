/** Models that answer: those of checkpoints, and uploaded ones. */
import type { FastifyRequest } from 'fastify';
import {
  type Model,
  type Sample,
  type SampleRequest,
  type SampleSource,
  ZerofleetError,
} from '../../contracts/index.js';
import { DEFAULT_POOL } from '../../job-document/index.js';
import { checkpointNotFound } from '../access/found.js';
import { invalidDocument } from '../jobs/check-spec.js';
import { findCheckpoint } from '../jobs/init-source.js';
import { requireWeights } from '../jobs/resolve-export.js';

/** The model that answers a request. */
export interface AnsweringModel {
  source: SampleSource;
  pool: string;
  /** True if the pool was named by the request, and must exist. */
  is_named: boolean;
  chat_template: string | null;
  /** Fields of the answer. */
  named: Pick<Sample, 'model' | 'step'>;
}

type Weights = SampleRequest['weights'];

/** Finds the model of a checkpoint. @throws ZerofleetError */
export async function checkpointModel(
  { records: store, server }: FastifyRequest,
  id: string,
  weights?: Weights,
): Promise<AnsweringModel> {
  const { objects } = server.services;
  const { source, errors } = await findCheckpoint({ store, objects }, id);
  if (source === null) throw checkpointNotFound(errors[0]?.message);
  const { checkpoint, spec } = source;
  requireWeights(spec, weights);
  const { prefix, job_id, step } = checkpoint;
  return {
    source: { job_id, checkpoint: { id, prefix } },
    pool: spec.resources.pool,
    is_named: false,
    chat_template: spec.data.chat_template,
    named: { model: id, step },
  };
}

/** @param pool of the worker; the default one need not have a worker yet @throws ZerofleetError */
export function uploadedModel(
  { id, model_type, tokenizer }: Model,
  pool = DEFAULT_POOL,
  weights?: Weights,
): AnsweringModel {
  if (model_type === null)
    throw new ZerofleetError('model_not_found', `${id} is a tokenizer without weights; use a model`);
  if (weights !== undefined && weights !== 'trained') {
    const message = 'an uploaded model has one set of weights; leave weights out';
    throw invalidDocument([{ pointer: '/weights', code: 'weights_missing', message }]);
  }
  return {
    source: { model_id: id },
    pool,
    is_named: pool !== DEFAULT_POOL,
    chat_template: tokenizer?.chat_template ?? null,
    named: { model: id, step: null },
  };
}
