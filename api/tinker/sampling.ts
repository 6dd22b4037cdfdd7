/** Samples from the weights of a session. */
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ulid } from 'ulid';
import { type Call, type Checkpoint, isFinal, type Job } from '../../contracts/index.js';
import { typeOfCall } from '../../formats/calls/call-log.js';
import { type Static, Type } from '../../platform/schema.js';
import type { CreateJobResult } from '../../state/index.js';
import { requireOperation } from '../http/authenticate.js';
import { countersOf, findSession, requireCall } from '../jobs/session-calls.js';
import { notSupported, Refusal } from '../openai/errors.js';
import { nullable, parserOf } from '../openai/pages.js';
import { continueAs, routeAs } from '../openai/route-as.js';
import { appendNamed, checkNamed, type NamedCall, WeightChanges } from './append.js';
import { checkpointOf, createBaseSampler, forkSession, repeatSession, requireNoBase } from './models.js';
import { MAX_NAME, parsePath, parseSamplerId, requestId, samplerId, type Weights } from './names.js';

const parseSession = parserOf(
  Type.Object({
    session_id: Type.String({ maxLength: 64 }),
    sampling_session_seq_id: Type.Integer({ minimum: 0 }),
    base_model: nullable(Type.String({ minLength: 1, maxLength: MAX_NAME })),
    model_path: nullable(Type.String({ maxLength: MAX_NAME })),
  }),
);

const Sample = Type.Object({
  num_samples: Type.Optional(Type.Integer()),
  prompt: Type.Object({
    chunks: Type.Array(
      Type.Object({
        type: Type.Optional(Type.String()),
        tokens: Type.Optional(Type.Array(Type.Integer())),
      }),
    ),
  }),
  sampling_params: Type.Object({
    max_tokens: nullable(Type.Integer()),
    seed: nullable(Type.Integer({ minimum: 0 })),
    stop: Type.Optional(Type.Unsafe<unknown>()),
    temperature: Type.Optional(Type.Number()),
    top_k: Type.Optional(Type.Integer()),
    top_p: Type.Optional(Type.Number()),
  }),
  base_model: nullable(Type.String()),
  model_path: nullable(Type.String()),
  sampling_session_id: nullable(Type.String({ maxLength: MAX_NAME })),
  seq_id: nullable(Type.Integer({ minimum: 0 })),
  prompt_logprobs: nullable(Type.Boolean()),
  topk_prompt_logprobs: Type.Optional(Type.Integer()),
});
type SampleBody = Static<typeof Sample>;
const parseSample = parserOf(Sample);

export async function samplingRoutes(app: FastifyInstance): Promise<void> {
  const { inspector, objects } = app.services;
  const changes = new WeightChanges(objects);

  app.post('/create_sampling_session', routeAs(app, 'getJob'), async (request, reply) => {
    const { session_id, sampling_session_seq_id, base_model, model_path } = parseSession(request.body);
    const key = `${session_id}:sample:${sampling_session_seq_id}`;
    if (typeof model_path !== 'string') {
      if (typeof base_model !== 'string')
        throw new Refusal(400, 'invalid_parameter', 'model_path', 'send model_path or base_model');
      const weights = await createBaseSampler(request, reply, { name: base_model, key });
      return { type: 'create_sampling_session', sampling_session_id: samplerId(weights, ulid()) };
    }
    requireNoBase(base_model);
    const weights = parsePath(model_path);
    continueAs(request, 'getJob', { job_id: weights.job_id });
    await findSession(request, weights.job_id);
    requireCall(await countersOf(request, weights.job_id), weights.number);
    return { type: 'create_sampling_session', sampling_session_id: samplerId(weights, ulid()) };
  });

  app.post('/asample', routeAs(app, 'putCall'), async (request, reply) => {
    const owner = request.records.project;
    const read = await inspector.run('readTinkerJson', { body: request.body as Buffer }, { owner });
    const body = parseSample(read);
    if (typeof body.sampling_session_id !== 'string' || typeof body.seq_id !== 'number')
      throw notSupported(
        'sampling_session_id',
        'send sampling_session_id and seq_id; create a sampling session first',
      );
    const { sampler, ...weights } = parseSamplerId(body.sampling_session_id);
    const name = `sample-${sampler}-${body.seq_id}`;
    const job = await findSession(request, weights.job_id);
    const counters = await countersOf(request, job.id);
    requireCall(counters, weights.number);
    const { appended } = counters;
    // Before a fork, so that a sample which is refused creates none.
    const sampled = await checkSample(request, job, { body, name });
    if (!isFinal(job.state) && !(await changes.has(weights, appended))) {
      const sample = await append(request, job, sampled);
      // A call that changes the weights may have come between.
      if (!(await changes.has(weights, sample.number))) return answerOf(job, sample);
    }
    // The weights that the session began with need no checkpoint: its document has them.
    const isFirst = !(await changes.has({ ...weights, number: 0 }, weights.number));
    const saved = await (isFirst ? repeatBeginning(request, reply, job) : forkSaved(request, reply, weights));
    return answerOf(saved, await append(request, saved, sampled));
  });
}

