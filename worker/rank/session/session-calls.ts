import {
  type CallResult,
  ERROR_CATALOGUE,
  isErrorCode,
  type PassCall,
  type StoredCall,
  ZerofleetError,
} from '../../../contracts/index.js';
import type { StartMessage } from '../../../contracts/rank-protocol.js';
import { readCall } from '../../../formats/calls/call-log.js';
import { codeOf, retryTransient, toRankError } from '../../shared/errors.js';
import type { OptimStep, PassLoss, StepResult } from '../../shared/native/adapter.js';
import type { Begun } from '../load/begin.js';
import type { SnapshotWriter } from '../snapshot-writer.js';
import { type LoadStateCall, type LoadTarget, loadState } from './load-state.js';
import { finiteOrNull, passAnswer, passRows, sampleAnswer, sampleRequests } from './pass-rows.js';
import { SampleEnds } from './sample-ends.js';
import { StepPasses } from './step-passes.js';

export interface SessionOptions extends LoadTarget {
  writer: Pick<SnapshotWriter, 'save' | 'busy'>;
  begun: Pick<Begun, 'at' | 'calls'>;
  onStep(result: Pick<StepResult, 'step' | 'sent'>): void;
}

interface Outcome {
  /** A `CallResult`, to which the agent adds the state digest after a change; null: the checkpoint of the step. */
  result: object | null;
  /** True if the call has changed the state. */
  changes: boolean;
}

/** Maximum size of a message, so that its reader serves others meanwhile. */
const RESULT_PART_BYTES = 2 ** 20;

/** Calls that change nothing: they are skipped if they have a result. */
const WITHOUT_EFFECT: ReadonlySet<StoredCall['type']> = new Set(['forward', 'sample', 'save_state']);

/** Runs the calls of a session on this rank, in order. */
export class SessionCalls {
  step: number;
  private skippedSteps: number;
  /** Last call that was run. */
  private number: number;
  /** Calls that the state includes while gradients are pending. */
  private included: number;
  /** Tokens of all steps. */
  private tokens: number;
  /** Passes since the last update whose gradients are pending; null without any. */
  private passes: StepPasses | null = null;
  private readonly ends: SampleEnds;
  private next: { number: number; call: Promise<StoredCall> } | null = null;

  constructor(private readonly options: SessionOptions) {
    const { at, calls } = options.begun;
    this.ends = new SampleEnds(options);
    this.step = at.step;
    this.skippedSteps = at.skipped_steps;
    this.number = calls.number;
    this.included = calls.number;
    this.tokens = calls.tokens;
  }

  /** Runs the calls up to a number. Returns true after a `finish`. */
  async runUntil(until: number, answered: number): Promise<boolean> {
    while (this.number < until) {
      const number = this.number + 1;
      const call = await this.read(number);
      if (number < until) this.prefetch(number + 1);
      await this.run(number, call, number <= answered);
      if (call.type === 'finish') return true;
    }
    return false;
  }

  /**
   * Saves the state, unless it is saved. The agent decides for all ranks, because a rank does not know whether the
   * others have saved.
   */
  async save(policy: keyof StartMessage['save'], saveRequest: number): Promise<void> {
    const { writer, trainer, channel, inbox, start } = this.options;
    await channel.send({ kind: 'save_call', step: this.step, policy, is_busy: writer.busy });
    const { nonce } = await inbox.saveAnswers.take();
    if (nonce === null) return;
    const number = this.passes === null ? this.number : this.included;
    await writer.save(trainer, start.save[policy], {
      nonce,
      save_request: saveRequest,
      eval_losses: {},
      early_stopping: null,
      calls: { number, tokens: this.tokens },
    });
  }

  private async run(number: number, call: StoredCall, hasResult: boolean): Promise<void> {
    const { channel, start, trainer } = this.options;
    const outcome =
      hasResult && WITHOUT_EFFECT.has(call.type)
        ? { result: null, changes: false }
        : await this.outcome(number, call);
    const { result, changes } = outcome;
    // An error where a call had no error before is reported, too: the agent compares.
    const isReported = start.rank === 0 && result !== null && (!hasResult || 'error' in result);
    this.number = number;
    if (changes) this.included = number;
    await channel.send({
      kind: 'called',
      number,
      step: this.step,
      result: isReported ? await this.lastPart(Buffer.from(JSON.stringify(result))) : null,
      digest_part: changes ? trainer.digestPart() : null,
    });
    const { every_steps } = start.spec.checkpoint;
    const isDue = call.type === 'optim_step' && every_steps !== undefined && this.step % every_steps === 0;
    if (changes && isDue) await this.save('periodic', 0);
  }

