/** Answers of a job's checkpoints to the prompts of its document. */
import {
  type Checkpoint,
  isErrorCode,
  isFinal,
  type Job,
  type Page,
  ZerofleetError,
} from '../../contracts/index.js';
import { DOWNLOAD_HOLDER, type ForwardEvent, type JobStore } from '../../state/index.js';
import { DEFAULT_LIMITS } from '../limits.js';
import type { SamplePort } from '../services.js';
import { SAMPLE_DEFAULTS } from './service.js';

/** Checkpoints of a whole training that answer: their events must not fill the job's stream. */
const MAX_ANSWERED = 200;
/** Characters of an answer that are kept. */
const MAX_CHARACTERS = 2_000;
/** Time for the answers of a checkpoint, in which the retention rule does not remove it. */
export const ANSWER_MS = 600_000;
/** Age of a checkpoint at which a failure counts as final, so that newer checkpoints can answer. */
const GIVE_UP_MS = 3_600_000;

interface AnswerDeps {
  store: Pick<JobStore, 'listCheckpoints' | 'holdCheckpoint'>;
  samples: SamplePort;
  /** Aborted when the server shuts down. */
  signal: AbortSignal;
}

interface AnswerRound {
  /** `more`: another checkpoint may be due; `idle`: none is due now; `ended`: none will be. */
  end: 'more' | 'idle' | 'ended';
  /** Step of the newest checkpoint that has answered, or never will. */
  step: number;
  event?: ForwardEvent;
}

/**
 * Lets the oldest checkpoint that is due answer. A failure that may pass is thrown, so that it is tried again.
 * @param after step of the newest checkpoint that has answered
 */
export async function answerCheckpoint(job: Job, after: number, deps: AnswerDeps): Promise<AnswerRound> {
  const checkpoint = await nextCheckpoint(job, after, deps);
  if (checkpoint === null) return { end: isFinal(job.state) ? 'ended' : 'idle', step: after };
  const { id, step } = checkpoint;
  const isHeld = await deps.store.holdCheckpoint(id, DOWNLOAD_HOLDER, ANSWER_MS);
  if (!isHeld) return { end: 'more', step };
  try {
    const answers = await answersOf(job, checkpoint, deps);
    const data = { checkpoint_id: id, step, answers };
    return { end: 'more', step, event: { type: 'samples.answered', data } };
  } catch (error) {
    if (!(error instanceof ZerofleetError) || mayPass(error, checkpoint)) throw error;
    const data = { checkpoint_id: id, step, error: error.code, message: error.message };
    return { end: 'more', step, event: { type: 'samples.failed', data } };
  }
}

/** The oldest checkpoint that is far enough from the last one, or the newest of a job that has ended; or null. */
async function nextCheckpoint(
  { id, state, progress: { total_steps } }: Job,
  after: number,
  { store }: Pick<AnswerDeps, 'store'>,
): Promise<Checkpoint | null> {
  const waiting: Checkpoint[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Page<Checkpoint> = await store.listCheckpoints(
      id,
      cursor === undefined ? {} : { after: cursor },
    );
    waiting.push(...page.data.filter(({ step }) => step > after));
    cursor = page.next_cursor;
  }
  waiting.sort((a, b) => a.step - b.step);
  const distance = total_steps === null ? Number.POSITIVE_INFINITY : total_steps / MAX_ANSWERED;
  const newest = isFinal(state) ? waiting.at(-1) : undefined;
  return waiting.find(({ step }) => step >= after + distance) ?? newest ?? null;
}

/** @throws ZerofleetError; the reason of the signal */
async function answersOf(
  { spec }: Job,
  { id, job_id, prefix }: Checkpoint,
  { samples, signal }: AnswerDeps,
): Promise<string[]> {
  const { prompts = [], ...options } = spec.checkpoint.samples ?? {};
  const { sample_timeout_ms: timeoutMs, model_loading_ms: loadingMs } = DEFAULT_LIMITS;
  const leaving = new AbortController();
  const late = new ZerofleetError(
    'sample_timeout',
    `the answers took longer than ${ANSWER_MS / 60_000} minutes`,
  );
  const deadline = setTimeout(() => leaving.abort(late), ANSWER_MS);
  const call = {
    is_named: false,
    timeout_ms: timeoutMs,
    loading_ms: loadingMs,
    signal: AbortSignal.any([signal, leaving.signal]),
  };
  const answer = async (prompt: (typeof prompts)[number]) => {
    const request = { ...SAMPLE_DEFAULTS, ...options, ...prompt };
    const source = { job_id, checkpoint: { id, prefix } };
    const reply = await samples.sample(
      spec.resources.pool,
      { project: spec.project, model: id, source, request },
      call,
    );
    if (reply.ok) return cut(reply.sample.choices[0]?.text ?? '');
    const { code, message } = reply.error;
    throw new ZerofleetError(isErrorCode(code) ? code : 'native_error', message);
  };
  try {
    return await Promise.all(prompts.map(answer));
  } finally {
    clearTimeout(deadline);
    leaving.abort();
  }
}

/** Characters beyond the Basic Multilingual Plane are not cut in half. */
const cut = (text: string) => text.slice(0, MAX_CHARACTERS).replace(/[\ud800-\udbff]$/, '');

function mayPass({ kind }: ZerofleetError, { committed_at }: Checkpoint): boolean {
  return kind.retryable && Date.now() - Date.parse(committed_at) < GIVE_UP_MS;
}
