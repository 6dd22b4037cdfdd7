/** Tinker's API with bodies of the official client, and the worker's part of a session played by the test. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import type { CallResult, StoredCall } from '../../contracts/index.js';
import { putTestCheckpoint } from '../../formats/testing/checkpoints.js';
import { projectRoot } from '../../platform/process/root.js';
import { answerSessions } from './sessions.js';
import { ADMIN_KEY, startTestStack, type TestStackOptions } from './stack.js';
import { checkpointOf } from './training.js';

const DIGEST = '0'.repeat(32);
/**
 * Bodies of the official client (record_messages.py): what follows `model_id`, with one datum of the tokens [1, 2, 3].
 */
const MESSAGES: Record<string, string> = JSON.parse(
  readFileSync(join(projectRoot(), 'test', 'tinker', 'messages.json'), 'utf8'),
);

function resultOf(call: StoredCall, saved: string | undefined): CallResult {
  if (call.type === 'sample')
    return { samples: [{ tokens: [7, 8], log_probs: [-0.5, null], finish: 'length' }] };
  if (call.type === 'optim_step')
    return { step: 1, grad_norm: 2, lr: call.lr, finite: true, state_digest: DIGEST };
  if ('rows' in call)
    return {
      loss: 1.5,
      num_targets: 2,
      log_probs: call.rows.map(({ targets }) => targets.map((id) => -id)),
      metrics: {},
    };
  if (call.type === 'save_state' && saved !== undefined) return { checkpoint: saved, step: 1 };
  return { error: { code: 'gradients_pending', message: 'gradients wait for an update' } };
}

/** A field of a message in protobuf that has bytes. */
export function field(id: number, ...content: (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(content.map((each) => Buffer.from(each)));
  const length: number[] = [];
  let rest = bytes.length;
  for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([id * 8 + 2, ...length, rest]), bytes]);
}

export async function startTinker(t: Test, options: TestStackOptions = {}) {
  const stack = await startTestStack(options);
  const ended = new AbortController();
  /** Checkpoints that `save_state` returns, by session. */
  const saved = new Map<string, string>();
  const answering = answerSessions(
    stack,
    (call, _number, jobId) => resultOf(call, saved.get(jobId)),
    ended.signal,
  );
  t.teardown(async () => {
    ended.abort();
    await answering;
    await stack.close();
  });
  const send = (path: string, payload: object | Buffer, type = 'application/json', key = ADMIN_KEY) =>
    stack.app.inject({
      method: 'POST',
      url: `/tinker/api/v1/${path}`,
      headers: { 'x-api-key': `tml-${key}`, 'content-type': type },
      payload: Buffer.isBuffer(payload) ? payload : JSON.stringify(payload),
    });
  const post = async (path: string, payload: object) => (await send(path, payload)).json();
  const wait = (requestId: string) => send('retrieve_future', { request_id: requestId });
  const create = async (modelSeqId = 0, changes: object = {}) => {
    const loraConfig = { rank: 4, seed: null, train_unembed: true, train_mlp: true, train_attn: false };
    const body = {
      session_id: 'a',
      model_seq_id: modelSeqId,
      base_model: 'llama-tiny',
      lora_config: loraConfig,
      type: 'create_model',
      ...changes,
    };
    const { request_id } = await post('create_model', body);
    return (await wait(request_id)).json<{ model_id: string }>().model_id;
  };
  const sendPass = (model: string, message: Buffer) =>
    send('forward_backward', Buffer.concat([field(1, model), message]), 'application/x-protobuf');
  const pass = (model: string, message: string) =>
    sendPass(model, Buffer.from(MESSAGES[message] ?? '', 'base64'));
  const readCall = async (job: string, number: number) =>
    (await stack.request({ method: 'GET', url: `/v1/jobs/${job}/calls/${number}` })).json<StoredCall>();
  const createSampler = async (model: string, seqId = 1): Promise<string> => {
    const save = { model_id: model, seq_id: seqId, sampling_session_seq_id: 0 };
    const { request_id } = await post('save_weights_for_sampler', save);
    return (await wait(request_id)).json().sampling_session_id;
  };
  /** Saves the weights of a model, and returns their path. */
  const save = async (model: string): Promise<string> => {
    const claim = await stack.store.claimAttempt(model, 1, 'test-worker', 600_000);
    if (!claim.granted) throw new Error(claim.code);
    const checkpoint = checkpointOf(model, 1);
    await putTestCheckpoint(stack.objects, checkpoint.prefix, { numels: [10], ranks: 2 }, checkpoint.id);
    await stack.store.commitCheckpoint(model, claim.execution, checkpoint);
    saved.set(model, checkpoint.id);
    const { request_id } = await post('save_weights_for_sampler', { model_id: model, seq_id: 1, path: 'a' });
    return (await wait(request_id)).json().path;
  };
  /** Returns the body of a request for a sample. */
  const sampleOf = (sampler: string, seqId: number) => ({
    sampling_session_id: sampler,
    seq_id: seqId,
    prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] },
    sampling_params: { max_tokens: 2 },
  });
  return { stack, send, post, wait, create, sendPass, pass, readCall, createSampler, save, sampleOf };
}
