import type { FieldError, Grader, JobSpec, PassLoss, ResolvedJobSpec } from '../../contracts/index.js';
import { baseFault } from '../common/base-fault.js';
import { MAX_SAMPLED_TOKENS, MAX_SAMPLES } from '../common/call-limits.js';
import { fieldsOfType, filledByType } from '../common/defaults.js';
import { fieldError, withoutEffect } from '../common/field-error.js';
import type { Reinforcement } from '../objective.js';
import { MAX_CALL_BYTES } from './rollout-plan.js';

type Given = NonNullable<NonNullable<JobSpec['train']>['objective']>;
type PolicyLoss = PassLoss & Reinforcement['loss'];

const AT = '/train/objective';
/** Largest size of a prompt's token as text. */
const TOKEN_BYTES = 8;
/** Default of `evaluation_prompts`. */
const EVALUATED = 256;
/** Fields whose defaults follow from others, or that have none. */
const WITHOUT_DEFAULT = ['grader', 'max_tokens', 'evaluation_prompts'] as const;

export function resolveReinforcement(given: Given, sequenceLength: number): Reinforcement {
  const maxTokens = given.max_tokens ?? Math.max(1, Math.floor(sequenceLength / 2));
  const filled = filledByType<Reinforcement>('ObjectiveSpec', { ...given, type: 'grpo' });
  return {
    ...filled,
    loss: filledByType<PolicyLoss>('PolicyLoss', filled.loss),
    max_tokens: maxTokens,
    evaluation_prompts:
      given.evaluation_prompts ?? Math.min(EVALUATED, largestEvaluation(sequenceLength, maxTokens)),
    // Its absence is an error.
    grader: given.grader as Grader,
  };
}

/** Returns the largest number of prompts that one call answers once. */
function largestEvaluation(sequenceLength: number, maxTokens: number): number {
  const room = Math.max(1, sequenceLength - maxTokens);
  const prompts = Math.min(MAX_CALL_BYTES / TOKEN_BYTES / room, MAX_SAMPLED_TOKENS / maxTokens);
  return Math.max(1, Math.floor(prompts));
}

/** @param given as sent, to find fields without effect */
export function checkReinforcement(
  given: Given,
  { prompts_per_step, group_size, max_tokens, loss, evaluation_prompts }: Reinforcement,
  { sequence_length, adapter }: Pick<ResolvedJobSpec['train'], 'sequence_length' | 'adapter'>,
): FieldError[] {
  const fields = new Set([...fieldsOfType('ObjectiveSpec', 'grpo'), ...WITHOUT_DEFAULT]);
  const ofLoss = fieldsOfType('PolicyLoss', loss.type);
  const errors = [
    ...withoutEffect(AT, given, fields, 'with the objective grpo'),
    ...withoutEffect(`${AT}/loss`, given.loss, ofLoss, `with the loss ${loss.type}`),
  ];
  if (given.grader === undefined)
    errors.push(fieldError(`${AT}/grader`, 'missing_field', 'the objective grpo needs a grader'));
  const fault = (loss.beta ?? 0) > 0 ? baseFault(adapter) : null;
  if (fault !== null) errors.push(fieldError(`${AT}/loss/beta`, fault.code, fault.message, '0'));
  if (max_tokens >= sequence_length) {
    const message = `a prompt and its sample have at most train.sequence_length ${sequence_length} tokens, so max_tokens ${max_tokens} leaves no room for a prompt`;
    errors.push(fieldError(`${AT}/max_tokens`, 'out_of_range', message, String(sequence_length - 1)));
  }
  const room = sequence_length - max_tokens;
  if (prompts_per_step * room * TOKEN_BYTES > MAX_CALL_BYTES) {
    const message = `${prompts_per_step} prompts of up to ${room} tokens exceed the size of a call`;
    const fit = String(Math.max(1, Math.floor(MAX_CALL_BYTES / TOKEN_BYTES / room)));
    errors.push(fieldError(`${AT}/prompts_per_step`, 'out_of_range', message, fit));
  }
  const most = largestEvaluation(sequence_length, max_tokens);
  if (evaluation_prompts > most) {
    const message = `${evaluation_prompts} prompts and answers exceed the size of a call`;
    errors.push(fieldError(`${AT}/evaluation_prompts`, 'out_of_range', message, String(most)));
  }
  const samples = prompts_per_step * group_size;
  if (samples > MAX_SAMPLES) {
    const message = `${prompts_per_step} prompts of ${group_size} samples are ${samples} samples; the maximum is ${MAX_SAMPLES}`;
    const fit = String(Math.max(1, Math.floor(MAX_SAMPLES / group_size)));
    errors.push(fieldError(`${AT}/prompts_per_step`, 'out_of_range', message, fit));
  } else if (samples * max_tokens > MAX_SAMPLED_TOKENS) {
    const message = `${samples} samples of ${max_tokens} tokens exceed the maximum of ${MAX_SAMPLED_TOKENS} tokens`;
    const fit = String(Math.floor(MAX_SAMPLED_TOKENS / samples));
    errors.push(fieldError(`${AT}/max_tokens`, 'out_of_range', message, fit));
  }
  return errors;
}