  /** Sends a result up to its last part, which it returns. */
  private async lastPart(result: Uint8Array): Promise<Uint8Array> {
    let at = 0;
    for (; result.length - at > RESULT_PART_BYTES; at += RESULT_PART_BYTES) {
      const bytes = result.subarray(at, at + RESULT_PART_BYTES);
      await this.options.channel.send({ kind: 'result_part', bytes });
    }
    return result.subarray(at);
  }

  /** @throws errors that are no result: the generation ends, and another one runs the call again */
  private async outcome(number: number, call: StoredCall): Promise<Outcome> {
    try {
      return await this.apply(number, call);
    } catch (error) {
      if (!isResult(error)) throw error;
      const { code, message } = toRankError(error);
      if (this.options.start.rank === 0)
        console.log(`call ${number}, ${call.type}, not done: ${code}: ${message}`);
      return { result: { error: { code, message } }, changes: false };
    }
  }

  private async apply(number: number, call: StoredCall): Promise<Outcome> {
    switch (call.type) {
      case 'forward':
      case 'forward_backward':
        return { result: await this.pass(call), changes: false };
      case 'optim_step':
        return { result: await this.update(call), changes: true };
      case 'sample':
        return { result: await this.sample(call), changes: false };
      case 'load_state':
        return this.load(number, call);
      case 'save_state':
        if (this.passes !== null)
          throw new ZerofleetError(
            'gradients_pending',
            'gradients wait for an optim_step and are not part of a checkpoint: call optim_step first',
          );
        await this.save('final', 0);
        return { result: null, changes: false };
      case 'finish':
        await this.save('final', 0);
        return { result: null, changes: false };
    }
  }

  private async sample(call: Extract<StoredCall, { type: 'sample' }>): Promise<CallResult> {
    const answers = await this.options.trainer.sample(sampleRequests(call));
    return sampleAnswer(await this.ends.cut(call, answers));
  }

  private async pass(call: PassCall): Promise<object> {
    const { trainer } = this.options;
    // A stored call has every field.
    const loss = call.loss as PassLoss;
    const rows = passRows(call.rows);
    const started = performance.now();
    if (call.type === 'forward') return passAnswer(await trainer.forward(loss, rows), rows);
    const result = await trainer.forwardBackward(loss, rows);
    this.passes ??= new StepPasses();
    this.passes.add(result, rows, secondsSince(started));
    return passAnswer(result, rows);
  }

  private async update(call: Extract<StoredCall, { type: 'optim_step' }>): Promise<object> {
    const { passes } = this;
    if (passes === null)
      throw new ZerofleetError(
        'no_gradients',
        'no forward_backward has added gradients since the last update',
      );
    const { channel, start, trainer, onStep } = this.options;
    const { betas, eps, weight_decay, gradient_clipping } = call;
    const started = performance.now();
    const result = await trainer.optimStep({
      lr: call.lr,
      betas: betas as OptimStep['betas'],
      eps,
      weight_decay,
      gradient_clipping,
    });
    passes.seconds += secondsSince(started);
    this.passes = null;
    this.step = result.step;
    this.skippedSteps = result.skipped_steps;
    this.tokens += passes.tokens;
    onStep(result);
    if (start.rank === 0) await channel.send(passes.stepped(result, this.tokens));
    const { step, grad_norm, lr, finite } = result;
    return { step, grad_norm: finiteOrNull(grad_norm), lr, finite };
  }

  private async load(number: number, call: LoadStateCall): Promise<Outcome> {
    const step = this.step + 1;
    const error = await loadState(this.options, { number, call }, { step, skipped_steps: this.skippedSteps });
    if (error !== null) return { result: { error }, changes: false };
    this.step = step;
    this.passes = null;
    this.options.onStep({ step, sent: { reduced: 0, gathered: 0, routed: 0 } });
    return { result: { step }, changes: true };
  }

  private read(number: number): Promise<StoredCall> {
    const { next } = this;
    this.next = null;
    return next?.number === number ? next.call : this.fetch(number);
  }

  private prefetch(number: number): void {
    const call = this.fetch(number);
    // read() receives the error.
    call.catch(() => undefined);
    this.next = { number, call };
  }

  private fetch(number: number): Promise<StoredCall> {
    const { objects, start } = this.options;
    return retryTransient(() => readCall(objects, start.job_id, number), start.save.final);
  }
}

/** Errors of the core that its arguments cause, before any rank begins to compute. */
const REFUSALS: ReadonlySet<string> = new Set(['invalid_argument']);

/** Returns whether an error is the result of its call: all ranks have it alike, and nothing has changed. */
function isResult(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  return (
    REFUSALS.has(code) || (isErrorCode(code) && ['user', 'data'].includes(ERROR_CATALOGUE[code].category))
  );
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}