/** Returns a session of weights that their own session no longer has. @throws Refusal if they were not saved */
async function forkSaved(request: FastifyRequest, reply: FastifyReply, weights: Weights): Promise<Job> {
  const { objects } = request.server.services;
  const { job_id, number } = weights;
  if (number === 0 || (await typeOfCall(objects, job_id, number)) !== 'save_state')
    throw new Refusal(
      400,
      'weights_changed',
      'sampling_session_id',
      `the weights of ${job_id} have changed since this sampler was created; create it anew, or save the weights by name`,
    );
  return forkOf(request, reply, await checkpointOf(request, reply, weights));
}

/** Returns a session with the weights that another one began with. */
function repeatBeginning(request: FastifyRequest, reply: FastifyReply, job: Job): Promise<Job> {
  return sessionFor(request, `sampler:${job.id}`, (key) => repeatSession(request, reply, { job, key }));
}

function forkOf(request: FastifyRequest, reply: FastifyReply, checkpoint: Checkpoint): Promise<Job> {
  return sessionFor(request, `sampler:${checkpoint.id}`, (key) =>
    forkSession(request, reply, { checkpoint, key }),
  );
}

/** Returns the session that samples other weights. One that has ended or was deleted is followed by a new one. */
async function sessionFor(
  request: FastifyRequest,
  name: string,
  create: (key: string) => Promise<CreateJobResult>,
): Promise<Job> {
  for (let key = name; ; ) {
    const { job: created, replayed } = await create(key);
    // The audit log has the session once, with the sample that needed it.
    if (!replayed) return created;
    const job = await request.records.getJob(created.id);
    if (job !== null && !isFinal(job.state)) {
      continueAs(request, 'putCall', { job_id: job.id });
      return job;
    }
    key = `${name}:${created.id}`;
  }
}

/** Calls of a sample. */
interface SampleCalls {
  /** Log-probabilities of the prompt; null if they are not wanted. */
  prompt: NamedCall | null;
  sample: NamedCall;
}

async function checkSample(
  request: FastifyRequest,
  job: Job,
  { body, name }: { body: SampleBody; name: string },
): Promise<SampleCalls> {
  const call = callOf(body, job, name);
  const [prompt = []] = call.prompts;
  // Nothing predicts the first token.
  const forward: Call = {
    type: 'forward',
    loss: { type: 'cross_entropy' },
    rows: [{ tokens: prompt.slice(0, -1), targets: prompt.slice(1) }],
  };
  const wanted = body.prompt_logprobs === true && prompt.length > 1;
  return {
    prompt: wanted
      ? await checkNamed(request, { job, name: `${name}-prompt`, body: bytesOf(forward) })
      : null,
    sample: await checkNamed(request, { job, name, body: bytesOf(call) }),
  };
}

async function append(request: FastifyRequest, job: Job, { prompt, sample }: SampleCalls) {
  requireOperation(request, 'putCall', { job_id: job.id });
  return {
    prompt: prompt === null ? 0 : await appendNamed(request, job, prompt),
    number: await appendNamed(request, job, sample),
  };
}

function answerOf({ id: jobId }: Job, sample: { number: number; prompt: number }): { request_id: string } {
  return { request_id: requestId({ job_id: jobId, kind: 'sample', ...sample }) };
}

function bytesOf(call: Call): Buffer {
  return Buffer.from(JSON.stringify(call));
}

type SampleCall = Extract<Call, { type: 'sample' }>;

/** @throws Refusal */
function callOf(body: SampleBody, { spec }: Job, name: string): SampleCall {
  const { sampling_params: params, prompt, topk_prompt_logprobs: top = 0 } = body;
  if (top > 0)
    throw notSupported('topk_prompt_logprobs', 'topk_prompt_logprobs is not supported; leave it at 0');
  const tokens = prompt.chunks.flatMap(({ tokens: chunk }) => {
    if (chunk !== undefined) return chunk;
    throw notSupported('prompt', 'only chunks of text are supported, and no images or audio');
  });
  const { max_tokens, seed, stop, temperature = 1, top_k = -1, top_p = 1 } = params;
  return {
    type: 'sample',
    prompts: [tokens],
    n: body.num_samples ?? 1,
    max_tokens: max_tokens ?? spec.train.sequence_length - tokens.length,
    temperature,
    top_k: Math.max(top_k, 0),
    top_p,
    seed: seed ?? createHash('sha256').update(name).digest().readUIntBE(0, 6),
    ...stopsOf(stop),
  };
}

/** @throws Refusal */
function stopsOf(stop: unknown): Pick<SampleCall, 'stop_tokens' | 'stop_texts'> {
  const list = Array.isArray(stop) ? stop : stop == null ? [] : [stop];
  if (list.every((each): each is number => Number.isInteger(each))) return { stop_tokens: list };
  if (list.every((each): each is string => typeof each === 'string')) return { stop_texts: list };
  throw notSupported('sampling_params.stop', 'stop must be tokens or texts, and not both');
}
